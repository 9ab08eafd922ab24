"""With a key log, TLS is decrypted: each sent byte is in its place, or counts as missing."""

from __future__ import annotations

import random
import ssl
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files import merged_packets
from flexwire.capture.files.links import Segment, read_segments
from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import read_packets
from flexwire.capture.reassembly.assembly import ConnectionShare, FrameAssembler, connection_key
from flexwire.capture.tls import KeyLog, OpenedCaptures, open_captures
from flexwire.capture.tls.captures import open_sources
from flexwire.capture.tls.connections import NO_HANDSHAKE, TlsCounts
from flexwire.capture.tls.decryption import NO_SECRET, NOT_WHOLE, NOTHING, RENEGOTIATED
from flexwire.capture.tls.records import DOES_NOT_FIT
from flexwire.errors import CaptureError, FlexwireError, MissingExtraError
from flexwire.storage.file_search import list_captures
from flexwire.wire.segment_layout import ACK, FIN, MODULUS, RST, SYN
from tests.capture.traffic import enhanced, interface, request, response, section
from tests.tls import Authority
from tests.tls_made import made_1_3, renegotiated_1_2
from tests.tls_streams import NEAR, Conversation, capture, contexts, converse, packets

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tls_streams import Flight

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
OPENED = [
    (V13, None),
    (V12, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (V12, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (V12, "ECDHE-ECDSA-CHACHA20-POLY1305"),
]
CBC = "ECDHE-ECDSA-AES128-SHA256"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def exchanges(seed: int, count: int = 12) -> list[Flight]:
    chosen = random.Random(seed)
    made: list[Flight] = []
    for number in range(count):
        made += [
            ("request", request(number, chosen.randrange(3000))),
            ("response", response(number, chosen.randrange(20_000))),
        ]
    return made


def opened(tmp_path: Path, found: list[bytes], keys: bytes | Path) -> OpenedCaptures:
    """Change packets. The key log is a file, or the secrets are in the capture."""
    log = KeyLog()
    if not isinstance(keys, bytes):
        log.add_file(keys)
    secrets = keys if isinstance(keys, bytes) else None
    path = capture(tmp_path / "capture.pcapng", found, secrets=secrets)
    return open_captures([str(path)], tmp_path / f"out-{random.randrange(1 << 60)}", log)


def placed(done: OpenedCaptures) -> dict[str, dict[int, bytes]]:
    """Return the sent bytes of each end, each part at its place in the stream."""
    starts: dict[str, int] = {}
    parts: dict[str, dict[int, bytes]] = {"request": {}, "response": {}}
    for path in done.paths:
        for segment in read_segments(path):
            assert isinstance(segment, Segment)
            end = "response" if segment.source.startswith("10.0.0.1:") else "request"
            if segment.flags & SYN:
                starts[end] = segment.sequence + 1
            elif segment.payload:
                place = (segment.sequence - starts[end]) % MODULUS
                parts[end][place] = segment.payload
    return parts


def streams(done: OpenedCaptures) -> dict[str, bytes]:
    return {
        end: b"".join(parts[place] for place in sorted(parts))
        for end, parts in placed(done).items()
    }


def raw(path: Path) -> list[bytes]:
    return [one.data for one in read_packets(path) if isinstance(one, CapturedPacket)]


@pytest.mark.parametrize(("version", "ciphers"), OPENED)
def test_what_was_sent_is_read_however_it_was_cut(
    tmp_path: Path, authority: Authority, version: ssl.TLSVersion, ciphers: str | None
) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", version, ciphers)
    made, _ = converse(near, far, exchanges(1))
    for seed, most, swaps in ((0, 1400, False), (1, 1400, True), (2, 90, False), (3, 65000, False)):
        found = packets(made.flights, seed=seed, most=most, swaps=swaps, syn=seed != 0)
        done = opened(tmp_path, found, tmp_path / "keys.log")
        assert streams(done) == made.sent
        assert (done.counts.opened, done.counts.connections) == (1, 1)
        assert done.counts.plain_bytes == sum(map(len, made.sent.values()))
        assert (done.counts.lost_bytes, done.counts.unread_bytes) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "ciphers"), OPENED)
