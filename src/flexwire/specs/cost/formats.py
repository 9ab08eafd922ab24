"""Print costs: tables for people, and JSON and CSV with all numbers for programs."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.protocol.audit import OPENING_APIS
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexwire.specs.cost.meter import CostMeter, MessageCost, SizePair
    from flexwire.specs.cost.tagging import Share


@dataclass(frozen=True, slots=True)
class NewestRequests:
    """The number of compared requests, and how many use the newest version in the old specs.

    Requests that begin a connection (ApiVersions, SASL) and unstable versions are not counted.
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


def newest_sentence(counts: NewestRequests) -> str:
    """Return a sentence about these requests, or an empty string if there are no requests.

    >>> for part in newest_sentence(NewestRequests(200, 50)).split(": "):
    ...     print(part)
    50 of 200 requests (25.0 %) use the newest version
    only the senders of these requests benefit from newer versions
    """
    if not counts.requests:
        return ""
    part = 100 * counts.at_newest / counts.requests
    return (
        f"{counts.at_newest:,} of {counts.requests:,} requests ({part:.1f} %) use the newest "
        "version: only the senders of these requests benefit from newer versions"
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
    *(f"old_{column}" for column in _SIDE),
    *(f"new_{column}" for column in _SIDE),
    "saved",
)


def sorted_rows(meter: CostMeter) -> list[MessageCost]:
    """Return the rows with at least one message, the largest saving first."""
    rows = (row for row in meter.rows.values() if row.messages)
    return sorted(rows, key=lambda row: (-row.whole.saved, row.name, row.version))


def by_api(rows: Iterable[MessageCost]) -> dict[str, list[MessageCost]]:
    """Return the rows of requests and responses by API, the largest saving first."""
    rows_by_api: dict[str, list[MessageCost]] = defaultdict(list)
    for row in rows:
        if row.api is not None:
            rows_by_api[row.api].append(row)
    order = sorted(
        rows_by_api, key=lambda api: (-sum(row.whole.saved for row in rows_by_api[api]), api)
    )
    return {api: rows_by_api[api] for api in order}


def to_json(meter: CostMeter, question: Mapping[str, Any]) -> str:
    """Return all numbers as JSON. Every size is in bytes."""
    rows, newest = sorted_rows(meter), newest_requests(meter)
    document = {
        "question": question,
        "total": _added_up(rows),
        "apis": [{"api": api} | _added_up(of_api) for api, of_api in by_api(rows).items()],
        "messages": [_row(row) for row in rows],
        "newest": {"requests": newest.requests, "atNewest": newest.at_newest},
        "uncompared": [
            {
                "what": what,
                "reason": reason,
                "times": uncompared.times,
                "bytes": uncompared.bytes,
                "example": uncompared.example or None,
            }
            for (what, reason), uncompared in meter.uncompared.items()
        ],
    }
    return json.dumps(document, indent=2)


