"""Key logs by their paths, and captures from wherever they were listed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.capture.tls.captures import open_captures
from flexwire.capture.tls.keylog import KeyLog

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence

    from flexwire.capture.tls.captures import OpenedCaptures
    from flexwire.storage.source import Source

EMBEDDED: Final = "embedded"
"""Given for a key log: those that pcapng files hold themselves, which are always taken, are all."""


def read_key_logs(paths: Sequence[str]) -> KeyLog:
    """The secrets of key logs; `CaptureError` for one that is none."""
    keys = KeyLog()
    for path in paths:
        if path != EMBEDDED:
            keys.add_file(Path(path))
    return keys


def open_sources(files: Sequence[Source], directory: Path, keys: KeyLog) -> OpenedCaptures:
    """Write captures anew into a ``directory``: see `flexwire.capture.tls.open_captures`."""
    by_name = {one.name: one for one in files}

    def opener(name: str, start: int) -> io.BufferedReader:
        return by_name[name].open(start)

    return open_captures(list(by_name), directory, keys, opener)
