"""`flexwire warmup`: store Spark's loaded classes, so that Spark starts in half the time."""

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
    "not stored, because this Java cannot create the archive or no directory is writable; Spark "
    "starts as before"
)


@click.command()
@format_option
def warmup(*, output: Format) -> None:
    """Store Spark's classes on this machine, for example while you build an image.

    If Spark is installed and its Java can create class archives, this command stores Spark's
    loaded classes in an archive (120 MB in flexwire's directory below $XDG_CACHE_HOME or ~/.cache).
    Afterwards, Spark starts in half the time. The command also prints which kernels flexwire uses.
    The kernels are built when flexwire is installed.
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
        has_archive = make_archive(SMALL_JAVA) is not None
        classes = time.monotonic() - began if has_archive else None
        if is_text:
            print(f"Spark's classes: {_NOT_KEPT if classes is None else f'{classes:.1f} s'}")
    if not is_text:
        print(json.dumps(_as_json(kernels, classes), indent=2))


def _as_json(kernels: KernelStatus, classes: float | None) -> dict[str, Any]:
    kernel_form = {
        "compiledBy": kernels.compiled_by,
        "level": kernels.level,
        "isCompiled": kernels.is_compiled,
        "reason": kernels.reason,
    }
    # This command no longer compiles kernels. The key is kept for one release.
    return {"kernels": kernel_form, "kernelSeconds": None, "sparkClassesSeconds": classes}
