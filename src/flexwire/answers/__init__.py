"""Answers to operators' questions about traffic and logs.

One answer in each file, with the file's name.

An answer is a function of tables (`flexwire.answers.asking.answer.AnalysisTables`) that returns a
DataFrame. Beside it, an `flexwire.answers.asking.answer.Answer` describes its columns and how the
report shows them. Spark does the grouping, so an answer has few rows. `asking/` has what several
answers need, and `state/` turns the logs of internal topics into state. Opening an output, and
writing answers into it, is left to `flexwire.spark`. `ANSWERS_BY_NAME` maps each name to its answer
and imports an answer when it is used. `ANSWERS` has all answers, in the order of the report.
`LOG_ANSWERS` are the answers about logs, and `STATE_ANSWERS` those about internal topics.

Laws of this room:

- **An answer is one function of tables.** A fresh analysis and stored tables must give the same
  rows. `tests/spark/test_answers_asked.py`
- **Answers join tables by `tables/keys.py`.** Frame numbers restart with each analysis, so a key of
  several analyses names the analysis. `tests/spark/test_grown_tables.py`
- **If one answer fails, all others still work.** The tables and the other answers are still
  published. `tests/spark/test_answers_asked.py`
- **The sums of a day follow from the files of that day alone.** Otherwise kept sums could become
  wrong. Facts from other days and analyses are added in the total. `tests/spark/test_day_sums.py`
- **Rows that are cut off are counted.** Otherwise a reader would mistake a part for the whole.
  `tests/report/test_bounding.py`
- **A view of an internal topic is exact, or it says that the value is unknown.** Holes in the log
  and snapshots decide from where on a view is exact. Kafka's own coordinators are the judge.
  `tests/spark/internal_topics/test_coordinators.py`, `tests/spark/internal_topics/test_views.py`
- **The same sums audit tables and a running analysis** (`flexwire.measures.audit`), so that both
  audits agree. `tests/spark/test_audit_sums.py`
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
    """All answers by name. The names are file names; a file is imported on first use."""

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
"""All answers by name, each imported when it is used."""

ANSWERS: tuple[Answer, ...]
LOG_ANSWERS: tuple[Answer, ...]
STATE_ANSWERS: tuple[Answer, ...]


def __getattr__(name: str) -> tuple[Answer, ...]:
    """Return all answers, or the named ones; this imports all of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flexwire.answers.asking.results import in_order  # noqa: PLC0415 - it imports PySpark

    every = in_order(ANSWERS_BY_NAME)
    if name == "LOG_ANSWERS":
        return tuple(answer for answer in every if answer.of_logs)
    return tuple(answer for answer in every if answer.asks) if name == "STATE_ANSWERS" else every
