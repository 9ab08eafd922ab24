"""Format a run as text with a matrix, as JSON or as JUnit XML, and format the plan of a dry run."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from flexwire.conformance.cases import Kind
from flexwire.conformance.judging import CaseVerdict, code_names
from flexwire.conformance.matrix import (
    LEGEND,
    UNSHARED,
    matrix_columns,
    matrix_legend,
    matrix_rows,
)
from flexwire.conformance.runs import is_alike
from flexwire.facts.units import plural
from flexwire.printable import printable
from flexwire.protocol.credentials import WITHHELD, carries_credentials
from flexwire.protocol.headers import response_name
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.conformance.cases import Case, CasePlan, Unasked
    from flexwire.conformance.judging import CaseResult
    from flexwire.conformance.runs import BrokerComparison, ConformanceRun, OfferedAlone

_MOST_BYTES: Final = 96
_WIDTH: Final = 96
_INDENT: Final = "    "


def to_text(run: ConformanceRun) -> str:
    """Return the matrix, the deviations with their bytes, and the summary."""
    header = ("API", "version", *(kind.value for kind in matrix_columns(run)))
    table = [header, *((name, version, *cells) for name, version, cells in matrix_rows(run))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    legend = [f"{word}: {meaning}" for word, meaning in matrix_legend(run).items()]
    lines += ["", "; ".join(legend)] if legend else []
    for first, others in grouped_findings(run):
        lines += ["", *finding_lines(first, run.against), *also_lines(others)]
    lines += ["", *comparison_lines(run), *remark_lines(run), run.summary]
    return "\n".join(lines) + "\n"


def grouped_findings(run: ConformanceRun) -> list[tuple[CaseResult, list[CaseResult]]]:
    """Return the findings grouped by API, rule and field: the first of each group, and the others.

    All cases of a group have the same verdict about a second broker.
    """
    there = {} if run.against is None else run.against.by_name
    groups: dict[tuple[str, str, str, CaseVerdict | None], list[CaseResult]] = {}
    for result in run.results:
        if result.deviation is not None:
            deviation, other = result.deviation, there.get(result.case.name)
            verdict = None if other is None else other.verdict
            key = (result.case.api_name, deviation.rule.name, deviation.path, verdict)
            groups.setdefault(key, []).append(result)
    return [(first, others) for first, *others in groups.values()]


def result_words(result: CaseResult) -> str:
    """Return a short description of a broker's behavior in a case."""
    rule = f" ({result.deviation.rule.name})" if result.deviation else ""
    parts = [f"{result.verdict.value}{rule}"]
    if result.outcome.ending is not None:
        parts.append(result.outcome.ending.value)
    if result.error_codes:
        parts.append(f"error code {code_names(result.error_codes)}")
    return ", ".join(parts)


def also_lines(others: Sequence[CaseResult]) -> Iterator[str]:
    """Yield lines that list the names of the other cases with the same finding."""
    if others:
        told = _case_names(others)
        yield from _wrapped(f"the same in {plural(len(others), 'other case')}: {told}")


def _case_names(results: Sequence[CaseResult]) -> str:
    """Return the kinds of an API's cases, each with its versions."""
    names: dict[str, set[int]] = {}
    for result in results:
        name = result.case.damage or result.case.kind.value
        names.setdefault(name, set()).add(result.case.version)
    return ", ".join(f"{name} {Versions.of(found)}" for name, found in names.items())


def finding_lines(result: CaseResult, against: BrokerComparison | None = None) -> Iterator[str]:
    """Yield the lines of a case's finding: field, rule, source, and the bytes of both sides.

    The lines about a second broker's behavior follow, with its bytes.
    """
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
    if against is not None:
        yield from _other_lines(result, against)


def _other_lines(result: CaseResult, against: BrokerComparison) -> Iterator[str]:
    address, other = against.other.address, against.by_name.get(result.case.name)
    yield from _wrapped(printable(f"{address}: {beside_words(result, against)}"))
    if other is not None and other.outcome.payload is not None:
        yield from _wrapped(f"received from {address}: {_received(other)}")