def test_after_a_loss_everything_is_in_its_place(
    tmp_path: Path, authority: Authority, version: ssl.TLSVersion, ciphers: str | None
) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", version, ciphers)
    # The last bytes are not lost, so the size of the gap before them is known.
    last: list[Flight] = [("request", request(99)), ("response", response(99))]
    made, _ = converse(near, far, exchanges(2) + last, ends=())
    first = sum(len(packets([one], most=800, syn=False, ending=())) for one in made.flights[:5])
    for seed in range(6):
        every = len(packets(made.flights, seed=seed, most=800))
        lost = set(random.Random(seed).sample(range(first + 12, every - 30), 4))
        found = packets(made.flights, seed=seed, most=800, lost=lost, ending=())
        done = opened(tmp_path, found, tmp_path / "keys.log")
        assert done.counts.lost_bytes > 0
        total = 0
        for end, parts in placed(done).items():
            for place, data in parts.items():
                assert made.sent[end][place : place + len(data)] == data
                total += len(data)
        assert total + done.counts.lost_bytes == sum(map(len, made.sent.values()))
        assert done.counts.plain_bytes == total
        assert done.counts.opened == 1


def by_key(done: OpenedCaptures) -> dict[str, list[Segment | bytes]]:
    """Return the segments of each address pair, in order. The key of all other packets is None."""
    found: dict[str, list[Segment | bytes]] = {}
    for path in done.paths:
        for one in read_segments(path):
            if isinstance(one, Segment):
                found.setdefault(connection_key(one), []).append(one)
            else:
                found.setdefault("", []).append(one.data)
    return found


def test_shares_of_the_connections_are_together_the_whole(
    tmp_path: Path, authority: Authority
) -> None:
    logged = contexts(authority, tmp_path / "keys.log", V13)
    plain, silent = exchanges(3, 4), contexts(authority, None, V13)
    flights = [
        converse(*(silent if number == 6 else logged), plain)[0].flights for number in range(7)
    ]
    talks = [
        packets(
            said,
            seed=number,
            near=NEAR._replace(port=50_000 + number),
            lost={40} if number == 5 else set(),
        )
        for number, said in enumerate([*flights, plain])
    ]
    source, mixed = random.Random(8), [b"no packet of IP"]
    while any(talks):
        mixed.append(source.choice([talk for talk in talks if talk]).pop(0))
    half = len(mixed) // 2
    for number, some in enumerate((mixed[:half], mixed[half:])):
        capture(tmp_path / f"{number}.pcapng", some, start=number * half)
    with (tmp_path / "1.pcapng").open("ab") as file:
        file.write(b"cut off")
    files = list_captures([tmp_path / "0.pcapng", tmp_path / "1.pcapng"])

    def opened_by(share: ConnectionShare) -> OpenedCaptures:
        log = KeyLog()
        log.add_file(tmp_path / "keys.log")
        return open_sources(files, tmp_path / "-".join(map(str, share)), log, share)

    whole, counts, parts = opened_by(ConnectionShare(0, 1)), TlsCounts(), 0
    found: dict[str, list[Segment | bytes]] = {}
    for number in range(3):
        done = opened_by(ConnectionShare(number, 3))
        counts.add(done.counts)
        assert found.keys().isdisjoint(by_key(done))
        found |= by_key(done)
        parts += done.counts.connections > 0
    assert counts == whole.counts
    assert (counts.opened, counts.connections, len(counts.damaged)) == (6, 7, 1)
    assert counts.unopened == {NO_SECRET: 1}
    assert found == by_key(whole)
    assert found[""] == [b"no packet of IP"]
    assert parts > 1


def test_captures_that_are_opened_again_give_the_same_bytes(
    tmp_path: Path, authority: Authority
) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", V13)
    found = packets(converse(near, far, exchanges(1))[0].flights)
    first, again = (opened(tmp_path, found, tmp_path / "keys.log") for _ in range(2))
    assert first.counts.opened == 1
    assert [path.read_bytes() for path in first.paths] == [
        path.read_bytes() for path in again.paths
    ]