def to_csv(meter: CostMeter) -> str:
    """Return a line for each message and version, and for its header, body, and fields."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for row in sorted_rows(meter):
        about = (row.name, row.version, row.old_version, row.new_version)
        for part, field, pair in _parts(row):
            old, new = (_stats(sizes, row.messages) for sizes in (pair.old, pair.new))
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
        "taggedNow": [_share(share) for share in row.shares],
        "dropped": dict(row.lost),
        "droppingMessages": row.losing,
    }


def _pair(pair: SizePair, messages: int) -> dict[str, Any]:
    return {"old": _stats(pair.old, messages), "new": _stats(pair.new, messages)}


def _stats(sizes: Sizes, messages: int) -> dict[str, float]:
    # A message in which a field takes no bytes counts as 0.
    whole = sizes.padded(messages)
    return dict(zip(_SIDE, (whole.total, whole.least, whole.median, whole.most), strict=True))


def _share(share: Share) -> dict[str, Any]:
    return {
        "path": share.field.at.path,
        "tag": share.field.at.new.tag,
        "values": share.values,
        "set": share.set,
        "share": share.share,
        "breakEvenShare": share.break_even,
        "old": share.old,
        "new": share.new,
    }


_Table = list[tuple[str, ...]]
SHOWN = 15
"""The number of table lines that are shown, unless all lines are requested."""

# The minimum and the median describe the saving for one message.
_SAVING = ("messages", "old", "new", "saved", "%", "least", "median")
_GAP = "  "
_LEAST_WIDTH = 12


def to_text(meter: CostMeter, question: str, *, width: int, whole: bool) -> str:
    """Return the tables. ``width`` is the terminal's width. With ``whole``, every line is shown.

    A name that is too long is shortened in the middle.
    """
    rows = sorted_rows(meter)
    losing = sum(row.losing for row in rows)
    parts = [f"{question}\n", *_messages(rows, width, whole=whole)]
    for title, table in (
        ("by API", _apis(rows)),
        ("fields that change", _fields(rows)),
        (
            (
                "newly tagged fields: how often they are set, and the share of set values up to "
                "which tagging saves bytes"
            ),
            _tagged(rows),
        ),
        (f"values that the change drops from {losing:,} messages", _dropped(rows)),
    ):
        if len(table) > 1:
            parts += [f"\n{title}\n", *_laid_out(table, width, whole=whole, texts=1)]
    newest = newest_sentence(newest_requests(meter))
    if newest:
        parts += ["\n", textwrap.fill(newest, width), "\n"]
    return "".join([*parts, *_uncompared(meter, width, whole=whole)])


def _messages(rows: list[MessageCost], width: int, *, whole: bool) -> list[str]:
    if not rows:
        return ["no message was compared\n"]
    table: _Table = [("message", "version", *_SAVING)]
    for row in rows:
        table.append((row.name, _versions(row), *_saving([row])))
    total = ("total", "", *_saving(rows))
    headers = sum(row.header.old.total for row in rows), sum(row.header.new.total for row in rows)
    both = ("  headers", "", "", *_sums(*headers), "", "")
    return _laid_out(table, width, whole=whole, texts=2, feet=(total, both))


def _apis(rows: list[MessageCost]) -> _Table:
    table: _Table = [("api", *_SAVING)]
    apis = by_api(rows)
    if len(apis) < len(rows):
        table += [(api, *_saving(of_api)) for api, of_api in apis.items()]
    return table


def _saving(rows: list[MessageCost]) -> tuple[str, ...]:
    """Return the cells of `_SAVING` for the sum of the rows."""
    saved = Sizes()
    for row in rows:
        saved.merge(row.saved)
    old = sum(row.whole.old.total for row in rows)
    new = sum(row.whole.new.total for row in rows)
    return f"{saved.count:,}", *_sums(old, new), f"{saved.least:,}", f"{saved.median:,}"


def _versions(row: MessageCost) -> str:
    if row.version == row.old_version == row.new_version:
        return str(row.version)
    change = f"{row.old_version}→{row.new_version}"
    return change if row.version == row.old_version else f"{row.version} as {change}"


def _sums(old: int, new: int) -> tuple[str, ...]:
    share = _percent((old - new) / old) if old else ""
    return f"{old:,}", f"{new:,}", f"{old - new:,}", share


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _fields(rows: Iterable[MessageCost]) -> _Table:
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        for path, pair in row.fields.items():
            sums[row.name, path][0] += pair.old.total
            sums[row.name, path][1] += pair.new.total
    changed = [(old - new, *key, old, new) for key, (old, new) in sums.items() if old != new]
    table: _Table = [("message and field", "old", "new", "saved", "%")]
    for _, name, path, old, new in sorted(
        changed, key=lambda change: (-abs(change[0]), change[1:])
    ):
        table.append((f"{name} {path}", *_sums(old, new)))
    return table


def _tagged(rows: Iterable[MessageCost]) -> _Table:
    by_field: dict[str, list[Share]] = defaultdict(list)
    by_name: dict[str, list[Share]] = defaultdict(list)
    for row in rows:
        for field_share in row.shares:
            by_field[f"{row.name} {field_share.field.at.path}"].append(field_share)
            by_name[f"every {field_share.field.at.new.name}"].append(field_share)
    table: _Table = [("field", "values", "set", "%", "saves up to", "old", "new", "saved")]
    fields = sorted(by_field.items(), key=lambda item: (-_saved(item[1]), item[0]))
    for name, shares in [*sorted(by_name.items()), *fields]:
        values, set_ = sum(share.values for share in shares), sum(share.set for share in shares)
        if values:
            old, new = sum(share.old for share in shares), sum(share.new for share in shares)
            share = _percent(set_ / values)
            counts = (f"{values:,}", f"{set_:,}", share, _break_even(shares))
            table.append((name, *counts, *_sums(old, new)[:3]))
    return table


def _saved(shares: Iterable[Share]) -> int:
    return sum(share.old - share.new for share in shares)


def _break_even(shares: Iterable[Share]) -> str:
    percentages = {_percent(share.break_even) for share in shares if share.break_even is not None}
    ends = sorted(percentages, key=float)
    return "-".join(dict.fromkeys((ends[0], ends[-1]))) if ends else ""


def _dropped(rows: Iterable[MessageCost]) -> _Table:
    table: _Table = [("values that have no field in the new specs", "times")]
    for row in rows:
        table += [(f"{row.name} {row.version} {path}", f"{n:,}") for path, n in row.lost.items()]
    return table


def _uncompared(meter: CostMeter, width: int, *, whole: bool) -> list[str]:
    reasons = sorted(meter.uncompared.items(), key=lambda item: (-item[1].times, item[0]))
    if not reasons:
        return []
    times = sum(count.times for _, count in reasons)
    size = sum(count.bytes for _, count in reasons)
    lines = [f"\nnot compared: {times:,} ({size:,} bytes)\n"]
    for (what, reason), count in reasons if whole else reasons[:SHOWN]:
        example = f": {count.example}" if count.example else ""
        line = f"{count.times:>8,}  {what}: {reason}{example}"
        lines.append(textwrap.fill(line, width, subsequent_indent=" " * 12) + "\n")
    left = len(reasons) - len(lines) + 1
    if left > 0:
        lines.append(_more(left))
    return lines


def _more(left: int) -> str:
    return f"… and {left:,} more; --all shows them\n"


def _laid_out(
    table: _Table,
    width: int,
    *,
    whole: bool,
    texts: int,
    feet: Sequence[tuple[str, ...]] = (),
) -> list[str]:
    """Format a table: first ``texts`` columns of text, then numbers.

    The widest text column is shortened.
    """
    shown = table if whole else table[: 1 + SHOWN]
    lines = [*shown, *feet]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    if over > 0:
        widest = max(range(texts), key=widths.__getitem__)
        widths[widest] = max(_LEAST_WIDTH, widths[widest] - over)
    texts_laid_out = []
    for line in lines:
        cells = [
            _cut(cell, size).ljust(size) if column < texts else cell.rjust(size)
            for column, (cell, size) in enumerate(zip(line, widths, strict=True))
        ]
        texts_laid_out.append(_GAP.join(cells).rstrip() + "\n")
    left = len(table) - len(shown)
    if left:
        texts_laid_out.insert(len(shown), _more(left))
    return texts_laid_out


def _cut(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    # The end of a path is more informative than the middle.
    end = size // 2
    return f"{text[: size - end - 1]}…{text[len(text) - end :]}"
