"""Find selected fields in the bytes of a message, without creating objects for the other fields.

A proxy needs the addresses in a response of 10 MB, but must not block for a second to decode the
whole response. The message is therefore walked: values that were not requested are skipped
according to their length, and the walk ends after the last requested field. The sender decides how
many elements must be skipped, so `BoundedReader` ends a walk that takes too long.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.schema import NullableStruct, Schema
from flexwire.wire.tags import tag_headers
from flexwire.wire.types import ArrayType
from flexwire.wire.varint import write_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.wire.tags import TagHeader
    from flexwire.wire.types import Type

Path = tuple[str, ...]
# Any structure has fewer fields than this.
_TO_THE_END: Final = 2**31


class BoundedReader(Reader):
    """Skip at most ``most`` elements and tagged fields while reading, or raise an error."""

    __slots__ = ("_left", "most")

    def __init__(self, data: bytes, position: int, most: int) -> None:
        super().__init__(data, position)
        self.most = most
        self._left = most

    def visit(self, count: int) -> None:
        """Count the elements or fields that are skipped next."""
        self._left -= count
        if self._left < 0:
            raise self.error(f"more than {self.most} elements precede the requested fields")


class TaggedSpan(NamedTuple):
    """A tagged field around another field: the positions of its size, its value and its end."""

    size_at: int
    value_at: int
    end: int


class FieldSpan(NamedTuple):
    """A requested field: its path, its value, and the positions of its ``start`` and ``end``.

    Fields in the same structure have the same ``structure``, which is the position of the
    structure's start. ``enclosing`` contains the tagged fields around the field, the outermost
    first.
    """

    path: Path
    structure: int
    type: Type
    value: Any
    start: int
    end: int
    enclosing: tuple[TaggedSpan, ...]


class _SpanPaths:
    """The requested fields of a structure by attribute: a whole field, or fields inside it."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.here: set[str] = set()
        inside: dict[str, list[Path]] = {}
        for first, *rest in paths:
            if rest:
                inside.setdefault(first, []).append(tuple(rest))
            else:
                self.here.add(first)
        self.inside = {name: _SpanPaths(spans) for name, spans in inside.items()}


@lru_cache(maxsize=1024)
def _wanted(paths: tuple[Path, ...]) -> _SpanPaths:
    return _SpanPaths(paths)


def _last_wanted(schema: Schema, wanted: _SpanPaths) -> int:
    """Return the index of the last inline field that must be read, or -1 if there is none."""
    names = wanted.here | wanted.inside.keys()
    if not schema.tags_lead and any(field.attribute in names for field in schema.tagged.values()):
        return _TO_THE_END
    return max((i for i, field in enumerate(schema.inline) if field.attribute in names), default=-1)


def field_spans(
    schema: Schema, reader: Reader, paths: Sequence[Path], *, to_end: bool = False
) -> Iterator[FieldSpan]:
    """Find fields by paths of attributes, in the order of their bytes.

    A path leads through structures, and through each element of arrays of structures. If one of
    these is missing, the field is not found. The walk ends after the last field, unless ``to_end``
    is true. Raises `DecodeError`.
    """
    return _SpanWalk(reader).structure(schema, _wanted(tuple(paths)), (), (), is_last=not to_end)


