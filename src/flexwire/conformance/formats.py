"""Shows a run: text with a matrix, JSON, and JUnit; and the plan of a run that sends nothing."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from flexwire.conformance.cases import Kind
from flexwire.conformance.judging import CaseVerdict
from flexwire.facts.units import plural
from flexwire.printable import printable
from flexwire.protocol.credentials import WITHHELD, carries_credentials
from flexwire.protocol.headers import response_name
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.conformance.cases import Case, CasePlan, Unasked
    from flexwire.conformance.judging import CaseResult
    from flexwire.conformance.running import ConformanceRun

CELLS: Final = {
    CaseVerdict.AS_KAFKA: "ok",
    CaseVerdict.QUIRK: "quirk",
    CaseVerdict.DIFFERS: "differs",
    CaseVerdict.DEVIATES: "DEVIATES",
    CaseVerdict.NOT_JUDGED: "-",
}
"""The word of a verdict in the matrix."""

LEGEND: Final = {
    "-": "not judged",
    "quirk": "as Kafka, against a rule",
    "differs": "Apache Kafka takes what this broker refuses",
    "DEVIATES": "against a rule, see below",
}
"""What the words of the matrix mean."""

_SKIPPED: Final = "not sent"
_MOST_BYTES: Final = 96
_WIDTH: Final = 96
_INDENT: Final = "    "

Row = tuple[str, str, tuple[str, ...]]
"""A row of the matrix: the API, its versions, and a cell for each kind."""


def matrix_columns(run: ConformanceRun) -> list[Kind]:
    """Return the kinds of cases that a run has, in their order."""
    kinds = {case.kind for case in run.plan.cases}
    return [kind for kind in Kind if kind in kinds]


def matrix_rows(run: ConformanceRun) -> list[Row]:
    """Return for each API and its versions the cell of each kind; like versions share a row."""
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
    for result in run.results:
        yield result.case, CELLS[result.verdict]
    for case in run.skipped:
        yield case, _SKIPPED


def _cell(words: Sequence[str]) -> str:
    """Return the words of several cases as one, each with its number if they differ."""
    counts = Counter(words)
    if len(counts) <= 1:
        return next(iter(counts), "")
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def to_text(run: ConformanceRun) -> str:
    """Write the matrix, each deviation with its bytes, and the summary."""
    header = ("API", "version", *(kind.value for kind in matrix_columns(run)))
    table = [header, *((name, version, *cells) for name, version, cells in matrix_rows(run))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    words = {CELLS[verdict] for verdict in run.counts}
    legend = [f"{word}: {meaning}" for word, meaning in LEGEND.items() if word in words]
    lines += ["", "; ".join(legend)] if legend else []
    for first, others in grouped_findings(run):
        lines += ["", *finding_lines(first), *also_lines(others)]
    lines += ["", *remark_lines(run), run.summary]
    return "\n".join(lines) + "\n"


def grouped_findings(run: ConformanceRun) -> list[tuple[CaseResult, list[CaseResult]]]:
    """Return what was found, the first of each API, rule and field with all others of these."""
    groups: dict[tuple[str, str, str], list[CaseResult]] = {}
    for result in run.results:
        if result.deviation is not None:
            key = (result.case.api_name, result.deviation.rule.name, result.deviation.path)
            groups.setdefault(key, []).append(result)
    return [(first, others) for first, *others in groups.values()]


def also_lines(others: Sequence[CaseResult]) -> Iterator[str]:
    """Yield in which other cases the same was found."""
    if others:
        names: dict[str, set[int]] = {}
        for result in others:
            name = result.case.damage or result.case.kind.value
            names.setdefault(name, set()).add(result.case.version)
        told = ", ".join(f"{name} {Versions.of(found)}" for name, found in names.items())
        yield from _wrapped(f"the same in {plural(len(others), 'other case')}: {told}")


def finding_lines(result: CaseResult) -> Iterator[str]:
    """Yield what was found in a case: place, rule, source, and the bytes of both sides."""
    deviation, case = result.deviation, result.case
    if deviation is None:
        return
    place = "" if deviation.offset is None else f" at byte {deviation.offset}"
    field = f", field {printable(deviation.path)}" if deviation.path else ""
    yield f"{case.name}: {result.verdict.value} ({deviation.rule.name}){place}{field}"
    yield from _wrapped(f"found: {printable(deviation.found)}")
    yield from _wrapped(f"rule: {deviation.rule.sentence} Source: {deviation.rule.source}.")
    yield from _wrapped(f"sent: {_shown(case.data)}")
    if result.outcome.payload is not None:
        yield from _wrapped(f"received: {_received(result)}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT * 2, break_on_hyphens=False
    )


def _shown(data: bytes) -> str:
    shown = data[:_MOST_BYTES].hex(" ")
    more = len(data) - _MOST_BYTES
    return f"{shown} … and {plural(more, 'more byte')}" if more > 0 else shown


def received_hex(result: CaseResult) -> str | None:
    """Return the bytes of a response as hex; None if there is none.

    A response whose message may carry credentials is withheld.
    """
    payload = result.outcome.payload
    if payload is None:
        return None
    name = response_name(result.case.api_key, result.case.version)
    return WITHHELD if carries_credentials(name) else payload.hex()


def _received(result: CaseResult) -> str:
    told = received_hex(result)
    payload = result.outcome.payload
    return WITHHELD if told == WITHHELD or payload is None else _shown(payload)


def remark_lines(run: ConformanceRun) -> Iterator[str]:
    """Yield what was not judged and not asked, and quirks; a line for each reason."""
    for verdict, words in (
        (CaseVerdict.QUIRK, "as Kafka, a quirk"),
        (CaseVerdict.NOT_JUDGED, "not judged"),
        (CaseVerdict.AS_KAFKA, "remark"),
    ):
        found: dict[str, Counter[str]] = {}
        for result in run.results:
            if result.verdict is verdict and result.remark:
                found.setdefault(result.remark, Counter())[result.case.api_name] += 1
        for remark, counts in found.items():
            names = ", ".join(f"{name} ({number})" for name, number in counts.items())
            yield f"{words}: {names}: {printable(remark)}"
    if run.skipped:
        yield f"{plural(len(run.skipped), 'case')} not sent: the plain request was not answered"
    yield from _unasked_summary(run.plan.unasked)


def _unasked_summary(unasked: Sequence[Unasked]) -> Iterator[str]:
    if unasked:
        names = {entry.api_name or f"api key {entry.api_key}" for entry in unasked}
        yield f"not asked: {plural(len(names), 'API')}, whole or in part; --dry-run says why"


def plan_text(plan: CasePlan, address: str) -> str:
    """Write what would be sent to a broker, and what would not, with the reasons."""
    lines = []
    cases = sorted(plan.cases, key=lambda case: case.api_key)
    for name, of_api in groupby(cases, key=lambda case: case.api_name):
        for kind, alike in groupby(
            sorted(of_api, key=lambda case: _order(case.kind)), key=lambda case: case.kind
        ):
            versions = sorted({case.version for case in alike})
            lines.append(f"{name:30}  {kind.value:14}  {', '.join(map(str, versions))}")
    lines.append("")
    for entry in plan.unasked:
        name = entry.api_name or f"api key {entry.api_key}"
        text = f"not asked: {name} {entry.versions}: {entry.reason}"
        lines += textwrap.wrap(text, _WIDTH, subsequent_indent="  ")
    lines += ["", f"{plural(len(plan.cases), 'case')} would be sent to {address}; none was"]
    return "\n".join(lines) + "\n"


def _order(kind: Kind) -> int:
    return list(Kind).index(kind)


def to_json(run: ConformanceRun) -> str:
    """Write everything: each case with its verdict, and its bytes if something was found."""
    document = {
        "broker": run.address,
        "release": run.release,
        "summary": run.summary,
        "asKafka": run.as_kafka,
        "judged": run.judged,
        "counts": {CELLS_IN_JSON[verdict]: run.counts[verdict] for verdict in CaseVerdict},
        "cases": [_case_json(result) for result in run.results],
        "notSent": [case.name for case in run.skipped],
        "notAsked": [_unasked_json(entry) for entry in run.plan.unasked],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


CELLS_IN_JSON: Final = {
    CaseVerdict.AS_KAFKA: "asKafka",
    CaseVerdict.QUIRK: "quirk",
    CaseVerdict.DIFFERS: "differs",
    CaseVerdict.DEVIATES: "deviates",
    CaseVerdict.NOT_JUDGED: "notJudged",
}
"""The word of a verdict in JSON."""


def plan_json(plan: CasePlan, address: str) -> str:
    """Write what would be sent to a broker, each request with its bytes and its JSON form."""
    document = {
        "broker": address,
        "cases": [
            {**_case_facts(case), "sent": case.data.hex(), "body": case.body} for case in plan.cases
        ],
        "notAsked": [_unasked_json(entry) for entry in plan.unasked],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _case_facts(case: Case) -> dict[str, Any]:
    return {
        "api": case.api_name,
        "apiKey": case.api_key,
        "version": case.version,
        "kind": case.kind.value,
        "damage": case.damage or None,
        "expected": case.expected.value,
    }


def _case_json(result: CaseResult) -> dict[str, Any]:
    deviation, ending = result.deviation, result.outcome.ending
    return {
        **_case_facts(result.case),
        "verdict": CELLS_IN_JSON[result.verdict],
        "ending": None if ending is None else ending.value,
        "errorCodes": sorted(result.error_codes),
        "remark": result.remark or None,
        "deviation": None
        if deviation is None
        else {
            "rule": deviation.rule.name,
            "sentence": deviation.rule.sentence,
            "source": deviation.rule.source,
            "found": deviation.found,
            "offset": deviation.offset,
            "field": deviation.path or None,
            "sent": result.case.data.hex(),
            "received": received_hex(result),
        },
    }


def _unasked_json(entry: Unasked) -> dict[str, Any]:
    return {
        "api": entry.api_name,
        "apiKey": entry.api_key,
        "versions": str(entry.versions),
        "reason": entry.reason,
    }


def to_junit(run: ConformanceRun) -> str:
    """Write one suite with a test for each case; only a deviation is a failure."""
    skipped = run.counts[CaseVerdict.NOT_JUDGED] + len(run.skipped)
    tests = len(run.results) + len(run.skipped)
    counts = f'tests="{tests}" failures="{len(run.deviations)}" errors="0" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="flexwire conform" {counts}>',
        f"  <testsuite name={quoteattr(printable(run.summary))} {counts}>",
    ]
    for result in run.results:
        lines += _junit_case(result)
    for case in run.skipped:
        lines += [
            f"    {_junit_open(case)}>",
            '      <skipped message="the plain request was not answered"/>',
            "    </testcase>",
        ]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _junit_open(case: Case) -> str:
    return f"<testcase classname={quoteattr(case.api_name)} name={quoteattr(case.name)}"


def _junit_case(result: CaseResult) -> list[str]:
    opened = f"    {_junit_open(result.case)}"
    if result.verdict is CaseVerdict.DEVIATES and result.deviation is not None:
        kind = quoteattr(result.deviation.rule.name)
        message = quoteattr(printable(result.deviation.found))
        text = escape("\n".join(finding_lines(result)))
        failure = f"      <failure type={kind} message={message}>{text}</failure>"
        return [f"{opened}>", failure, "    </testcase>"]
    if result.verdict is CaseVerdict.NOT_JUDGED:
        message = quoteattr(printable(result.remark))
        return [f"{opened}>", f"      <skipped message={message}/>", "    </testcase>"]
    return [f"{opened}/>"]
