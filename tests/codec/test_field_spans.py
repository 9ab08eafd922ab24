"""Skipping and walking find the reference's fields in every version of every message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError
from flexwire.schema.catalog import catalog
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.encoding import Encoding
from flexwire.wire.field_spans import BoundedReader, Replacement, field_spans, replace_fields
from flexwire.wire.schema import Schema, struct_of
from flexwire.wire.types import String
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator


NAMES = catalog().names()
LONG = "a name that is longer than any field in these messages, and so needs a wider size: " + (
    "x" * 100
)
WALKED = 1_000_000


def leaves(schema: Schema, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields that are not structures, in wire order."""
    here = {id(one): (*above, one.attribute) for one in schema.fields}
    tagged = list(schema.tagged.values())
    inline = list(schema.inline)
    for one in (*tagged, *inline) if schema.tags_lead else (*inline, *tagged):
        inner = struct_of(one.type)
        yield from [here[id(one)]] if inner is None else leaves(inner, here[id(one)])


def values_at(found: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values at a path of attributes in a mapping that the reference has read."""
    first, *rest = path
    if not isinstance(found, dict) or first not in found:
        return
    value = found[first]
    if not rest:
        yield value
        return
    for one in value if isinstance(value, list) else [value]:
        yield from values_at(one, tuple(rest))


def replaced_at(found: Any, path: tuple[str, ...], new: Any) -> None:
    """Replace everything at a path in a mapping with one value."""
    first, *rest = path
    if not isinstance(found, dict) or first not in found:
        return
    if not rest:
        found[first] = new
        return
    value = found[first]
    for one in value if isinstance(value, list) else [value]:
        replaced_at(one, tuple(rest), new)


def messages(
    name: str, encodings: tuple[Encoding, ...] = tuple(Encoding)
) -> Iterator[tuple[Schema, bytes]]:
    """Yield each version of a message as a schema, and the bytes of a random message."""
    made = message(name)
    for version in catalog().entry(name).versions:
        for encoding in encodings:
            value = random_message(made, version, version, encoding)
            schema = made.definition.schema(version, encoding)
            yield schema, value.encode(version, encoding=encoding)


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES)
def test_skipping_ends_where_reading_ends(name: str) -> None:
    for schema, raw in messages(name):
        reader = Reader(raw + b"more")
        schema.skip(reader)
        assert reader.position == len(raw)
        for length in {len(raw) // 3, len(raw) // 2, max(len(raw) - 1, 0)} - {len(raw)}:
            with pytest.raises(DecodeError):
                schema.skip(Reader(raw[:length]))


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_the_walk_finds_every_field_where_it_stands(name: str) -> None:
    for schema, raw in messages(name):
        expected = schema.read(Reader(raw))
        paths = list(leaves(schema))
        for path in paths:
            reader = BoundedReader(raw, 0, WALKED)
            spans = list(field_spans(schema, reader, [path], to_end=True))
            assert reader.position == len(raw)
            assert [one.value for one in spans] == list(values_at(expected, path))
            # A walk that stops after the last field finds the same number.
            assert list(field_spans(schema, Reader(raw), [path])) == spans
        for one in field_spans(schema, Reader(raw), paths):
            writer = Writer()
            one.type.write(writer, one.value)
            assert raw[one.start : one.end] == writer.buffer


@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_what_is_replaced_reads_as_replaced_and_nothing_else_changes(name: str) -> None:
    for schema, raw in messages(name, (Encoding.KAFKA,)):
        for path in leaves(schema):
            spans = list(field_spans(schema, Reader(raw), [path]))
            if not spans or not isinstance(spans[0].type, String):
                continue
            expected = schema.read(Reader(raw))
            replaced_at(expected, path, LONG)
            replaced = replace_fields(raw, [Replacement(one, LONG) for one in spans])
            assert schema.decode(replaced) == expected


def test_a_walk_ends_at_its_bound() -> None:
    """A sender cannot make a walk exceed its limit by repeating any part of a message."""
    made: Any = message("MetadataResponse")
    topics = [made.MetadataResponseTopic(name="t") for _ in range(200)]
    tags = dict.fromkeys(range(1000, 1200), b"")
    for body in (made(topics=topics), made(unknown_tagged_fields=tags)):
        schema, raw = made.definition.schema(12), body.encode(12)
        paths = [("topics", "name")]
        found = list(field_spans(schema, BoundedReader(raw, 0, 1000), paths, to_end=True))
        assert len(found) == len(body.topics)
        with pytest.raises(DecodeError, match="more than 100 elements precede"):
            list(field_spans(schema, BoundedReader(raw, 0, 100), paths, to_end=True))
