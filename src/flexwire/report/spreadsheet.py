"""Rows as CSV that people open in a spreadsheet (RFC 4180), without anything that it would run.

A spreadsheet takes a cell that begins with "=" for a formula, however it is quoted, and a client id
may be one. Such a text has an apostrophe before it, as spreadsheets themselves mark text.
"""

from __future__ import annotations

import csv
import io
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
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, date):  # and a datetime is one
        return value.isoformat()
    text = _text(value)
    return f"'{text}" if text.startswith(_BEGINS_FORMULA) else text


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list | tuple):
        return " ".join("" if one is None else _text(one) for one in value)
    return str(value)
