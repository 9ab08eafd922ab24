"""`flexwire warmup`: keeps Spark's classes, so that its starts take half as long."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import Format, format_option

if TYPE_CHECKING:
    from flexwire.kernels import KernelStatus

_NOT_KEPT = (
    "not kept, as this Java makes no archive of them or no directory can be written; Spark starts "
    "as it did before"
)


@click.command()
@format_option
def warmup(*, output: Format) -> None:
    """Keep Spark's classes for this machine, as when an image is built.

    Where Spark is installed its classes are kept as Java has them once it has loaded them, 120 MB
    in flexwire's directory below $XDG_CACHE_HOME or ~/.cache that save half of each start, if Java
    can. It also says which kernels flexwire runs on: they are built when it is installed.
    """
    from flexwire.kernels import kernel_status

    kernels, classes = kernel_status(), None
    is_text = output is Format.TEXT
    if is_text:
        print(kernels)
    if find_spec("pyspark") is not None:
        from flexwire.spark.archive import make_archive
        from flexwire.spark.settings import SMALL_JAVA

        began = time.monotonic()
        kept = make_archive(SMALL_JAVA) is not None
        classes = time.monotonic() - began if kept else None
        if is_text:
            print(f"Spark's classes: {_NOT_KEPT if classes is None else f'{classes:.1f} s'}")
    if not is_text:
        print(json.dumps(_as_json(kernels, classes), indent=2))


def _as_json(kernels: KernelStatus, classes: float | None) -> dict[str, Any]:
    found = {
        "compiledBy": kernels.compiled_by,
        "level": kernels.level,
        "isCompiled": kernels.is_compiled,
        "reason": kernels.reason,
    }
    # Nothing is compiled any more; the key remains for one release.
    return {"kernels": found, "kernelSeconds": None, "sparkClassesSeconds": classes}
