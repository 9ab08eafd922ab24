"""A saved state contains every attribute and no secret, and a damaged state is refused.

`test_going_on.py` checks that an analysis continues from a saved state as if the analysis had never
ended.
"""

from __future__ import annotations

import hashlib
import random
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cramjam import zstd

from flexwire.capture.pairing.pairing import Pairing
from flexwire.capture.pairing.saved import (
    AskedRecord,
    EarlyRecord,
    PendingRecord,
    pairing_of,
    records_of,
)
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.saved import SavedRecord, assembler_of, record_of
from flexwire.protocol.credentials import credential_fields
from flexwire.schema.catalog import catalog
from flexwire.survey import saved_state, withholding
from flexwire.survey.saved_state import SavedState, SavedStateError
from flexwire.survey.survey import STATE, Surveyor, survey_after
from tests.capture.interleaved import SHAPES, write_capture
from tests.capture.traffic import (
    CLIENT,
    CONNECTION,
    SERVER,
    framed,
    handshake,
    request,
    response,
    tcp,
)
from tests.searching import in_make_long, times
from tests.tables.test_going_on import asked_for, in_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.saved import AssemblerRecord

SECRET = b"the password is swordfish"
PAIRING_GETS = {
    "show_credentials",
    "_names",
    "_numbers",
    "_states",
    "_kept",
    "_clients",
    "_objects",
}
# These attributes are not saved: nothing is known about them between two captures.
PAIRING_BEGINS = {"_free", "_waiting", "_most_clients", "_forgotten", "_early"}


def state_of(tmp_path: Path, name: str = "EVERYTHING", seed: int = 1) -> tuple[bytes, Any]:
    """Return the state after half of a capture, and a request for the other half."""
    shape = replace(SHAPES[name], files=6, compressed=0.0, torn=0.0)
    files = in_time(write_capture(tmp_path / "capture", seed, shape))
    asked = asked_for(files[:3], "first", None, tmp_path)
    found = Surveyor(asked, lambda *_: None).run()
    assert found.state is not None
    (tmp_path / "first").mkdir(exist_ok=True)
    (tmp_path / "first" / STATE).write_bytes(found.state)
    return found.state, asked_for(files[3:], "second", "first", tmp_path)


def content_of(data: bytes) -> bytes:
    return bytes(zstd.decompress(data[saved_state._HEAD.size :]))


def with_content(content: bytes) -> bytes:
    """Return a state with arbitrary content and a valid header."""
    packed = bytes(zstd.compress(content, 1))
    digest = hashlib.sha256(packed).digest()[:16]
    head = saved_state._HEAD.pack(
        saved_state._MAGIC, saved_state._FORMAT, saved_state.layout(), digest, len(content)
    )
    return head + packed


def test_a_state_that_was_read_is_written_the_same_again(tmp_path: Path) -> None:
    for name in ("EVERYTHING", "STRANGE", "LOSSY", "MID_STREAM"):
        data, _ = state_of(tmp_path / name, name)
        again = SavedState.from_bytes(data).to_bytes()
        assert content_of(again) == content_of(data)
        assert again == data


