"""Count the senders of each field and version, from the message tables of an analysis.

A field counts as sent if its value in a message is not the default. For an array, one element with
such a value is enough. The columns are read in pieces, and only counts are kept.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.resolve import resolve
from flexwire.tables.output import output
from flexwire.wire.schema import Schema, struct_of
from flexwire.wire.types import ArrayType
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from flexwire.wire.schema import Field

MOST_CLIENTS: Final = 4
"""The largest number of clients that are listed for a field, the most frequent first."""
_ROWS = 50_000
_COLUMNS = ["client_id", "body_version", "body"]


class Senders(NamedTuple):
    """The clients that sent something, with counts, most often first, and the number of others."""

    named: tuple[tuple[str, int], ...]
    others: int


@dataclass(frozen=True, slots=True)
class VersionTraffic:
    """The use of one version of a message: its senders, and its fields by path.

    ``fields`` omits fields that are missing from the tables. For records, the tables contain only
    sizes.
    """

    messages: int
    senders: Senders
    fields: dict[str, Senders]


@dataclass(frozen=True, slots=True)
class GuideTraffic:
    """The traffic of each message and version in an analysis."""

    sent: dict[tuple[str, int], VersionTraffic]

    def of(self, message: str, version: int) -> VersionTraffic | None:
        """Return the traffic of a version, or None if there was no traffic."""
        return self.sent.get((message, version))


def read_traffic(analysis: str | Path) -> GuideTraffic:
    """Count the messages in the tables of an analysis (see `flexwire.tables.output.output`).

    Raises `FlexwireError` if there is no complete analysis. Bodies that did not decode are not
    counted.
    """
    analysis_output = output(analysis)
    sent: dict[tuple[str, int], VersionTraffic] = {}
    for name in analysis_output.message_names():
        counts: dict[int, _VersionCounts] = defaultdict(_VersionCounts)
        dataset = analysis_output.dataset(f"messages/{name}")
        for batch in dataset.to_batches(columns=_COLUMNS, batch_size=_ROWS):
            for version, rows in _by_version(batch):
                counts[version].add(name, version, rows)
        sent |= {
            (name, version): version_counts.sent() for version, version_counts in counts.items()
        }
    return GuideTraffic(sent)


class _VersionCounts:
    """The counts of one version: its messages by client, and the senders of each field."""

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()
        self.fields: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, name: str, version: int, rows: pa.RecordBatch) -> None:
        """Count rows whose bodies all have this version."""
        clients = pc.dictionary_encode(pc.fill_null(rows["client_id"], ""))
        names, codes = clients.dictionary.to_pylist(), clients.indices.to_numpy()
        _tally(self.messages, names, codes)
        schema = _schema(name, version)
        if schema is None:
            return
        for path, senders in _sent_fields(rows["body"], schema, np.arange(len(rows)), ""):
            # A field that nobody sent is also listed, with a count of zero.
            _tally(self.fields[path], names, codes[np.unique(senders)])

    def sent(self) -> VersionTraffic:
        """Return the counts, with the most frequent clients."""
        fields = {path: _senders(counted) for path, counted in self.fields.items()}
        return VersionTraffic(self.messages.total(), _senders(self.messages), fields)


def _tally(counts: Counter[str], names: list[str], codes: NDArray[np.int64]) -> None:
    of_code = np.bincount(codes, minlength=len(names))
    counts.update({names[at]: int(of_code[at]) for at in np.flatnonzero(of_code)})


def _senders(counts: Counter[str]) -> Senders:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Senders(tuple(ordered[:MOST_CLIENTS]), len(ordered[MOST_CLIENTS:]))


def _by_version(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    decoded = batch.filter(pc.is_valid(batch["body"]))
    for version in pc.unique(decoded["body_version"]).to_pylist():
        if version is not None:
            yield version, decoded.filter(pc.equal(decoded["body_version"], version))


def _schema(name: str, version: int) -> Schema | None:
    """Return the schema of a version, or None if the catalog does not contain the version."""
    try:
        return resolve(catalog().entry(name).spec(version), version)
    except (UnknownMessageError, SpecError):
        return None


def _sent_fields(
    values: pa.Array, structure: Schema, rows: NDArray[np.int64], prefix: str
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield each field's path and the messages that contain the field, with repetitions.

    ``rows`` contains the message for each of ``values``.
    """
    columns = {column.name for column in values.type}
    for field in (*structure.inline, *structure.tagged.values()):
        # The tables do not contain the bytes of records.
        if field.attribute not in columns:
            continue
        # `field` ignores the nulls of a structure, but `struct_field` does not.
        column = pc.struct_field(values, field.attribute)
        yield prefix + field.name, rows[_is_sent(column, field)]
        inner = struct_of(field.type)
        if inner is None:
            continue
        if isinstance(field.type, ArrayType):
            inside, inside_rows = pc.list_flatten(column), rows[pc.list_parent_indices(column)]
        else:
            valid = pc.is_valid(column)
            inside, inside_rows = column.filter(valid), rows[_flags(valid)]
        yield from _sent_fields(inside, inner, inside_rows, f"{prefix}{field.name}.")


def _is_sent(column: pa.Array, field: Field) -> NDArray[np.bool_]:
    """Return, for each row, whether a column differs from the default of the field."""
    valid = pc.is_valid(column)
    if pa.types.is_struct(column.type):
        return _flags(valid)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _flags(pc.fill_null(pc.greater(pc.list_value_length(column), 0), False))
    default = _plain(field.default)
    if default is None:
        return _flags(valid)
    differs = pc.not_equal(column, pa.scalar(default).cast(column.type))
    return _flags(pc.fill_null(differs, field.nullable))


def _plain(default: Any) -> Any:
    """Return a default in the form that the tables use, where a UUID is text in Kafka's form."""
    return uuid_text(default) if isinstance(default, uuid.UUID) else default


def _flags(values: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return flags
