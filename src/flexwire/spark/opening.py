"""Captures with TLS and the key logs to them: opened on the driver, before an analysis reads them.

What is written for it is beside the output, so that every machine sees it, for its owner alone, and
removed when the analysis has ended. Where the output is in a store, only this machine sees it.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.arguments import to_list, to_text
from flexwire.capture.tls.captures import open_sources, read_key_logs
from flexwire.errors import CaptureError
from flexwire.report.tls_facts import TlsFacts, TlsReason
from flexwire.storage.listing import list_sources
from flexwire.storage.local import make_private_directory

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.capture.tls import OpenedCaptures
    from flexwire.report.facts import Facts
    from flexwire.storage.place import Place
    from flexwire.storage.source import Source

_MOST_REASONS: Final = 20
_MOST_SOURCES: Final = 20
_PREFIX: Final = ".flexwire-opened-"


def to_key_logs(keys: Iterable[str | Path]) -> tuple[str, ...]:
    """The key logs that a caller gave."""
    given = to_list(keys, "keys", "a list of paths")
    return tuple(to_text(str(one) if isinstance(one, Path) else one, "keys") for one in given)


@contextmanager
def opened_beside(
    to: Place, files: list[Source], keys: tuple[str, ...]
) -> Iterator[tuple[list[Source], OpenedCaptures | None]]:
    """Captures as key logs open them, until the block ends, and what became of the connections."""
    if not keys:
        yield files, None
        return
    if not files:
        raise CaptureError("a key log opens captures, and there is none", source=keys[0])
    read = read_key_logs(keys)
    if to.path is not None:
        make_private_directory(to.path.parent)
    beside = None if to.path is None else to.path.parent
    scratch = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
    try:
        done = open_sources(files, scratch / "captures", read)
        if not done.paths:
            raise CaptureError("no packet in the captures", source=files[0].name)
        yield list_sources(done.paths), done
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def with_tls(facts: Facts, done: OpenedCaptures, files: Sequence[Source]) -> Facts:
    """The facts with what became of the TLS connections."""
    counts = done.counts
    tls = TlsFacts(
        opened=counts.opened,
        partly_opened=counts.partly.total(),
        not_opened=counts.unopened.total(),
        partly=_reasons(counts.partly),
        unopened=_reasons(counts.unopened),
        plain_bytes=counts.plain_bytes,
        lost_bytes=counts.lost_bytes,
        unread_bytes=counts.unread_bytes,
        damaged_places=len(counts.damaged),
        sources=tuple(one.name for one in files[:_MOST_SOURCES]),
        source_files=len(files),
    )
    return replace(facts, tls=tls)


def _reasons(counted: Counter[str]) -> tuple[TlsReason, ...]:
    return tuple(TlsReason(*one) for one in counted.most_common(_MOST_REASONS))
