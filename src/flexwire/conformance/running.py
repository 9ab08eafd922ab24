"""Send all cases of a plan to a broker, one after the other, and judge the outcomes.

Read-only cases are sent to the broker that is tested. Requests about a topic, a group or a
transaction of the run are sent to the responsible broker in its cluster (`own`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from flexwire.arguments import refuse
from flexwire.client.connection import DEFAULT_SECONDS
from flexwire.client.security import PLAINTEXT, Security
from flexwire.conformance.cases import (
    FIRST_CORRELATION_ID,
    Asking,
    Case,
    CaseExpectation,
    CasePlan,
    Kind,
    plan_cases,
)
from flexwire.conformance.comparing import compare_offers, shared_plan
from flexwire.conformance.first_answer import find_unread_answer, plan_of_unread
from flexwire.conformance.hostile import hostile_cases
from flexwire.conformance.journal import ConformanceJournal, JournalHeader
from flexwire.conformance.judging import CaseOutcome, CaseResult, CaseVerdict, judge
from flexwire.conformance.own import OwnThings
from flexwire.conformance.runs import BrokerComparison, ConformanceRun
from flexwire.conformance.sending import CaseSender
from flexwire.conformance.write_plans import with_writes
from flexwire.errors import (
    CallError,
    CodecError,
    ConnectionEndedError,
    FrameError,
    NoAnswerError,
    UnreadableFrameError,
)
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


class SecondBroker(NamedTuple):
    """A second broker's address and security. None means the first broker's security."""

    address: str
    security: Security | None = None


def plan_with_hostile(offered: Mapping[int, Versions], asking: Asking) -> CasePlan:
    """Return a broker's read-only cases, followed by the other requested cases.

    Hostile cases come first, then the cases that change the run's own topic and group.
    """
    plan = plan_cases(offered, asking)
    if asking.hostile:
        first = FIRST_CORRELATION_ID + len(plan.cases)
        plan = replace(plan, cases=(*plan.cases, *hostile_cases(offered, asking, first)))
    return with_writes(plan, offered, asking) if asking.own else plan


def conform(
    address: str,
    asking: Asking,
    *,
    security: Security = PLAINTEXT,
    timeout: float = DEFAULT_SECONDS,
    watch: Callable[[CaseResult, int], None] | None = None,
    against: SecondBroker | None = None,
    journal: Path | None = None,
) -> ConformanceRun:
    """Send all cases to a broker and return the verdicts.

    ``timeout`` is the time limit for one answer, in seconds. ``watch`` is called with each result
    and the number of cases. ``against`` is a second broker to which the same cases are sent.
    ``journal`` is a file of finished cases: new cases are added to it, and cases in it are not sent
    again.

    If the broker's list of versions cannot be read, this is a deviation and the run's only case.
    Raises `CallError`, which contains the name of the last case, if a broker cannot be reached.
    Raises `ConformanceJournalError` for the journal of another run.
    """
    if asking.own and journal is not None:
        # The first run removes the objects that it created, so a second run cannot continue from
        # there.
        raise refuse("journal", "None for a run that changes something", journal)
    to_sender = partial(CaseSender, client_id=asking.client_id, timeout=timeout)
    with ExitStack() as stack:
        here = _planned(stack.enter_context(to_sender(address, security)), asking)
        sides = [here]
        if against is not None:
            other = to_sender(against.address, against.security or security)
            sides.append(_beside(stack.enter_context(other), here))
        # The cases would differ if the list of versions were unreadable now but readable later.
        if journal is not None and here.is_known:
            header = JournalHeader.of([(side.sender.address, side.plan) for side in sides], asking)
            kept = stack.enter_context(ConformanceJournal(journal, header))
            for number, side in enumerate(sides):
                side.finished = kept.finished(number, side.plan)
                side.record = partial(kept.append, number)
        run, *others = _ask_all(sides, asking, watch)
    if not others:
        return run
    if not here.is_known:
        return replace(run, against=BrokerComparison(others[0], (), ()))
    return replace(run, against=compare_offers(others[0], here.offered, sides[1].offered, asking))


@dataclass(slots=True)
class _Side:
    """A broker, the versions that it offers, its cases, and its finished cases.

    ``is_known`` is true if the list of versions could be read. ``finished`` contains the outcomes
    of cases that were sent earlier, keyed by name. ``record`` stores the outcome of a case.
    """

    sender: CaseSender
    plan: CasePlan
    offered: Mapping[int, Versions]
    is_known: bool = True
    finished: Mapping[str, CaseOutcome] = field(default_factory=dict)
    record: Callable[[Case, CaseOutcome], None] = lambda *_: None


def _planned(sender: CaseSender, asking: Asking) -> _Side:
    """Return the first broker and its cases."""
    sender.connected()
    try:
        offered = sender.offered()
    except (ConnectionEndedError, NoAnswerError, UnreadableFrameError):
        # The address may not belong to a broker, or the connection may need other settings.
        raise
    except (CallError, CodecError, FrameError):
        # Later bytes on this connection may belong to that answer.
        sender.close()
        found = find_unread_answer(sender.send, asking)
        if found is None:
            raise
        case, outcome = found
        is_offered = case.expected is CaseExpectation.TAKEN
        said = {case.api_key: Versions(case.version, case.version)} if is_offered else {}
        return _Side(sender, plan_of_unread(case, asking), said, False, {case.name: outcome})
    return _Side(sender, plan_with_hostile(offered, asking), offered)


def _beside(sender: CaseSender, here: _Side) -> _Side:
    """Return the second broker, with those of the first broker's cases that apply to it."""
    offered = sender.offered()
    # The second broker is tested after the first, and brokers close idle connections.
    sender.close()
    return _Side(sender, shared_plan(here.plan, here.offered, offered), offered)


