"""The report and the terminal state why a request log contains no request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexwire.cli.analyze import _request_log_summary
from flexwire.facts.facts import RequestLogFacts
from flexwire.report import render
from tests.report.sample import SAMPLE


@pytest.mark.parametrize("requests", [0, 1])
def test_an_empty_log_is_not_proof_that_no_client_is_old(requests: int) -> None:
    """Brokers before 3.9.1 log nothing at INFO (KAFKA-18272)."""
    logs = RequestLogFacts(files=1, server_logs=0, lines=requests, requests=requests)
    page = render(replace(SAMPLE, request_logs=logs))
    assert ("No request was logged." in page) == (not requests)
    assert ("DeprecatedRequestsPerSec" in page) == (not requests)
    assert ("brokers before 3.9.1 log no request" in _request_log_summary(logs)) == (not requests)


def test_without_a_request_log_nothing_is_said_of_one() -> None:
    # The broker's own log is not a request log; a cut-off line is a request.
    for logs in (
        RequestLogFacts(files=0, server_logs=1, lines=2, requests=0, refused=2),
        RequestLogFacts(files=1, server_logs=0, lines=1, requests=0, cut=1),
    ):
        assert "proves nothing" not in _request_log_summary(logs)