def beside_words(result: CaseResult, against: BrokerComparison) -> str:
    """Return a second broker's behavior in a case, or why the case was not sent to it."""
    other = against.by_name.get(result.case.name)
    if other is not None:
        return result_words(other)
    is_skipped = any(case.name == result.case.name for case in against.other.skipped)
    return "not sent: the plain request was not answered" if is_skipped else LEGEND[UNSHARED]


def comparison_lines(run: ConformanceRun) -> Iterator[str]:
    """Yield the cases in which a second broker differs, and the versions that only one offers."""
    if run.against is None:
        return
    other = run.against.other
    for line in alone_lines(run):
        yield from _listed(line)
    rows = difference_rows(run)
    told = f"{other.address} behaves differently in {len(run.differences)} of {_shared(run)} cases"
    yield f"{told}:" if rows else told
    for name, cases, here, there in rows:
        yield from _wrapped(printable(f"{name}, {cases}: {here}; {other.address}: {there}"))
    yield other.summary


def alone_lines(run: ConformanceRun) -> Iterator[str]:
    """Yield the versions that only one of two brokers offers, on one line for each broker."""
    against = run.against
    if against is None:
        return
    for address, alone in (
        (run.address, against.only_here),
        (against.other.address, against.only_there),
    ):
        if alone:
            names = (f"{one.api_name or f'api key {one.api_key}'} {one.versions}" for one in alone)
            yield f"only {address} offers: {', '.join(names)}"


def _shared(run: ConformanceRun) -> int:
    """Return the number of cases that were sent to both brokers."""
    there = {} if run.against is None else run.against.by_name
    return sum(result.case.name in there for result in run.results)


def difference_rows(run: ConformanceRun) -> list[tuple[str, str, str, str]]:
    """Return the differences between two brokers: API, cases, and the behavior of each broker."""
    groups: dict[tuple[str, str, str], list[CaseResult]] = {}
    for here, there in run.differences:
        key = (here.case.api_name, result_words(here), result_words(there))
        groups.setdefault(key, []).append(here)
    return [
        (name, _case_names(cases), here, there) for (name, here, there), cases in groups.items()
    ]


def _listed(text: str) -> list[str]:
    return textwrap.wrap(printable(text), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT * 2, break_on_hyphens=False
    )


def _shown(data: bytes) -> str:
    shown = data[:_MOST_BYTES].hex(" ")
    more = len(data) - _MOST_BYTES
    return f"{shown} … and {plural(more, 'more byte')}" if more > 0 else shown


