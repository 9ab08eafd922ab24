"""Compare a run with a run against a second broker, using the same requests and the same rules.

The brokers may offer different versions. A case is sent to the second broker only if both brokers
offer the case's version, or neither does. Versions that only one of the brokers offers are listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.conformance.cases import CasePlan, beyond
from flexwire.conformance.runs import BrokerComparison, OfferedAlone
from flexwire.protocol.apis import api_name, request_entries
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.conformance.cases import Asking, Case
    from flexwire.conformance.runs import ConformanceRun


def shared_plan(
    plan: CasePlan, here: Mapping[int, Versions], there: Mapping[int, Versions]
) -> CasePlan:
    """Return the cases whose version is offered by both brokers or by neither."""

    def offers(offered: Mapping[int, Versions], case: Case) -> bool:
        return case.version in offered.get(case.api_key, Versions.NONE)

    return CasePlan(
        tuple(case for case in plan.cases if offers(here, case) == offers(there, case)), ()
    )


def compare_offers(
    other: ConformanceRun,
    here: Mapping[int, Versions],
    there: Mapping[int, Versions],
    asking: Asking,
) -> BrokerComparison:
    """Return a second broker's results, and the versions that only one of the two offers."""
    return BrokerComparison(
        other, tuple(_alone(here, there, asking)), tuple(_alone(there, here, asking))
    )


def _alone(
    offered: Mapping[int, Versions], other: Mapping[int, Versions], asking: Asking
) -> Iterator[OfferedAlone]:
    for api_key in sorted(offered):
        alone = beyond(offered[api_key], other.get(api_key, Versions.NONE))
        if alone and (asking.apis is None or api_key in asking.apis):
            name = api_name(api_key) if request_entries(api_key) else None
            yield OfferedAlone(api_key, name, alone)
