"""The results of ``make faults``: a row for each client and fault, kept in ``faults.jsonl``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kafka.trial.trying import COUNT, DID_NOT_END, STEP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.kafka.trial.trying import Outcome

RESULTS = Path(__file__).with_name("faults.jsonl")
RELEASE = "3.9.2"
"""All eight clients work with its brokers; with 4.0 and later, kafka-node does not."""


@dataclass(frozen=True, slots=True)
class TriedFault:
    """A fault that every client meets: its API, and the rest of its rule.

    If ``passes``, a client that follows Kafka's protocol about tagged fields and slow brokers does
    not notice the fault. Each step may take this many ``seconds``.
    """

    api: str
    rest: str
    passes: bool = False
    seconds: int = STEP_SECONDS

    @property
    def text(self) -> str:
        """Return the fault without its client."""
        return f"{self.api} {self.rest}"

    def for_client(self, client_id: str) -> str:
        """Return the fault for one client."""
        return f"{self.api} client={client_id} {self.rest}"


FAULTS = (
    TriedFault("*", "tag=10042=hello", passes=True),
    TriedFault("*", "delay=50ms before 20%", passes=True),
    TriedFault("*", "delay=50ms after 20%", passes=True),
    TriedFault("Fetch", "throttle=300ms once", passes=True),
    TriedFault("Metadata", "stale"),
    TriedFault("Metadata", "close once"),
    TriedFault("Metadata", "topic=* error=LEADER_NOT_AVAILABLE after once"),
    TriedFault("FindCoordinator", "error=COORDINATOR_NOT_AVAILABLE before once"),
    TriedFault("Produce", "error=NOT_LEADER_OR_FOLLOWER before once"),
    TriedFault("Produce", "error=NOT_LEADER_OR_FOLLOWER after once"),
    TriedFault("Produce", "close before once"),
    TriedFault("Produce", "close after once"),
    TriedFault("Produce", "cut after=10 once"),
    TriedFault("Fetch", "error=NOT_LEADER_OR_FOLLOWER after once"),
    TriedFault("Fetch", "cut after=60 once"),
    TriedFault("OffsetCommit", "error=COORDINATOR_LOAD_IN_PROGRESS before once"),
    TriedFault("OffsetCommit", "close after once"),
    TriedFault("Produce", "silence before once", seconds=90),
)


KNOWN = {
    # sarama reads a response header of nine bytes, whatever tags it has (getHeaderLength of
    # broker.go).
    ("sarama 1.61.1", "* tag=10042=hello"),
}
"""The clients and faults for which the client itself made a mistake."""


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One client with one fault: its report of each step, and the broker's records.

    ``done`` is how often the fault occurred. ``there`` is the number of the client's five records
    that exist, ``copies`` is the number of repeated records, and ``foreign`` contains records that
    nobody sent.
    """

    client: str
    fault: str
    outcome: Outcome
    done: int
    there: int
    copies: int
    foreign: int

    @property
    def wrong(self) -> str:
        """Return results that no client may have; an empty list means that all is correct."""
        said = " ".join(error or "" for error in self.outcome.values())
        if DID_NOT_END in said:
            return "it did not end"
        if self.foreign:
            return "the broker has a record that nobody sent"
        if self.outcome["produce"] == "" and self.there < COUNT:
            return "the broker does not have what it acknowledged"
        passes = any(fault.text == self.fault and fault.passes for fault in FAULTS)
        if passes and any(self.outcome.values()):
            return "it noticed what it should not"
        return ""


def read_fault_rows() -> list[FaultRow]:
    """Return the rows of the last run."""
    return [
        FaultRow(**json.loads(line)) for line in RESULTS.read_text(encoding="utf-8").splitlines()
    ]


def write_fault_rows(rows: Sequence[FaultRow]) -> None:
    """Write the rows, one row on each line."""
    RESULTS.write_text("".join(f"{json.dumps(asdict(row))}\n" for row in rows), encoding="utf-8")
