"""Format the findings of an audit as rows, as CSV and as JSON, all with the same columns.

A spreadsheet interprets a cell that begins with "=" as a formula, even if the cell is quoted, and a
client id may begin with "=". In files for people, such a string is preceded by an apostrophe, which
is how spreadsheets mark text. Numbers remain numbers, even if they are stored as text ("-1"). A
program would read the apostrophe as part of the value, so files for programs do not contain it.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec

from flexwire.facts.captures import NO_ADDED_TAGS, part_columns
from flexwire.facts.units import moment_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.facts.audit import Audit, AuditFinding
    from flexwire.facts.captures import AddedTags, SampledCaptures


# Characters that start a formula, or that are skipped before a formula. A few programs also accept
# the full-width forms of these characters.
_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


# A spreadsheet reads such a string as a number and evaluates nothing.
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def to_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV for people: a header and a line for each row. Lines end with CR LF.

    Times are in ISO 8601, the items of lists are separated by spaces, and unknown values are empty.
    Text that a spreadsheet would interpret as a formula is preceded by an apostrophe.
    """
    return _written([names, *([cell(value) for value in row] for row in rows)], "\r\n")


def to_tool_csv(rows: Iterable[Sequence[Any]], names: Sequence[str] = ()) -> str:
    """Return CSV for a program, with a line for each row, LF line endings, and unchanged values.

    The CSV has a header only if ``names`` is given. Kafka's tools read such a file with
    ``--from-file``:

    >>> print(to_tool_csv([("orders", 0, -1), ('a "b", c', 1, None), ("=x", 2, "-1")]), end="")
    orders,0,-1
    "a ""b"", c",1,
    =x,2,-1
    """
    head = [names] if names else []
    return _written([*head, *([text_of(value) for value in row] for row in rows)], "\n")


def _written(rows: Iterable[Sequence[str]], end: str) -> str:
    text = io.StringIO()
    for row in rows:
        line = io.StringIO()
        # With any other line terminator, Python would not quote a carriage return in a value.
        csv.writer(line, lineterminator="\r\n").writerow(row)
        text.write(line.getvalue().removesuffix("\r\n") + end)
    return text.getvalue()


def cell(value: Any) -> str:
    """Return a value as the text of a cell in a file for people.

    >>> cell("=1+1"), cell("-1+1"), cell("-1"), cell(-5), cell(None), cell(True), cell(["a", "b"])
    ("'=1+1", "'-1+1", '-1', '-5', '', 'true', 'a b')
    """
    text = text_of(value)
    is_text = not isinstance(value, bool | int | float | date)
    is_formula = text.startswith(_BEGINS_FORMULA) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_text and is_formula else text


def text_of(value: Any) -> str:
    """Return a value as a string, without any escaping."""
    text = plain(value)
    if isinstance(text, bool):
        return "true" if text else "false"
    if isinstance(text, list):
        return " ".join(map(text_of, text))
    return "" if text is None else str(text)


def plain(value: Any) -> Any:
    r"""Return a value in JSON form, with times in ISO 8601 and bytes decoded as strings.

    >>> plain([b"caf\xc3\xa9", date(2026, 11, 22), float("nan")])
    ['café', '2026-11-22', None]
    """
    if isinstance(value, date):  # a datetime is also a date
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


COLUMNS = (
    "release",
    "verdict",
    "evidence",
    "reason",
    "role",
    "client_id",
    "address",
    "principal",
    "client_software_name",
    "client_software_version",
    "api_key",
    "api_name",
    "api_version",
    "requests",
    "first_time",
    "last_time",
    "connections",
    "apis",
    "offered",
    "last_accepting_release",
    "first_refusing_release",
    "groups",
    "group_count",
    "topics",
    "topic_count",
    "remedy",
    "source",
    "team",
)


def audit_row(finding: AuditFinding) -> dict[str, Any]:
    """Return a finding as a row of `COLUMNS`.

    Times become datetimes, groups and topics become lists, and unknown values become None.
    """
    row: dict[str, Any] = {
        name: getattr(finding, name, None) for name in COLUMNS if name not in _RENAMED
    }
    client = finding.client
    row |= {
        "client_id": client.client_id,
        "address": client.address,
        "principal": client.principal,
        "client_software_name": client.software_name,
        "client_software_version": client.software_version,
        "api_version": finding.version,
        "first_time": moment_at(finding.first_time_us),
        "last_time": moment_at(finding.last_time_us),
        "groups": list(finding.groups),
        "topics": list(finding.topics),
    }
    return {name: row[name] for name in COLUMNS}


_RENAMED = frozenset(
    {
        "client_id",
        "address",
        "principal",
        "client_software_name",
        "client_software_version",
        "api_version",
        "first_time",
        "last_time",
    }
)


def audit_csv(audit: Audit, sampled: Sequence[SampledCaptures] = ()) -> str:
    """Return the findings as CSV.

    If captures are ``sampled``, each row states the captured part.
    """
    part = part_columns(sampled)
    rows = ([*audit_row(finding).values(), *part.values()] for finding in audit.findings)
    return to_csv((*COLUMNS, *part), rows)


def audit_json(
    audit: Audit, sampled: Sequence[SampledCaptures] = (), added_tags: AddedTags = NO_ADDED_TAGS
) -> str:
    """Return JSON with the same findings as the CSV, and facts about the audit as a whole.

    If captures contain only some of the connections, the JSON contains ``sampled``, because clients
    without findings may be on other connections. If taps have added header tags, the JSON contains
    ``added_tags``.
    """
    whole: dict[str, Any] = msgspec.to_builtins(replace(audit, findings=()))
    # Encoding each row separately avoids two copies of all findings as objects.
    rows = [msgspec.json.encode(audit_row(finding)) for finding in audit.findings]
    whole["findings"] = msgspec.Raw(b"[" + b",".join(rows) + b"]")
    if sampled:
        whole["sampled"] = msgspec.to_builtins(sampled)
    if added_tags.files:
        whole["added_tags"] = msgspec.to_builtins(added_tags)
    return msgspec.json.format(msgspec.json.encode(whole), indent=1).decode() + "\n"