class _SpanWalk:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def structure(
        self,
        schema: Schema,
        wanted: _SpanPaths,
        path: Path,
        enclosing: tuple[TaggedSpan, ...],
        *,
        is_last: bool = False,
    ) -> Iterator[FieldSpan]:
        reader, begin = self._reader, self._reader.position
        here, inside = wanted.here, wanted.inside
        last = _last_wanted(schema, wanted) if is_last else _TO_THE_END
        if schema.tags_lead:
            yield from self._tagged_fields(schema, wanted, path, enclosing, begin)
        for number, field in enumerate(schema.inline):
            if number > last:
                return
            if field.attribute in here or field.attribute in inside:
                yield from self._field(field.type, field.attribute, wanted, path, enclosing, begin)
            else:
                field.type.skip(reader)
        if schema.flexible and not schema.tags_lead and last == _TO_THE_END:
            yield from self._tagged_fields(schema, wanted, path, enclosing, begin)

    def _field(
        self,
        kind: Type,
        name: str,
        wanted: _SpanPaths,
        path: Path,
        enclosing: tuple[TaggedSpan, ...],
        structure: int,
    ) -> Iterator[FieldSpan]:
        inner = wanted.inside.get(name)
        if inner is not None:
            yield from self._inside(kind, inner, (*path, name), enclosing)
            return
        start = self._reader.position
        value = kind.read(self._reader)
        end = self._reader.position
        yield FieldSpan((*path, name), structure, kind, value, start, end, enclosing)

    def _inside(
        self, kind: Type, wanted: _SpanPaths, path: Path, enclosing: tuple[TaggedSpan, ...]
    ) -> Iterator[FieldSpan]:
        reader = self._reader
        if isinstance(kind, ArrayType):
            count = kind.read_count(reader) or 0
            reader.visit(count)
            for _ in range(count):
                yield from self._inside(kind.element, wanted, path, enclosing)
        elif isinstance(kind, NullableStruct):
            if not kind.read_is_null(reader):
                yield from self.structure(kind.schema, wanted, path, enclosing)
        elif isinstance(kind, Schema):
            yield from self.structure(kind, wanted, path, enclosing)
        else:
            kind.skip(reader)

    def _tagged_fields(
        self,
        schema: Schema,
        wanted: _SpanPaths,
        path: Path,
        enclosing: tuple[TaggedSpan, ...],
        structure: int,
    ) -> Iterator[FieldSpan]:
        reader = self._reader
        for header in tag_headers(reader, schema.form):
            reader.visit(1)
            field = schema.tagged.get(header.tag)
            span = self._span(header)
            if field is None or not (
                field.attribute in wanted.here or field.attribute in wanted.inside
            ):
                reader.skip(header.size)
                continue
            end, reader.end = reader.end, span.end
            around = (*enclosing, span)
            yield from self._field(field.type, field.attribute, wanted, path, around, structure)
            reader.end = end
            if reader.position != span.end:
                raise reader.error(
                    f"tag {header.tag} declares {header.size} bytes but its value is shorter"
                )

    def _span(self, header: TagHeader) -> TaggedSpan:
        reader = self._reader
        if header.size > reader.remaining:
            raise reader.error(
                f"tag {header.tag} declares {header.size} bytes but {reader.remaining} remain",
                header.size_at,
            )
        return TaggedSpan(header.size_at, reader.position, reader.position + header.size)


class Replacement(NamedTuple):
    """A field that was found, and its new value."""

    field: FieldSpan
    value: Any


def replace_fields(data: bytes, replacements: Iterable[Replacement]) -> bytes:
    """Return ``data`` with new values in the given fields. All other bytes remain the same.

    The sizes of the tagged fields around the changed fields are adjusted. Tagged fields must be in
    tag sections (`TagForm.SECTION`), as in every released message. Raises `EncodeError` for values
    that do not have the types of their fields.
    """
    edits: list[tuple[int, int, bytes]] = []
    around: set[TaggedSpan] = set()
    for field, value in replacements:
        writer = Writer()
        field.type.write(writer, value)
        edits.append((field.start, field.end, bytes(writer.buffer)))
        around.update(field.enclosing)
    # The innermost field comes first, because the width of its size is part of the size of the
    # field around it.
    for span in sorted(around, key=lambda span: span.value_at, reverse=True):
        grown = sum(
            len(new) - (end - start)
            for start, end, new in edits
            if span.value_at <= start < span.end
        )
        size = write_unsigned_varint(span.end - span.value_at + grown)
        edits.append((span.size_at, span.value_at, size))
    parts: list[bytes] = []
    position = 0
    for start, end, new in sorted(edits):
        parts += (data[position:start], new)
        position = end
    return b"".join((*parts, data[position:]))
