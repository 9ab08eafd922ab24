"""Each line in the fault grammar has the documented meaning, and each mistake has its own error."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flexwire.capture.files.comments import (
    CaptureFilter,
    fault_comment,
    faults_comment,
)
from flexwire.errors import ArgumentError
from flexwire.protocol.error_codes import error_codes
from flexwire.tap.fault_rules import FaultPlan, Frequency, parse_fault, parse_faults

MEANINGS: dict[str, dict[str, Any]] = {
    "EndTxn error=INVALID_TXN_STATE once": {
        "kind": "error",
        "code": 48,
        "point": None,
        "often": Frequency(first=1),
        "only": CaptureFilter(apis=("EndTxn",)),
    },
    "Fetch delay=2s 5%": {"kind": "delay", "seconds": 2.0, "often": Frequency(0.05)},
    "fetch delay=1.5ms after": {"seconds": 0.0015, "point": "after"},
    "1 delay=2m before": {"seconds": 120.0, "point": "before", "only": CaptureFilter(("Fetch",))},
    "Produce cut after=100": {"kind": "cut", "length": 100, "point": "after"},
    "Produce cut before after=3 nth=2": {
        "length": 3,
        "point": "before",
        "often": Frequency(nth=2),
    },
    "Produce after error=-1 first=3": {"code": -1, "point": "after", "often": Frequency(first=3)},
    "* close": {"kind": "close", "point": "before", "only": CaptureFilter()},
    "Metadata stale": {"kind": "stale", "point": "after"},
    "Heartbeat silence": {"kind": "silence", "point": "before"},
    "Fetch throttle=300ms 100%": {"seconds": 0.3, "point": "after", "often": Frequency()},
    "Fetch tag=10042=hello": {"kind": "tag", "tag": (10042, b"hello")},
    "Fetch tag=10007=hex:00ff": {"tag": (10007, b"\x00\xff")},
    "Produce client='a b' client=c topic=d* close": {
        "only": CaptureFilter(("Produce",), ("a b", "c"), ("d*",))
    },
}


@pytest.mark.parametrize("text", MEANINGS)
def test_a_line_means_what_the_page_says(text: str) -> None:
    fault = parse_fault(text)
    assert {name: getattr(fault, name) for name in MEANINGS[text]} == MEANINGS[text]
    assert str(fault) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected an API and an action"),
        ("'Fetch", "expected an API and an action"),
        ("Fecth close", "Fetch"),
        ("Fetch", "expected one of error, delay, cut"),
        ("Fetch 5%", "expected one of error"),
        ("Fetch close cut", "expected one action, got close and cut"),
        ("Fetch delay", "expected delay=… with a value"),
        ("Fetch delay=2", "as 200ms or 2s, got '2'"),
        ("Fetch delay=11m", "at most 10m"),
        ("Fetch delay=0s", "at most 10m"),
        ("Fetch close=1", "close does not accept a value"),
        ("Fetch error=NOT_LEADR", "NOT_LEADER_OR_FOLLOWER"),
        ("Fetch error=9999", "number of an error"),
        ("Fetch error=NONE", "expected an error code other than 0, got 0"),
        ("Fetch stale before", "stale must happen after forwarding"),
        ("Fetch close after=3", "only cut accepts after=BYTES"),
        ("Fetch close before after", "repeats another word"),
        ("Fetch close once nth=2", "repeats another word"),
        ("Fetch close nth=0", "at least 1"),
        ("Fetch close 0%", "above 0%"),
        ("Fetch close 101%", "at most 100%"),
        ("Fetch close onec", "did you mean once?"),
        ("Fetch close sometimes", "is not a valid word in a fault"),
        ("Fetch tag=x=1", "tag"),
        ("Fetch tag=7=1", "expected 10000 to"),
        ("Fetch close " + "x" * 400, "at most 300 characters"),
    ],
)
def test_a_slip_is_named(text: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_fault(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 700


def test_every_error_of_kafka_has_its_name() -> None:
    for code in error_codes():
        if code.code:
            assert parse_fault(f"* error={code.name.lower()}").code == code.code


def test_a_file_has_one_fault_on_each_line() -> None:
    lines = ["# faults", "", " Fetch close ", "Produce stale"]
    assert [str(fault) for fault in parse_faults(lines)] == ["Fetch close", "Produce stale"]
    with pytest.raises(ArgumentError, match="line 2: "):
        parse_faults(["Fetch close", "Fetch"])


def test_any_text_is_a_fault_or_our_error() -> None:
    source = random.Random(4)
    words = ["Fetch", "*", "close", "cut", "after=", "after=3", "delay=1s", "error=", "error=6"]
    words += ["5%", "once", "nth=1", "'", "client=", "topic=a", "tag=1=", "before", "=", "\x00"]
    read = 0
    for _ in range(5000):
        text = " ".join(source.choices(words, k=source.randrange(5)))
        try:
            parse_fault(text)
        except ArgumentError:
            continue
        read += 1
    assert read > 20


def test_a_plan_is_bounded() -> None:
    with pytest.raises(ArgumentError, match="at most 100"):
        FaultPlan((parse_fault("Fetch close"),) * 101)
    with pytest.raises(ArgumentError, match="seed"):
        FaultPlan(seed=-1)


def test_comments_of_many_long_faults_stay_short() -> None:
    many = faults_comment(["Fetch close " + "x" * 200] * 90, 1)
    assert len(many) < 1500
    assert "…".encode("unicode_escape") in many
    assert len(fault_comment(1, "Fetch close", "not possible: " + "x" * 10_000)) < 1200
