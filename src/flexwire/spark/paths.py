"""Which capture files the paths on a command line mean, where all are on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.errors import StorageError
from flexwire.storage.listing import SUFFIXES, list_sources
from flexwire.storage.urls import scheme_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SUFFIXES", "capture_files"]


def capture_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that `list_sources` finds, as paths. `StorageError` for one in an object store."""
    sources = list_sources(paths)
    for source in sources:
        if scheme_of(source.url):
            raise StorageError("expected a file on this machine", url=shown(source.url))
    return [Path(source.url) for source in sources]
