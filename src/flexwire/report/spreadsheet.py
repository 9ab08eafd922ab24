"""Rows as CSV that people open in a spreadsheet (RFC 4180), without anything that it would run.

A spreadsheet takes a cell that begins with "=" for a formula, however it is quoted, and a client id
may be one. Such a text has an apostrophe before it, as spreadsheets themselves mark text.
"""

from __future__ import annotations

import csv
import io
import math
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What begins a formula, or is skipped before one; a few programs take the wide forms too.
_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def to_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV with a head: moments in ISO 8601, lists joined with a space, unknown empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


def cell(value: Any) -> str:
    """A value as the text of a cell.

    >>> cell("=1+1"), cell(-5), cell(None), cell(True), cell(["a", "b"])
    ("'=1+1", '-5', '', 'true', 'a b')
    """
    text = text_of(value)
    is_text = not isinstance(value, bool | int | float | date)
    return f"'{text}" if is_text and text.startswith(_BEGINS_FORMULA) else text


def text_of(value: Any) -> str:
    """A value as text, and nothing else done to it."""
    told = plain(value)
    if isinstance(told, bool):
        return "true" if told else "false"
    if isinstance(told, list):
        return " ".join(map(text_of, told))
    return "" if told is None else str(told)


def plain(value: Any) -> Any:
    r"""A value as JSON has it: moments in ISO 8601, bytes as the text that they are.

    >>> plain([b"caf\xc3\xa9", date(2026, 11, 22), float("nan")])
    ['café', '2026-11-22', None]
    """
    if isinstance(value, date):  # and a datetime is one
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
