"""The result of a codec run: counts by message and version, and all deviations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from flexwire.printable import printable
from flexwire.vectors.judging import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.vectors.judging import Verdict
    from flexwire.vectors.package import Manifest

RECORDS: Final = "record batches"
"""The name of the row for record batches in a table that is grouped by message."""
_OF_EACH: Final = 2
"""The number of deviations that the text output lists for each message and outcome."""
_COLUMNS: Final = (
    ("passed", (Outcome.PASSED, Outcome.DROPPED)),
    ("failed", (Outcome.FAILED,)),
    ("refused", (Outcome.REFUSED,)),
    ("taken", (Outcome.TAKEN,)),
    ("remarks", (Outcome.STRICTER, Outcome.OTHERWISE)),
    ("unsupported", (Outcome.UNSUPPORTED,)),
    ("not asked", (Outcome.NOT_ASKED,)),
)


class CodecResults:
    """The verdict counts of a run. Deviations and remarks are kept in full."""

    def __init__(self, command: list[str], manifest: Manifest | None = None) -> None:
        self.command = command
        self.manifest = manifest
        self.starts = 0
        self.counts: Counter[Outcome] = Counter()
        self.by_version: dict[tuple[str, int | None], Counter[Outcome]] = {}
        self.deviations: list[Verdict] = []
        self.remarks: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Count a verdict, and keep it if it is a deviation or a remark."""
        vector, outcome = verdict.vector, verdict.outcome
        self.counts[outcome] += 1
        key = (vector.message or RECORDS, vector.version)
        self.by_version.setdefault(key, Counter())[outcome] += 1
        if outcome.is_deviation:
            self.deviations.append(verdict)
        elif outcome in {Outcome.STRICTER, Outcome.OTHERWISE}:
            self.remarks.append(verdict)

    @property
    def is_clean(self) -> bool:
        """True if every case was sent and there are no deviations."""
        return not self.deviations and not self.counts[Outcome.NOT_ASKED]

    def to_json(self) -> dict[str, Any]:
        """Return all results as JSON: the counts, a row for each version, and each deviation."""
        manifest = self.manifest
        return {
            "command": self.command,
            "vectors": None if manifest is None else manifest.version,
            "kafka": None if manifest is None else manifest.kafka,
            "clean": self.is_clean,
            "starts": self.starts,
            "counts": _sums(self.counts),
            "versions": [
                {"message": name, "version": version, **_sums(counts)}
                for (name, version), counts in self.by_version.items()
            ],
            "deviations": [_told(one) for one in self.deviations],
            "remarks": [_told(one) for one in self.remarks],
        }

    def text(self, *, most: int = 20, every_version: bool = False) -> Iterator[str]:
        """Yield the lines of a table by message or by version, followed by the first deviations.

        Unless ``every_version`` is set, one line summarizes all rows that have neither deviations
        nor remarks.
        """
        rows = self._rows(every_version=every_version)
        shown = [
            (name, counts)
            for name, counts in rows
            if every_version or any(_sum(counts, outcomes) for _, outcomes in _COLUMNS[1:5])
        ]
        if shown:
            yield from _table(shown)
            yield ""
        if len(shown) < len(rows):
            clean = len(rows) - len(shown)
            yield f"{clean} of {len(rows)} messages have neither deviations nor remarks"
        yield from self._examples(most)
        yield self.summary()

    def _examples(self, most: int) -> Iterator[str]:
        """Yield the first deviations of each message and outcome, up to a common limit."""
        seen: Counter[tuple[str | None, Outcome]] = Counter()
        shown = 0
        for verdict in self.deviations:
            seen[verdict.vector.message, verdict.outcome] += 1
            if seen[verdict.vector.message, verdict.outcome] > _OF_EACH or shown >= most:
                continue
            shown += 1
            what = f"{verdict.vector.case}: {verdict.direction}: {verdict.outcome}"
            yield f"{what}: {printable(verdict.reason)}"
        if shown < len(self.deviations):
            yield (
                f"... and {len(self.deviations) - shown:,} more; --format json lists all deviations"
            )

    def summary(self) -> str:
        """Return one line with all counts."""
        counts = ", ".join(f"{self.counts[one]:,} {one}" for one in Outcome if self.counts[one])
        kafka = f"Apache Kafka {self.manifest.kafka}: " if self.manifest else ""
        return f"{kafka}{self.counts.total():,} cases: {counts or 'none'}"

    def _rows(self, *, every_version: bool) -> list[tuple[str, Counter[Outcome]]]:
        if every_version:
            return [
                (name if version is None else f"{name} {version}", counts)
                for (name, version), counts in self.by_version.items()
            ]
        found: dict[str, Counter[Outcome]] = {}
        for (name, _), counts in self.by_version.items():
            found.setdefault(name, Counter()).update(counts)
        return [*found.items()]


def _sum(counts: Counter[Outcome], outcomes: Iterable[Outcome]) -> int:
    return sum(counts[one] for one in outcomes)


def _sums(counts: Counter[Outcome]) -> dict[str, int]:
    """Return all counts, keyed by the JSON names of their outcomes.

    >>> _sums(Counter({Outcome.REFUSED: 2}))["refusedWrongly"]
    2
    """
    return {_json_name(one): counts[one] for one in Outcome}


def _json_name(outcome: Outcome) -> str:
    first, *others = outcome.value.split()
    return first + "".join(map(str.capitalize, others))


def _told(verdict: Verdict) -> dict[str, str]:
    return {
        "case": verdict.vector.case,
        "do": verdict.direction.value,
        "outcome": _json_name(verdict.outcome),
        "reason": verdict.reason,
    }


def _table(rows: list[tuple[str, Counter[Outcome]]]) -> Iterator[str]:
    heads = ["message", *(head for head, _ in _COLUMNS)]
    cells = [
        [name, *(f"{_sum(counts, outcomes) or '':}" for _, outcomes in _COLUMNS)]
        for name, counts in rows
    ]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for row in [heads, *cells]:
        first, *others = row
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *numbers]).rstrip()