def _ask_all(
    sides: Sequence[_Side], asking: Asking, watch: Callable[[CaseResult, int], None] | None
) -> list[ConformanceRun]:
    """Test the brokers one after the other, and remove the objects of the run from each."""
    total = sum(len(side.plan.cases) for side in sides)
    told = None if watch is None else lambda result: watch(result, total)
    runs = []
    for side in sides:
        left: list[str] = []
        with OwnThings(side.sender, asking) as own, own.removing(left):
            run = _ask(side, own, asking.release, told)
        runs.append(replace(run, left=tuple(left)))
    return runs


def _ask(
    side: _Side, own: OwnThings, release: str, watch: Callable[[CaseResult], None] | None
) -> ConformanceRun:
    """Send the unfinished cases to a broker, and judge all cases."""
    results: list[CaseResult] = []
    skipped: list[Case] = []
    plain: CaseResult | None = None
    for case in side.plan.cases:
        if case.expected is CaseExpectation.TAKEN and _is_hopeless(case, plain):
            skipped.append(case)
            continue
        outcome = side.finished.get(case.name)
        if outcome is None:
            result = _sent(own, case, results, partial(judge, release=release, plain=plain))
            side.record(case, result.outcome)
        else:
            result = judge(case, outcome, release=release, plain=plain)
        if case.kind is Kind.PLAIN:
            plain = result
        results.append(result)
        if watch is not None:
            watch(result)
    return ConformanceRun(
        side.sender.address,
        release,
        side.plan,
        tuple(results),
        tuple(skipped),
        resumed=len(side.finished) if side.is_known else 0,
    )


def _sent(
    own: OwnThings,
    case: Case,
    results: list[CaseResult],
    judged: Callable[[Case, CaseOutcome], CaseResult],
) -> CaseResult:
    """Send and judge a case. Repeat it if the broker may be able to execute it a moment later."""
    case = own.prepared(case)
    while True:
        sender = own.sender(case)
        result = judged(case, _send(sender, case, results))
        if result.verdict is CaseVerdict.DEVIATES:
            # Later bytes on this connection may belong to this case.
            sender.close()
        if not own.waits_for(result):
            own.learn(result)
            return result


def _is_hopeless(case: Case, plain: CaseResult | None) -> bool:
    """Return whether the plain request for a case's API and version remained unanswered."""
    return (
        plain is not None
        and plain.case.kind is not case.kind
        and (plain.case.api_key, plain.case.version) == (case.api_key, case.version)
        and plain.outcome.payload is None
    )


def _send(sender: CaseSender, case: Case, results: list[CaseResult]) -> CaseOutcome:
    try:
        return sender.send(case)
    except CallError as error:
        if not results:
            raise
        raise CallError(f"after {results[-1].case.name}: {error}") from error
