"""What was measured, for people: what saves most first, and what was not compared last."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING

from flexwire.specs.cost.machine import by_api, newest_requests, newest_sentence, sorted_rows
from flexwire.specs.cost.sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.specs.cost.meter import CostMeter, MessageCost
    from flexwire.specs.cost.tagging import Share

Table = list[tuple[str, ...]]
SHOWN = 15
"""So many lines of a table are shown unless all are asked for."""

# Of these, the least and the median are what one message saves.
_SAVING = ("messages", "old", "new", "saved", "%", "least", "median")
_GAP = "  "
_LEAST_WIDTH = 12


def write(meter: CostMeter, question: str, *, width: int, whole: bool) -> str:
    """Write the tables; ``width`` is that of the terminal in columns, ``whole`` shows every line.

    A name that does not fit loses its middle.
    """
    rows = sorted_rows(meter)
    losing = sum(row.losing for row in rows)
    parts = [f"{question}\n", *_messages(rows, width, whole=whole)]
    for title, table in (
        ("by API", _apis(rows)),
        ("fields that change", _fields(rows)),
        ("tagged now: how often they are set, and up to which share that saves", _tagged(rows)),
        (f"dropped by the change, from {losing:,} messages", _dropped(rows)),
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
    table: Table = [("message", "version", *_SAVING)]
    for row in rows:
        table.append((row.name, _versions(row), *_saving([row])))
    total = ("total", "", *_saving(rows))
    headers = sum(row.header.old.total for row in rows), sum(row.header.new.total for row in rows)
    both = ("  headers", "", "", *_sums(*headers), "", "")
    return _laid_out(table, width, whole=whole, texts=2, feet=(total, both))


def _apis(rows: list[MessageCost]) -> Table:
    table: Table = [("api", *_SAVING)]
    apis = by_api(rows)
    if len(apis) < len(rows):
        table += [(api, *_saving(of_api)) for api, of_api in apis.items()]
    return table


def _saving(rows: list[MessageCost]) -> tuple[str, ...]:
    """Give the cells of `_SAVING` for some rows together."""
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


def _fields(rows: Iterable[MessageCost]) -> Table:
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        for path, pair in row.fields.items():
            sums[row.name, path][0] += pair.old.total
            sums[row.name, path][1] += pair.new.total
    changed = [(old - new, *key, old, new) for key, (old, new) in sums.items() if old != new]
    table: Table = [("message and field", "old", "new", "saved", "%")]
    for _, name, path, old, new in sorted(changed, key=lambda one: (-abs(one[0]), one[1:])):
        table.append((f"{name} {path}", *_sums(old, new)))
    return table


def _tagged(rows: Iterable[MessageCost]) -> Table:
    by_field: dict[str, list[Share]] = defaultdict(list)
    by_name: dict[str, list[Share]] = defaultdict(list)
    for row in rows:
        for one in row.shares:
            by_field[f"{row.name} {one.field.at.path}"].append(one)
            by_name[f"every {one.field.at.new.name}"].append(one)
    table: Table = [("field", "values", "set", "%", "saves up to", "old", "new", "saved")]
    fields = sorted(by_field.items(), key=lambda one: (-_saved(one[1]), one[0]))
    for name, shares in [*sorted(by_name.items()), *fields]:
        values, set_ = sum(one.values for one in shares), sum(one.set for one in shares)
        if values:
            old, new = sum(one.old for one in shares), sum(one.new for one in shares)
            share = _percent(set_ / values)
            counts = (f"{values:,}", f"{set_:,}", share, _break_even(shares))
            table.append((name, *counts, *_sums(old, new)[:3]))
    return table


def _saved(shares: Iterable[Share]) -> int:
    return sum(one.old - one.new for one in shares)


def _break_even(shares: Iterable[Share]) -> str:
    found = {_percent(one.break_even) for one in shares if one.break_even is not None}
    ends = sorted(found, key=float)
    return "-".join(dict.fromkeys((ends[0], ends[-1]))) if ends else ""


def _dropped(rows: Iterable[MessageCost]) -> Table:
    table: Table = [("values without a field on the new side", "times")]
    for row in rows:
        table += [(f"{row.name} {row.version} {path}", f"{n:,}") for path, n in row.lost.items()]
    return table


def _uncompared(meter: CostMeter, width: int, *, whole: bool) -> list[str]:
    found = sorted(meter.uncompared.items(), key=lambda one: (-one[1].times, one[0]))
    if not found:
        return []
    times = sum(one.times for _, one in found)
    size = sum(one.bytes for _, one in found)
    told = [f"\nnot compared: {times:,} ({size:,} bytes)\n"]
    for (what, reason), one in found if whole else found[:SHOWN]:
        example = f": {one.example}" if one.example else ""
        line = f"{one.times:>8,}  {what}: {reason}{example}"
        told.append(textwrap.fill(line, width, subsequent_indent=" " * 12) + "\n")
    left = len(found) - len(told) + 1
    if left > 0:
        told.append(_more(left))
    return told


def _more(left: int) -> str:
    return f"… and {left:,} more; --all shows them\n"


def _laid_out(
    table: Table,
    width: int,
    *,
    whole: bool,
    texts: int,
    feet: Sequence[tuple[str, ...]] = (),
) -> list[str]:
    """Lay out a table: ``texts`` columns of text, of which the widest gives way, then numbers."""
    shown = table if whole else table[: 1 + SHOWN]
    lines = [*shown, *feet]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    if over > 0:
        widest = max(range(texts), key=widths.__getitem__)
        widths[widest] = max(_LEAST_WIDTH, widths[widest] - over)
    done = []
    for line in lines:
        cells = [
            _cut(cell, size).ljust(size) if column < texts else cell.rjust(size)
            for column, (cell, size) in enumerate(zip(line, widths, strict=True))
        ]
        done.append(_GAP.join(cells).rstrip() + "\n")
    left = len(table) - len(shown)
    if left:
        done.insert(len(shown), _more(left))
    return done


def _cut(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    # Where a path ends says more than its middle.
    end = size // 2
    return f"{text[: size - end - 1]}…{text[len(text) - end :]}"
