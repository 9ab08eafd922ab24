"""Headers and pairs in columns equal those of objects, regardless of how frames are chunked."""

from __future__ import annotations

import pickle
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from flexwire.capture.pairing import pairing as turns_module
from flexwire.capture.pairing import state
from flexwire.capture.pairing.apis import api_table
from flexwire.capture.pairing.pairing import (
    PAIRED,
    Hindsight,
    Judgement,
    Pairing,
    RequestSummary,
    build_paired,
)
from flexwire.capture.reassembly import frames as gathering
from flexwire.capture.reassembly.connections import CapturedFrame
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.kernels import load_kernel
from flexwire.protocol.apis import is_released, request_entries
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.protocol.credentials import METADATA_TOPIC
from tests.capture.columns.conversing import (
    FETCH,
    HEARTBEAT,
    SASL_HANDSHAKE,
    conversations,
    heartbeat,
    judged,
    produce,
)
from tests.protocol.payloads import request_payload, response_payload
from tests.reference.frames import COLUMNS, paired_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexwire.capture.files.packets import Direction
    from flexwire.capture.reassembly.connections import CapturedConnection


def cut(frames: list[CapturedFrame], chance: random.Random) -> list[FrameColumns]:
    """Return the frames in chunks. In some chunks, the connections are renumbered."""
    chunks: list[FrameColumns] = []
    names: list[str] = []
    at = 0
    while at < len(frames):
        size = chance.choice([0, 1, 3, 50, 400])
        if chance.random() < 0.3:
            names = list(chance.sample(names, len(names)))
        chunks.append(FrameColumns.from_frames(frames[at : at + size], "a.pcapng", names))
        at += size
    return chunks


def told_of(parts: list[Pairing], connections: Iterable[CapturedConnection]) -> Hindsight:
    """Return the combined state of all parts. The same part may occur many times."""
    judgements = {
        one.connection: Judgement(one.is_kafka, one.reads_as_kafka, one.seen_from_start)
        for one in connections
    }
    unanswered: dict[str, set[int]] = {}
    early: dict[str, dict[int, RequestSummary]] = {}
    for found in (parts[-1].unanswered(), *(one.forgotten() for one in parts)):
        for name, indexes in found.items():
            unanswered.setdefault(name, set()).update(indexes)
    for one in parts:
        for name, said in one.early().items():
            early.setdefault(name, {}).update(said)
    return Hindsight(judgements, {name: sorted(one) for name, one in unanswered.items()}, early)


def same(pairing: Pairing) -> Pairing:
    return pairing


def in_columns(
    chunks: list[FrameColumns],
    connections: list[CapturedConnection],
    *,
    show_credentials: bool,
    resume: Callable[[Pairing], Pairing] = same,
) -> list[dict[str, Any]]:
    pairing, headers, parts = Pairing(show_credentials=show_credentials), [], []
    for one in chunks:
        parts.append(pairing)
        pairing = resume(pairing)
        headers.append(pairing.read_headers(one))
    told, rows = told_of([*parts, pairing], connections), []
    for frames, of_chunk in zip(chunks, headers, strict=True):
        batch = build_paired(frames, of_chunk, told, show_credentials=show_credentials)
        batch.validate(full=True)
        assert batch.schema == PAIRED
        assert PAIRED.names == list(COLUMNS)
        columns = [
            one.cast("int64") if name == "time" else one
            for name, one in zip(PAIRED.names, batch.columns, strict=True)
        ]
        values = zip(*(one.to_pylist() for one in columns), strict=True)
        rows += [dict(zip(PAIRED.names, one, strict=True)) for one in values]
    return rows


def pickled(pairing: Pairing) -> Pairing:
    restored = pickle.loads(pickle.dumps(pairing))  # noqa: S301 - this line also pickled the data
    assert isinstance(restored, Pairing)
    return restored


def assert_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        # The survey reads the client instance id. The columns of paired frames do not include it.
        columns = {name: value for name, value in other.items() if name != "client_instance_id"}
        assert one == columns, f"row {number}"