def test_every_attribute_of_a_connection_is_in_its_record(tmp_path: Path) -> None:
    """Every attribute is saved, or is known to begin empty in each analysis."""
    state = SavedState.from_bytes(state_of(tmp_path)[0])
    seen: dict[str, set[str]] = {}
    for assembler in state.flows.assemblers().values():
        for one in objects_in(assembler):
            seen.setdefault(type(one).__name__, set()).update(vars(one))
    known = {name for kind in subclasses() for name in kind.__struct_fields__}
    others = {
        "FrameAssembler": {"key", "limit", "_framer", "_endless", "brokers", "_ended"},
        "OpenConnection": {
            *("course", "cuts", "endless", "limit", "_broker", "_account", "_roles", "_halves"),
            *("_waiting", "_beginning", "_held_back"),
        },
        "_DirectionState": set(),
        "Course": {"_reach", "_initial"},
        "_Reach": set(),
        "Account": {"_brokers", "_heads", "_frames", "_bytes", "_bytes_before"},
        "KafkaEvidence": set(),
        "Roles": {"_brokers", "_limit", "_held_bytes", "_sure"},
        "Stream": {"_pending_bytes"},
        "Framer": {"_begins", "_limit", "_found"},
        "PieceBuffer": {"pieces"},
        "PendingRequests": {"_known"},
        "FirstSegments": {"_segments", "_bytes"},
        "DelayedResponses": {"_frames", "_bytes"},
    }
    assert {*seen} <= {*others}
    for name, attributes in seen.items():
        assert {one for one in attributes - others[name] if one.lstrip("_") not in known} == set()
    assert vars(Pairing()).keys() == PAIRING_GETS | PAIRING_BEGINS


def subclasses() -> list[type[SavedRecord]]:
    return [*SavedRecord.__subclasses__()]


def objects_in(one: Any) -> Iterator[Any]:
    """Yield an object of the reassembly modules, and the objects in it."""
    if hasattr(one, "__dict__") and type(one).__module__.startswith("flexwire.capture.reassembly"):
        yield one
        for value in vars(one).values():
            yield from objects_in(value)
    elif isinstance(one, dict | list | tuple):
        for value in one.values() if isinstance(one, dict) else one:
            yield from objects_in(value)


def test_what_waits_goes_on_by_kernels_and_by_objects() -> None:
    asked = [
        AskedRecord(7, 100, -5, 3, 12, "app"),
        AskedRecord(8, 101, 2**31 - 1, 1, -1, None),
    ]
    records = [
        PendingRecord("a", True, False, "app", False, False, asked, []),
        PendingRecord("b", False, True, None, True, True, [asked[0]], []),
        PendingRecord("c", False, False, "", False, False, [], []),
    ]
    pairing = pairing_of(records, show_credentials=True)
    assert pairing.unanswered() == {"a": [7, 8], "b": [7]}
    assert records_of(pairing, ["a", "b", "c"]) == records
    assert [one.name for one in records_of(pairing, ["c"])] == ["c"]
    assert pairing.client_id("a") == "app"


def test_what_a_kernel_read_waits_under_the_same_ids_as_objects() -> None:
    asked = [AskedRecord(7, 100, number, 3, 12, "app") for number in (5, -5, -(2**31))]
    record = PendingRecord("a", True, False, "app", False, False, asked, [EarlyRecord(9, 101, -6)])
    pairing = pairing_of([record], show_credentials=True)
    # This is the state at the first frame that no kernel reads.
    pairing._to_objects(0)
    [found] = records_of(pairing, ["a"])
    assert found == msgspec.structs.replace(record, by_objects=True)


def half(segments: list[Segment]) -> AssemblerRecord:
    assembler = FrameAssembler()
    for segment in segments:
        assembler.push(segment)
    return record_of(assembler, "a.pcapng")


def secret_request() -> bytes:
    """Return a whole frame of a SaslAuthenticate request with a secret."""
    name = "SaslAuthenticateRequest"
    assert credential_fields(name)
    key = catalog().entry(name).api_key
    head = struct.pack(">hhih", key, 0, 3, 4) + b"test"
    return framed(head + struct.pack(">i", 64) + SECRET + bytes(64 - len(SECRET)))


