"""What operators ask of traffic and logs: an answer in each file, by whose name it is known.

An answer is a function of tables, `flexwire.answers.asking.answer.AnalysisTables`, that returns a
DataFrame, and an `flexwire.answers.asking.answer.Answer` that says what its columns mean and how
the report shows them. `ANSWERS_BY_NAME` maps each name to its answer, and imports an answer when it
is asked for. `ANSWERS` are all of them, in the order of the report. `LOG_ANSWERS` are those that
are asked of logs, and `STATE_ANSWERS` those about the state that internal topics add up to.
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
    """All answers by name: the names are those of files, and a file is imported when asked for."""

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
"""All answers by name, each imported when it is asked for."""

ANSWERS: tuple[Answer, ...]
LOG_ANSWERS: tuple[Answer, ...]
STATE_ANSWERS: tuple[Answer, ...]


def __getattr__(name: str) -> tuple[Answer, ...]:
    """Return some or all answers, which imports all of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flexwire.answers.asking.results import in_order  # noqa: PLC0415 - it imports PySpark

    every = in_order(ANSWERS_BY_NAME)
    if name == "LOG_ANSWERS":
        return tuple(answer for answer in every if answer.of_logs)
    return tuple(answer for answer in every if answer.asks) if name == "STATE_ANSWERS" else every