@pytest.fixture(params=["kernels", "objects"])
def with_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test twice: with kernels, and with Python objects."""
    if request.param == "objects":
        without_kernels(monkeypatch)
    else:
        assert load_kernel("pairing") is not None


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (turns_module, state, gathering):
        monkeypatch.setattr(module, "load_kernel", lambda _name: None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("with_kernels")
def test_any_chunks_of_any_conversations_are_read_as_by_the_objects(seed: int) -> None:
    frames = conversations(seed, 1500, 12)
    connections, show = judged(frames, seed), seed % 2 == 1
    expected = paired_rows(
        [("a.pcapng", one) for one in frames], connections, show_credentials=show
    )
    chunks = cut(frames, random.Random(seed))
    assert_rows(in_columns(chunks, connections, show_credentials=show), expected)
    found = in_columns(chunks, connections, show_credentials=show, resume=pickled)
    assert_rows(found, expected)


@pytest.mark.usefixtures("with_kernels")
def test_what_one_process_reads_with_kernels_another_goes_on_with_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = conversations(99, 1500, 12)
    expected = paired_rows([("a.pcapng", one) for one in frames], [])
    chunks = cut(frames, random.Random(99))
    seen = []

    def resume(pairing: Pairing) -> Pairing:
        seen.append(pairing)
        if len(seen) == len(chunks) // 3:
            without_kernels(monkeypatch)
        if len(seen) == len(chunks) * 2 // 3:
            monkeypatch.undo()
        return pickled(pairing)

    assert_rows(in_columns(chunks, [], show_credentials=False, resume=resume), expected)


def exchange(number: int, kind: str, payload: bytes) -> CapturedFrame:
    """Return a frame of the connection "a>b"."""
    direction: Direction = "request" if kind == "request" else "response"
    return CapturedFrame("a>b", direction, number, number, number, len(payload) + 4, payload)


@pytest.mark.slow
@pytest.mark.usefixtures("with_kernels")
def test_the_oldest_of_too_many_give_up() -> None:
    many = DEFAULT_IN_FLIGHT + 50
    asked = [exchange(one, "request", heartbeat(correlation_id=one % 70)) for one in range(many)]
    # The first request is forgotten, so its response answers the second request with the same id.
    answers = [
        exchange(one, "response", response_payload(HEARTBEAT, 4, correlation_id=3))
        for one in range(20)
    ]
    # Unpaired responses are dropped too: the first ones, not the last.
    stray = [
        exchange(20 + one, "response", (10**6 + max(0, one + 60 - many)).to_bytes(4, "big"))
        for one in range(many)
    ]
    late = [
        exchange(many + one, "request", heartbeat(correlation_id=10**6 + max(0, one - 30)))
        for one in range(90)
    ]
    # By their timestamps, the later frames were captured first, as in files that are out of order.
    late = [msgspec.structs.replace(one, timestamp_us=0, first_us=0) for one in late]
    frames = [*asked, *answers, *stray, *late]
    expected = paired_rows([("a.pcapng", one) for one in frames], [])
    for size in (len(frames), 4_001):
        chunks = [
            FrameColumns.from_frames(frames[at : at + size], "a.pcapng")
            for at in range(0, len(frames), size)
        ]
        resume = pickled if len(chunks) > 1 else same
        assert_rows(in_columns(chunks, [], show_credentials=False, resume=resume), expected)


@pytest.mark.usefixtures("with_kernels")
def test_an_ended_connection_leaves_what_was_not_answered_and_nothing_else() -> None:
    pairing = Pairing()
    size = len(pickle.dumps(pairing))
    frames = conversations(5, 1500, 12)
    for one in cut(frames, random.Random(5)):
        pairing.read_headers(one)
    unanswered = pairing.unanswered()
    early = pairing.early()
    for name in {one.connection for one in frames}:
        pairing.end(name)
    pairing.end("never seen")
    assert pairing.unanswered() == pairing.forgotten() == unanswered
    assert pairing.early() == early
    # If there are many client ids, the ones seen last are forgotten.
    assert len(pickle.dumps(pairing)) < size + 2500
    again = [one for one in frames if one.connection.startswith("10.0.0.9:50003")]
    chunk = FrameColumns.from_frames(again, "a.pcapng")
    found = build_paired(chunk, pairing.read_headers(chunk), Hindsight())
    # A slot that became free is used again.
    assert len(pairing._names) == 12
    expected = build_paired(chunk, Pairing().read_headers(chunk), Hindsight())
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.slow
@pytest.mark.usefixtures("with_kernels")
def test_many_client_ids_are_forgotten_once_nothing_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns_module, "_MANY_CLIENTS", 100)
    frames, pairing = [], []
    for one in range(3000):
        asked = heartbeat(correlation_id=one, client_id=f"client {one % 1500}")
        frames.append(exchange(one, "request", asked))
        if one % 3:
            answer = response_payload(HEARTBEAT, 4, correlation_id=one)
            frames.append(exchange(one, "response", answer))
    expected = paired_rows([("a.pcapng", one) for one in frames], [])
    chunks = [
        FrameColumns.from_frames(frames[at : at + 100], "a.pcapng")
        for at in range(0, len(frames), 100)
    ]

    def keep(one: Pairing) -> Pairing:
        pairing.append(one)
        return one

    assert_rows(in_columns(chunks, [], show_credentials=False, resume=keep), expected)
    # Every third request waits forever, with its client id.
    assert len(pairing[-1]._clients.texts) < 1400


def test_plain_frames_are_not_read_as_objects() -> None:
    frames = [
        exchange(one, "request", heartbeat(correlation_id=one, version=one % 5))
        for one in range(500)
    ]
    frames += [
        exchange(one, "response", response_payload(HEARTBEAT, 0, correlation_id=one))
        for one in range(500)
    ]
    frames += [exchange(500, "request", produce(9, -1)), exchange(501, "request", produce(3, 0))]
    chunk = FrameColumns.from_frames(frames, "a.pcapng")
    assert Pairing().read_headers(chunk).odd == {}
    odd = exchange(502, "request", heartbeat(unknown_tagged_fields={0: b""}))
    chunk = FrameColumns.from_frames([*frames, odd], "a.pcapng")
    assert list(Pairing().read_headers(chunk).odd) == [len(frames)]


@pytest.mark.slow
@pytest.mark.usefixtures("with_kernels")
def test_any_bytes_are_read_as_by_the_objects() -> None:
    chance = random.Random(7)
    plain = [heartbeat(), produce(9, 1), produce(3, 1), produce(0, 1)]
    plain.append(request_payload(FETCH, 13, METADATA_TOPIC.encode()))
    frames = []
    for number in range(1500):
        payload = bytearray(chance.choice(plain))
        for _ in range(chance.randrange(4)):
            payload[chance.randrange(len(payload))] = chance.choice([0, 1, 127, 128, 255])
        payload = payload[: chance.choice([len(payload), chance.randrange(len(payload))])]
        kind = chance.choice(["request", "request", "response"])
        one = exchange(number, kind, bytes(payload))
        frames.append(msgspec.structs.replace(one, connection=f"{number % 300}>b"))
    expected = paired_rows([("a.pcapng", one) for one in frames], [])
    chunks = cut(frames, chance)
    assert_rows(in_columns(chunks, [], show_credentials=False, resume=pickled), expected)


def test_every_version_of_every_request_is_read_as_by_the_objects() -> None:
    frames: list[CapturedFrame] = []
    table = api_table()
    for api_key in range(len(table.words)):
        for version in range(table.versions):
            if request_entries(api_key) and api_key != SASL_HANDSHAKE:
                asked = request_payload(api_key, version, bytes(8), correlation_id=len(frames))
                one = exchange(len(frames), "request", asked)
                # The effect of one request on authentication must not hide the effect of another.
                frames.append(msgspec.structs.replace(one, connection=f"{len(frames)}>b"))
    assert len(frames) > 1000
    expected = paired_rows([("a.pcapng", one) for one in frames], [])
    chunk = FrameColumns.from_frames(frames, "a.pcapng")
    assert_rows(in_columns([chunk], [], show_credentials=False), expected)
    is_plain = [is_released(one["api_key"], one["api_version"]) for one in expected]
    odd = set(Pairing().read_headers(chunk).odd)
    assert odd == {row for row, plain in enumerate(is_plain) if not plain}