def test_a_half_frame_that_may_hold_credentials_is_withheld() -> None:
    whole, plain = secret_request(), request(1)
    begun = [*handshake(), tcp(CLIENT, 1000, plain), tcp(SERVER, 5000, response(1))]
    at = 1000 + len(plain)
    cut = len(whole) - 3
    record = half([*begun, tcp(CLIENT, at, whole[:cut])])
    pending = [PendingRecord(CONNECTION, True, False, "test", False, False, [], [])]
    assert SECRET in msgspec.msgpack.encode(record)
    [shown] = withholding.withhold([record], pending, shows=True)
    assert shown == record
    [kept] = withholding.withhold([record], pending, shows=False)
    assert SECRET not in msgspec.msgpack.encode(kept)
    # The frame is returned when its remaining bytes arrive, and shows how much is missing.
    assembler = assembler_of(kept, 1 << 20, BrokerEnds())
    frames = assembler.push(tcp(CLIENT, at + cut, whole[cut:]))
    assert [(one.size, one.index) for one in frames] == [(len(whole), 1)]
    assert "bytes are missing" in (frames[0].error or "")
    assert SECRET not in frames[0].payload
    # The header of the frame is known.
    assert frames[0].payload == whole[4:18]


def test_bytes_that_nobody_understands_are_withheld_until_authentication_is_ruled_out() -> None:
    begun = [*handshake(), tcp(CLIENT, 1000, request(1)), tcp(SERVER, 5000, response(1))]
    at = 1000 + len(request(1))
    token = struct.pack(">i", 200) + b"\0user\0" + SECRET
    # The capture contains a gap, and then a token that is not a request.
    records = [
        half([*begun, tcp(CLIENT, at, token)]),
        half([*begun, tcp(CLIENT, at + 10, SECRET)]),
        half([tcp(CLIENT, 1000, token)]),
    ]
    for is_open, is_guarded in ((False, False), (True, True), (False, True)):
        known = [PendingRecord(CONNECTION, is_open, is_guarded, None, False, False, [], [])]
        for record in records:
            [kept] = withholding.withhold([record], known, shows=False)
            assert SECRET in msgspec.msgpack.encode(record)
            assert SECRET not in msgspec.msgpack.encode(kept)
            assembler_of(kept, 1 << 20, BrokerEnds())
    known = [PendingRecord(CONNECTION, True, False, None, False, False, [], [])]
    assert withholding.withhold(records[:2], known, shows=False) == records[:2]


def test_the_largest_half_frames_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withholding, "MOST_HELD_BYTES", 500)
    begun = [*handshake(), tcp(CLIENT, 1000, request(1)), tcp(SERVER, 5000, response(1))]
    at = 1000 + len(request(1))
    small, large = (half([*begun, tcp(CLIENT, at, request(2, size)[:-1])]) for size in (100, 450))
    known = [PendingRecord(CONNECTION, True, False, None, False, False, [], [])]
    kept = withholding.withhold([large, small], known, shows=True)
    assert kept[1] == small
    assert len(msgspec.msgpack.encode(kept[0])) < len(msgspec.msgpack.encode(large)) - 400


def test_what_is_no_state_of_this_release_is_refused(tmp_path: Path) -> None:
    data, _ = state_of(tmp_path, "CLEAN")
    head = saved_state._HEAD.size
    layout = len(saved_state._MAGIC) + 1
    wrong = {
        "cut off": data[: head - 1],
        "not a saved state of flexwire": b"F" + data[1:],
        "another release": data[:layout] + bytes(8) + data[layout + 8 :],
        "damaged": data[:-1] + bytes([data[-1] ^ 1]),
        "at most": data[: head - 8] + b"\x7f" + bytes(7) + data[head:],
    }
    for reason, other in wrong.items():
        with pytest.raises(SavedStateError, match=reason):
            SavedState.from_bytes(other)
    for content in (b"", b"\x90", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000):
        with pytest.raises(SavedStateError, match="damaged"):
            SavedState.from_bytes(with_content(content))


