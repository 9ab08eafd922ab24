"""docs/audit.md: the part about the trial, from the rows that `make trial` kept."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from flexwire.protocol.apis import api_name
from tests.kafka.trial.rows import BREAKS, CAPTURED, JUDGED, Row, read_rows
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = DOCS / "audit.md"
_TITLE = "## The audit on trial\n"
_MOST_SAID = 90
_SUMMARY = """\
`make trial` runs {clients} clients against a {captured} broker through the tap. The trial audits
the tap's capture for {judged}, and then runs the same clients against brokers of these releases.
Each client creates a topic, produces, consumes in a group and commits. A step counts as a success
only if the result of the step is on the broker, whatever the client reports. In {right} of {tried}
cases, the audit predicted exactly the steps that failed. In {breaks} of the cases, the audit
predicted that the client breaks. The last column quotes the client's own error message.
`tests/kafka/trial/results.jsonl` keeps the traffic figures and the results of each client, and
every run of the tests compares the audit with these results.
"""


def files() -> dict[Path, str]:
    """Return the page with its part about the trial rewritten."""
    return {PAGE: with_trial(PAGE.read_text(encoding="utf-8"), read_rows())}


def with_trial(text: str, rows: Sequence[Row]) -> str:
    """Return the page ``text`` with its part about the trial rewritten from ``rows``."""
    before, _, after = text.partition(_TITLE)
    rest = after.partition("\n## ")
    return f"{before}{_section(rows)}{rest[1]}{rest[2]}"


def _section(rows: Sequence[Row]) -> str:
    """Return the whole part of the page, beginning with its title."""
    cases = [(row, release) for row in rows for release in JUDGED]
    right = sum(row.is_right(release) for row, release in cases)
    breaks = sum(bool(row.foreseen(release)) for row, release in cases)
    summary = _SUMMARY.format(
        clients=len(rows), captured=CAPTURED, judged=_listed(JUDGED), right=right,
        tried=len(cases), breaks=breaks,
    )  # fmt: skip
    head = f"| client | on | the audit of {CAPTURED} says | what happened |\n|---|---|---|---|\n"
    table = "".join(line for row in rows for line in _lines(row))
    return f"{_TITLE}\n{summary}\n{head}{table}\n{_apart(rows)}"


def _lines(row: Row) -> list[str]:
    told = [(_foreseen(row, one), _happened(row, one), one) for one in JUDGED]
    lines: list[str] = []
    for (foreseen, happened), same in groupby(told, key=lambda one: one[:2]):
        on = ", ".join(one[2] for one in same)
        lines.append(f"| {row.client if not lines else ''} | {on} | {foreseen} | {happened} |\n")
    return lines


def _foreseen(row: Row, release: str) -> str:
    found = row.findings(release)
    verdict = found[0].verdict
    if verdict not in BREAKS:
        return str(verdict)
    versions = [
        f"{api_name(one.api_key)} {one.version}"
        for one in found
        if one.verdict == verdict and one.api_key is not None
    ]
    return f"{verdict}: {', '.join(versions)}"


def _happened(row: Row, release: str) -> str:
    broken = row.broken(release)
    said = [
        f"{name}: {_short(error)}"
        for name, error in row.happened[release].items()
        if error and name in broken
    ]
    text = "; ".join(said) or "works"
    return text if row.is_right(release) else f"{text} (**not what was foreseen**)"


def _short(error: str) -> str:
    error = re.sub(r"[|`*\s]+", " ", error)
    return error if len(error) <= _MOST_SAID else f"{error[:_MOST_SAID]}…"


def _apart(rows: Sequence[Row]) -> str:
    """Return steps that already failed with the captured release and therefore prove nothing."""
    apart = [
        f"- {row.client}: {name} ({_short(error)})\n"
        for row in rows
        for name, error in row.happened[CAPTURED].items()
        if error
    ]
    none = [one.client for one in rows if None in one.happened[CAPTURED].values()]
    text = f"Not tried: create by {_listed(none)}, which have no admin client.\n" if none else ""
    if apart:
        head = f"These steps did not work on {CAPTURED} either, and are left out:"
        text += f"{head}\n\n{''.join(apart)}"
    return text


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


if __name__ == "__main__":
    write_files(files())
