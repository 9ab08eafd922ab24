"""Asks a broker all cases of a plan, one after the other, and judges what follows.

Cases share a connection until something goes wrong on it. A case that a broker has to refuse, a
hostile one, and one that changes how the connection is read have a connection of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from flexwire.client.broker import Broker
from flexwire.client.connection import DEFAULT_SECONDS
from flexwire.client.security import PLAINTEXT, Security
from flexwire.closeable import Closeable
from flexwire.conformance.cases import (
    FIRST_CORRELATION_ID,
    Asking,
    Case,
    CaseExpectation,
    CasePlan,
    Kind,
    plan_cases,
)
from flexwire.conformance.hostile import hostile_cases
from flexwire.conformance.judging import CaseOutcome, CaseResult, CaseVerdict, Ending, judge
from flexwire.errors import CallError, ConnectionEndedError, NoAnswerError, UnreadableFrameError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.versions import Versions


@dataclass(frozen=True, slots=True)
class ConformanceRun:
    """A broker, the release that it is compared with, and the result of each case.

    ``skipped`` are cases that were not sent, because the plain request of their API and version was
    not answered.
    """

    address: str
    release: str
    plan: CasePlan
    results: tuple[CaseResult, ...]
    skipped: tuple[Case, ...]

    @property
    def counts(self) -> Counter[CaseVerdict]:
        """How many cases have each verdict."""
        return Counter(result.verdict for result in self.results)

    @property
    def judged(self) -> int:
        """How many cases were judged."""
        return len(self.results) - self.counts[CaseVerdict.NOT_JUDGED]

    @property
    def as_kafka(self) -> int:
        """How many of the judged cases followed as with Apache Kafka."""
        return self.counts[CaseVerdict.AS_KAFKA] + self.counts[CaseVerdict.QUIRK]

    @property
    def deviations(self) -> tuple[CaseResult, ...]:
        """The cases in which the broker breaks a rule."""
        return tuple(one for one in self.results if one.verdict is CaseVerdict.DEVIATES)

    @property
    def summary(self) -> str:
        """Return the sentence that sums up the run."""
        return (
            f"{self.address} answers as Apache Kafka {self.release} in {self.as_kafka} of "
            f"{self.judged} cases"
        )


def plan_with_hostile(offered: Mapping[int, Versions], asking: Asking) -> CasePlan:
    """Return the cases for a broker, and if wanted the hostile ones behind all others."""
    plan = plan_cases(offered, asking)
    if not asking.hostile:
        return plan
    first = FIRST_CORRELATION_ID + len(plan.cases)
    return replace(plan, cases=(*plan.cases, *hostile_cases(offered, asking, first)))


def conform(
    address: str,
    asking: Asking,
    *,
    security: Security = PLAINTEXT,
    timeout: float = DEFAULT_SECONDS,
    watch: Callable[[CaseResult, int], None] | None = None,
) -> ConformanceRun:
    """Ask a broker all cases and return the verdicts.

    ``timeout`` is for one answer, in seconds. ``watch`` is given each result, and how many cases
    there are. Raises `CallError` if the broker cannot be reached, or not any more; the error names
    the case before.
    """
    with CaseSender(address, security, client_id=asking.client_id, timeout=timeout) as sender:
        plan = plan_with_hostile(sender.offered(), asking)
        results: list[CaseResult] = []
        skipped: list[Case] = []
        plain: CaseResult | None = None
        for case in plan.cases:
            if case.expected is CaseExpectation.TAKEN and _is_hopeless(case, plain):
                skipped.append(case)
                continue
            result = judge(case, _send(sender, case, results), release=asking.release, plain=plain)
            if result.verdict is CaseVerdict.DEVIATES:
                # What else comes on this connection may belong to the case.
                sender.close()
            if case.kind is Kind.PLAIN:
                plain = result
            results.append(result)
            if watch is not None:
                watch(result, len(plan.cases))
    return ConformanceRun(address, asking.release, plan, tuple(results), tuple(skipped))


def _is_hopeless(case: Case, plain: CaseResult | None) -> bool:
    """Return whether the plain request of a case's API and version was not answered."""
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


class CaseSender(Closeable):
    """Reaches one broker, and sends it cases; ``timeout`` is for one answer, in seconds."""

    def __init__(self, address: str, security: Security, *, client_id: str, timeout: float) -> None:
        self._connect = partial(
            Broker.connect, address, security, client_id=client_id, timeout=timeout
        )
        self._broker: Broker | None = None

    def offered(self) -> Mapping[int, Versions]:
        """Return the versions that the broker says it has, by api key."""
        return self._connected().offered

    def send(self, case: Case) -> CaseOutcome:
        """Send a case and return what followed; `CallError` if the broker cannot be reached."""
        if case.is_alone:
            self.close()
        broker = self._connected()
        try:
            payload = broker.exchange_bytes(case.data)
            return CaseOutcome(payload, unread=broker.unread_length)
        except ConnectionEndedError as error:
            held = f"after {error.held} bytes of an answer" if error.held else ""
            return CaseOutcome(ending=Ending.CLOSED, detail=held)
        except NoAnswerError:
            return CaseOutcome(ending=Ending.SILENT)
        except UnreadableFrameError as error:
            reason = str(error).removeprefix(f"{broker.address}: ")
            return CaseOutcome(ending=Ending.NO_FRAME, detail=reason)
        finally:
            if case.is_alone:
                self.close()

    def close(self) -> None:
        """End the connection; a second call does nothing."""
        if self._broker is not None:
            self._broker.close()
            self._broker = None

    def _connected(self) -> Broker:
        if self._broker is None or not self._broker.is_open:
            self._broker = self._connect()
        return self._broker
