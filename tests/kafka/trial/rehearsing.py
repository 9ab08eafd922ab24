"""Rehearse releases with the clients of the trial, and compare the results: ``make rehearse``.

The clients run against 3.9.2 behind a tap that rehearses a release. ``results.jsonl``, from
another run, records how a real broker of that release treated them. The program exits with 1 if a
client ends differently, or if the captures name other refused clients than the tap. If given names
of clients, or parts of names, the program tries only those clients.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.comments import read_rehearsed
from flexwire.survey.rehearsals import RehearsedTraffic
from flexwire.tap import Tap, parse_host_port
from flexwire.tap.rehearsal import RehearsalPlan
from tests.kafka.secured import LOOPBACK
from tests.kafka.tapping import running
from tests.kafka.trial.rows import CAPTURED, JUDGED, read_rows
from tests.kafka.trial.trying import STEPS, try_all
from tools.broker import broker
from tools.clients.roster import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.kafka.trial.trying import Outcome
    from tools.clients.installing import Program
    from tools.clients.roster import Client


def main(asked: Collection[str]) -> None:
    """Rehearse every release with all clients, or with those that were requested."""
    chosen = [one for one in CLIENTS if not asked or any(name in str(one) for name in asked)]
    seed = time.time_ns()
    _say(f"the order of clients has the seed {seed}")
    random.Random(seed).shuffle(chosen)
    began = time.monotonic()
    programs = {client: client.way.bring() for client in chosen}
    happened = {row.client: row.happened for row in read_rows()}
    equal = 0
    for release in JUDGED:
        _say(f"Kafka {release}, rehearsed on {CAPTURED}")
        for client, outcome in _rehearsed(programs, release).items():
            real = happened[client][release]
            equal += _fate(outcome) == _fate(real)
            if _fate(outcome) != _fate(real):
                _say(f"other: {client} on {release}: rehearsed {outcome}, and really {real}")
    tried = len(chosen) * len(JUDGED)
    _say(f"{equal} of {tried} as with the release, in {time.monotonic() - began:.0f} s")
    sys.exit(equal < tried)


def _rehearsed(programs: dict[Client, Program], release: str) -> dict[str, Outcome]:
    with (
        tempfile.TemporaryDirectory(prefix="flexwire-rehearsal-") as place,
        broker(CAPTURED, Path(place, CAPTURED)) as address,
    ):
        upstream, plan = parse_host_port(address), RehearsalPlan(release)
        tap = Tap((LOOPBACK, 0), upstream, Path(place, "tap"), rehearsal=plan)
        with running([tap]):
            found = try_all(programs, address, str(tap.listen_address), _say)
            if tap.rehearsal is None or tap.rehearsal.over is not None:
                raise RuntimeError(f"the rehearsal of {release} ended before its clients")
            failed = tap.rehearsal.failed
        said = RehearsedTraffic()
        for path in tap.capture_paths:
            for request in read_rehearsed(path):
                said.see(request)
        _check_captures(failed, said)
        return found


def _check_captures(failed: dict[Any, str], said: RehearsedTraffic) -> None:
    """Raise an error unless captures and tap name the same refused clients."""
    by_captures = {
        (client.host, client.client_id): refusals.requests[0]
        for client, refusals in said.refused.items()
    }
    if by_captures != failed:
        sys.exit(f"the captures say {by_captures}, and the tap {failed}")
    _say(f"{len(failed)} clients were refused, and the captures say so of the same ones")


def _fate(outcome: Outcome) -> dict[str, bool | None]:
    """Return which steps worked; None for a step that the client did not reach."""
    return {name: None if outcome[name] is None else not outcome[name] for name in STEPS}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
