"""Judge the answers of a codec, with one verdict for each case and direction."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from flexwire.errors import short
from flexwire.vectors.package import Expected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.vectors.package import Vector

UNKNOWN: Final = "_unknownTaggedFields"
_RECORDS: Final = "records"


class Direction(StrEnum):
    """The direction of a case: the codec decodes or encodes."""

    DECODE = "decode"
    ENCODE = "encode"
    DECODE_RECORDS = "decode-records"


class Outcome(StrEnum):
    """The outcome of a case."""

    PASSED = "passed"
    DROPPED = "dropped unknown tags"
    """The answer is correct, except that unknown tagged fields are missing. A codec may ignore
    these fields (KIP-482).
    """
    FAILED = "failed"
    """The content or the bytes differ, or the answer is invalid."""
    REFUSED = "refused wrongly"
    TAKEN = "taken wrongly"
    STRICTER = "stricter than Kafka"
    """The codec refused bytes that Apache Kafka accepts but would not write. This is only a
    remark.
    """
    OTHERWISE = "read otherwise"
    """The codec and Kafka read different content from bytes that Kafka accepts but would not write.
    This is only a remark."""
    UNSUPPORTED = "unsupported"
    """The codec declares that it does not know the message or the version."""
    NOT_ASKED = "not asked"
    """The case was not sent, because the codec had reached the limit on restarts."""

    @property
    def is_deviation(self) -> bool:
        """True if the codec deviates from the required behavior."""
        return self in {Outcome.FAILED, Outcome.REFUSED, Outcome.TAKEN}


class Verdict(NamedTuple):
    """The outcome of a case, with a description of the expected and the actual result."""

    vector: Vector
    direction: Direction
    outcome: Outcome
    reason: str = ""


class CodecAnswer(msgspec.Struct):
    """A line from a codec.

    Exactly one of ``json``, ``hex``, ``refused`` and ``unsupported`` is set.
    """

    json: Any = UNSET
    hex: str | UnsetType = UNSET
    refused: str | UnsetType = UNSET
    unsupported: str | UnsetType = UNSET
    case: str | UnsetType = UNSET


_DECODER: Final = msgspec.json.Decoder(CodecAnswer)


def judge(vector: Vector, direction: Direction, line: bytes) -> Verdict:
    """Return the verdict on the line with which a codec answered a case."""
    try:
        answer = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Verdict(
            vector,
            direction,
            Outcome.FAILED,
            f"the line is not a valid answer: {error}: {short(line)}",
        )
    outcome, reason = _judged(vector, direction, answer)
    return Verdict(vector, direction, outcome, reason)


def _judged(vector: Vector, direction: Direction, answer: CodecAnswer) -> tuple[Outcome, str]:
    given = [
        name
        for name in ("json", "hex", "refused", "unsupported")
        if getattr(answer, name) is not UNSET
    ]
    if len(given) != 1:
        words = f"expected one of json, hex, refused and unsupported, got {given or 'none'}"
        return Outcome.FAILED, words
    if answer.case is not UNSET and answer.case != vector.case:
        return (
            Outcome.FAILED,
            f"expected an answer to this case, got an answer to {short(answer.case)}",
        )
    if answer.unsupported is not UNSET:
        return Outcome.UNSUPPORTED, str(answer.unsupported)
    if answer.refused is not UNSET:
        return _judged_refusal(vector, str(answer.refused))
    return _judged_content(vector, direction, answer)


def _judged_content(
    vector: Vector, direction: Direction, answer: CodecAnswer
) -> tuple[Outcome, str]:
    if vector.expected is Expected.REFUSE:
        return Outcome.TAKEN, f"{vector.damage}; Kafka refuses the bytes with {vector.refused}"
    if isinstance(answer.hex, str):
        found = _hex_difference(vector, answer.hex, direction)
    else:
        found = _json_difference(vector, answer.json, direction)
    if isinstance(found, Outcome):
        return found, ""
    either = vector.expected is Expected.EITHER
    return Outcome.OTHERWISE if either else Outcome.FAILED, found


def _judged_refusal(vector: Vector, words: str) -> tuple[Outcome, str]:
    if vector.expected is Expected.REFUSE:
        return Outcome.PASSED, ""
    outcome = Outcome.STRICTER if vector.expected is Expected.EITHER else Outcome.REFUSED
    return outcome, f"{vector.damage}: {short(words)}" if vector.damage else short(words)


def _hex_difference(vector: Vector, got: str, direction: Direction) -> Outcome | str:
    """Return the outcome if the bytes are correct, or else the difference."""
    got = got.lower()
    if direction is Direction.DECODE_RECORDS:
        return "expected the content of the batches as json, got hex"
    # If Kafka refuses to write the message that it read, the expected bytes are those that it read.
    expected = vector.hex if vector.read is None else vector.hex[: 2 * vector.read]
    if isinstance(vector.written, str):
        expected = vector.written
    if got in {expected, vector.hex}:
        return Outcome.PASSED
    if vector.known is not None and got == vector.known:
        return Outcome.DROPPED
    at = next(
        (
            at
            for at in range(min(len(got), len(expected)) // 2)
            if _byte(got, at) != _byte(expected, at)
        ),
        min(len(got), len(expected)) // 2,
    )
    return (
        f"expected {len(expected) // 2} bytes, got {len(got) // 2}; at byte {at} expected "
        f"{_byte(expected, at) or 'the end'}, got {_byte(got, at) or 'the end'}"
    )


def _byte(text: str, at: int) -> str:
    return text[2 * at : 2 * at + 2]


def _json_difference(vector: Vector, got: Any, direction: Direction) -> Outcome | str:
    if direction is Direction.ENCODE:
        return "expected hex, got json"
    if direction is Direction.DECODE_RECORDS:
        return _records_difference(vector.json, got) or Outcome.PASSED
    found = difference(vector.json, got)
    if found is None:
        return Outcome.PASSED
    if vector.known is not None and difference(without_unknown(vector.json), got) is None:
        return Outcome.DROPPED
    return found


def difference(expected: Any, got: Any, path: str = "") -> str | None:
    """Return the first difference between two JSON forms, or None if they are equal.

    Neither the order of keys nor the order of unknown tagged fields with different tags matters. An
    integer may be written as a string of its digits, because JavaScript has no 64-bit integers.

    >>> difference({"a": [1, 2]}, {"a": [1, 3]})
    'a[1]: expected 2, got 3'
    >>> difference({"a": 2**62}, {"a": "4611686018427387904"})
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        return _key_difference(expected, got, path)
    if isinstance(expected, list) and isinstance(got, list):
        for place, (one, other) in enumerate(zip(expected, got, strict=False)):
            found = difference(one, other, f"{path}[{place}]")
            if found is not None:
                return found
        if len(expected) != len(got):
            return f"{path or 'it'}: expected {len(expected)} elements, got {len(got)}"
        return None
    if _is_same(expected, got):
        return None
    return f"{path or 'it'}: expected {short(expected)}, got {short(got)}"


