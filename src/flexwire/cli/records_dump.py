"""`flexwire records dump`: print log segments and related files as text or JSON lines."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from flexwire.cli.options import Format, InputError, batch_mib_option, format_option
from flexwire.cli.records_dump_options import (
    DECODER_NAMES,
    DIALECT_NAMES,
    NOTATIONS,
    ConventionName,
    DumpOptions,
    OffsetRange,
    TimeRange,
)
from flexwire.cli.standard_input import segment_name, takes_standard_input
from flexwire.cli.terminal import styled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.cli.records_dump_rows import Row
    from flexwire.records.conventions import Convention

FINDINGS = 100
_MIB = 1024 * 1024
_TYPED_BY_HAND = "kip-1308"
# The fields of a record's row that belong to each optional part.
_PARTS = {
    "metadata": ("offset", "timestamp", "sequence", "keySize", "valueSize"),
    "content": ("key", "value", "headers", "control", "withheldCredentials"),
}


@click.command("dump")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True, path_type=Path)
)
@click.option("--deep", is_flag=True, help="Also show the records of each batch.")
@click.option(
    "--offsets",
    type=OffsetRange(),
    help="Show only these offsets: A-B (both included), A-, -B or A.",
)
@click.option(
    "--time",
    "times",
    type=TimeRange(),
    help=(
        "Show only records from the first time to the second, both included. You can omit one of "
        "the two times. Write a time in ISO 8601 (UTC if it has no zone) or in milliseconds."
    ),
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=0),
    help="Show only batches that begin within the first N bytes of a log.",
)
@click.option(
    "--decode",
    type=click.Choice(DECODER_NAMES),
    help="Decode records as records of this internal topic. The default is the topic in the "
    "directory name. Implies --deep.",
)
@click.option(
    "--release",
    help=(
        "The Kafka release that wrote the logs. flexwire uses this release's layouts of internal "
        "topics and control records. 4.0 means the newest 4.0 release. By default, flexwire uses "
        "the newest layout that fits. Implies --deep."
    ),
)
@click.option(
    "--key",
    "key_notation",
    type=click.Choice(NOTATIONS),
    help=(
        "How to show keys. auto, the default, shows a key as text if it is text, and as bytes "
        "otherwise. Implies --deep."
    ),
)
@click.option(
    "--value",
    "value_notation",
    type=click.Choice(NOTATIONS),
    help="How to show values. Implies --deep.",
)
@click.option(
    "--headers",
    "convention",
    type=ConventionName(),
    help="Read the values of record headers according to this convention. Implies --deep.",
)
@click.option(
    "--header-type",
    "header_type",
    multiple=True,
    metavar="KEY=TYPE",
    help="With --headers kip-1308: the type of a header, such as retries=int.",
)
@click.option(
    "--dialect",
    type=click.Choice(["kip82", *DIALECT_NAMES]),
    help=(
        "Read logs in KIP-82's own format, in which magic 2 is a message with typed headers. "
        "kip-82 uses the types in the current KIP-82; kip-82-earlier uses the types in its "
        "previous revision. kip82 is another name for kip-82. Implies --deep."
    ),
)
@click.option(
    "--without",
    type=click.Choice(["batches", *_PARTS]),
    multiple=True,
    help="Omit the batches, the records' metadata, or the records' content.",
)
@click.option(
    "--show-credentials",
    is_flag=True,
    help=(
        "Show SCRAM salts and keys, and secret configurations, in the cluster's metadata. By "
        "default, these values are withheld."
    ),
)
@batch_mib_option
@click.option("--findings", is_flag=True, help="Show only damage in logs and indexes.")
@format_option
@takes_standard_input(files=segment_name)
def records_dump(
    *,
    files: tuple[Path, ...],
    deep: bool,
    offsets: tuple[int, int] | None,
    times: tuple[int, int] | None,
    max_bytes: int | None,
    decode: str | None,
    release: str | None,
    key_notation: str | None,
    value_notation: str | None,
    convention: str | None,
    header_type: tuple[str, ...],
    dialect: str | None,
    without: tuple[str, ...],
    show_credentials: bool,
    max_inflated: int | None,
    findings: bool,
    output: Format,
) -> None:
    """Dump log segments and the other files of a broker's log directory.

    FILES can be *.log, *.index, *.timeindex, *.txnindex, *.snapshot (producer state), *.checkpoint
    (KRaft), leader-epoch-checkpoint, *-offset-checkpoint, directories of these, or - for a log.

    The command shows each batch's header and verifies the batch's CRC. With --deep, it also shows
    every record, cut to one line on a terminal. It compares each log with its indexes. If a file is
    damaged, the command reports the damage, continues after it, and exits with 100. By default,
    credentials and undecodable values in the cluster's metadata are counted but not shown.
    """
    from flexwire.protocol.internal_topics import InternalTopic
    from flexwire.schema.catalog import catalog

    if dialect is not None and any((decode, release, convention)):
        raise click.UsageError(
            "--dialect determines the whole format; leave out --decode, --release and --headers"
        )
    paths = list(_find_files(files))
    out = sys.stdout  # A progress bar uses standard output itself.
    with _progress() as hear:
        options = DumpOptions(
            deep=deep or any((decode, release, key_notation, value_notation, convention)),
            offsets=offsets,
            times=times,
            max_bytes=max_bytes,
            decode=None if decode is None else InternalTopic(decode),
            release=None if release is None else catalog().release(release),
            key_notation=key_notation or "auto",
            value_notation=value_notation or "auto",
            convention=_convention(convention, header_type),
            show_credentials=show_credentials,
            dialect="kip-82" if dialect == "kip82" else dialect,
            max_inflated=max_inflated,
            named=frozenset(paths),
            hear=hear,
        )
        rows = _select_rows(_all_rows(paths, options), without, is_finding=findings)
        has_findings = _write(rows, output, out) > 0
    if has_findings:
        sys.exit(FINDINGS)


def _find_files(paths: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the files.

    The files in a directory are sorted by segment, with each segment's log first.
    """
    from flexwire.cli.records_dump_rows import is_known

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = [file for file in path.iterdir() if file.is_file() and is_known(file)]
        if not inside:
            raise InputError(f"{path} contains no file that a broker stores for a partition")
        yield from sorted(
            inside, key=lambda file: (file.name.split(".")[0], ".log" not in file.name, file.name)
        )


