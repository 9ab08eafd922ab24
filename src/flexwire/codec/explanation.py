"""What each byte of a message means: the reference executor, listened to."""

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
    """``length`` bytes at ``offset``, the field they belong to, their wire type and value."""

    offset: int
    length: int
    path: str
    type: str
    value: Any


class ExplainingReader(Reader):
    """Keeps what it hears of each value that is read."""

    __slots__ = ("annotations",)

    def __init__(self, data: bytes, *, lenient: bool) -> None:
        super().__init__(data, lenient=lenient)
        self.annotations: list[Annotation] = []

    def annotate(self, start: int, label: str, value: object) -> None:
        """Keep a value that ends where the reader stands."""
        path = format_path(self.path)
        self.annotations.append(Annotation(start, self.position - start, path, label, value))


@dataclass(frozen=True, slots=True)
class Explanation:
    """The annotations in the order of the bytes, and what stopped the reading, if something did.

    ``rest`` is the offset of the first byte that no annotation covers.
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
    """Explain ``data`` as far as it decodes; an error is part of the result, not raised.

    Raises `UnknownMessageError` for a version that no release has.
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
    """Return the explanation of what a reader read, with the batches within fields of records."""
    covered = max((one.offset + one.length for one in reader.annotations), default=0)
    found = tuple(part for one in reader.annotations for part in _parts(one))
    return Explanation(found, covered, error)


def _parts(one: Annotation) -> Iterator[Annotation]:
    """What is inside a field of records in its place, where its bytes are batches."""
    meanings = explain_records(one.value, one.path) if _holds_records(one) else None
    if not meanings:
        yield one
        return
    data, rest = one.offset + one.length - len(one.value), meanings[-1]
    yield Annotation(one.offset, data - one.offset, one.path, f"{one.type} length", len(one.value))
    for part in meanings:
        yield Annotation(data + part.start, part.size, part.path, part.type, part.value)
    explained = rest.start + rest.size
    if explained < len(one.value):
        left = one.value[explained:]
        yield Annotation(data + explained, len(left), one.path, "the first part of a batch", left)


def _holds_records(one: Annotation) -> bool:
    return bool(one.value) and one.type.endswith(RECORDS.name)
