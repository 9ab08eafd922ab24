"""The matrix of a run: one row per API and group of versions, and one column per kind.

If two brokers are compared and differ in a cell, the cell contains a word for each broker.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from flexwire.conformance.cases import Kind
from flexwire.conformance.judging import CaseVerdict
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.conformance.cases import Case
    from flexwire.conformance.runs import ConformanceRun

CELLS: Final = {
    CaseVerdict.AS_KAFKA: "ok",
    CaseVerdict.QUIRK: "quirk",
    CaseVerdict.DIFFERS: "differs",
    CaseVerdict.DEVIATES: "DEVIATES",
    CaseVerdict.NOT_JUDGED: "-",
}
"""The word for each verdict in the matrix."""

LEGEND: Final = {
    "-": "not judged",
    "quirk": "the broker breaks a rule in the same way as Apache Kafka",
    "differs": "Apache Kafka accepts a request that this broker refuses",
    "DEVIATES": "the broker breaks a rule; see below",
    "not asked": "only one of the two brokers offers this version",
}
"""The meanings of the words in the matrix."""

_SKIPPED: Final = "not sent"
UNSHARED: Final = "not asked"
"""The word for a case that was not sent to a second broker."""
BESIDE: Final = " / "
"""The separator between the words of two brokers in a cell of the matrix."""

Row = tuple[str, str, tuple[str, ...]]
"""A row of the matrix: the API, its versions, and a cell for each kind."""


def matrix_columns(run: ConformanceRun) -> list[Kind]:
    """Return the kinds of cases in a run, in order."""
    kinds = {case.kind for case in run.plan.cases}
    return [kind for kind in Kind if kind in kinds]


def matrix_rows(run: ConformanceRun) -> list[Row]:
    """Return the rows of the matrix. Versions of an API whose cells are equal share a row."""
    found: dict[str, dict[int, dict[Kind, list[str]]]] = {}
    for case, word in sorted(_words(run), key=lambda item: item[0].api_key):
        cells = found.setdefault(case.api_name, {}).setdefault(case.version, {})
        cells.setdefault(case.kind, []).append(word)
    columns = matrix_columns(run)
    rows = []
    for name, versions in found.items():
        alike: dict[tuple[str, ...], list[int]] = {}
        for version, cells in sorted(versions.items()):
            row = tuple(_cell(cells.get(kind, [])) for kind in columns)
            alike.setdefault(row, []).append(version)
        rows += [(name, str(Versions.of(same)), row) for row, same in alike.items()]
    return rows


def _words(run: ConformanceRun) -> Iterator[tuple[Case, str]]:
    """Yield each case with its word, and with the second broker's word if the two words differ."""
    there = None
    if run.against is not None:
        there = {case.name: word for case, word in _own_words(run.against.other)}
    for case, word in _own_words(run):
        other = word if there is None else there.get(case.name, UNSHARED)
        yield case, word if word == other else f"{word}{BESIDE}{other}"


def _own_words(run: ConformanceRun) -> Iterator[tuple[Case, str]]:
    for result in run.results:
        yield result.case, CELLS[result.verdict]
    for case in run.skipped:
        yield case, _SKIPPED


def matrix_legend(run: ConformanceRun) -> dict[str, str]:
    """Return the meanings of those words in a run's matrix that need an explanation."""
    told = {words for _, words in _words(run)}
    found = {word for words in told for word in words.split(BESIDE)}
    legend = {word: meaning for word, meaning in LEGEND.items() if word in found}
    if run.against is not None and any(BESIDE in words for words in told):
        legend[f"a{BESIDE}b"] = f"a is {run.address}, and b is {run.against.other.address}"
    return legend


def _cell(words: Sequence[str]) -> str:
    """Return the cell for the words of several cases, with counts if the words differ."""
    counts = Counter(words)
    if len(counts) <= 1:
        return next(iter(counts), "")
    return ", ".join(f"{number} {word}" for word, number in counts.items())
