"""The results of the trial of groups, one row for each group, kept in ``groups.jsonl``."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.answers.consumer_protocol import judge_facts
from flexwire.protocol.audit.consumer_protocol import (
    GROUP_VERDICTS,
    REFUSALS,
    SUPPORT,
    UNSEEN,
)
from flexwire.protocol.error_codes import NO_ERROR
from tests.kafka.trial.group_cases import CASES, GroupCase, Software

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.protocol.audit.consumer_protocol import GroupVerdict

RESULTS = Path(__file__).with_name("groups.jsonl")
AS_IT_IS, WITHOUT, ALONE = "as it is", "without its settings", "alone"
"""How a member joins: with the settings of the group's members and the protocol turned on; with
the protocol alone; with the protocol alone, after all members left."""
CLASSIC, CONSUMER = "classic", "consumer"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A member that joined a group to move it.

    ``code`` is the broker's error in the first response to ConsumerGroupHeartbeat, None if the
    client sent none. ``type`` is the group's type in ListGroups afterwards. ``said`` is the
    client's own output, which may be empty.
    """

    client: str
    how: str
    settings: tuple[str, ...]
    code: int | None
    type: str
    said: str

    @property
    def is_taken(self) -> bool:
        """True if the broker accepted the member and converted the group."""
        return self.code == NO_ERROR and self.type == CONSUMER


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group: its facts in a capture, the verdicts about it, and the results of its moves.

    ``verdict`` uses the capture before anything moved. ``by_log`` uses the broker's request log,
    and is None if there is no log. ``by_offsets`` uses `group_protocols`, the answer about
    `__consumer_offsets`. ``after`` is the verdict from the whole capture.
    """

    name: str
    facts: dict[str, Any]
    verdict: GroupVerdict
    by_log: GroupVerdict | None
    by_offsets: GroupVerdict | None
    after: GroupVerdict
    attempts: tuple[Attempt, ...]

    @property
    def case(self) -> GroupCase:
        """The attempts that were made with the group."""
        return next(case for case in CASES if case.name == self.name)

    def judged(self) -> dict[str, Any]:
        """Return the current verdict about the kept facts."""
        return judge_facts({**self.facts, "last_time": None})

    @property
    def moved(self) -> GroupVerdict:
        """The verdict that fits the outcome: the worst among the kinds of members."""
        found = [self._moved(software) for software, _ in self.case.movers]
        return min(found, key=GROUP_VERDICTS.index)

    def _moved(self, software: Software) -> GroupVerdict:
        own = [one for one in self.attempts if one.client == str(software) and one.how != ALONE]
        taken = [one.how for one in own if one.is_taken]
        if not taken:
            return "blocked"
        is_default = SUPPORT[software.library].is_default_from is not None
        return "moves as it is" if is_default and AS_IT_IS in taken else "moves after a setting"

    @property
    def is_right(self) -> bool:
        """True if the verdict is correct, or if the broker refused for the reason in `UNSEEN`."""
        if self.case.unseen is not None:
            return self._is_unseen()
        return self.verdict in {"cannot say", self.moved} and not self.wrong_after

    def _is_unseen(self) -> bool:
        first, error = self.attempts[0], UNSEEN[self.case.unseen or 0].error
        refused = first.type == CLASSIC and first.code == error
        return refused and self.verdict.startswith("moves") and not self.wrong_after

    @property
    def wrong_after(self) -> bool:
        """True if the whole capture, or another source, contradicts the broker."""
        if any(one.is_taken for one in self.attempts):
            is_wrong = self.after != "uses it already"
        else:
            codes = {one.code for one in self.attempts if one.code is not None}
            least = [REFUSALS[code].verdict for code in codes if code in REFUSALS]
            expected = min([self.verdict, *least], key=GROUP_VERDICTS.index)
            is_wrong = self.after != expected
        known = self.by_offsets == "blocked"
        return (
            is_wrong
            or self.by_log not in {None, self.verdict}
            or (known and self.verdict != "blocked")
        )


def read_group_rows() -> list[GroupRow]:
    """Return the rows of the last trial."""
    return [_row(json.loads(line)) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def write_group_rows(rows: Sequence[GroupRow]) -> None:
    """Write the rows, one row on each line."""
    lines = []
    for row in rows:
        told = asdict(row)
        told["facts"]["assignments"] = [
            base64.b64encode(one).decode() for one in row.facts["assignments"]
        ]
        lines.append(f"{json.dumps(told)}\n")
    RESULTS.write_text("".join(lines), encoding="utf-8")


def _row(told: dict[str, Any]) -> GroupRow:
    facts = told["facts"]
    facts["assignments"] = [base64.b64decode(one) for one in facts["assignments"]]
    attempts = (Attempt(**{**one, "settings": tuple(one["settings"])}) for one in told["attempts"])
    return GroupRow(**{**told, "attempts": tuple(attempts)})