def received_hex(result: CaseResult) -> str | None:
    """Return the bytes of a response as hex, or None if there is no response.

    The bytes are withheld if the message may carry credentials.
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
    """Yield a line for each quirk, and for each reason why cases were not judged or not sent."""
    for verdict, words in (
        (CaseVerdict.QUIRK, "as Kafka (a known Kafka quirk)"),
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
    for words in run.left:
        yield f"left behind: {printable(words)}"


def _unasked_summary(unasked: Sequence[Unasked]) -> Iterator[str]:
    if unasked:
        names = {entry.api_name or f"api key {entry.api_key}" for entry in unasked}
        reasons = {entry.reason for entry in unasked}
        why = "--dry-run states the reasons" if len(reasons) > 1 else next(iter(reasons))
        yield f"not tested, or tested only in part: {plural(len(names), 'API')}; {why}"


def plan_text(plan: CasePlan, address: str) -> str:
    """Return the requests that a run would send to a broker, and the omitted APIs with reasons."""
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
    lines += ["", f"{plural(len(plan.cases), 'case')} would be sent to {address}; nothing was sent"]
    return "\n".join(lines) + "\n"


def _order(kind: Kind) -> int:
    return list(Kind).index(kind)


def to_json(run: ConformanceRun) -> str:
    """Return each case with its verdict. A case with a finding also includes its bytes."""
    document = {
        "broker": run.address,
        "release": run.release,
        "summary": run.summary,
        "asKafka": run.as_kafka,
        "judged": run.judged,
        "counts": _counts_json(run),
        "against": None if run.against is None else _against_json(run),
        "cases": [_case_json(result, run.against) for result in run.results],
        "notSent": [case.name for case in run.skipped],
        "notAsked": [_unasked_json(entry) for entry in run.plan.unasked],
        "leftBehind": [*run.left],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


CELLS_IN_JSON: Final = {
    CaseVerdict.AS_KAFKA: "asKafka",
    CaseVerdict.QUIRK: "quirk",
    CaseVerdict.DIFFERS: "differs",
    CaseVerdict.DEVIATES: "deviates",
    CaseVerdict.NOT_JUDGED: "notJudged",
}
"""The word for each verdict in JSON."""


def _counts_json(run: ConformanceRun) -> dict[str, int]:
    return {CELLS_IN_JSON[verdict]: run.counts[verdict] for verdict in CaseVerdict}


def plan_json(plan: CasePlan, address: str) -> str:
    """Return the requests that a run would send, each with its bytes and its JSON form."""
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


def _against_json(run: ConformanceRun) -> dict[str, Any]:
    """Return the JSON that describes the run against a second broker."""
    against = run.against
    if against is None:
        return {}
    other = against.other
    return {
        "broker": other.address,
        "summary": other.summary,
        "asKafka": other.as_kafka,
        "judged": other.judged,
        "counts": _counts_json(other),
        "shared": _shared(run),
        "otherwise": len(run.differences),
        "onlyHere": [_alone_json(one) for one in against.only_here],
        "onlyThere": [_alone_json(one) for one in against.only_there],
        "notSent": [case.name for case in other.skipped],
    }


def _alone_json(one: OfferedAlone) -> dict[str, Any]:
    return {"api": one.api_name, "apiKey": one.api_key, "versions": str(one.versions)}


def _case_json(result: CaseResult, against: BrokerComparison | None) -> dict[str, Any]:
    form = {**_case_facts(result.case), **_result_json(result), "against": None}
    other = None if against is None else against.by_name.get(result.case.name)
    if other is not None:
        is_otherwise = not is_alike(result, other)
        is_shown = is_otherwise or result.deviation is not None
        form["against"] = {
            "otherwise": is_otherwise,
            **_result_json(other),
            "received": received_hex(other) if is_shown else None,
        }
    return form


def _result_json(result: CaseResult) -> dict[str, Any]:
    deviation, ending = result.deviation, result.outcome.ending
    return {
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
    """Return one JUnit suite with a test for each case. Only deviations count as failures."""
    skipped = run.counts[CaseVerdict.NOT_JUDGED] + len(run.skipped)
    tests = len(run.results) + len(run.skipped)
    counts = f'tests="{tests}" failures="{len(run.deviations)}" errors="0" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="flexwire conform" {counts}>',
        f"  <testsuite name={quoteattr(printable(run.summary))} {counts}>",
    ]
    otherwise = {here.case.name for here, _ in run.differences}
    for result in run.results:
        against = run.against if result.case.name in otherwise else None
        lines += _junit_case(result, against)
    for case in run.skipped:
        lines += [
            f"    {_junit_open(case)}>",
            '      <skipped message="the plain request was not answered"/>',
            "    </testcase>",
        ]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _junit_open(case: Case) -> str:
    return f"<testcase classname={quoteattr(case.api_name)} name={quoteattr(case.name)}"


def _junit_case(result: CaseResult, against: BrokerComparison | None) -> list[str]:
    """Write a test. ``against`` is passed if a second broker behaved differently."""
    lines = []
    if result.verdict is CaseVerdict.DEVIATES and result.deviation is not None:
        kind = quoteattr(result.deviation.rule.name)
        message = quoteattr(printable(result.deviation.found))
        text = escape("\n".join(finding_lines(result, against)))
        lines.append(f"      <failure type={kind} message={message}>{text}</failure>")
    elif result.verdict is CaseVerdict.NOT_JUDGED:
        lines.append(f"      <skipped message={quoteattr(printable(result.remark))}/>")
    if against is not None:
        told = f"{against.other.address} behaves differently: {beside_words(result, against)}"
        lines.append(f"      <system-out>{escape(printable(told))}</system-out>")
    opened = f"    {_junit_open(result.case)}"
    return [f"{opened}>", *lines, "    </testcase>"] if lines else [f"{opened}/>"]