@pytest.mark.parametrize("version", [V12, V13])
def test_what_is_lost_of_the_handshake_is_not_missed(
    tmp_path: Path, authority: Authority, version: ssl.TLSVersion
) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", version)
    made, _ = converse(near, far, exchanges(14, 2))
    # Packets ``first`` to ``after`` contain the client's bytes after its ClientHello, up to its
    # first request.
    first, after = (
        len(packets(made.flights[:end], syn=False, ending=(), most=900)) for end in (2, 3)
    )
    lost = set(range(first, after))
    done = opened(tmp_path, packets(made.flights, lost=lost, most=900), tmp_path / "keys.log")
    assert streams(done) == made.sent
    assert (done.counts.opened, done.counts.lost_bytes) == (1, 0)


ENDINGS = {
    "the client's FIN": (("request", FIN | ACK), ("response", FIN | ACK), ("request", ACK)),
    "the broker's FIN": (("response", FIN | ACK), ("request", FIN | ACK), ("response", ACK)),
    "the client's RST": (("request", RST | ACK),),
    "the broker's RST": (("response", RST | ACK),),
    "neither": (),
}
CLOSE_NOTIFY, INTERNAL_ERROR = b"\x01\x00", b"\x02\x50"


def closing(done: OpenedCaptures) -> tuple[str | None, bool]:
    """Return the end that closed the connection, and whether it sent a reset."""
    assembler = FrameAssembler()
    for path in done.paths:
        for segment in read_segments(path):
            assert isinstance(segment, Segment)
            assembler.push(segment)
    assembler.finish()
    (one,) = assembler.ended()
    return one.closed_by, one.reset


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("order", [(), (0,), (1,), (0, 1), (1, 0)], ids=str)
def test_the_end_that_says_so_first_closes_the_connection(
    tmp_path: Path, authority: Authority, order: tuple[int, ...], ending: str
) -> None:
    both = "request", "response"
    ends = tuple(both[one] for one in order)
    in_tcp = ENDINGS[ending]
    first = (*ends, *(end for end, _ in in_tcp), None)[0]
    by = {"request": "client", "response": "broker", None: None}[first]
    near, far = contexts(authority, tmp_path / "keys.log", ssl.TLSVersion.TLSv1_2)
    by_library, _ = converse(near, far, exchanges(20, 2), ends=ends)
    done = opened(tmp_path, packets(by_library.flights, ending=in_tcp), tmp_path / "keys.log")
    assert closing(done) == (by, "RST" in ending and not ends)
    for alert, is_clean in ((CLOSE_NOTIFY, True), (INTERNAL_ERROR, False)):
        alerts = [(end, alert) for end in ends]
        made = made_1_3(0x1301, exchanges(20, 2), updates=0, alerts=alerts)
        done = opened(tmp_path, packets(made.flights, ending=in_tcp), made.keylog)
        is_reset = "RST" in ending and not (ends and is_clean)
        assert closing(done) == (by, is_reset)


@pytest.mark.parametrize("suite", [0x1301, 0x1302, 0x1303])
def test_keys_that_are_updated_are_followed(tmp_path: Path, suite: int) -> None:
    made = made_1_3(suite, exchanges(3), updates=3)
    done = opened(tmp_path, packets(made.flights), made.keylog)
    assert streams(done) == made.sent
    assert done.counts.opened == 1


@pytest.mark.parametrize("version", [V12, V13])
def test_a_resumed_session_opens_too(
    tmp_path: Path, authority: Authority, version: ssl.TLSVersion
) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", version)
    one, session = converse(near, far, exchanges(4, 2))
    other, _ = converse(near, far, exchanges(5, 2), session=session)
    assert len(other.stream("response")[:700]) < len(one.stream("response"))
    done = opened(tmp_path, packets(other.flights), tmp_path / "keys.log")
    assert streams(done) == other.sent


def test_secrets_may_stand_in_the_capture(tmp_path: Path, authority: Authority) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", V13)
    made, _ = converse(near, far, exchanges(6))
    done = opened(tmp_path, packets(made.flights), (tmp_path / "keys.log").read_bytes())
    assert streams(done) == made.sent


