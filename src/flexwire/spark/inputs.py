"""The input files of an analysis: how they are marked as read, and which of them are unreadable."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.arguments import DELTA, ICEBERG, to_list, to_text
from flexwire.errors import FlexwireError, StorageError
from flexwire.extras import needed_by
from flexwire.facts.facts import TlsFacts, TlsReason

# This module previously defined these names, and still exports them.
from flexwire.inputs import Inputs, capture_sources, input_sources
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.publishing.local import local_staging
from flexwire.spark.publishing.object_store import store_staging
from flexwire.storage.file_search import SUFFIXES
from flexwire.storage.filesystems import scheme_of, shown
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.survey import AnalysisRequest
from flexwire.tables.output import is_delta, is_iceberg

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.capture.tls import OpenedCaptures
    from flexwire.facts.facts import Facts
    from flexwire.spark.delta.grown import GrownTables
    from flexwire.spark.delta.request_logs import GivenRequestLogs
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
    """Return the place where an analysis writes: a local directory, or a directory in a store.

    Raises `StorageError` for any other place.
    """
    text = str(out)
    if scheme_of(text) == "memory":
        raise StorageError(
            "expected a directory or an object store that every process can read; memory:// is "
            "visible to only one process",
            url=shown(text),
        )
    return OutputDirectory(text)


@contextmanager
def begin_output(
    out: OutputDirectory,
    files: list[InputFile],
    output: OutputOptions,
    logs: Sequence[InputFile] = (),
    request_logs: GivenRequestLogs | None = None,
) -> Iterator[Staging]:
    """Begin the output of a capture analysis in ``out``; remove unpublished files at the end.

    The ``files`` are the captures. The ``logs`` are identified by their offsets, not by their
    files, because logs grow. Request logs are identified by their first bytes.
    """
    if output.format in {DELTA, ICEBERG}:
        others = [log.source for log in request_logs.files] if request_logs else []

        def digest_of(captures: Iterable[InputFile]) -> str:
            return AnalysisRequest((*captures, *others, *logs)).digest

        with grown_staging(
            _grown_tables(out, output),
            files,
            digest_of,
            append=output.append,
            has_logs=bool(logs),
            request_logs=request_logs,
        ) as grown:
            yield grown
        return
    if is_delta(out) or is_iceberg(out):
        kind, option = ("Delta", DELTA) if is_delta(out) else ("Iceberg", ICEBERG)
        raise FlexwireError(
            f"{out} holds {kind} tables of other analyses; use --tables {option}, or choose "
            "another --out"
        )
    with store_staging(out) if out.path is None else local_staging(out.path) as staging:
        yield staging


def _grown_tables(out: OutputDirectory, output: OutputOptions) -> GrownTables:
    with needed_by(f"--tables {output.format}", output.format):
        if output.format == ICEBERG:
            from flexwire.spark.iceberg.output import IcebergTables  # noqa: PLC0415 - an extra

            return IcebergTables(out, output.catalog)
        from flexwire.spark.delta.output import DeltaTables  # noqa: PLC0415 - an extra

        return DeltaTables(out)


def output_notes(staging: Staging) -> tuple[str, ...]:
    """Return notes on input that was left out, and on other runs into this analysis's output."""
    notes = []
    if known := len(staging.known_files):
        are = "1 file is" if known == 1 else f"{known:,} files are"
        notes.append(f"{are} already in {staging.out}, so only the other files were added")
    if growing := len(staging.growing_files):
        are = "1 file is" if growing == 1 else f"{growing:,} files are"
        notes.append(f"{are} still being written and will be read by the next analysis")
    return (*notes, *staging.log_notes, *staging.notes)


_MOST_REASONS: Final = 20
_MOST_SOURCES: Final = 20


def to_key_logs(keys: Iterable[str | Path]) -> tuple[str, ...]:
    """Return the key logs in a caller's argument."""
    paths = to_list(keys, "keys", "a list of paths")
    return tuple(to_text(str(path) if isinstance(path, Path) else path, "keys") for path in paths)


def with_tls(facts: Facts, opened: OpenedCaptures, files: Sequence[InputFile]) -> Facts:
    """Return the facts, with the results of decrypting TLS connections added."""
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
