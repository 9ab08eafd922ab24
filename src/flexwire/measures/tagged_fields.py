"""Sums over the tagged fields in the traffic: their counts and their sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.facts.facts import TaggedFieldUse
from flexwire.measures.conditions import OF_KAFKA
from flexwire.measures.counters import merge_all, prune

MOST_FIELDS: Final = 10_000
"""The maximum number of tagged fields that are counted separately."""
OTHER_FIELDS: Final = "(other tagged fields)"
"""The message name under which all other fields are counted, with the tag -1."""


class FieldKey(NamedTuple):
    """A tagged field: its message, the structure that contains it, its tag and its name."""

    message: str
    path: str
    tag: int
    name: str | None


_OF_FIELD = FieldKey._fields


@dataclass(slots=True)
class _FieldCounts:
    """The counts for one tagged field. ``bytes`` is None if no sizes were measured."""

    versions: set[int] = field(default_factory=set)
    times: int = 0
    bytes: int | None = None

    def merge(self, other: _FieldCounts) -> None:
        """Add the counts of another task."""
        self.versions |= other.versions
        self.times += other.times
        if other.bytes is not None:
            self.bytes = (self.bytes or 0) + other.bytes


class TaggedFieldSums:
    """Sums over the tagged fields in messages and in their headers.

    For a field in a header, the message is "RequestHeader" or "ResponseHeader", and the version is
    that of the header.

    A known field counts only if its value is not the default, because Kafka does not write
    defaults. If there are more than `MOST_FIELDS` fields, the first in order are counted
    separately, and all others together.
    """

    def __init__(self) -> None:
        self._uses: dict[FieldKey, _FieldCounts] = {}
        self._rest = _FieldCounts()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of a message's table for bodies, or of the table of frames for headers."""
        if "tagged_fields" in rows.schema.names:
            self._add_bodies(rows)
        else:
            self._add_headers(rows)

    def _add_bodies(self, messages: pa.RecordBatch) -> None:
        lists = messages["tagged_fields"]
        uses = lists.flatten()
        if not len(uses):
            return
        parents = pc.list_parent_indices(lists)
        columns = {name: pc.struct_field(uses, name) for name in ("path", "tag", "name")}
        self._count(
            columns
            | {
                "message": messages["message"].take(parents),
                "version": messages["body_version"].take(parents),
                "times": pc.struct_field(uses, "times"),
                "bytes": pc.struct_field(uses, "bytes"),
            }
        )

    def _add_headers(self, frames: pa.RecordBatch) -> None:
        if not len(frames["header_unknown_tagged_fields"].flatten()):
            return
        frames = frames.filter(OF_KAFKA.of(frames))
        lists = frames["header_unknown_tagged_fields"]
        fields, parents = lists.flatten(), pc.list_parent_indices(lists)
        is_request = pc.equal(frames["direction"].take(parents), "request")
        data = pc.struct_field(fields, "data")
        is_shown = pc.not_equal(data, pa.scalar(WITHHELD_BYTES))
        size = pc.if_else(is_shown, pc.binary_length(data), pa.scalar(None, pa.int32()))
        self._count(
            {
                "message": pc.if_else(is_request, "RequestHeader", "ResponseHeader"),
                "version": frames["header_version"].take(parents),
                "path": pa.repeat("", len(fields)),
                "tag": pc.struct_field(fields, "tag"),
                "name": pa.nulls(len(fields), pa.string()),
                "times": pa.repeat(1, len(fields)),
                "bytes": size.cast(pa.int64()),
            }
        )

    def _count(self, uses: dict[str, pa.Array]) -> None:
        groups = pa.table(uses).group_by([*_OF_FIELD, "version"])
        for row in groups.aggregate([("times", "sum"), ("bytes", "sum")]).to_pylist():
            version = row["version"]
            counts = _FieldCounts({version} - {None}, row["times_sum"] or 0, row["bytes_sum"])
            key = FieldKey(*(row[name] for name in _OF_FIELD))
            self._uses.setdefault(key, _FieldCounts()).merge(counts)
        self._bound(2 * MOST_FIELDS)

    def merge(self, other: TaggedFieldSums) -> None:
        """Add the sums of another task, without changing ``other``."""
        merge_all(self._uses, other._uses, _FieldCounts)
        self._rest.merge(other._rest)
        self._bound(2 * MOST_FIELDS)

    def _bound(self, most: int) -> None:
        if len(self._uses) > most:
            prune(self._uses, MOST_FIELDS, lambda _: self._rest, order=_order)

    def facts(self) -> tuple[TaggedFieldUse, ...]:
        """Return the report's numbers about each field, in order."""
        self._bound(MOST_FIELDS)
        uses = [_use_of(key, self._uses[key]) for key in sorted(self._uses, key=_order)]
        if self._rest.times:
            uses.append(_use_of(FieldKey(OTHER_FIELDS, "", -1, None), self._rest))
        return tuple(uses)


def _use_of(key: FieldKey, use: _FieldCounts) -> TaggedFieldUse:
    return TaggedFieldUse(
        message=key.message,
        versions=tuple(sorted(use.versions)),
        path=key.path,
        tag=key.tag,
        name=key.name,
        times=use.times,
        bytes=use.bytes,
    )


def _order(key: FieldKey) -> tuple[str, str, int, str]:
    return (key.message, key.path, key.tag, key.name or "")
