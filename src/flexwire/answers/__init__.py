"""Answers to operators' questions about traffic and logs.

Each answer is defined in its own file, which is named after the answer.

An answer is a function that takes tables (`flexwire.answers.asking.answer.AnalysisTables`) and
returns a DataFrame. Next to the function, an object of the class
`flexwire.answers.asking.answer.Answer` describes the columns and how the report shows them. Spark
groups the rows, so an answer contains few rows. `asking/` contains code that several answers share,
and `state/` computes state from the logs of internal topics. `flexwire.spark` opens outputs and
writes answers into them. `ANSWERS_BY_NAME` maps each name to its answer, and imports an answer when
it is first used. `ANSWERS` contains all answers, in the order of the report. `LOG_ANSWERS` contains
the answers about logs, and `STATE_ANSWERS` those about internal topics.

The laws of this package:

- **An answer is one function of tables.** A fresh analysis and stored tables must return the same
  rows. `tests/spark/test_answers_asked.py`
- **Answers join tables with the columns of `tables/keys.py`.** Frame numbers restart with each
  analysis, so keys of several analyses include the analysis. `tests/spark/test_grown_tables.py`
- **If one answer fails, all the others still work.** The tables and the other answers are still
  published. `tests/spark/test_answers_asked.py`
- **The sums of a day depend only on the files of that day.** Otherwise, stored sums could become
  incorrect. Facts from other days and analyses are added when the total is computed.
  `tests/spark/test_day_sums.py`
- **Omitted rows are counted.** Otherwise, a reader might mistake a part for the whole.
  `tests/report/test_bounding.py`
- **A view of an internal topic is exact, or reports that a value is unknown.** Holes in the log and
  snapshots determine the first offset at which a view is exact. The tests compare the views with
  Kafka's own coordinators. `tests/spark/internal_topics/test_coordinators.py`,
  `tests/spark/internal_topics/test_views.py`
- **The audit of tables and the audit of a running analysis use the same sums**
  (`flexwire.measures.audit`), so both audits agree. `tests/spark/test_audit_sums.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

from flexwire.extras import require

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import Answer

__all__ = ["ANSWERS", "ANSWERS_BY_NAME", "LOG_ANSWERS", "STATE_ANSWERS"]


require("flexwire.answers", "spark", "numpy", "pyarrow", "pandas", "pyspark")


class AnswerRegistry(Mapping[str, "Answer"]):
    """All answers by name.

    The names are module names. A module is imported when its answer is first used.
    """

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(module.name for module in iter_modules(__path__) if not module.ispkg)

    def __getitem__(self, name: str) -> Answer:
        if name not in self._names:
            raise KeyError(name)
        answer: Answer = import_module(f"{__name__}.{name}").ANSWER
        return answer

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)


ANSWERS_BY_NAME: Final = AnswerRegistry()
"""All answers by name, each of which is imported when it is used."""

ANSWERS: tuple[Answer, ...]
LOG_ANSWERS: tuple[Answer, ...]
STATE_ANSWERS: tuple[Answer, ...]


def __getattr__(name: str) -> tuple[Answer, ...]:
    """Return all answers, or only those about logs or about internal topics.

    This imports all modules that define answers.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flexwire.answers.asking.results import in_order  # noqa: PLC0415 - it imports PySpark

    every = in_order(ANSWERS_BY_NAME)
    if name == "LOG_ANSWERS":
        return tuple(answer for answer in every if answer.of_logs)
    return tuple(answer for answer in every if answer.asks) if name == "STATE_ANSWERS" else every
