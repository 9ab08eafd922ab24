"""Labels map client id patterns to teams, for answers and the audit."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.arguments import refuse
from flexwire.errors import ArgumentError, short

if TYPE_CHECKING:
    from pyspark.sql import Column

Labels = Mapping[str, str]
"""The team for each client id pattern, in the order in which the patterns are tried."""
LABELS_HEADER: Final = ("client_id", "team")
"""The header of a label file."""
_WORDS: Final = {"*": ".*", "?": "."}


def to_labels(labels: Labels | str | Path | None) -> dict[str, str]:
    """Return labels as a mapping. ``labels`` is a mapping, a file, or None for no labels."""
    return read_labels(labels) if isinstance(labels, str | Path) else dict(labels or {})


def read_labels(path: str | Path) -> dict[str, str]:
    """Read labels, in order, from a CSV file with the header ``client_id,team``.

    Raises `ArgumentError`, which states the line number, if the file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        lines = csv.reader(text.splitlines(), strict=True)
        rows = [(lines.line_num, row) for row in lines if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError(f"{path}: cannot be read as a CSV label file: {error}") from None
    header = ",".join(LABELS_HEADER)
    if not rows or tuple(name.strip() for name in rows[0][1]) != LABELS_HEADER:
        got = short(",".join(rows[0][1])) if rows else "an empty file"
        raise ArgumentError(f"{path}:1: expected the header {header}, got {got}")
    labels: dict[str, str] = {}
    for line, row in rows[1:]:
        if len(row) != len(LABELS_HEADER) or not row[1].strip():
            raise refuse(f"{path}:{line}", "a client id and its team", ",".join(row))
        client_id, team = row[0].strip(), row[1].strip()
        if labels.setdefault(client_id, team) != team:
            raise ArgumentError(
                f"{path}:{line}: expected one team for {short(client_id)}, got "
                f"{short(labels[client_id])} and {short(team)}"
            )
    return labels


def team_of(labels: Labels, client_id: str | None) -> str | None:
    """Return the team of the first pattern that matches a client id, or None if no pattern matches.

    >>> team_of({"app-?": "Billing", "*": "Ops"}, "app-1"), team_of({"app": "Billing"}, None)
    ('Billing', None)
    """
    if client_id is None:
        return None
    fitting = (team for client, team in labels.items() if _compiled(client).fullmatch(client_id))
    return next(fitting, None)


def team_column(labels: Labels) -> Column:
    """Return the team of the client in the column ``client_id``; see `team_of`."""
    team_of_client = F.lit(None).cast("string")
    for pattern, team in reversed(list(labels.items())):
        team_of_client = F.when(_fits(pattern), F.lit(team)).otherwise(team_of_client)
    return team_of_client


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    words = (_WORDS.get(character) or re.escape(character) for character in pattern)
    return re.compile("".join(words), re.DOTALL)


def _fits(pattern: str) -> Column:
    if not set(_WORDS) & {*pattern}:
        return F.col("client_id") == F.lit(pattern)
    return F.col("client_id").rlike(
        "(?s)^"
        + "".join(_WORDS.get(character) or _literal(character) for character in pattern)
        + r"\z"
    )


def _literal(character: str) -> str:
    return character if character.isalnum() or character == "_" else f"\\x{{{ord(character):x}}}"
