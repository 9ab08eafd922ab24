"""For any file, segments in columns and their notes equal those of Python objects."""

from __future__ import annotations

import gzip
import io
import pickle
import random
import struct
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.links import (
    Segment,
    Skipped,
    UnreadablePacketError,
    read_segment,
    read_segments,
)
from flexwire.capture.files.packets import CapturedPacket, SocketAddress, endpoints, tcp_packet
from flexwire.capture.reassembly import packet_scan, segments
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.capture.reassembly.packet_scan import DIFFERENT_REASONS, FURTHER_REASONS
from flexwire.capture.reassembly.segments import (
    FileNotes,
    FilePosition,
    SegmentColumns,
    SegmentReader,
)
from flexwire.kernels import load_kernel
from flexwire.wire.packet_layout import MAX_BLOCK_BYTES
from flexwire.wire.segment_layout import ACK
from tests.capture.columns.captures import LINKS, any_capture, made_capture, packet_on
from tests.capture.traffic import block, enhanced, interface, option, packet, pcap, section
from tests.reference.frames import Note, read_file, values_of
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEEDS = times(240)
SOUND = 20
# Sizes of reads: some are smaller than a block's head, than a packet, or than the file.
CHUNKS = [1, 7, 60, 100, 300, 1 << 20]

Row = tuple[Any, ...]


def reference(file: str) -> tuple[list[Row], list[Row]]:
    """Return the rows of segments and notes that the reference returns for a file."""
    segments, notes = read_file(file, show_credentials=True)
    # Columns leave the order of files to the survey module.
    rows = [
        (connection_key(one.segment), file, one.ordinal, *values_of(one.segment))
        for one in segments
    ]
    return rows, list(notes)


def segment_row(columns: SegmentColumns, row: int) -> Row:
    one = columns.segment(row)
    key = columns.keys[columns.key[row]]
    assert key == connection_key(one)
    # Other kernels rely on these columns.
    assert 0 <= columns.payload_at[row] <= len(columns.data) - columns.payload_size[row]
    return (key, columns.file, int(columns.ordinal[row]), *values_of(one))


def read(*readers: SegmentReader) -> tuple[list[Row], dict[str, FileNotes]]:
    """Return the segment rows of all readers in turn, and the notes about their files."""
    rows: list[Row] = []
    notes: dict[str, FileNotes] = {}
    for reader in readers:
        first = len(rows)
        for one in reader:
            if isinstance(one, SegmentColumns):
                rows += (segment_row(one, row) for row in range(len(one)))
            elif one.file in notes:
                notes[one.file].add(one)
            else:
                notes[one.file] = one
        assert reader.keys == list(dict.fromkeys(row[0] for row in rows[first:]))
    return rows, notes


def note_rows(notes: FileNotes) -> list[Row]:
    unused = notes.unused()
    return [
        Note(notes.file, None, notes.packets),
        *(Note(notes.file, *one, unused.samples.get(one[0])) for one in unused.packets.items()),
    ]


def reader(*files: str, **settings: Any) -> SegmentReader:
    return SegmentReader(files, **{"show_credentials": True, **settings})


def assert_equal(file: str, *readers: SegmentReader) -> None:
    rows, notes = read(*readers)
    expected_rows, expected_notes = reference(file)
    assert rows == expected_rows
    assert note_rows(notes[file]) == expected_notes


@pytest.fixture(params=["kernels", "objects"])
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Choose the reader. Without kernels, Python objects read the file."""
    if request.param == "objects":
        monkeypatch.setattr(packet_scan, "load_kernel", lambda _: None)
    else:
        assert load_kernel("packets") is not None
    return str(request.param)


@pytest.fixture
def capture(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a file and returns its name."""

    def write(data: bytes, name: str = "capture") -> str:
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return write


