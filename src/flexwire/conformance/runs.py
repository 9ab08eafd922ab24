"""A run: the result of each case, and the comparison with a second broker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from flexwire.conformance.judging import CaseVerdict

if TYPE_CHECKING:
    from flexwire.conformance.cases import Case, CasePlan
    from flexwire.conformance.judging import CaseResult
    from flexwire.versions import Versions


@dataclass(frozen=True, slots=True)
class ConformanceRun:
    """A broker, the release with which it is compared, and the result of each case.

    ``skipped`` lists cases that were not sent because the plain request for their API and version
    was not answered. ``against`` contains the results of a second broker. ``resumed`` is the number
    of results that came from a journal. ``left`` contains the names of objects that the run created
    but could not remove.
    """

    address: str
    release: str
    plan: CasePlan
    results: tuple[CaseResult, ...]
    skipped: tuple[Case, ...]
    against: BrokerComparison | None = None
    resumed: int = 0
    left: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[CaseVerdict]:
        """The number of cases with each verdict."""
        return Counter(result.verdict for result in self.results)

    @property
    def judged(self) -> int:
        """The number of cases that were judged."""
        return len(self.results) - self.counts[CaseVerdict.NOT_JUDGED]

    @property
    def as_kafka(self) -> int:
        """The number of judged cases with the same outcome as Apache Kafka."""
        return self.counts[CaseVerdict.AS_KAFKA] + self.counts[CaseVerdict.QUIRK]

    @property
    def deviations(self) -> tuple[CaseResult, ...]:
        """The cases in which the broker breaks a rule."""
        return tuple(one for one in self.results if one.verdict is CaseVerdict.DEVIATES)

    @property
    def of_each_broker(self) -> tuple[ConformanceRun, ...]:
        """This run, and the run against a second broker if there is one."""
        return (self,) if self.against is None else (self, self.against.other)

    @property
    def claim(self) -> str:
        """Return the run's claim about a broker, without its address."""
        told = f"answers as Apache Kafka {self.release}"
        return f"{told} in {self.as_kafka} of {self.judged} cases"

    @property
    def summary(self) -> str:
        """Return the sentence that summarizes the run."""
        return f"{self.address} {self.claim}"

    @property
    def differences(self) -> tuple[tuple[CaseResult, CaseResult], ...]:
        """The cases in which a second broker differs, with the results of both brokers."""
        there = {} if self.against is None else self.against.by_name
        return tuple(
            (here, there[here.case.name])
            for here in self.results
            if here.case.name in there and not is_alike(here, there[here.case.name])
        )


@dataclass(frozen=True, slots=True)
class OfferedAlone:
    """The versions of an API that only one of two brokers offers."""

    api_key: int
    api_name: str | None
    versions: Versions


@dataclass(frozen=True)
class BrokerComparison:
    """The results of a second broker for the cases of a run.

    ``other`` is the second broker's run. ``only_here`` contains the versions that only the first
    broker offers, and ``only_there`` contains the versions that only the second broker offers.
    """

    other: ConformanceRun
    only_here: tuple[OfferedAlone, ...]
    only_there: tuple[OfferedAlone, ...]

    @cached_property
    def by_name(self) -> dict[str, CaseResult]:
        """The results of the second broker, keyed by case name."""
        return {result.case.name: result for result in self.other.results}


def is_alike(here: CaseResult, there: CaseResult) -> bool:
    """Return whether a case has the same verdict, rule and error codes for two brokers."""
    return _manner(here) == _manner(there)


def _manner(result: CaseResult) -> tuple[object, ...]:
    deviation = result.deviation
    rule = None if deviation is None else (deviation.rule.name, deviation.path)
    return (result.verdict, rule, result.outcome.ending, result.error_codes)
