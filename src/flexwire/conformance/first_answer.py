"""Judge a broker's unreadable list of versions, as a case with its outcome.

Without this list, no other request can be sent, so the run consists of this one case. A missing
answer is not a finding, because TLS, a login or another protocol may be the cause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flexwire.codec import message
from flexwire.conformance.cases import (
    FIRST_CORRELATION_ID,
    CaseExpectation,
    CasePlan,
    Kind,
    RequestWriter,
    Unasked,
)
from flexwire.conformance.judging import CaseVerdict, judge
from flexwire.conformance.questions import QUESTIONS, filled
from flexwire.protocol.apis import api_key_of, released_versions
from flexwire.protocol.headers import UNSUPPORTED_VERSION, response_name
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.conformance.cases import Asking, Case
    from flexwire.conformance.judging import CaseOutcome

VERSIONS_UNREAD: Final = "the broker's list of versions cannot be read"
"""The reason why no other request is sent."""
_ERROR_CODE: Final = slice(CORRELATION_ID_SIZE, CORRELATION_ID_SIZE + 2)


def find_unread_answer(
    send: Callable[[Case], CaseOutcome], asking: Asking
) -> tuple[Case, CaseOutcome] | None:
    """Return the first ApiVersions case whose answer cannot be read, and this answer.

    Like a client, this function first sends the newest version. After a fallback, it sends the
    newest version that the broker supports. Returns None if all these answers can be read, or if an
    answer is missing.
    """
    api_key = api_key_of(NEGOTIATES)
    version = released_versions(api_key).highest
    while True:
        writer = RequestWriter(api_key, version, asking)
        case = writer.case(Kind.PLAIN, FIRST_CORRELATION_ID, filled(writer.form))
        outcome = send(case)
        if outcome.payload is None or not _deviates(case, outcome, asking):
            return None
        if outcome.payload[_ERROR_CODE] != UNSUPPORTED_VERSION.to_bytes(2, "big"):
            return case, outcome
        fallback = replace(case, kind=Kind.UNOFFERED, expected=CaseExpectation.FALLEN_BACK)
        if _deviates(fallback, outcome, asking):
            return fallback, outcome
        lower = _own_highest(outcome.payload, api_key)
        if lower >= version:
            return case, outcome
        version = lower


def _own_highest(payload: bytes, api_key: int) -> int:
    """Return the newest version of ApiVersions that a readable fallback lists."""
    body: Any = message(response_name(api_key, 0)).decode(payload[CORRELATION_ID_SIZE:], 0)
    highest: int = max(api.max_version for api in body.api_keys if api.api_key == api_key)
    return highest


def _deviates(case: Case, outcome: CaseOutcome, asking: Asking) -> bool:
    return judge(case, outcome, release=asking.release).verdict is CaseVerdict.DEVIATES


def plan_of_unread(case: Case, asking: Asking) -> CasePlan:
    """Return the plan of a run that consists only of this case."""
    unasked = (
        Unasked(key, name, released_versions(key), VERSIONS_UNREAD)
        for key, name in sorted((api_key_of(name), name) for name in QUESTIONS)
        if asking.asks(key) and key != case.api_key
    )
    return CasePlan((case,), tuple(unasked))