def _convention(name: str | None, typed_keys: tuple[str, ...]) -> Convention | None:
    if typed_keys and name != _TYPED_BY_HAND:
        raise click.UsageError(f"--header-type is for --headers {_TYPED_BY_HAND}")
    if name is None:
        return None
    from flexwire.records.conventions import CONVENTIONS, FixedWidth

    if not typed_keys:
        return CONVENTIONS[name]
    types = [typed_key.partition("=") for typed_key in typed_keys]
    if not all(equals for _, equals, _ in types):
        raise click.UsageError("--header-type takes KEY=TYPE")
    return FixedWidth({key: type_ for key, _, type_ in types})


def _all_rows(paths: list[Path], options: DumpOptions) -> Iterator[Row]:
    from flexwire.cli.records_dump_rows import rows

    for path in paths:
        yield from rows(path, options)


def _select_rows(
    rows: Iterator[Row], without: tuple[str, ...], *, is_finding: bool
) -> Iterator[Row]:
    """Leave out unrequested parts and, if only findings were requested, all other rows."""
    if without:
        rows = (row for row in map(partial(_without, without), rows) if row is not None)
    return (row for row in rows if row["type"] == "finding") if is_finding else rows


def _without(parts: tuple[str, ...], row: Row) -> Row | None:
    """Return a row without the parts that were not requested, or None if nothing remains."""
    if row["type"] == "batch" and "batches" in parts:
        return None
    if row["type"] == "record":
        absent = {name for part in parts for name in _PARTS.get(part, ())}
        return {name: value for name, value in row.items() if name not in absent}
    return row


def _write(rows: Iterator[Row], output: Format, out: TextIO) -> int:
    """Write the rows and return the number of findings."""
    import msgspec

    from flexwire.cli.records_dump_text import DumpText

    is_terminal = out.isatty()
    text = DumpText(
        width=shutil.get_terminal_size().columns if is_terminal else None,
        colour=is_terminal and not os.environ.get("NO_COLOR"),
    )
    encode = msgspec.json.Encoder().encode
    # `DumpText` has already escaped the foreign text in its lines, and adds only its own colors.
    lines_out = styled(out)
    findings = 0
    for row in rows:
        findings += row["type"] == "finding"
        if output is Format.JSON:
            print(_json(encode, row), file=out)
        else:
            for line in text.lines(row):
                print(line, file=lines_out)
    if output is Format.TEXT:
        print(text.summary(), file=lines_out)
    return findings


def _json(encode: Callable[[Row], bytes], row: Row) -> str:
    try:
        return encode(row).decode()
    except UnicodeEncodeError:
        # The name of a file may contain bytes that are not text. Python replaces such bytes with
        # lone surrogates.
        return json.dumps(row)


@contextmanager
def _progress() -> Iterator[Callable[[Path, int, int], None]]:
    """Yield a callable that shows the progress in a log, unless the terminal shows the rows."""
    from flexwire.cli.terminal import progress_bar

    if sys.stdout.isatty() or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda path, done, total: None  # noqa: ARG005 - the protocol defines these names
        return
    from rich.markup import escape

    with progress_bar() as bar:
        mib_shown = -1

        def hear(path: Path, done: int, total: int) -> None:
            nonlocal mib_shown
            if done // _MIB != mib_shown and total >= _MIB:
                mib_shown = done // _MIB
                bar(escape(f"{path.parent.name}/{path.name} (MiB)"), mib_shown, total // _MIB)

        yield hear
