"""docs/consumer-protocol.md: the parts about the group trial and about unseen conditions."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from flexwire.facts.units import shorten
from flexwire.protocol.audit.consumer_protocol import SUPPORT, UNSEEN
from flexwire.protocol.error_codes import ERROR_NAMES, NO_ERROR
from tests.kafka.trial.group_cases import RELEASE
from tests.kafka.trial.group_rows import ALONE, CLASSIC, CONSUMER, WITHOUT, read_group_rows
from tools.pages.files import DOCS, replace_between, write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.kafka.trial.group_rows import Attempt, GroupRow

PAGE = DOCS / "consumer-protocol.md"
_BEGIN = "<!-- {}: written by tools/pages/group_trial.py -->\n"
_MOST_SAID = 110


def files() -> dict[Path, str]:
    """Return the page with its generated parts rewritten."""
    return {PAGE: with_groups(PAGE.read_text(encoding="utf-8"), read_group_rows())}


def with_groups(text: str, rows: Sequence[GroupRow]) -> str:
    """Return the page ``text`` with its generated parts, from ``rows`` and from the known facts."""
    parts = {"libraries": _libraries(), "unseen": _unseen(), "trial": _trial(rows)}
    for name, part in parts.items():
        begin, end = _BEGIN.format(name), f"<!-- {name} end -->"
        text = replace_between(text, begin, end, part)
    return text


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n{rows}"


def _libraries() -> str:
    lines = []
    for support in SUPPORT.values():
        names = filter(None, (support.refused.assignors, support.refused.timeout))
        lines.append([
            support.library, support.appears_in, support.works_from, f"`{support.setting}`",
            support.is_default_from or "not planned", ", ".join(f"`{name}`" for name in names),
            support.refused.effect,
        ])  # fmt: skip
    heads = (
        *("library", "available from", "ready from", "setting", "default from"),
        *("refused settings that JoinGroup shows", "if one is set"),
    )
    return _table(heads, lines)


def _unseen() -> str:
    lines = [
        [
            f"`{one.what}`" if "." in one.what else one.what, one.holder, one.condition,
            "nothing: the client sends no heartbeat" if one.error is None else _named(one.error),
        ]
        for one in UNSEEN
    ]  # fmt: skip
    heads = ("condition", "known to", "a group does not move if", "the broker responds")
    return _table(heads, lines)


def _trial(rows: Sequence[GroupRow]) -> str:
    seen = [row for row in rows if row.case.unseen is None]
    told = [row for row in seen if row.verdict != "cannot say"]
    right = sum(row.is_right for row in told)
    hidden = [row for row in rows if row.case.unseen is not None]
    by_log = sum(row.by_log is not None for row in rows)
    by_offsets = sum(row.by_offsets == "blocked" for row in rows)
    summary = (
        f"`make trial` ran {len(rows)} groups on {RELEASE} brokers. In {right} of {len(told)} "
        "groups, the broker reacted as the verdict predicts. "
        f'{len(seen) - len(told)} verdicts are "cannot say". In {len(hidden)} groups, a '
        "condition applied that requests do not show, and "
        f"{sum(row.is_right for row in hidden)} of these groups were refused as the table above "
        "says. "
        f"For {by_log} groups, the broker also logged its requests, and the verdict from this log "
        f"is the same. According to `__consumer_offsets`, {by_offsets} groups are blocked, and the "
        "broker refused them all.\n\n"
    )
    heads = ("members", "situation", "verdict", "a member joins with", "what happened")
    return summary + _table(heads, [line for row in rows for line in _lines(row)])


def _lines(row: GroupRow) -> list[list[str]]:
    verdict = str(row.verdict) if row.is_right else f"{row.verdict} (**wrong**)"
    lines: list[list[str]] = []
    for _, group in groupby(row.attempts, key=lambda one: (one.client, one.how)):
        attempt = next(group)
        first = [row.case.clients, row.case.situation, verdict] if not lines else [""] * 3
        lines.append([*first, _came(row, attempt), _happened(attempt)])
    return lines


def _came(row: GroupRow, attempt: Attempt) -> str:
    settings = ", ".join(f"`{_short(one)}`" for one in attempt.settings)
    how = {WITHOUT: "without the group's settings: ", ALONE: "after all members had left: "}
    client = "" if attempt.client == row.case.clients else f"{attempt.client}, "
    return f"{how.get(attempt.how, '')}{client}{settings}"


def _happened(attempt: Attempt) -> str:
    said = shorten(" ".join(attempt.said.replace("|", " ").split()), _MOST_SAID)
    if attempt.code is None:
        if not said:
            return "the member joined with the classic protocol"
        return f"the member sent no heartbeat: {said}"
    if attempt.code == NO_ERROR and attempt.type == CONSUMER:
        return "the broker accepted the member, and the group's type is consumer"
    stays = "stays classic" if attempt.type == CLASSIC else f"is {attempt.type}"
    return f"{_named(attempt.code)}, and the group {stays}"


def _named(code: int) -> str:
    return f"{ERROR_NAMES[code]} ({code})"


def _short(setting: str) -> str:
    return setting.replace("org.apache.kafka.clients.consumer.", "").removesuffix("=")


if __name__ == "__main__":
    write_files(files())
