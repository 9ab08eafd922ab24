"""Explain each byte of a message, with a reference executor that records what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.arguments import refuse, to_bytes, to_flag, to_kind, to_version
from flexwire.codec.record_explanation import explain_records
from flexwire.errors import DecodeError
from flexwire.wire.cursor import Reader, format_path
from flexwire.wire.encoding import Encoding
from flexwire.wire.types import RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec.message import Message


@dataclass(frozen=True, slots=True)
class Annotation:
    """A range of ``length`` bytes at ``offset``, with its field, wire type and value."""

    offset: int
    length: int
    path: str
    type: str
    value: Any


class ExplainingReader(Reader):
    """A reader that records each value."""

    __slots__ = ("annotations",)

    def __init__(self, data: bytes, *, lenient: bool) -> None:
        super().__init__(data, lenient=lenient)
        self.annotations: list[Annotation] = []

    def annotate(self, start: int, label: str, value: object) -> None:
        """Record a value that ends at the reader's position."""
        path = format_path(self.path)
        self.annotations.append(Annotation(start, self.position - start, path, label, value))


@dataclass(frozen=True, slots=True)
class Explanation:
    """The annotations in the order of the bytes, and the error that ended the reading, if any.

    ``rest`` is the offset of the first byte without an annotation.
    """

    annotations: tuple[Annotation, ...]
    rest: int
    error: DecodeError | None


def explain(
    message: type[Message],
    data: bytes,
    version: int,
    *,
    lenient: bool = False,
    encoding: Encoding = Encoding.KAFKA,
) -> Explanation:
    """Explain ``data`` as far as it can be decoded. An error becomes part of the result.

    Raises `UnknownMessageError` for a version that is in no release.
    """
    data, version = to_bytes(data), to_version(version)
    lenient, encoding = to_flag(lenient, "lenient"), to_kind(encoding, "encoding", Encoding)
    if not hasattr(message, "definition"):
        raise refuse("message", "a message class", message)
    reader = ExplainingReader(data, lenient=lenient)
    error: DecodeError | None = None
    try:
        message.definition.read_mapping(reader, version, encoding)
        if reader.position != len(data) and not lenient:
            reason = f"the message ends here but {len(data) - reader.position} bytes follow"
            error = DecodeError(reason, offset=reader.position)
            error.within(message.entry.name, version)
    except DecodeError as caught:
        error = caught
    return explained(reader, error)


def explained(reader: ExplainingReader, error: DecodeError | None) -> Explanation:
    """Return the explanation of a reader's values, with the batches in fields of records."""
    covered = max(
        (annotation.offset + annotation.length for annotation in reader.annotations), default=0
    )
    parts = tuple(part for annotation in reader.annotations for part in _parts(annotation))
    return Explanation(parts, covered, error)


def _parts(annotation: Annotation) -> Iterator[Annotation]:
    """Yield a field's annotation, or the annotations of the batches in a field of records."""
    meanings = (
        explain_records(annotation.value, annotation.path) if _holds_records(annotation) else None
    )
    if not meanings:
        yield annotation
        return
    data, rest = annotation.offset + annotation.length - len(annotation.value), meanings[-1]
    yield Annotation(
        annotation.offset,
        data - annotation.offset,
        annotation.path,
        f"{annotation.type} length",
        len(annotation.value),
    )
    for part in meanings:
        yield Annotation(data + part.start, part.size, part.path, part.type, part.value)
    explained = rest.start + rest.size
    if explained < len(annotation.value):
        left = annotation.value[explained:]
        yield Annotation(
            data + explained, len(left), annotation.path, "the first part of a batch", left
        )


def _holds_records(annotation: Annotation) -> bool:
    return bool(annotation.value) and annotation.type.endswith(RECORDS.name)
