"""An analysis and its files: what they say of themselves, and which are unreadable.

What is written for it is beside the output, so that every machine sees it, for its owner alone, and
removed when the analysis has ended. Where the output is in a store, only this machine sees it.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.arguments import DELTA, to_list, to_text
from flexwire.capture.tls.captures import open_sources, read_key_logs
from flexwire.errors import CaptureError, FlexwireError, StorageError
from flexwire.extras import needed_by
from flexwire.facts.captures import (
    NO_ADDED_TAGS,
    AddedTags,
    SampledCaptures,
    added_tags,
    sampled_files,
    sampled_notes,
)
from flexwire.facts.facts import TlsFacts, TlsReason, UnreadableFile
from flexwire.inputs import Inputs, capture_sources, input_sources  # their old place
from flexwire.spark.publishing.local import local_staging
from flexwire.spark.publishing.object_store import store_staging
from flexwire.storage.file_search import SUFFIXES, list_captures
from flexwire.storage.filesystems import scheme_of, shown
from flexwire.storage.local import make_private_directory
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.survey import AnalysisRequest
from flexwire.tables.output import is_delta

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.capture.tls import OpenedCaptures
    from flexwire.facts.facts import Facts
    from flexwire.spark.publishing.output import OutputOptions, Staging
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import FileMarks

    Marked = Iterable[tuple[str, FileMarks]]


__all__ = [
    "SUFFIXES",
    "Inputs",
    "capture_sources",
    "input_sources",
    "output_directory",
]


def output_directory(out: str | Path) -> OutputDirectory:
    """Return where an analysis writes: a directory here or in a store.

    `StorageError` for another.
    """
    text = str(out)
    if scheme_of(text) == "memory":
        raise StorageError(
            "expected a directory or a store that every process sees; memory:// is of one alone",
            url=shown(text),
        )
    return OutputDirectory(text)


@contextmanager
def begin_output(
    out: OutputDirectory,
    files: list[InputFile],
    output: OutputOptions,
    logs: Sequence[InputFile] = (),
) -> Iterator[Staging]:
    """Begin the output of an analysis of ``files`` into ``out``; what is not published is removed.

    The ``logs`` beside them are not known by their files, as these grow, but by offsets.
    """
    if output.format == DELTA:
        with needed_by("--tables delta", "delta"):
            from flexwire.spark.delta.staging import delta_staging  # noqa: PLC0415 - an extra

        def digest_of(captures: Iterable[InputFile]) -> str:
            return AnalysisRequest((*captures, *logs)).digest

        with delta_staging(
            out, files, digest_of, append=output.append, has_logs=bool(logs)
        ) as grown:
            yield grown
        return
    if is_delta(out):
        raise FlexwireError(
            f"{out} holds Delta tables of other analyses; give --tables delta, or choose another "
            "--out"
        )
    with store_staging(out) if out.path is None else local_staging(out.path) as staging:
        yield staging


def left_out_notes(known: int, growing: int, out: OutputDirectory) -> tuple[str, ...]:
    """Return notes on files that grown tables have already, and on those still being written."""
    notes = []
    if known:
        are = "1 file is" if known == 1 else f"{known:,} files are"
        notes.append(f"{are} in {out} already, so only the others were added")
    if growing:
        are = "1 file is" if growing == 1 else f"{growing:,} files are"
        notes.append(f"{are} still being written, and left for the next analysis")
    return tuple(notes)


_MOST_REASONS: Final = 20
_MOST_SOURCES: Final = 20
_PREFIX: Final = ".flexwire-opened-"


def to_key_logs(keys: Iterable[str | Path]) -> tuple[str, ...]:
    """Return the key logs that a caller gave."""
    paths = to_list(keys, "keys", "a list of paths")
    return tuple(to_text(str(path) if isinstance(path, Path) else path, "keys") for path in paths)


@contextmanager
def open_captures(
    out: OutputDirectory, files: list[InputFile], keys: tuple[str, ...]
) -> Iterator[tuple[list[InputFile], OpenedCaptures | None]]:
    """Captures as key logs open them, until the block ends, and what became of the connections."""
    if not keys:
        yield files, None
        return
    if not files:
        raise CaptureError("a key log opens captures, and there is none", source=keys[0])
    key_logs = read_key_logs(keys)
    if out.path is not None:
        make_private_directory(out.path.parent)
    beside = None if out.path is None else out.path.parent
    scratch = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
    try:
        opened = open_sources(files, scratch / "captures", key_logs)
        if not opened.paths:
            raise CaptureError("no packet in the captures", source=files[0].name)
        yield list_captures(opened.paths), opened
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def with_tls(facts: Facts, opened: OpenedCaptures, files: Sequence[InputFile]) -> Facts:
    """Return the facts with what became of the TLS connections."""
    counts = opened.counts
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
        sources=tuple(file.name for file in files[:_MOST_SOURCES]),
        source_files=len(files),
    )
    return replace(facts, tls=tls)


def _reasons(counted: Counter[str]) -> tuple[TlsReason, ...]:
    return tuple(TlsReason(*reason) for reason in counted.most_common(_MOST_REASONS))


SHOWN: Final = 200
"""Of so many files the report says why."""
REMEDY: Final = "analyze the rest with --skip-unreadable, skip_unreadable=True in Python"


@dataclass(frozen=True, slots=True)
class UnreadableFiles:
    """A count of files that cannot be opened or are no captures, with reasons for the first."""

    count: int = 0
    shown: tuple[UnreadableFile, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[CaptureError]) -> UnreadableFiles:
        """Return the files that gave these errors."""
        shown = (UnreadableFile(error.source, error.reason) for error in errors[:SHOWN])
        return cls(len(errors), tuple(shown))

    def check(self, files: int, *, skip: bool, remedy: str = REMEDY) -> None:
        """Raise `CaptureError` if there are any, of this many files, and they are not skipped."""
        if not self.count or (skip and self.count < files):
            return
        first = self.shown[0]
        reason = first.reason
        if self.count == files > 1:
            reason = f"{reason}; none of the {files:,} files can be read"
        elif self.count < files:
            more = self.count - 1
            others = f", nor can {more:,} other{'s' * (more > 1)}" if more else ""
            reason = (
                f"{reason}; so it cannot be read{others}, of {files:,} files. Leave out what is "
                f"not a capture, or {remedy}"
            )
        raise CaptureError(reason, source=first.source)

    def add_to(self, facts: Facts) -> Facts:
        """Return the same facts with these files in them."""
        return replace(facts, unreadable=self.shown, unreadable_files=self.count)


@dataclass(frozen=True, slots=True)
class CaptureMarks:
    """The marks of all captures of an analysis, in bounded space but for those of rehearsals.

    ``rehearsed`` has the name of each capture of a tap that rehearsed, and the release.
    """

    sampled: tuple[SampledCaptures, ...] = ()
    added_tags: AddedTags = NO_ADDED_TAGS
    rehearsed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, marked: Marked) -> CaptureMarks:
        """Return the marks of these files."""
        marks_by_file = list(marked)
        return cls(
            sampled_files(marks.part for _, marks in marks_by_file if marks.part is not None),
            added_tags((name, marks.added_tags) for name, marks in marks_by_file),
            tuple((name, marks.rehearsed) for name, marks in marks_by_file if marks.rehearsed),
        )

    def add_to(self, facts: Facts) -> Facts:
        """Return the same facts with these marks in them."""
        return replace(facts, sampled=self.sampled, added_tags=self.added_tags)

    def notes(self) -> tuple[str, ...]:
        """Return notes for the user."""
        return mark_notes(self.sampled, self.added_tags)


NO_MARKS: Final = CaptureMarks()
"""No capture says anything of itself."""


def mark_notes(sampled: Iterable[SampledCaptures], added: AddedTags) -> tuple[str, ...]:
    """Return notes on captures that hold only a part, or whose taps added tags."""
    return (*sampled_notes(sampled), *((" ".join(added.sentences),) if added.files else ()))
