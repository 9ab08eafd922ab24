"""Does a broker answer as Apache Kafka does? Asks each API in each version, and judges the bytes.

A broker that is not Apache Kafka learns from its users where it differs. This room asks first: it
takes the versions that the broker offers, writes for each a few requests that only read
(`questions`, `cases`, `hostile`), sends them (`running`), and judges each response from its
correlation id to its last byte (`judging`, `rules`). A second broker may be asked the same
(`comparing`), and a run that was stopped goes on (`journal`). `formats`, `page` and `badge` show
the result. Nothing is certified: a run says in how many cases the broker answered as a release of
Apache Kafka does.

The laws of this room (tests below `tests/`):

- A request that is sent only reads, whatever the broker makes of it, in its own version and in that
  which it names (`conformance/test_questions.py`). A caller may allow more: a topic and a group of
  the run's own, and nothing else (`writing`, `conformance/test_writing.py`).
- Apache Kafka has no unexplained deviation (`kafka/test_conformance.py`), and each planted one is
  found at its place (`conformance/test_planted.py`).
- A broker's bytes give a verdict, in bounded time and memory (`conformance/test_planted.py`).

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
