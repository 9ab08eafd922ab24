"""Hypothesis strategies for messages, for testing code that reads or writes the protocol.

The module needs the extra ``testing``. The sources are https://hypothesis.readthedocs.io, and the
specs of the catalog or your own (`flexwire.load_specs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.arguments import to_text, to_version
from flexwire.codec import Message, message
from flexwire.codec.samples import is_records
from flexwire.errors import UnknownMessageError
from flexwire.extras import require
from flexwire.records import Record, encode_batch
from flexwire.wire.limits import HIGHEST_TAG, RANGES
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Uuid

require("flexwire.testing", "testing", "hypothesis")

from hypothesis import strategies as st  # noqa: E402 - `require` must run first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import SearchStrategy

    from flexwire.wire.schema import Field
    from flexwire.wire.types import Type

__all__ = ["MessageExample", "messages"]

_LOWEST_UNKNOWN_TAG: Final = 10_000
"""Kafka numbers its own tags from 0, so Kafka will not reach these tags."""
_MOST_ELEMENTS: Final = 3
_MOST_BYTES: Final = 64


class MessageExample(NamedTuple):
    """A message and the version in which it can be written."""

    message: Message
    version: int

    @property
    def data(self) -> bytes:
        """The bytes of the message in that version."""
        return self.message.encode(self.version)


def messages(
    name: str,
    version: int | None = None,
    *,
    release: str | None = None,
    unknown_tags: bool = True,
) -> SearchStrategy[MessageExample]:
    """Return a strategy for valid messages of the given name, as `MessageExample` objects.

    Without ``version``, an example can have any version that is in a release. ``release`` selects
    the layout of a release, as in `flexwire.message`. With ``unknown_tags``, flexible structures
    contain tagged fields that are in no release, with tags of 10,000 and above. Fields for
    records contain a record batch, or are empty or null.

    Raises `UnknownMessageError` for a name or a version that is in no release.

    >>> from hypothesis import given
    >>> @given(messages("HeartbeatRequest"))
    ... def check(example):
    ...     again = type(example.message).decode(example.data, example.version)
    ...     assert again == example.message
    >>> check()
    """
    kind = message(to_text(name, "name"), release)
    if version is not None:
        return _examples(kind, to_version(version), unknown_tags=unknown_tags)
    versions = [*kind.entry.versions]
    if not versions:
        raise UnknownMessageError(f"{name} has no version")
    return st.sampled_from(versions).flatmap(
        lambda number: _examples(kind, number, unknown_tags=unknown_tags)
    )


def _examples(
    kind: type[Message], version: int, *, unknown_tags: bool
) -> SearchStrategy[MessageExample]:
    values = _Values(kind.definition.classes, unknown_tags=unknown_tags)
    return values.struct(kind.definition.schema(version)).map(
        lambda value: MessageExample(value, version)
    )


class _Values:
    """Strategies for the values of types. ``classes`` holds a message's structures, by name."""

    def __init__(self, classes: Mapping[str, Any], *, unknown_tags: bool) -> None:
        self._classes = classes
        self._unknown_tags = unknown_tags

    def struct(self, schema: Schema) -> SearchStrategy[Any]:
        inline = {
            field.attribute: self._field(field)
            for field in schema.fields
            if field.presence is Presence.INLINE
        }
        optional = {
            field.attribute: self._field(field)
            for field in schema.fields
            if field.presence is Presence.TAGGED
        }
        if schema.flexible and self._unknown_tags:
            tags = st.integers(_LOWEST_UNKNOWN_TAG, HIGHEST_TAG)
            sections = st.dictionaries(tags, st.binary(max_size=_MOST_BYTES), max_size=2)
            optional[UNKNOWN_TAGGED_FIELDS] = sections
        structure = self._classes[schema.name]
        return st.fixed_dictionaries(inline, optional=optional).map(
            lambda values: structure(**values)
        )

    def _field(self, field: Field) -> SearchStrategy[Any]:
        values = self._value(field.type)
        return st.none() | values if field.nullable else values

    def _value(self, kind: Type) -> SearchStrategy[Any]:
        if isinstance(kind, ArrayType):
            return st.lists(self._value(kind.element), max_size=_MOST_ELEMENTS)
        if isinstance(kind, Schema | NullableStruct):
            return self.struct(kind if isinstance(kind, Schema) else kind.schema)
        if isinstance(kind, Integer):
            return st.integers(*RANGES[kind.name])
        if isinstance(kind, Bytes):
            return _BATCHES if is_records(kind) else st.binary(max_size=_MOST_BYTES)
        return _SCALARS[type(kind)]


# A lone surrogate cannot be encoded as UTF-8.
_TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=_MOST_BYTES)
_BYTES_OR_NULL: Final = st.none() | st.binary(max_size=_MOST_BYTES)
_SCALARS: Final[dict[type, SearchStrategy[Any]]] = {
    Boolean: st.booleans(),
    Float64: st.floats(allow_nan=False),
    Uuid: st.uuids(allow_nil=True),
    String: _TEXT,
}
_RECORDS: Final = st.builds(
    Record,
    offset=st.just(0),
    timestamp=st.integers(0, 2**40),
    key=_BYTES_OR_NULL,
    value=_BYTES_OR_NULL,
    headers=st.lists(st.tuples(st.binary(max_size=8), _BYTES_OR_NULL), max_size=2),
)
_BATCHES: Final = st.just(b"") | st.lists(_RECORDS, min_size=1, max_size=_MOST_ELEMENTS).map(
    lambda records: encode_batch(
        [
            Record(place, record.timestamp, record.key, record.value, record.headers)
            for place, record in enumerate(records)
        ]
    )
)