@pytest.mark.slow
@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("chunk_bytes", CHUNKS)
def test_any_capture_gives_what_the_reference_reads(
    capture: Callable[..., str], chunk_bytes: int
) -> None:
    for seed in range(SEEDS // len(CHUNKS)):
        file = capture(any_capture(random.Random(f"{seed} {chunk_bytes}")))
        assert_equal(file, reader(file, chunk_bytes=chunk_bytes))


@pytest.mark.long
@pytest.mark.slow
def test_many_captures_give_what_the_reference_reads(capture: Callable[..., str]) -> None:
    for seed in range(times(800)):
        source = random.Random(seed)
        file = capture(any_capture(source))
        assert_equal(file, reader(file, chunk_bytes=source.choice(CHUNKS)))


def odd(kind: int, body: bytes) -> bytes:
    """Return a block whose length, stated at both ends, is not a multiple of 4."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize(
    "bad",
    [
        odd(99, b"x"),
        odd(6, struct.pack("<IIIII", 0, 0, 7, 43, 43) + packet(b"abc") + b"x"),
        block(6, bytes(16)),
        block(3, b""),
        block(2, bytes(8)),
        struct.pack("<II", 99, 8),
        struct.pack("<III", 6, MAX_BLOCK_BYTES + 4, 0),
        block(6, struct.pack("<IIIII", 0, 0, 0, 2**32 - 1, 0) + packet()),
        enhanced(packet(), 2**63),
        enhanced(packet(), 253_402_300_800_000_000),
        enhanced(packet(), 253_402_300_799_999_999),
    ],
)
def test_a_bad_block_costs_what_it_costs_the_reference(
    capture: Callable[..., str], bad: bytes
) -> None:
    sound = enhanced(packet(b"abc"), 5)
    file = capture(section() + interface() + sound + bad + sound * 3)
    assert_equal(file, reader(file))


def positions(file: str, chunk_bytes: int) -> list[FilePosition]:
    """Return the position of a reader after each chunk, as another process receives it."""
    one = reader(file, chunk_bytes=chunk_bytes)
    found = [one.position for part in one if isinstance(part, SegmentColumns)]
    assert None not in found
    return [pickle.loads(pickle.dumps(position)) for position in found if position]  # noqa: S301


@pytest.mark.slow
@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("chunk_bytes", CHUNKS[:-1])
def test_reading_from_cut_to_cut_is_reading_through(
    capture: Callable[..., str], chunk_bytes: int
) -> None:
    several = 0
    for seed in range(SEEDS // len(CHUNKS)):
        source = random.Random(f"{seed} {chunk_bytes}")
        data = any_capture(source)
        if data[:2] == b"\x1f\x8b":
            continue
        file = capture(data)
        places = positions(file, chunk_bytes)
        cuts = sorted(source.sample(range(len(places)), min(3, len(places))))
        edges = [None, *(places[cut] for cut in cuts), None]
        parts = [
            reader(file, start=start, stop=stop, chunk_bytes=source.choice(CHUNKS))
            for start, stop in pairwise(edges)
        ]
        if places and places[-1].is_end and len(places) - 1 in cuts:
            # No segments and no notes follow the end of the file.
            assert not list(parts.pop())
        several += len(cuts) > 1
        assert_equal(file, *parts)
    assert several > SEEDS // len(CHUNKS) // 8


def test_parts_tell_as_many_reasons_apart_as_the_whole(capture: Callable[..., str]) -> None:
    head = section() + interface()
    # There are twice as many reasons as are counted separately. Each reason occurs twice, the
    # second time in another order.
    numbers = list(range(1, 2 * DIFFERENT_REASONS + 1))
    parts = [enhanced(packet(), 1, number) for number in (*numbers, *reversed(numbers))]
    sound = enhanced(packet(), 1)
    file = capture(head + sound + b"".join(one + sound for one in parts))
    places = positions(file, 200_000)
    assert len(places) > 2
    edges = [None, *places[:-1], None]
    assert_equal(file, *(reader(file, start=a, stop=b) for a, b in pairwise(edges)))
    (*_, last) = reader(file)
    assert isinstance(last, FileNotes)
    assert last.unused().packets[FURTHER_REASONS] == 2 * DIFFERENT_REASONS


def test_a_gzipped_file_is_cut_at_its_end_only(capture: Callable[..., str]) -> None:
    files = [capture(gzip.compress(pcap([packet()] * 100)), name) for name in "ab"]
    one = reader(*files, chunk_bytes=2000)
    found = []
    for part in one:
        found.append((type(part), one.position))
        if isinstance(part, FileNotes):
            assert one.position == FilePosition(part.file, is_end=True)
    assert (SegmentColumns, None) in found
    places = [place for kind, place in found if kind is FileNotes]
    rows, notes = read(reader(*files, stop=places[0]), reader(*files, start=places[0]))
    assert rows == [row for file in files for row in reference(file)[0]]
    assert [one.packets for one in notes.values()] == [100, 100]


def is_sound(linktype: int, data: bytes) -> bool:
    """Return whether a packet contains a segment without an IPv6 extension header before it."""
    try:
        read_segment(CapturedPacket(7, linktype, data, len(data), 0))
    except (Skipped, UnreadablePacketError):
        return False
    return not any(bytes([kind, 64]) in data for kind in (0, 43, 44, 51, 60, 135, 139))


def sound_packets(linktype: int) -> list[bytes]:
    source = random.Random(linktype)
    made = (packet_on(source, linktype, b"payload" * (n % 2)) for n in count())
    return list(islice((data for data in made if is_sound(linktype, data)), SOUND))


def sound_captures() -> Iterator[tuple[str, bytes, int]]:
    """Yield captures of valid packets, and how many of their blocks are left to Python objects."""
    linktypes = [one for one in dict.fromkeys(LINKS) if one not in {9, 147}]
    made = {linktype: sound_packets(linktype) for linktype in linktypes}
    for order in "<>":
        parts = [section(order)]
        for number, (linktype, packets) in enumerate(made.items()):
            parts.append(interface(linktype, order=order))
            parts += (enhanced(one, 7, number, order) for one in packets)
        yield f"{order} links", b"".join(parts), 1 + len(linktypes)
        for nanoseconds in (False, True):
            data = pcap(made[101], order=order, nanoseconds=nanoseconds)
            yield f"{order} pcap {nanoseconds}", data, 1
        for resolution in (0, 3, 6, 8, 9, 12, 0x94, 0x80 | 40):
            options = option(9, bytes([resolution]), order)
            options += option(14, struct.pack(f"{order}q", 60), order)
            one = section(order) + interface(101, options, order) + block(5, bytes(8), order)
            yield f"{order} clock {resolution}", one + enhanced(made[101][0], 5, 0, order), 2
        one = made[101][0]
        old = struct.pack(f"{order}HHIIII", 0, 0, 0, 44, len(one), len(one)) + one
        simple = struct.pack(f"{order}I", len(one)) + one
        blocks = block(2, old, order) + block(3, simple, order)
        yield f"{order} blocks", section(order) + interface(order=order) + blocks, 2


def test_the_kernel_takes_what_is_sound(
    capture: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    step = segments._FileReading._step

    def counted(reading: Any) -> None:
        nonlocal steps
        steps += 1
        step(reading)

    monkeypatch.setattr(segments._FileReading, "_step", counted)
    for what, data, for_objects in sound_captures():
        steps = 0
        file = capture(data)
        assert_equal(file, reader(file))
        # Python objects also read the end of the file.
        assert steps == for_objects + 1, what


def between(source: SocketAddress, destination: SocketAddress, sequence: int = 1) -> bytes:
    return tcp_packet(
        source, destination, sequence=sequence, acknowledgment=1, flags=ACK, payload=b"x"
    )


@pytest.mark.usefixtures("executor")
def test_one_reader_numbers_the_keys_of_all_its_files(capture: Callable[..., str]) -> None:
    far = SocketAddress(bytes([10, 0, 0, 1]), 9092)

    def packets(*ports: int) -> list[bytes]:
        ends = [SocketAddress(bytes([10, 0, 0, 2]), port) for port in ports]
        return [between(end, far) for end in ends] + [between(far, end) for end in ends]

    first = capture(pcap(packets(5, 6)), "first")
    second = capture(section() + interface() + b"".join(map(enhanced, packets(7, 6))), "second")
    one = reader(first, second)
    chunks = [part for part in one if isinstance(part, SegmentColumns)]
    assert [part.key.tolist() for part in chunks] == [[0, 1, 0, 1], [2, 1, 2, 1]]
    assert [part.is_high.tolist() for part in chunks] == [[True, True, False, False]] * 2
    assert one.keys == [f"10.0.0.1:9092|10.0.0.2:{port}" for port in (5, 6, 7)]
    assert all(part.keys is one.keys for part in chunks)


def test_each_file_of_many_has_its_own_notes(capture: Callable[..., str]) -> None:
    files = [capture(any_capture(random.Random(seed)), f"{seed}") for seed in range(60)]
    rows, notes = read(reader(*files))
    expected = [reference(file) for file in files]
    assert rows == [row for rows, _ in expected for row in rows]
    assert [note_rows(notes[file]) for file in files] == [told for _, told in expected]


@pytest.mark.slow
@pytest.mark.parametrize("place", [3, 5, 7, 9])
def test_damage_in_a_gzipped_file_costs_as_much_as_it_costs_the_reference(
    capture: Callable[..., str], place: int
) -> None:
    source = random.Random(place)
    # A few compressed bytes of the file hold many packets. The size of each read decides how many
    # packets zlib returns before it finds the damage.
    pool = [packet(source.randbytes(300)) for _ in range(50)]
    data = gzip.compress(pcap(source.choices(pool, k=6000)))
    at = len(data) * place // 10
    file = capture(data[:at] + bytes([data[at] ^ 0xFF, data[at + 1] ^ 0xFF]) + data[at + 2 :])
    for chunk_bytes in (100_000, 4 << 20):
        assert_equal(file, reader(file, chunk_bytes=chunk_bytes))


@pytest.mark.usefixtures("executor")
def test_files_that_are_not_captures_stop_no_others(
    capture: Callable[..., str], tmp_path: Path
) -> None:
    files = [
        str(tmp_path / "nowhere"),
        str(tmp_path),
        capture(b"GET / HTTP/1.1", "text"),
        capture(b"", "empty"),
        capture(gzip.compress(b"\x0a"), "short"),
        capture(b"\x1f\x8b broken", "broken"),
        capture(pcap([packet()]), "sound"),
    ]
    rows, notes = read(reader(*files))
    assert len(rows) == 1
    for file in files:
        assert note_rows(notes[file]) == reference(file)[1]
        assert (notes[file].error is None) == (file == files[-1])


@pytest.mark.slow
def test_flows_beyond_any_table_are_all_told_apart(capture: Callable[..., str]) -> None:
    far = SocketAddress(bytes([10, 0, 0, 1]), 9092)
    ends = [SocketAddress(bytes([10, 1, n >> 8, n & 255]), n) for n in range(5000)]
    ends += [SocketAddress(bytes(14) + struct.pack(">H", n), 5) for n in range(2, 2000)]
    wide = SocketAddress(bytes(15) + b"\x01", 9092)
    data = pcap(
        between(end, far if len(end.address) == 4 else wide, n)
        for n, end in enumerate([*ends, *reversed(ends)])
    )
    file = capture(data)
    assert_equal(file, reader(file, chunk_bytes=100_000))
    one = reader(file)
    list(one)
    assert len(one.keys) == len(ends)


def test_a_chunk_is_bounded_by_what_was_asked_for(capture: Callable[..., str]) -> None:
    chunk_bytes = 4096
    long_block = block(99, bytes(200_000))
    declared = struct.pack("<II", 6, MAX_BLOCK_BYTES) + bytes(100)
    sound = b"".join(enhanced(packet(b"x" * 500), n) for n in range(300))
    for order in (sound + long_block + sound, sound + declared, long_block * 3 + declared):
        file = capture(section() + interface() + order)
        one = reader(file, chunk_bytes=chunk_bytes)
        sizes = [len(part.data) for part in one if isinstance(part, SegmentColumns)]
        assert max(sizes, default=0) <= chunk_bytes
        assert_equal(file, reader(file, chunk_bytes=chunk_bytes))


def test_an_opener_gives_the_files(capture: Callable[..., str]) -> None:
    source = random.Random(3)
    captures = {f"far://{number}": made_capture(source) for number in range(30)}
    rows, _ = read(reader(*captures, opener=lambda file, start: io.BytesIO(captures[file][start:])))
    expected = []
    for file, data in captures.items():
        here = capture(data)
        expected += [(row[0], file, *row[2:]) for row in reference(here)[0]]
    assert rows == expected
    file = next(iter(captures))
    places = positions(capture(captures[file]), 100)
    start = places[0]._replace(file=file)
    parts = (
        reader(file, start=a, stop=b, opener=lambda file, start: io.BytesIO(captures[file][start:]))
        for a, b in ((None, start), (start, None))
    )
    assert read(*parts)[0] == [row for row in expected if row[1] == file]


def test_samples_are_kept_only_where_asked_for(capture: Callable[..., str]) -> None:
    file = capture(section() + interface() + enhanced(packet(), 1, 7))
    for shows in (False, True):
        (notes,) = SegmentReader([file], show_credentials=shows)
        assert isinstance(notes, FileNotes)
        assert bool(notes.unused().samples) == shows


def test_a_segment_that_misses_4_gib_is_given_as_such(capture: Callable[..., str]) -> None:
    one = bytearray(packet(b"hello"))
    one[2:4] = bytes(2)  # if this length is 0, the length on the network applies
    file = capture(section() + interface() + enhanced(bytes(one), 1, original=2**32 - 1))
    (columns, _) = reader(file)
    assert isinstance(columns, SegmentColumns)
    (item,) = read_segments(file)
    assert isinstance(item, Segment)
    assert columns.segment(0) == item
    assert columns.missing[0] == item.missing == 2**32 - 1 - len(one)


def test_objects_read_segments_of_any_number_of_connections(tmp_path: Path) -> None:
    # A kernel leaves the packets of an interface with such a clock to Python objects.
    data = section() + interface(options=option(9, bytes([0x80 | 60])))
    for port in range(1, 1500):
        ends = endpoints(("10.0.0.1", port), ("10.0.0.2", 9092))
        data += enhanced(
            tcp_packet(*ends, sequence=1, acknowledgment=1, flags=ACK, payload=b""), port
        )
    path = tmp_path / "many.pcapng"
    path.write_bytes(data)
    chunks = [one for one in SegmentReader([str(path)]) if isinstance(one, SegmentColumns)]
    found = [one.segment(row) for one in chunks for row in range(len(one))]
    assert found == list(read_segments(path))
    assert len({one.source for one in found}) == 1499