def _unopened(
    tmp_path: Path, authority: Authority, case: str
) -> tuple[str, Conversation, list[bytes]]:
    version, ciphers = (V12, CBC) if case == "suite" else (V13 if "1.3" in case else V12, None)
    near, far = contexts(authority, tmp_path / "keys.log", version, ciphers)
    made, _ = converse(near, far, exchanges(7))
    path = tmp_path / "keys.log"
    found = packets(made.flights)
    reason = ""
    if case == "suite":
        reason = "the cipher suite 0xc023 is not supported"
    elif case == "no secret":
        path.write_text("# none\n", encoding="ascii")
        reason = NO_SECRET
    elif case.startswith("wrong"):
        lines = path.read_text(encoding="ascii").splitlines()
        words = [line.split() for line in lines if line[0] != "#"]
        path.write_text("".join(f"{a} {b} {'00' * (len(c) // 2)}\n" for a, b, c in words))
        reason = NOTHING if version is V13 else DOES_NOT_FIT
    elif case == "no handshake":
        late = [one for one in made.flights if one[1][0] == 23][3:]
        found, reason = packets(late, syn=False), NO_HANDSHAKE
    elif case == "no ServerHello":
        # The segments in the middle are missing. The segments before and after them were captured.
        every = packets(made.flights, syn=False, ending=())
        first = len(packets(made.flights[:1], syn=False, ending=()))
        found, reason = packets(made.flights, lost={first}), NOT_WHOLE
        assert len(found) == len(every) - 1 + 6
    return reason, made, found


@pytest.mark.parametrize(
    "case", ["suite", "no secret", "wrong", "wrong 1.3", "no handshake", "no ServerHello"]
)
def test_what_does_not_open_stays_and_is_counted(
    tmp_path: Path, authority: Authority, case: str
) -> None:
    reason, _, found = _unopened(tmp_path, authority, case)
    done = opened(tmp_path, found, tmp_path / "keys.log")
    assert dict(done.counts.unopened) == {reason: 1}
    assert (done.counts.opened, done.counts.plain_bytes) == (0, 0)
    assert [path.name for path in done.paths] == ["others.pcapng"]
    assert raw(done.paths[0]) == found


@pytest.mark.parametrize("by_session", [False, True])
def test_what_is_negotiated_anew_is_opened_up_to_there(tmp_path: Path, *, by_session: bool) -> None:
    made = renegotiated_1_2(exchanges(8, 3), by_session=by_session)
    done = opened(tmp_path, packets(made.flights), made.keylog)
    assert dict(done.counts.partly) == {RENEGOTIATED: 1}
    assert streams(done) == made.sent


def test_connections_do_not_disturb_each_other(tmp_path: Path, authority: Authority) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", V13)
    one, _ = converse(near, far, exchanges(9, 4))
    other, _ = converse(near, far, exchanges(10, 4))
    plain = packets([("request", request(1)), ("response", response(1))])
    found = [*packets(one.flights), b"no packet at all"]
    again = packets(other.flights, start=700_000)
    done = opened(tmp_path, found + again, tmp_path / "keys.log")
    assert done.counts.opened == 2
    assert done.counts.packets == len(found) + len(again)
    assert raw(done.paths[-1]) == [b"no packet at all"]
    done = opened(tmp_path, plain, tmp_path / "keys.log")
    assert done.counts.connections == 0
    assert raw(done.paths[0]) == plain


def test_a_connection_that_many_files_share_is_opened(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_packets, "MOST_OPEN", 3)
    monkeypatch.setattr(merged_packets, "bytes_ahead", lambda _among: 5_000)
    made, _ = converse(*contexts(authority, tmp_path / "keys.log", V13), exchanges(11))
    blocks = [
        enhanced(packet, 1_700_000_000_000_000 + number * 1000)
        for number, packet in enumerate(packets(made.flights))
    ]
    files = [tmp_path / f"{number}.pcapng" for number in range(8)]
    for number, file in enumerate(files):
        file.write_bytes(section() + interface(101) + b"".join(blocks[number :: len(files)]))
    keys = KeyLog()
    keys.add_file(tmp_path / "keys.log")
    done = open_captures(map(str, files), tmp_path / "out", keys)
    assert done.counts.opened == 1
    assert streams(done) == made.sent


