"""The verdict on a codec's answer follows from what Apache Kafka does."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from flexwire.vectors.judging import Direction, Outcome, difference, judge
from flexwire.vectors.package import Expected, Vector

FORM: dict[str, Any] = {"a": [1, {"b": "x", "c": None}], "d": 2**62, "e": True, "f": 1.5}
VALID = Vector(
    case="M/0/full", expected=Expected.TAKE, message="M", type="data", version=0, hex="0102"
    , json=FORM
)  # fmt: skip
UNKNOWN = [{"tag": 7, "data": "AA=="}]
WITH_TAGS = msgspec.structs.replace(
    VALID, json={"a": 1, "_unknownTaggedFields": UNKNOWN}, known="01"
)
REFUSED = msgspec.structs.replace(
    VALID, expected=Expected.REFUSE, json=None, damage="cut off", refused="RuntimeException"
)
EITHER = msgspec.structs.replace(
    VALID, expected=Expected.EITHER, damage="a byte follows", read=1, written="01"
)
UNWRITABLE = msgspec.structs.replace(EITHER, damage=None, read=None, written=None)


def outcome(vector: Vector, answer: Any, direction: Direction = Direction.DECODE) -> Outcome:
    return judge(vector, direction, json.dumps(answer).encode()).outcome


@pytest.mark.parametrize(
    ("vector", "answer", "expected"),
    [
        (VALID, {"json": FORM}, Outcome.PASSED),
        (VALID, {"json": {**FORM, "d": str(2**62)}}, Outcome.PASSED),
        (VALID, {"json": {**FORM, "d": 2**62 + 1}}, Outcome.FAILED),
        (VALID, {"json": {**FORM, "e": 1}}, Outcome.FAILED),
        (VALID, {"json": {**FORM, "more": 1}}, Outcome.FAILED),
        (VALID, {"json": {}}, Outcome.FAILED),
        (VALID, {"json": None}, Outcome.FAILED),
        (VALID, {"hex": "0102"}, Outcome.PASSED),
        (VALID, {"hex": "010A".lower()}, Outcome.FAILED),
        (VALID, {"hex": "01"}, Outcome.FAILED),
        (VALID, {"refused": "no"}, Outcome.REFUSED),
        (VALID, {"unsupported": "no"}, Outcome.UNSUPPORTED),
        (VALID, {"hex": "0102", "case": "M/0/full"}, Outcome.PASSED),
        (VALID, {"hex": "0102", "case": "M/0/plain"}, Outcome.FAILED),
        (WITH_TAGS, {"json": {"a": 1}}, Outcome.DROPPED),
        (WITH_TAGS, {"json": {"a": 1, "_unknownTaggedFields": UNKNOWN}}, Outcome.PASSED),
        (WITH_TAGS, {"json": {"a": 1, "_unknownTaggedFields": []}}, Outcome.FAILED),
        (WITH_TAGS, {"hex": "01"}, Outcome.DROPPED),
        (WITH_TAGS, {"hex": "0103"}, Outcome.FAILED),
        (REFUSED, {"refused": "cut"}, Outcome.PASSED),
        (REFUSED, {"json": FORM}, Outcome.TAKEN),
        (REFUSED, {"hex": ""}, Outcome.TAKEN),
        (EITHER, {"refused": "cut"}, Outcome.STRICTER),
        (EITHER, {"json": FORM}, Outcome.PASSED),
        (EITHER, {"json": {}}, Outcome.OTHERWISE),
        (EITHER, {"hex": "01"}, Outcome.PASSED),
        (EITHER, {"hex": "0102"}, Outcome.PASSED),
        (EITHER, {"hex": "02"}, Outcome.OTHERWISE),
        (UNWRITABLE, {"hex": "0102"}, Outcome.PASSED),
        (UNWRITABLE, {"refused": "a tag"}, Outcome.STRICTER),
        (UNWRITABLE, {"hex": "01"}, Outcome.OTHERWISE),
        (msgspec.structs.replace(UNWRITABLE, read=1), {"hex": "01"}, Outcome.PASSED),
    ],
)
def test_an_answer_has_its_outcome(vector: Vector, answer: Any, expected: Outcome) -> None:
    assert outcome(vector, answer) is expected


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{", b"[]", b"{}", b'{"hex":1}', b'{"refused":null}', b"\xff",
             b'{"hex":"","refused":"x"}', b'{"json":{},"unsupported":"x"}']
)  # fmt: skip
def test_a_line_that_is_no_answer_fails(line: bytes) -> None:
    for vector in (VALID, REFUSED, EITHER):
        verdict = judge(vector, Direction.DECODE, line)
        assert verdict.outcome is Outcome.FAILED
        assert verdict.reason


def test_what_kafka_takes_and_would_not_write_is_never_a_deviation() -> None:
    answers: list[Any] = [{"refused": "x"}, {"json": {}}, {"json": 1}, {"hex": ""}, {"hex": "zz"}]
    for answer in answers:
        assert not outcome(EITHER, answer).is_deviation


def test_encoding_is_judged_by_its_bytes() -> None:
    assert outcome(VALID, {"hex": "0102"}, Direction.ENCODE) is Outcome.PASSED
    assert outcome(VALID, {"hex": "0103"}, Direction.ENCODE) is Outcome.FAILED
    assert outcome(VALID, {"json": FORM}, Direction.ENCODE) is Outcome.FAILED
    assert outcome(VALID, {"refused": "x"}, Direction.ENCODE) is Outcome.REFUSED
    assert outcome(WITH_TAGS, {"hex": "01"}, Direction.ENCODE) is Outcome.DROPPED


def test_a_difference_names_its_place() -> None:
    assert difference(FORM, FORM) is None
    for other, told in (
        ({**FORM, "a": [1]}, "a: expected 2 elements, got 1"),
        ({**FORM, "a": [1, {"b": "y", "c": None}]}, "a[1].b: expected 'x', got 'y'"),
        ({**FORM, "a": [1, {"b": "x"}]}, "a[1].c: missing"),
        ({**FORM, "g": 1}, "g: not expected"),
        ([], "it: expected "),
    ):
        assert (difference(FORM, other) or "").startswith(told)


def test_the_bytes_where_an_encoding_differs_are_named() -> None:
    verdict = judge(VALID, Direction.DECODE, b'{"hex": "0103"}')
    assert verdict.reason == "expected 2 bytes, got 2; at byte 1 expected 02, got 03"
    verdict = judge(VALID, Direction.DECODE, b'{"hex": "01"}')
    assert verdict.reason == "expected 2 bytes, got 1; at byte 1 expected 02, got the end"


BATCHES = msgspec.structs.replace(
    VALID, message=None, type=None, version=None,
    json={"batches": [{"magic": 2, "checksum": 5, "records": [{"offset": 0, "headers": []}]}]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([{"magic": 2, "checksum": 5, "records": [{"offset": 0, "headers": []}]}], Outcome.PASSED),
        ([{"records": [{"offset": 0, "headers": []}]}], Outcome.PASSED),
        ([{"magic": 1, "records": [{"offset": 0, "headers": []}]}], Outcome.FAILED),
        ([{"records": [{"offset": 0}]}], Outcome.FAILED),
        ([{"magic": 2}], Outcome.FAILED),
        ([], Outcome.FAILED),
        ([None], Outcome.FAILED),
        ("x", Outcome.FAILED),
    ],
)
def test_a_codec_may_leave_out_any_key_of_a_batch_but_its_records(
    batches: Any, expected: Outcome
) -> None:
    found = outcome(BATCHES, {"json": {"batches": batches}}, Direction.DECODE_RECORDS)
    assert found is expected
    assert outcome(BATCHES, {"hex": "0102"}, Direction.DECODE_RECORDS) is Outcome.FAILED
