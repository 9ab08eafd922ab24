"""The tools that read a stored analysis: its audit and its answers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from flexwire.cli.mcp.arguments import MOST_ROWS
from flexwire.cli.mcp.bounds import Page
from flexwire.cli.options import InputError
from flexwire.errors import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.cli.mcp.arguments import AnswersArguments, AuditArguments, PagedArguments
    from flexwire.cli.mcp.root import ServedRoot
    from flexwire.facts.facts import Facts
    from flexwire.tables.output import Output

MOST_FACTS_BYTES: Final = 64 << 20
"""The maximum size, in bytes, of an analysis's facts that a tool reads."""
_FACTS: Final = "facts.json"
_TABLES: Final = "tables"


def audit(root: ServedRoot, asked: AuditArguments) -> dict[str, Any]:
    """Return the audit of an analysis.

    Each row is a finding; the most serious finding comes first.
    """
    from flexwire.cli.analyze import audit_form
    from flexwire.facts.audit import findings
    from flexwire.report.audit_files import audit_row
    from flexwire.survey.surveyed_files import analysis_notes

    with _analysis(root, asked.analysis) as opened:
        facts = opened.facts
    if not facts.has_traffic:
        raise InputError(f"{short(asked.analysis)} contains no traffic, and therefore no audit")
    releases = facts.audit.releases
    if asked.release is not None and asked.release not in releases:
        raise InputError(f"the audit covers {', '.join(releases)}, but not {short(asked.release)}")
    found = [
        msgspec.to_builtins(audit_row(finding))
        for finding in findings(facts.audit)
        if asked.release in {None, finding.release} and asked.verdict in {None, finding.verdict}
    ]
    return {
        "notes": analysis_notes(facts),
        "releases": [
            form for form in audit_form(facts) if asked.release in {None, form["release"]}
        ],
        "notJudged": facts.audit.left_out.sentence,
        "count": len(found),
        "findings": Page.of(found, asked.skip, asked.rows),
    }


def answers(root: ServedRoot, asked: AnswersArguments) -> dict[str, Any]:
    """List the stored answers of an analysis, or return one answer's most important rows."""
    from flexwire.schema.coercion import nearest
    from flexwire.survey.surveyed_files import analysis_notes

    with _analysis(root, asked.analysis) as opened:
        facts = opened.facts
        by_name = {answer.name: answer for answer in facts.answers}
        if not by_name:
            raise InputError(
                f"{short(asked.analysis)} has no stored answers: 'flexwire analyze' stores them "
                "with --answers all"
            )
        if asked.name is None:
            return _listed_answers(facts, asked)
        answer = by_name.get(asked.name)
        if answer is None:
            raise InputError(
                f"{short(asked.analysis)} has no stored answer {short(asked.name)}; "
                f"{nearest(asked.name, [*by_name])}"
            )
        rows = _stored_rows(root, opened, answer.name, asked)
    more = max(answer.rows - asked.skip - len(rows), 0)
    return {
        "notes": analysis_notes(facts),
        "name": answer.name,
        "question": answer.question,
        "meaning": answer.meaning,
        "advice": answer.advice,
        "count": answer.rows,
        "rows": Page(rows, more),
    }


def _listed_answers(facts: Facts, asked: PagedArguments) -> dict[str, Any]:
    from flexwire.survey.surveyed_files import analysis_notes

    listed = [
        {"name": answer.name, "question": answer.question, "rows": answer.rows}
        for answer in facts.answers
    ]
    return {
        "notes": analysis_notes(facts),
        "answers": Page.of(listed, asked.skip, asked.rows),
        "unanswered": [
            {"name": question.name, "reason": question.reason} for question in facts.unanswered
        ],
    }


class _OpenAnalysis(NamedTuple):
    """The output of an analysis, its facts, and the name of its directory relative to the root."""

    output: Output
    facts: Facts
    name: str

    def name_of(self, inner: str) -> str:
        """Return the name, relative to the root, of a file or directory in the output."""
        return str(Path(self.name, inner))


def _stored_rows(
    root: ServedRoot, opened: _OpenAnalysis, name: str, asked: AnswersArguments
) -> list[dict[str, Any]]:
    """Return rows from the table of an answer.

    The table is read only up to the last requested row.
    """
    from pyarrow.parquet import ParquetFile

    from flexwire.cli.answers import rows_form
    from flexwire.storage.filesystems import report_failures

    table = f"answers/{name}"
    wanted: list[dict[str, Any]] = []
    skip = asked.skip
    for entry in opened.output.files(table):
        inner = opened.name_of(entry.name)
        with (
            root.file(inner) as path,
            report_failures(inner, "read"),
            ParquetFile(path) as file,
        ):
            for batch in file.iter_batches(batch_size=MOST_ROWS):
                wanted += rows_form(batch.slice(skip, asked.rows - len(wanted)))
                skip = max(skip - len(batch), 0)
                if len(wanted) == asked.rows:
                    return wanted
    return wanted


@contextmanager
def _analysis(root: ServedRoot, name: str) -> Iterator[_OpenAnalysis]:
    """Yield the output of an analysis whose facts are a file below the root."""
    from flexwire.tables.output import output

    with root.directory(name) as directory:
        root.check_directory(str(Path(name, _TABLES)))
        found = output(directory)
        place = found.root.path
        if place is None:
            raise AssertionError  # A directory on this machine has a path.
        inner = str(Path(name, place.relative_to(directory)))
        yield _OpenAnalysis(found, _facts(root, str(Path(inner, _FACTS))), inner)


def _facts(root: ServedRoot, name: str) -> Facts:
    from flexwire.facts.facts import Facts

    with root.file(name) as path, path.open("rb") as file:
        content = file.read(MOST_FACTS_BYTES + 1)
    if len(content) > MOST_FACTS_BYTES:
        raise InputError(
            f"{name} is larger than {MOST_FACTS_BYTES:,} bytes, the limit for the facts of an "
            "analysis"
        )
    try:
        return Facts.from_json(json.loads(content))
    except (ValueError, RecursionError):
        # The reason may contain text from the file.
        raise InputError(
            f"{name} does not contain facts that this release of flexwire can read"
        ) from None