NUMBERS = (0, 1, -1, 4, 2**31 - 1, -(2**31), 2**32, 2**61, 2**63 - 1, -(2**63))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["STRANGE", *in_make_long("EVERYTHING", "MID_STREAM")])
def test_a_state_that_somebody_else_wrote_is_refused_or_behaves(name: str, tmp_path: Path) -> None:
    data, asked = state_of(tmp_path, name)
    source = random.Random(name)
    used = refused = 0
    for _ in range(times(40)):
        tree = msgspec.msgpack.decode(content_of(data))
        for _ in range(source.randrange(1, 4)):
            damage(source, tree)
        changed = with_content(msgspec.msgpack.encode(tree))
        (tmp_path / "first" / STATE).write_bytes(changed)
        found = survey_after(
            asked, lambda request, state: Surveyor(request, lambda *_: None, before=state).run()
        )
        refused += found.begins_anew is not None
        used += found.begins_anew is None
    assert used
    assert refused


def damage(source: random.Random, tree: Any) -> None:
    """Change a leaf of a tree: a number, a string or bytes."""
    at = tree
    while True:
        places = [*at] if isinstance(at, dict) else [*range(len(at))]
        places = [place for place in places if at[place] not in ([], {})]
        if not places:
            return
        place = source.choice(places)
        if not isinstance(at[place], dict | list):
            break
        at = at[place]
    value = at[place]
    if isinstance(value, bool):
        at[place] = not value
    elif isinstance(value, int):
        at[place] = source.choice([*NUMBERS, value + 1, value - 1])
    elif isinstance(value, bytes):
        at[place] = source.choice([b"", value[:-1], value + b"\0", bytes(len(value))])
    else:
        at[place] = source.choice([None, "", "x", 0])


def test_a_state_is_for_its_own_run(tmp_path: Path) -> None:
    data, asked = state_of(tmp_path, "CLEAN")
    saved = SavedState.from_bytes(data)
    assert {*saved.began.values()} == {"first"}
    found = Surveyor(asked, lambda *_: None, before=data).run()
    runs = {*SavedState.from_bytes(found.state or b"").began.values()}
    assert runs <= {"first", "second"}
    assert runs


def test_a_verdict_counts_what_was_sent_before_a_pause() -> None:
    assembler = FrameAssembler()
    for segment in (*handshake(), tcp(SERVER, 5000, response(1), begins="response")):
        assembler.push(segment)
    [first] = assembler.pause()
    assert (first.response_bytes, first.is_kafka) == (len(response(1)), True)
    assert assembler.pause() == []
    assembler.push(tcp(CLIENT, 1000, acknowledgment=5000 + len(response(1)), at=7))
    [second] = assembler.pause()
    assert (second.response_bytes, second.first_us, second.is_kafka) == (0, 7, True)
    assert second.evidence == first.evidence


def test_a_stream_goes_on_after_what_it_has_given_out() -> None:
    begun = [*handshake(), tcp(CLIENT, 1000, request(1)), tcp(SERVER, 5000, response(1))]
    record = half([*begun, tcp(CLIENT, 1100, b"beyond a gap")])
    [connection] = record.open
    stream = connection.request.stream
    [piece] = stream.pending
    assembler_of(record, 1 << 20, BrokerEnds())
    for position in (stream.next, stream.next - 1):
        stream.pending = [msgspec.structs.replace(piece, position=position)]
        with pytest.raises(ValueError, match="bytes of a connection"):
            assembler_of(record, 1 << 20, BrokerEnds())


def test_what_clients_said_and_names_of_topics_go_on(tmp_path: Path) -> None:
    data, asked = state_of(tmp_path, "CLEAN")
    saved = SavedState.from_bytes(data)
    assert saved.software
    assert saved.names
    found = Surveyor(asked, lambda *_: None, before=data).run()
    rows = {one.connection: one for one in found.connections}
    told = {name: said[1] for name, said in saved.software.items() if name in rows}
    assert told
    for name, software in told.items():
        assert (rows[name].client_software_name, rows[name].client_software_version) == software
    # Names that are already known are not new.
    assert saved.names.keys().isdisjoint(found.topic_names)
    again = SavedState.from_bytes(found.state or b"")
    assert saved.names.items() <= again.names.items()
    assert {name: again.software[name] for name in again.software.keys() & told.keys()}