def test_hostile_bytes_give_what_was_sent_or_nothing(tmp_path: Path, authority: Authority) -> None:
    for version in (V12, V13):
        near, far = contexts(authority, tmp_path / "keys.log", version)
        made, _ = converse(near, far, exchanges(11, 3))
        for seed in range(20):
            chosen = random.Random(seed)
            number = chosen.randrange(len(made.flights))
            end, data = made.flights[number]
            spoilt = bytearray(data)
            for _ in range(chosen.randint(1, 6)):
                spoilt[chosen.randrange(len(spoilt))] = chosen.randrange(256)
            cut = bytes(spoilt[: chosen.randint(1, len(spoilt))]) if seed % 3 == 0 else spoilt
            junk = chosen.randbytes(chosen.randint(0, 400)) if seed % 5 == 0 else b""
            flights = [*made.flights]
            flights[number] = (end, bytes(cut) + junk)
            done = opened(tmp_path, packets(flights, seed=seed), tmp_path / "keys.log")
            assert done.counts.connections <= 1
            for which, sent in streams(done).items():
                # The copied packets are TLS but do not belong to this connection.
                assert done.counts.plain_bytes == 0 or made.sent[which].startswith(sent)


def test_bytes_of_any_kind_raise_only_ours(tmp_path: Path, authority: Authority) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", V13)
    made, _ = converse(near, far, exchanges(12, 1))
    hello = made.flights[0]
    for seed in range(40):
        chosen = random.Random(seed)
        flights = [hello] if seed % 2 else []
        for _ in range(8):
            end = chosen.choice(["request", "response"])
            size = chosen.randrange(1 << 16)
            head = bytes([chosen.choice([20, 21, 22, 23, 99]), 3, 3]) + size.to_bytes(2)
            flights.append((end, head + chosen.randbytes(chosen.randrange(900))))
        lost = set(chosen.sample(range(12), seed % 3))
        done = opened(tmp_path, packets(flights, lost=lost), tmp_path / "keys.log")
        assert done.counts.opened + done.counts.partly.total() == 0


def test_only_the_owner_reads_what_is_written(tmp_path: Path, authority: Authority) -> None:
    near, far = contexts(authority, tmp_path / "keys.log", V13)
    made, _ = converse(near, far, exchanges(13, 1))
    done = opened(tmp_path, [*packets(made.flights), b"other"], tmp_path / "keys.log")
    assert len(done.paths) == 2
    for path in done.paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_key_log_is_read_line_by_line_and_never_shown(tmp_path: Path) -> None:
    log = KeyLog()
    good, secret = "ab" * 32, "cd" * 48
    lines = [f"{good} {secret}", good, f"{good} zz", f"{good[2:]} {secret}"]
    log.add("".join(f"CLIENT_RANDOM {line}\n" for line in lines).encode())
    log.add(f"# made by a test\n\nRSA 00 11\nWHAT {good} {secret}\n".encode())
    log.add(b"RSA Session-ID:aa Master-Key:bb\nRSA Session-ID:aa\n")
    assert (log.connections, log.strange_lines) == (1, 6)
    assert log.secrets_of(bytes.fromhex(good)) == {"CLIENT_RANDOM": bytes.fromhex(secret)}
    assert "cdcd" not in repr(log)
    assert "\\xcd" not in repr(log)
    path = tmp_path / "no.log"
    path.write_bytes(b"\x00\x01 what\nis this\n")
    with pytest.raises(CaptureError, match="expected key log lines"):
        log.add_file(path)
    with pytest.raises(CaptureError, match="cannot read the key log"):
        log.add_file(tmp_path)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(FlexwireError, match="expected a new or empty directory"):
        open_captures([], tmp_path / "full", KeyLog())


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'flexwire\[tls\]'"):
        open_captures([], tmp_path / "out", KeyLog())
