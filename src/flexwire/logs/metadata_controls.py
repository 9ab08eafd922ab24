"""What control records say of the quorum of a cluster's metadata: its version and its voters.

A leader writes them between the records of the state, and a snapshot repeats the last. Voters are
in records from kraft.version 1 on; before that they are in the configuration of each controller,
and the ids of those that a leader has are in the record with which it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import FlexwireError
from flexwire.logs.files import open_file
from flexwire.logs.metadata_log import batch_headers, controls_of
from flexwire.wire.batch_layout import CONTROL_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.protocol.record_types import ControlRecord
    from flexwire.storage.source import Source

LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS = "LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class Endpoint(NamedTuple):
    """A listener of a voter."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter; all but its id is null where only the leader's election names it."""

    voter: int
    directory_id: str | None = None
    endpoints: tuple[Endpoint, ...] | None = None
    least_kraft_version: int | None = None
    most_kraft_version: int | None = None


class QuorumRecord(NamedTuple):
    """What a control record says: a version, or voters; or why it is not known what it says.

    ``timestamp`` is in ms.
    """

    offset: int
    timestamp: int
    kind: str | None
    kraft_version: int | None = None
    voters: tuple[Voter, ...] | None = None
    error: str | None = None


def quorum_records(
    source: Source, start: int = 0, end: int | None = None
) -> Iterator[QuorumRecord]:
    """Give those of a segment or snapshot from one offset to before another, in order.

    A batch of which not all is before the ``end`` is left out, as it counts as a whole.
    """
    with open_file(source) as log:
        for place, _, attributes in batch_headers(log):
            is_within = place.base_offset >= start and (end is None or place.last_offset < end)
            if not (attributes & CONTROL_MASK and is_within):
                continue
            at = (place.base_offset, place.max_timestamp)
            try:
                controls = controls_of(log, place)
            except FlexwireError as error:
                yield QuorumRecord(*at, None, error=str(error))
                continue
            for number, one in enumerate(controls):
                said = _said(at[0] + number, at[1], one)
                if said is not None:
                    yield said


def _said(offset: int, timestamp: int, control: ControlRecord) -> QuorumRecord | None:
    """Give what one says; None for one that is not about the quorum."""
    told: dict[str, Any]
    told = {} if control.message is None else control.message.to_json(control.version)
    if control.name is None:
        error = f"control record type {control.type} is in no bundled release"
        return QuorumRecord(offset, timestamp, None, error=error)
    if control.name == KRAFT_VERSION:
        return QuorumRecord(offset, timestamp, KRAFT_VERSION, told["kRaftVersion"])
    if control.name == LEADER_CHANGE:
        voters = tuple(Voter(one["voterId"]) for one in told["voters"])
        return QuorumRecord(offset, timestamp, LEADER_CHANGE, voters=voters)
    if control.name == KRAFT_VOTERS:
        voters = tuple(map(_voter, told["voters"]))
        return QuorumRecord(offset, timestamp, KRAFT_VOTERS, voters=voters)
    return None


def _voter(told: dict[str, Any]) -> Voter:
    supported, directory = told["kRaftVersionFeature"], told["voterDirectoryId"]
    return Voter(
        told["voterId"],
        None if directory == _NO_ID else directory,
        tuple(Endpoint(one["name"], one["host"], one["port"]) for one in told["endpoints"]),
        supported["minSupportedVersion"],
        supported["maxSupportedVersion"],
    )
