"""The results of the trial. A row contains a client's captured traffic and its success by release.

``results.jsonl`` keeps the rows, so every run of the tests compares the audit's verdicts with the
behavior of real brokers; `python -m tests.kafka.trial` writes new ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.parties import VERDICTS, Party
from flexwire.protocol.apis import api_name
from flexwire.protocol.audit import ClientFinding, Conduct, Use, judge
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.kafka.trial.trying import Outcome

RESULTS = Path(__file__).with_name("results.jsonl")
CAPTURED = "3.9.2"
"""The release with which the clients are captured, and with which all of them must work."""
JUDGED = ("4.0.0", "4.0.2", "4.4.0")
"""The releases for which that capture is audited, and on which the clients then run."""
BREAKS = VERDICTS[: VERDICTS.index("cannot say")]
# APIs that only one step needs; without any other API, nothing can be read.
_STEPS = {"Produce": "produce", "CreateTopics": "create", "OffsetCommit": "commit"}


@dataclass(frozen=True, slots=True)
class Row:
    """One client: its traffic at the captured broker, and its outcome by release."""

    client: str
    seen: tuple[tuple[Party, Conduct], ...]
    happened: dict[str, Outcome]

    def findings(self, release: str) -> list[ClientFinding]:
        """The audit's verdicts about the client, the most serious first."""
        found = [
            one
            for party, conduct in self.seen
            for one in judge(party, conduct, release, brokers=(CAPTURED,))
        ]
        return sorted(found, key=lambda one: (VERDICTS.index(one.verdict), one.api_key or 0))

    def foreseen(self, release: str) -> set[str]:
        """Return the steps that will break according to the audit."""
        return {
            _STEPS.get(api_name(one.api_key), "consume") if one.api_key is not None else "all"
            for one in self.findings(release)
            if one.verdict in BREAKS
        }

    def broken(self, release: str) -> set[str]:
        """Return the steps that worked with the captured release, but do not work with this one."""
        before, now = self.happened[CAPTURED], self.happened[release]
        return {name for name, error in now.items() if error and before[name] == ""}

    def is_right(self, release: str) -> bool:
        """Return whether exactly the predicted steps broke."""
        foreseen, broken = self.foreseen(release), self.broken(release)
        # If nothing was read, there is nothing to commit.
        untried = {name for name, error in self.happened[release].items() if error is None}
        return foreseen - untried == broken


def read_rows() -> list[Row]:
    """Return the rows of the last trial."""
    return [_row(json.loads(line)) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def write_rows(rows: Sequence[Row]) -> None:
    """Write the rows, one row on each line."""
    RESULTS.write_text("".join(f"{json.dumps(_told(one))}\n" for one in rows), encoding="utf-8")


def _told(row: Row) -> dict[str, Any]:
    seen = [
        {
            "party": {key: value for key, value in asdict(party).items() if value is not None},
            "role": conduct.role,
            "connections": conduct.connections,
            "whole": conduct.whole,
            "uses": [_told_use(one) for one in conduct.uses],
        }
        for party, conduct in row.seen
    ]
    return {"client": row.client, "happened": row.happened, "seen": seen}


def _told_use(use: Use) -> list[Any]:
    offered = None if use.offered is None else str(use.offered)
    return [use.api_key, use.version, use.requests, use.asked, offered, use.closed]


def _row(told: dict[str, Any]) -> Row:
    seen = tuple((_party(one["party"]), _conduct(one)) for one in told["seen"])
    return Row(told["client"], seen, told["happened"])


def _party(told: dict[str, str]) -> Party:
    return Party(**{"client_id": None, "address": None, **told})


def _conduct(told: dict[str, Any]) -> Conduct:
    uses = tuple(_use(*one) for one in told["uses"])
    return Conduct(told["role"], uses, connections=told["connections"], whole=told["whole"])


def _use(
    api_key: int, version: int, requests: int, asked: Any, offered: str | None, closed: Any
) -> Use:
    versions = None if offered is None else Versions.parse(offered)
    return Use(api_key, version, requests, 0, 0, asked, versions, closed=closed)