def _key_difference(expected: Mapping[str, Any], got: Mapping[str, Any], path: str) -> str | None:
    for name in expected:
        here = f"{path}.{name}" if path else name
        if name not in got:
            return f"{here}: missing"
        one, other = expected[name], got[name]
        if name == UNKNOWN:
            one, other = _by_tag(one), _by_tag(other)
        found = difference(one, other, here)
        if found is not None:
            return found
    extra = next((name for name in got if name not in expected), None)
    if extra is None:
        return None
    return f"{path}.{extra}: not expected" if path else f"{extra}: not expected"


def _by_tag(fields: Any) -> Any:
    """Return unknown tagged fields sorted by tag. Other values are returned unchanged."""
    if not isinstance(fields, list) or not all(
        isinstance(one, dict) and isinstance(one.get("tag"), int) for one in fields
    ):
        return fields
    return sorted(fields, key=lambda one: one["tag"])


def _is_same(expected: Any, got: Any) -> bool:
    # In Python, True equals 1. In JSON, the two values differ.
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int) and isinstance(got, str):
        return str(expected) == got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return expected == got
    return type(expected) is type(got) and bool(expected == got)


def without_unknown(form: Any) -> Any:
    """Return a JSON form without its unknown tagged fields.

    >>> without_unknown({"a": [{"b": 1, "_unknownTaggedFields": []}]})
    {'a': [{'b': 1}]}
    """
    if isinstance(form, list):
        return [without_unknown(one) for one in form]
    if not isinstance(form, dict):
        return form
    return {name: without_unknown(value) for name, value in form.items() if name != UNKNOWN}


def _records_difference(expected: Any, got: Any) -> str | None:
    """Return the difference between batches, if there is one.

    A codec may omit any key of a batch except the records.
    """
    if not isinstance(got, dict) or not isinstance(got.get("batches"), list):
        return "expected an object with a list of batches"
    named = []
    for place, batch in enumerate(expected["batches"]):
        one = got["batches"][place] if place < len(got["batches"]) else None
        is_batch = isinstance(one, dict)
        keys = {_RECORDS, *(one if is_batch and one is not None else ())}
        named.append({name: value for name, value in batch.items() if name in keys})
    return difference(named, got["batches"], "batches")
