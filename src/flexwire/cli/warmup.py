"""`flexwire warmup`: compiles the kernels, and keeps Spark's classes, so that no process waits."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import Format, format_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.kernels.running import Running

_NOT_KEPT = (
    "not kept, as this Java makes no archive of them or no directory can be written; Spark starts "
    "as it did before"
)


@click.command()
@format_option
def warmup(*, output: Format) -> None:
    """Compile the kernels for this machine, as when an image is built.

    A wheel of this platform brings them compiled, and there is nothing to do. Elsewhere it takes
    less than a minute, and is done once for each version of flexwire, of Python and of numba, and
    for each kind of CPU. Where Spark is installed, its classes are kept as well as Java has them
    once it has loaded them, 120 MB that save half of each start, if Java can. Both are in
    flexwire's directory below $XDG_CACHE_HOME or ~/.cache.
    """
    from flexwire.kernels.running import kernels

    running, seconds, classes = kernels(), None, None
    is_text = output is Format.TEXT
    if running.compiled_by != "wheel":
        began = time.monotonic()
        _compile()
        seconds = time.monotonic() - began
        if is_text:
            print(f"kernels: {seconds:.1f} s")
    if is_text:
        print(kernels())
    if find_spec("pyspark") is not None:
        from flexwire.spark.archive import make_archive
        from flexwire.spark.settings import SMALL_JAVA

        began = time.monotonic()
        kept = make_archive(SMALL_JAVA) is not None
        classes = time.monotonic() - began if kept else None
        if is_text:
            print(f"Spark's classes: {_NOT_KEPT if classes is None else f'{classes:.1f} s'}")
    if not is_text:
        print(json.dumps(_as_json(kernels(), seconds, classes), indent=2))


def _as_json(running: Running, seconds: float | None, classes: float | None) -> dict[str, Any]:
    found = asdict(running)
    return {
        "kernels": {
            "compiledBy": found["compiled_by"],
            "level": found["level"],
            "isCompiled": found["is_compiled"],
            "reason": found["reason"],
        },
        "kernelSeconds": seconds,
        "sparkClassesSeconds": classes,
    }


def _compile() -> None:
    from flexwire.cli.terminal import progress_bar
    from flexwire.errors import FlexwireError
    from flexwire.kernels import cache, engine

    # The kernels of a module are compiled together, and so are all those over objects.
    steps: list[Callable[[], object]] = [
        cache.load,
        *(partial(engine.kernel, name) for name in engine.KERNELS),
    ]
    with progress_bar() as hear:
        for done, step in enumerate(steps):
            hear("compiling kernels", done, len(steps))
            if step() is None:
                raise FlexwireError(f"no kernels can be compiled: {_remedy()}")


def _remedy() -> str:
    """Why there are no kernels, and what to do about that; one sentence."""
    from flexwire.errors import remedy
    from flexwire.kernels.cache import lacking

    if (reason := lacking()) is None:
        return (
            "no directory can be written; free the disk, or set XDG_CACHE_HOME to one that can be"
        )
    if os.environ.get("FLEXWIRE_KERNELS") == "off":
        return "unset FLEXWIRE_KERNELS, which is off"
    if "NUMBA_DISABLE_JIT" in reason:
        return "unset NUMBA_DISABLE_JIT, which keeps numba from compiling"
    if "not installed" in reason:
        return f"numba is not installed: {remedy('fast')}"
    return reason
