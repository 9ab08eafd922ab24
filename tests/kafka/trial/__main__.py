"""Test the audit, and the verdicts about groups, against real brokers: ``make trial``.

The command writes the results, and exits with 1 if a verdict was wrong. If given names of clients,
or parts of names, the command tries only those clients and writes nothing. If the first word is
"groups", it tries only groups (`tests.kafka.trial.groups`), and the words after it are names of
groups.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.tap import HostPort
from tests.kafka.secured import tapping
from tests.kafka.trial import groups
from tests.kafka.trial.predicting import gather
from tests.kafka.trial.rows import CAPTURED, JUDGED, Row, write_rows
from tests.kafka.trial.trying import try_all
from tools.broker import broker
from tools.clients.roster import CLIENTS
from tools.pages import audit_trial
from tools.pages.files import write_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.measures.evidence import AuditEvidence
    from tests.kafka.trial.trying import Outcome
    from tools.clients.installing import Program
    from tools.clients.roster import Client


def main(asked: Sequence[str]) -> None:
    """Try all clients and groups, or those that were requested."""
    if asked[:1] == ["groups"]:
        sys.exit(not groups.main(asked[1:]))
    is_right = _audited(asked)
    if not asked:
        is_right &= groups.main(())
    sys.exit(not is_right)


def _audited(asked: Sequence[str]) -> bool:
    """Try clients, and return whether the audit was correct."""
    chosen = [one for one in CLIENTS if not asked or any(name in str(one) for name in asked)]
    began = time.monotonic()
    programs = {client: client.way.bring() for client in chosen}
    with tempfile.TemporaryDirectory(prefix="flexwire-trial-") as place:
        happened = {CAPTURED: _captured(programs, Path(place))}
        seen = gather(sorted(Path(place, "tap").iterdir()), Path(place, "out"))
        for release in JUDGED:
            _say(f"Kafka {release}")
            with broker(release, Path(place, release)) as address:
                happened[release] = try_all(programs, address, address, _say)
    rows = [_row(one, seen, happened) for one in chosen]
    if not asked:
        write_rows(rows)
        write_files(audit_trial.files())
    wrong = [(row, release) for row in rows for release in JUDGED if not row.is_right(release)]
    for row, release in wrong:
        foreseen, broken = sorted(row.foreseen(release)), sorted(row.broken(release))
        _say(f"wrong: {row.client} on {release}: foreseen {foreseen}, and broken {broken}")
    tried = len(rows) * len(JUDGED)
    _say(f"{tried - len(wrong)} of {tried} as foreseen, in {time.monotonic() - began:.0f} s")
    return not wrong


def _captured(programs: dict[Client, Program], place: Path) -> dict[str, Outcome]:
    _say(f"Kafka {CAPTURED}, through the tap")
    with broker(CAPTURED, place / CAPTURED) as address:
        host, _, port = address.rpartition(":")
        with tapping(HostPort(host, int(port)), place / "tap") as tap:
            return try_all(programs, address, str(tap.listen_address), _say)


def _row(client: Client, seen: AuditEvidence, happened: dict[str, dict[str, Outcome]]) -> Row:
    if seen.brokers != (CAPTURED,):
        raise RuntimeError(f"the audit takes the broker of {CAPTURED} for {seen.brokers}")
    own = tuple(
        (party, conduct)
        for party, conduct in seen.conducts.items()
        if party.client_id == client.client_id
    )
    if not own:
        raise RuntimeError(f"the capture has nothing of {client}")
    return Row(str(client), own, {one: found[str(client)] for one, found in happened.items()})


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
