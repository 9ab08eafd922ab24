"""Run programs beside a caller; they end when the caller does, even if it is killed.

The caller holds the other end of their standard input and sends nothing. The programs stop when
the input is closed. The first line that a program prints is its address.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tools.maven import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# On a busy machine, starting takes a minute.
MOST_SECONDS = 180
_SHOWN = 4000


@contextlib.contextmanager
def companion(module: str, given: list[str], log: Path) -> Iterator[str]:
    """Yield the first line of a module's program while it runs; raise `RuntimeError` if it fails.

    ``log`` is the file that records why a program failed.
    """
    with subprocess.Popen(
        [sys.executable, "-m", module, *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        # Only the caller receives Ctrl-C, and then closes the program's input.
        start_new_session=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - pipes
        address = process.stdout.readline().strip()
        try:
            if not address:
                said = log.read_text(errors="replace")[-_SHOWN:] if log.exists() else "nothing"
                raise RuntimeError(f"{module} {given[0]} did not start; it said:\n{said}")
            yield address
        finally:
            process.stdin.close()
            process.wait(MOST_SECONDS)


def accompany(process: subprocess.Popen[bytes], address: str) -> None:
    """Print the address of a process, and end it when standard input ends."""
    try:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
