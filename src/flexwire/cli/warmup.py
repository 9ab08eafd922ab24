"""`flexwire warmup`: compiles the kernels, and keeps Spark's classes, so that no process waits."""

from __future__ import annotations

import time
from importlib.util import find_spec

import click


@click.command()
def warmup() -> None:
    """Compile the kernels for this machine, as when an image is built.

    It takes less than a minute, and is done once for each version of flexwire, of Python and of
    numba, and for each kind of CPU. Where Spark is installed, its classes are kept as well as Java
    has them once it has loaded them, 120 MB that save half of each start, if Java can. Both are in
    flexwire's directory below $XDG_CACHE_HOME or ~/.cache.
    """
    from flexwire.errors import FlexwireError
    from flexwire.kernels.cache import load
    from flexwire.kernels.engine import KERNELS, kernel

    for what, compiled in (
        ("messages as objects", load),
        ("messages, records and captures as columns", lambda: all(map(kernel, KERNELS)) or None),
    ):
        began = time.monotonic()
        if compiled() is None:
            raise FlexwireError(
                "there are no kernels here: they need numba (pip install 'flexwire[columnar]'), "
                "CPython on a 64-bit machine, room on the disk, and neither FLEXWIRE_KERNELS=off "
                "nor NUMBA_DISABLE_JIT"
            )
        print(f"{what}: {time.monotonic() - began:.1f} s")
    if find_spec("pyspark") is not None:
        from flexwire.spark.archive import SMALL_JAVA, make_archive

        began = time.monotonic()
        kept = make_archive(SMALL_JAVA) is not None
        print(f"Spark's classes: {f'{time.monotonic() - began:.1f} s' if kept else 'not kept'}")
