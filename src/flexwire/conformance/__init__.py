"""Check byte by byte whether a broker answers like Apache Kafka, in each version of each API.

The developers of a broker other than Apache Kafka often learn from their users how it differs from
Kafka. This package finds such differences first. It determines the versions that the broker offers,
and creates a few read-only requests for each version (`questions`, `cases`, `hostile`). It sends
these requests (`running`), and judges each response from its correlation id to its last byte
(`judging`, `rules`). The same requests can also be sent to a second broker (`comparing`), and an
interrupted run can be continued (`journal`). `formats`, `page` and `badge` present the result. A
run is not a certificate: it states in how many cases the broker answered like a release of Apache
Kafka.

The laws of this package (tests below `tests/`):

- Requests only read, even if a broker misinterprets them, both in their own version and in the
  version that their header states (`conformance/test_questions.py`). A caller may also allow the
  run to create and change its own topic, groups and transactions, and nothing else (`writing`,
  `removals`, `own`; `conformance/test_writing.py`). Requests that affect a whole cluster require a
  separate permission (`disposable`).
- Apache Kafka has no unexplained deviation (`kafka/test_conformance.py`), and each planted
  deviation is found where it was planted (`conformance/test_planted.py`).
- Whatever a broker answers, each case receives a verdict, in limited time and memory
  (`conformance/test_planted.py`).

>>> from flexwire.conformance import Asking, plan_cases
>>> from flexwire.versions import Versions
>>> [case.name for case in plan_cases({60: Versions(0, 0)}, Asking("4.4.0")).cases]
['DescribeCluster 0, plain', 'DescribeCluster 0, unknown tags', 'DescribeCluster 0, header tags', \
'DescribeCluster 0, null client id', 'DescribeCluster 1, not offered']
"""

from __future__ import annotations

from flexwire.conformance.cases import (
    Asking,
    Case,
    CaseExpectation,
    CasePlan,
    Kind,
    Unasked,
    plan_cases,
)
from flexwire.conformance.judging import CaseDeviation, CaseOutcome, CaseResult, CaseVerdict, Ending
from flexwire.conformance.rules import RULES, ConformanceRule
from flexwire.conformance.running import SecondBroker, conform, plan_with_hostile
from flexwire.conformance.runs import BrokerComparison, ConformanceRun, OfferedAlone

__all__ = [
    "RULES",
    "Asking",
    "BrokerComparison",
    "Case",
    "CaseDeviation",
    "CaseExpectation",
    "CaseOutcome",
    "CasePlan",
    "CaseResult",
    "CaseVerdict",
    "ConformanceRule",
    "ConformanceRun",
    "Ending",
    "Kind",
    "OfferedAlone",
    "SecondBroker",
    "Unasked",
    "conform",
    "plan_cases",
    "plan_with_hostile",
]
