"""What was measured, for programs: JSON with everything, CSV with a line for each part."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.protocol.audit import OPENING_APIS
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexwire.specs.cost.meter import CostMeter, MessageCost, SizePair
    from flexwire.specs.cost.tagging import Share


@dataclass(frozen=True, slots=True)
class NewestRequests:
    """How many requests were compared, and how many of them are at the old specs' newest version.

    What a connection begins with (ApiVersions, SASL) and unstable versions are not counted.
    """

    requests: int = 0
    at_newest: int = 0


def newest_requests(meter: CostMeter) -> NewestRequests:
    """Count the requests that were compared."""
    requests = at_newest = 0
    for row in meter.rows.values():
        edition = meter.old.specs.find((row.name, None, None))
        spec = None if edition is None else edition.spec
        if spec and spec.type is MessageType.REQUEST and spec.api_key not in OPENING_APIS:
            newest = spec.valid_versions.highest - spec.latest_version_unstable
            requests += row.messages
            at_newest += row.messages if row.version >= newest else 0
    return NewestRequests(requests, at_newest)


def newest_sentence(found: NewestRequests) -> str:
    """One sentence about them; empty where there is no request.

    >>> newest_sentence(NewestRequests(200, 50))
    '50 of 200 requests (25.0 %) are at the newest version: only their senders gain by a newer one'
    """
    if not found.requests:
        return ""
    part = 100 * found.at_newest / found.requests
    return (
        f"{found.at_newest:,} of {found.requests:,} requests ({part:.1f} %) are at the newest "
        "version: only their senders gain by a newer one"
    )


_SIDE = ("total", "min", "median", "max")
CSV_COLUMNS = (
    "message",
    "version",
    "old_version",
    "new_version",
    "part",
    "field",
    "messages",
    *(f"old_{one}" for one in _SIDE),
    *(f"new_{one}" for one in _SIDE),
    "saved",
)


def sorted_rows(meter: CostMeter) -> list[MessageCost]:
    """Give the rows that have messages, what saves most first."""
    rows = (row for row in meter.rows.values() if row.messages)
    return sorted(rows, key=lambda row: (-row.whole.saved, row.name, row.version))


def by_api(rows: Iterable[MessageCost]) -> dict[str, list[MessageCost]]:
    """Give the rows of requests and responses by their API, what saves most first."""
    found: dict[str, list[MessageCost]] = defaultdict(list)
    for row in rows:
        if row.api is not None:
            found[row.api].append(row)
    order = sorted(found, key=lambda api: (-sum(row.whole.saved for row in found[api]), api))
    return {api: found[api] for api in order}


def to_json(meter: CostMeter, question: Mapping[str, Any]) -> str:
    """Write all that was measured; every size is in bytes."""
    rows, newest = sorted_rows(meter), newest_requests(meter)
    told = {
        "question": question,
        "total": _added_up(rows),
        "apis": [{"api": api} | _added_up(of_api) for api, of_api in by_api(rows).items()],
        "messages": [_row(row) for row in rows],
        "newest": {"requests": newest.requests, "atNewest": newest.at_newest},
        "uncompared": [
            {
                "what": what,
                "reason": reason,
                "times": one.times,
                "bytes": one.bytes,
                "example": one.example or None,
            }
            for (what, reason), one in meter.uncompared.items()
        ],
    }
    return json.dumps(told, indent=2)


def to_csv(meter: CostMeter) -> str:
    """Write a line for each message and version as a whole, for its header, body, and fields."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for row in sorted_rows(meter):
        about = (row.name, row.version, row.old_version, row.new_version)
        for part, field, pair in _parts(row):
            old, new = (_stats(one, row.messages) for one in (pair.old, pair.new))
            lines.writerow(
                (*about, part, field, row.messages, *old.values(), *new.values(), pair.saved)
            )
    return out.getvalue()


def _parts(row: MessageCost) -> Iterator[tuple[str, str, SizePair]]:
    yield "whole", "", row.whole
    yield "header", "", row.header
    yield "body", "", row.body
    for path, pair in sorted(row.fields.items()):
        yield "field", path, pair


def _added_up(rows: Iterable[MessageCost]) -> dict[str, Any]:
    old, new, saved = Sizes(), Sizes(), Sizes()
    sent = headers = changed = 0
    for row in rows:
        old.merge(row.whole.old)
        new.merge(row.whole.new)
        saved.merge(row.saved)
        sent += row.sent
        headers += row.header.old.total
        changed += row.header.new.total
    return {
        "messages": old.count,
        "sentBodies": sent,
        "old": _stats(old, old.count),
        "new": _stats(new, new.count),
        "saved": _stats(saved, saved.count),
        "headers": {"old": headers, "new": changed},
    }


def _row(row: MessageCost) -> dict[str, Any]:
    return {
        "message": row.name,
        "version": row.version,
        "oldVersion": row.old_version,
        "newVersion": row.new_version,
        "messages": row.messages,
        "sentBodies": row.sent,
        "whole": _pair(row.whole, row.messages),
        "saved": _stats(row.saved, row.messages),
        "header": _pair(row.header, row.messages),
        "body": _pair(row.body, row.messages),
        "fields": [
            {"path": path, **_pair(pair, row.messages)} for path, pair in sorted(row.fields.items())
        ],
        "taggedNow": [_share(one) for one in row.shares],
        "dropped": dict(row.lost),
        "droppingMessages": row.losing,
    }


def _pair(pair: SizePair, messages: int) -> dict[str, Any]:
    return {"old": _stats(pair.old, messages), "new": _stats(pair.new, messages)}


def _stats(sizes: Sizes, messages: int) -> dict[str, float]:
    # A message in which a field takes no bytes counts as 0.
    whole = sizes.padded(messages)
    return dict(zip(_SIDE, (whole.total, whole.least, whole.median, whole.most), strict=True))


def _share(one: Share) -> dict[str, Any]:
    return {
        "path": one.field.at.path,
        "tag": one.field.at.new.tag,
        "values": one.values,
        "set": one.set,
        "share": one.share,
        "breakEvenShare": one.break_even,
        "old": one.old,
        "new": one.new,
    }
