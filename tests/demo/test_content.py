from __future__ import annotations

import pytest

from flexwire.demo.content import TOPICS, SampleRecord, make_samples, require
from flexwire.demo.outcome import OutcomeRecorder
from flexwire.errors import FlexwireError


def test_content_is_the_same_in_every_run_and_differs_between_topics() -> None:
    assert make_samples("orders", 50) == make_samples("orders", 50)
    assert [one.value for one in make_samples("orders", 5)] != [
        one.value for one in make_samples("clicks", 5)
    ]


@pytest.mark.parametrize("topic", TOPICS)
def test_each_topic_has_all_that_a_record_can_carry(topic: str) -> None:
    batch = make_samples(topic, 80)
    names = [name for one in batch for name, _ in one.headers]
    contents = [content for one in batch for _, content in one.headers]
    assert any(one.key is None for one in batch)
    assert any(one.value is None and one.key is not None for one in batch)
    assert not any(one.value is None and one.key is None for one in batch)
    assert any(not one.headers for one in batch)
    assert any(len(one.headers) != len(dict(one.headers)) for one in batch)
    assert {"traceparent", "retry", "city"} <= set(names)
    assert None in contents
    assert b"" in contents
    assert None not in [
        content for one in make_samples(topic, 80, null_headers=False) for _, content in one.headers
    ]


A = SampleRecord("t", b"a", b"1")
B = SampleRecord("t", b"b", None, (("h", None),))


@pytest.mark.parametrize(
    ("written", "read", "failures"),
    [
        ([A, B], [B, A], ()),
        ([A, A], [A], ("t: 1 of 2 records were not consumed",)),
        ([A], [A, A], ("t: 1 consumed records were never produced",)),
        (
            [A],
            [B],
            (
                "t: 1 of 1 records were not consumed",
                "t: 1 consumed records were never produced",
            ),
        ),
    ],
)
def test_what_is_read_must_be_what_was_written(
    written: list[SampleRecord], read: list[SampleRecord], failures: tuple[str, ...]
) -> None:
    ledger = OutcomeRecorder("client", "1", part="")
    ledger.produced(written)
    ledger.consumed(read)
    outcome = ledger.outcome()
    assert (outcome.produced, outcome.consumed) == (len(written), len(read))
    assert outcome.failures == failures


def test_checks_that_fail_and_the_error_that_ended_the_run_are_failures() -> None:
    ledger = OutcomeRecorder("client", "1", part="")
    ledger.expect(truth=True, failure="never seen")
    ledger.expect(truth=False, failure="a check")
    assert ledger.outcome(error="Broken: pipe").failures == ("Broken: pipe", "a check")


def test_a_missing_package_is_named_with_the_extra_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "aiokafka", None)
    monkeypatch.delitem(__import__("sys").modules, "flexwire.demo.clients.aio", raising=False)
    with pytest.raises(FlexwireError, match=r"aiokafka.*pip install 'flexwire\[demo\]'"):
        require("flexwire.demo.clients.aio")
