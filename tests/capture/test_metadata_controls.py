"""Facts from control records about the quorum are in order, and missing facts are not guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.logs.metadata import QuorumRecord, Voter, VoterEndpoint, find_metadata, quorum_records
from tests.capture import log_vectors
from tests.capture.made_metadata import (
    PLACE,
    TIME,
    batch,
    elected,
    quorum,
    snapshot,
    value,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = value("NoOpRecord")


def said(path: Path, start: int = 0, end: int | None = None) -> list[QuorumRecord]:
    files = find_metadata(path)
    return [
        one
        for source in [*(source for _, source in files.snapshots), *files.segments]
        for one in quorum_records(source, start, end)
    ]


def voter(number: int) -> Voter:
    ends = (VoterEndpoint("CONTROLLER", f"c{number}", 9000 + number),)
    return Voter(number, PLACE, ends, 0, 1)


def test_versions_and_voters_in_order(tmp_path: Path) -> None:
    made = elected(0, 1, 2) + batch(1, [NOTHING] * 3)
    made += batch(4, quorum(1, 1, 2), is_control=True, time=TIME + 5)
    made += batch(6, quorum(None, 1), is_control=True) + batch(7, [NOTHING])
    write(tmp_path, {"0": made})
    everything = [
        QuorumRecord(0, TIME, "LEADER_CHANGE", voters=(Voter(1), Voter(2))),
        QuorumRecord(4, TIME + 5, "KRAFT_VERSION", 1),
        QuorumRecord(5, TIME + 5, "KRAFT_VOTERS", voters=(voter(1), voter(2))),
        QuorumRecord(6, TIME, "KRAFT_VOTERS", voters=(voter(1),)),
    ]
    assert said(tmp_path) == everything
    assert said(tmp_path, end=6) == everything[:3]
    # A batch counts as a whole, because Kafka writes both records together.
    assert said(tmp_path, end=5) == everything[:1]
    assert said(tmp_path, start=5) == everything[3:]


def test_a_snapshot_says_it_at_its_beginning(tmp_path: Path) -> None:
    write(tmp_path, {"9-1": snapshot([NOTHING], controls=quorum(1, 3))})
    assert [(one.kind, one.kraft_version) for one in said(tmp_path)] == [
        ("KRAFT_VERSION", 1),
        ("KRAFT_VOTERS", None),
    ]
    assert said(tmp_path)[1].voters == (voter(3),)


def test_what_cannot_be_read_is_told_in_its_place(tmp_path: Path) -> None:
    [(key, body)] = quorum(None, 1)
    of_later = batch(0, [(key, b"\0\x09" + body[2:])], is_control=True)
    cut = batch(1, [(key, body[:-3])], is_control=True)
    of_other = batch(2, [(b"\0\0\0\x2a", b"")], is_control=True)
    write(tmp_path, {"0": of_later + cut + of_other})
    found = said(tmp_path)
    assert [(one.offset, one.kind, one.voters) for one in found] == [
        (at, None, None) for at in range(3)
    ]
    assert "version 9" in str(found[0].error)
    assert "VotersRecord" in str(found[1].error)
    assert found[2].error == "no bundled release defines control record type 42"


def test_what_real_brokers_wrote(tmp_path: Path) -> None:
    log_vectors.write_all(tmp_path)
    for place, snapshots in (("4.4.0", 4), ("__cluster_metadata-0", 1)):
        found = said(tmp_path / place)
        assert not any(one.error for one in found)
        voters = [one.voters for one in found if one.kind == "KRAFT_VOTERS"]
        # Each snapshot contains this record, and the first leader writes it.
        assert len(voters) == snapshots + 1
        [one] = {*voters}
        assert one is not None
        assert [(each.voter, each.most_kraft_version) for each in one] == [(1, 1)]
        assert {one.kraft_version for one in found if one.kind == "KRAFT_VERSION"} == {1}
