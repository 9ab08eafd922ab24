"""A hostile broker cannot make `flexwire call` run for long or use much memory."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.cli.call import limit_cpu_time
from flexwire.errors import CallError
from tests.net.answering import Answers, answering
from tests.net.densest import densest
from tests.protocol.payloads import response_payload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.protocol import RequestFrame

pytestmark = [
    pytest.mark.slow,
    # Hypothesis registers a callback for each garbage collection. If the timer's exception is
    # raised in that callback, it is lost and reported; the timer then raises the exception again.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function gc_cumulative_time"
        ":pytest.PytestUnraisableExceptionWarning"
    ),
]

MIB = 1024 * 1024
METADATA = 3


class Dense(Answers):
    """Answer Metadata with as many empty topics as fit into this many bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __call__(self, request: RequestFrame, payload: bytes) -> bytes | None:
        if request.api_key != METADATA:
            return super().__call__(request, payload)
        version = request.api_version
        body = densest("MetadataResponse", version, "topics", self.size)
        return response_payload(METADATA, version, body, correlation_id=request.correlation_id)


@pytest.mark.long
def test_a_call_computes_no_longer_than_its_timeout() -> None:
    with answering(Dense(4 * MIB)) as (address, _):
        done = CliRunner().invoke(app, ["call", address, "Metadata", "--timeout", "1"])
    assert done.exit_code == 1
    assert isinstance(done.exception, CallError)
    assert (
        "decoding and printing the answer took more than 1 s; set a higher limit with --timeout"
        in str(done.exception)
    )


@pytest.mark.long
def test_a_line_of_requests_computes_no_longer_and_the_next_goes_on(tmp_path: Path) -> None:
    lines = tmp_path / "requests"
    lines.write_text('{"message": "Metadata"}\n{"message": "ListGroups"}\n')
    with answering(Dense(4 * MIB)) as (address, _):
        told = ["call", address, "--requests", str(lines), "--timeout", "1"]
        done = CliRunner().invoke(app, told)
    dense, after = map(json.loads, done.stdout.splitlines())
    assert "took more than 1 s" in dense["error"]
    assert after["response"]["groups"] == []
    assert done.exit_code == 1


def test_an_answer_above_the_limit_is_not_held() -> None:
    with answering(Dense(2 * MIB)) as (address, _):
        done = CliRunner().invoke(app, ["call", address, "Metadata", "--answer-mib", "1"])
    assert isinstance(done.exception, CallError)
    assert "is longer than the limit of 1048576; raise frame_limit" in str(done.exception)
    assert "--answer-mib" in str(done.exception)


def forever() -> None:
    while True:
        pass


def test_whatever_computes_for_ever_is_ended() -> None:
    with limit_cpu_time(30, "this"):
        pass
    with (
        pytest.raises(CallError, match=r"^this took more than 0.05 s"),
        limit_cpu_time(0.05, "this"),
    ):
        forever()


class Swallows:
    """An object with a slow finalizer; Python drops exceptions in finalizers."""

    def __init__(self, compute: Callable[[], None]) -> None:
        self.compute = compute

    def __del__(self) -> None:
        self.compute()


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Collect Python's reports of dropped exceptions."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: told.append(one.exc_type))
    return told


def swallows_once() -> None:
    Swallows(forever)


def swallows_and_goes_on() -> None:
    swallows_once()
    forever()


@pytest.mark.parametrize("compute", [swallows_once, swallows_and_goes_on])
def test_an_end_that_a_finalizer_swallows_is_told_all_the_same(
    dropped: list[object], compute: Callable[[], None]
) -> None:
    with pytest.raises(CallError, match=r"^this took more"), limit_cpu_time(0.05, "this"):
        compute()
    assert dropped == [CallError]
