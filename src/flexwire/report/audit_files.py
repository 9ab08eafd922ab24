"""The findings of an audit as rows, as CSV and as JSON, with the same columns in each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from flexwire.report.sampled_facts import part_columns
from flexwire.report.spreadsheet import to_csv
from flexwire.report.stamped_facts import NO_ADDED_TAGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.report.audit_facts import Audit, AuditFinding
    from flexwire.report.sampled_facts import Sampled
    from flexwire.report.stamped_facts import AddedTags

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
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def audit_row(finding: AuditFinding) -> dict[str, Any]:
    """A finding by `COLUMNS`: times as moments, groups and topics as lists, unknown as None."""
    told: dict[str, Any] = {
        name: getattr(finding, name, None) for name in COLUMNS if name not in _RENAMED
    }
    client = finding.client
    told |= {
        "client_id": client.client_id,
        "address": client.address,
        "principal": client.principal,
        "client_software_name": client.software_name,
        "client_software_version": client.software_version,
        "api_version": finding.version,
        "first_time": _EPOCH + timedelta(microseconds=finding.first_time_us),
        "last_time": _EPOCH + timedelta(microseconds=finding.last_time_us),
        "groups": list(finding.groups),
        "topics": list(finding.topics),
    }
    return {name: told[name] for name in COLUMNS}


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


def audit_csv(audit: Audit, sampled: Sequence[Sampled] = ()) -> str:
    """The findings as CSV; where captures are ``sampled``, each says of which part it is."""
    part = part_columns(sampled)
    rows = ([*audit_row(finding).values(), *part.values()] for finding in audit.findings)
    return to_csv((*COLUMNS, *part), rows)


def audit_json(
    audit: Audit, sampled: Sequence[Sampled] = (), added_tags: AddedTags = NO_ADDED_TAGS
) -> str:
    """JSON with the findings as in CSV, and what the audit as a whole says beside them.

    ``sampled`` is there where captures hold a part of the connections: a client that is not among
    the findings may be among the others. ``added_tags`` is there where taps added header tags.
    """
    whole: dict[str, Any] = msgspec.to_builtins(replace(audit, findings=()))
    # Two copies less than as objects, where there are very many.
    rows = [msgspec.json.encode(audit_row(one)) for one in audit.findings]
    whole["findings"] = msgspec.Raw(b"[" + b",".join(rows) + b"]")
    if sampled:
        whole["sampled"] = msgspec.to_builtins(sampled)
    if added_tags.files:
        whole["added_tags"] = msgspec.to_builtins(added_tags)
    return msgspec.json.format(msgspec.json.encode(whole), indent=1).decode() + "\n"
