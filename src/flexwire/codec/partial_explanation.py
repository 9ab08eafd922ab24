"""Explain the first part of a message whose last bytes are missing: each byte and each value.

The reader knows where the whole message would end. The reader can therefore distinguish a
truncated field from a length that is too large for the message.
"""

from __future__ import annotations

import base64
import re
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.codec.explanation import Annotation, ExplainingReader, Explanation, explained
from flexwire.codec.json_form import UNKNOWN, double_form
from flexwire.errors import DecodeError
from flexwire.wire.cursor import format_path
from flexwire.wire.limits import LONGEST, VARINT_BYTES
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    import struct
    from collections.abc import Sequence

    from flexwire.codec.message import Message

# If the end of the message is unknown, every length that the formats allow is accepted.
_ANYWHERE: Final = 4 * LONGEST
_STEP: Final = re.compile(r"[^.\[\]]+|\[\d+\]")
_TAGS: Final = "_taggedFields"


class FirstPart(NamedTuple):
    """The part of a message that was read before the bytes ended.

    ``form`` is the JSON form of the fields that were read completely, and of the complete elements
    of arrays. If ``is_cut`` is true, the bytes end within a field, and everything before this field
    is valid. ``explanation.error`` contains this field, or the fault in the bytes, and is None for
    a complete message.
    """

    explanation: Explanation
    form: dict[str, Any]
    is_cut: bool


def explain_cut(
    message: type[Message], data: bytes, version: int, missing: int | None, *, follows: bool = False
) -> FirstPart:
    """Explain the first part of a message, after which ``missing`` bytes are missing.

    ``missing`` is None if the number of missing bytes is unknown. With ``follows``, other bytes
    can follow the message in ``data``, and ``explanation.rest`` is the offset of the first of
    these bytes. Raises `UnknownMessageError` for a version that is in no release.
    """
    reader = _CutReader(data, missing)
    error: DecodeError | None = None
    try:
        message.definition.read_mapping(reader, version)
        left = len(data) - reader.position
        if left and not follows:
            reason = f"the message ends here but {left} bytes follow"
            error = DecodeError(reason, offset=reader.position)
            error.within(message.entry.name, version)
    except DecodeError as caught:
        error = caught
    form = _form(reader.annotations)
    return FirstPart(explained(reader, error), form, isinstance(error, _CutOffError))


class _CutOffError(DecodeError):
    """The data ends within a field."""


class _CutReader(ExplainingReader):
    """Read the first part of a message. ``end`` is the end of the complete message."""

    __slots__ = ()

    def __init__(self, data: bytes, missing: int | None) -> None:
        super().__init__(data, lenient=False)
        self.end = len(data) + (_ANYWHERE if missing is None else missing)

    def take(self, count: int) -> bytes:
        self._need(count)
        return super().take(count)

    def unpack(self, layout: struct.Struct, name: str) -> tuple[int | float | bytes, ...]:
        self._need(layout.size)
        return super().unpack(layout, name)

    def read_unsigned_varint(self) -> int:
        begun = self.data[self.position : self.position + VARINT_BYTES]
        if len(begun) < min(VARINT_BYTES, self.remaining) and all(byte & 0x80 for byte in begun):
            raise self._cut_off()
        return super().read_unsigned_varint()

    def _need(self, count: int) -> None:
        # A value that is too large for the message is invalid, wherever the data ends.
        if len(self.data) - self.position < count <= self.remaining:
            raise self._cut_off()

    def _cut_off(self) -> _CutOffError:
        path = format_path(self.path)
        return _CutOffError("the bytes end within this field", path=path, offset=self.position)


def _form(annotations: Sequence[Annotation]) -> dict[str, Any]:
    """Build the JSON form from the values that were read, in the order of their bytes."""
    form: dict[str, Any] = {}
    for annotation in annotations:
        steps = _STEP.findall(annotation.path)
        if _TAGS in steps:
            at = steps.index(_TAGS)
            holder = _place(form, steps[:at])
            if len(steps) > at + 1:
                tag = int(steps[at + 1].strip("[]"))
                holder.setdefault(UNKNOWN, []).append(
                    {"tag": tag, "data": _scalar(annotation.value)}
                )
        else:
            _put(_place(form, steps[:-1]), steps[-1], _value(annotation))
    return form


def _place(form: dict[str, Any], steps: Sequence[str]) -> Any:
    """Return the structure or the array at a path."""
    place: Any = form
    for step in steps:
        if not step.startswith("["):
            place = place.setdefault(step, {})
            continue
        if int(step[1:-1]) == len(place):
            place.append({})
        place = place[-1]
    return place


def _put(place: Any, step: str, value: Any) -> None:
    if not step.startswith("["):
        place[step] = value
    elif int(step[1:-1]) == len(place):
        place.append(value)
    else:
        # The marker before an element that may be null.
        place[-1] = value


def _value(annotation: Annotation) -> Any:
    if annotation.type.endswith("ARRAY length"):
        return None if annotation.value is None else []
    if annotation.type == "null marker":
        return None if annotation.value else {}
    return _scalar(annotation.value)


def _scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):
        return uuid_text(value)
    return double_form(value) if isinstance(value, float) else value
