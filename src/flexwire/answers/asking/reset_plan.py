"""Committed offsets as the file that Kafka's own tool sets them from: `reset_plan`.

``kafka-consumer-groups --reset-offsets --from-file`` reads lines of group, topic, partition and
offset, without a head (KIP-122, KIP-175). It ends with status 0 whatever goes wrong, so a line that
it cannot use would not be noticed.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

ANSWER_NAME: Final = "group_offsets"
"""The answer whose rows a plan is made of."""

_COLUMNS: Final = ("group", "topic", "partition", "offset")
# The tool cuts the file into lines before it looks at quotes.
_LINE_BREAK: Final = "\n"


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """A file for ``--from-file``, and what is not in it.

    Attributes:
        text: the lines, each with a newline; UTF-8 is what the tool reads.
        offsets: how many lines there are.
        groups: how many groups they are of.
        unknown: rows that were left out because it is not known what was committed, or whether a
            transaction has an offset pending.
        pending: rows that were left out because a transaction that has not ended committed one.
        unwritable: rows that were left out because the tool cannot read the name of their group.
    """

    text: str
    offsets: int
    groups: int
    unknown: int
    pending: int
    unwritable: int


def reset_plan(rows: pa.Table) -> ResetPlan:
    """Return the plan for rows of the answer ``group_offsets``."""
    is_pending = pc.fill_null(pc.greater(rows["pending"], 0), fill_value=False)
    has_offset = pc.and_(rows["is_known"], pc.is_valid(rows["offset"]))
    is_known = pc.and_(has_offset, pc.is_valid(rows["pending"]))
    is_unknown = pc.and_(pc.invert(is_known), pc.invert(is_pending))
    settled = rows.filter(pc.and_(is_known, pc.invert(is_pending))).select([*_COLUMNS])
    has_break = pc.match_substring(settled["group"], _LINE_BREAK)
    lines = settled.filter(pc.invert(has_break)).sort_by(
        [(name, "ascending") for name in _COLUMNS[:3]]
    )
    text = io.StringIO()
    # Names are quoted, numbers are not: a group may be named with anything.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator=_LINE_BREAK)
    writer.writerows(zip(*(column.to_pylist() for column in lines.columns), strict=True))
    return ResetPlan(
        text.getvalue(),
        offsets=lines.num_rows,
        groups=pc.count_distinct(lines["group"]).as_py(),
        unknown=pc.sum(is_unknown).as_py() or 0,
        pending=pc.sum(is_pending).as_py() or 0,
        unwritable=pc.sum(has_break).as_py() or 0,
    )
