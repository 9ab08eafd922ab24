"""A log is read piece by piece: whole batches, incomplete batches, and batches after damage."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import CaptureError, RecordError
from flexwire.logs import segments
from flexwire.logs.segments import (
    BatchPlace,
    Damage,
    base_offset_of,
    open_log,
    read_batch,
    walk,
)
from flexwire.records import decode_batches, search
from tests.capture.log_vectors import BASE, data_of, vectors, write
from tests.traced import traced

if TYPE_CHECKING:
    from pathlib import Path

LOG = f"orders-none-0/{BASE}.log"
LOGS = [path for path in vectors() if re.match(r"(orders|old).*\.log$", path)]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


class Made:
    """Read bytes as a log, batch by batch."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def walk(self, data: bytes) -> list[BatchPlace | Damage]:
        with open_log(write(self.root, LOG, data)) as log:
            return list(walk(log))

    def damages(self, data: bytes) -> list[Damage]:
        return [found for found in self.walk(data) if isinstance(found, Damage)]


@pytest.mark.parametrize("path", LOGS)
def test_a_walk_finds_what_reading_the_whole_gives(made: Made, path: str) -> None:
    data = data_of(path)
    with open_log(write(made.root, path)) as log:
        places = [place for place in walk(log) if isinstance(place, BatchPlace)]
        batches = [read_batch(log, place) for place in places]
    expected = list(decode_batches(data))
    assert batches == expected
    for place, batch in zip(places, expected, strict=True):
        assert place.last_offset == batch.last_offset
        assert place.max_timestamp == batch.max_timestamp
        assert (place.position, place.size, place.magic) == (
            batch.position,
            batch.size,
            batch.magic,
        )
        if batch.base_offset >= 0:
            assert place.base_offset == batch.base_offset


def test_every_cut_is_told_with_its_place(made: Made) -> None:
    data = data_of(LOG)[:1500]
    ends = [
        place.position + place.size for place in made.walk(data) if isinstance(place, BatchPlace)
    ]
    for cut in range(1, len(data), 7):
        found = made.walk(data[:cut])
        whole = max((end for end in ends if end <= cut), default=0)
        if whole == cut:
            assert all(isinstance(one, BatchPlace) for one in found)
        else:
            *before, last = found
            assert all(isinstance(one, BatchPlace) for one in before)
            assert isinstance(last, Damage)
            assert (last.position, last.size) == (whole, cut - whole)


@pytest.mark.parametrize("zeros", [1, 11, 12, 16, 17, 5000, 3 * 1024 * 1024])
def test_zeros_to_the_end_are_one_damage(made: Made, zeros: int) -> None:
    data = data_of(LOG)
    [damage] = made.damages(data + bytes(zeros))
    assert (damage.position, damage.size) == (len(data), zeros)
    assert "zero bytes up to the end" in damage.reason


@pytest.mark.parametrize(
    ("at", "byte", "word"), [(16, 9, "magic"), (11, 0, "batch length"), (8, 0x7F, "file ends")]
)
def test_reading_goes_on_behind_damage(made: Made, at: int, byte: int, word: str) -> None:
    data = bytearray(data_of(LOG))
    places = made.walk(bytes(data))
    at += places[1].position
    data[at : at + 1] = bytes([byte])
    if word == "batch length":
        data[at - 3 : at] = bytes(3)
    found = made.walk(bytes(data))
    assert found[0] == places[0]
    assert found[2:] == places[2:]
    damage = found[1]
    assert isinstance(damage, Damage)
    assert (damage.position, damage.size) == (places[1].position, places[1].size)
    assert word in damage.reason


def test_what_lies_between_whole_batches_is_skipped_however_long(made: Made) -> None:
    data = data_of(LOG)
    junk = random.Random(7).randbytes(3 * 1024 * 1024 + 17)
    places = made.walk(data)
    found = made.walk(data[:738] + junk + data[738:])
    assert found[0] == places[0]
    assert found[1][:2] == (738, len(junk))
    assert [one[1] for one in found[2:]] == [one[1] for one in places[1:]]


def test_a_wrong_crc_is_for_who_reads_the_batch(made: Made) -> None:
    data = bytearray(data_of(LOG))
    data[900] ^= 1
    with open_log(write(made.root, LOG, bytes(data))) as log:
        place = list(walk(log))[1]
        assert isinstance(place, BatchPlace)
        with pytest.raises(RecordError, match="crc") as caught:
            read_batch(log, place)
        assert caught.value.offset == place.position == 738
        assert read_batch(log, place, check_crc=False).size == place.size


@pytest.mark.parametrize("limit", ["_MOST_TRIES", "_MOST_TRIED_BYTES"])
def test_likely_places_are_tried_so_often_and_no_more(
    made: Made, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    # Each of these looks like the beginning of a 61-byte batch, but the CRC is wrong.
    bait = bytes.fromhex("00" * 8 + "00000031" + "00" * 4 + "02" + "00" * 44) * 4
    data = data_of(LOG)
    damaged = data[:738] + b"\xff" * 20 + bait + data[738:]
    [damage] = made.damages(damaged)
    assert damage.size == 20 + len(bait)
    # The limit applies to the whole read.
    first, second = made.damages(damaged + damaged)
    assert (first.size, second.size) == (20 + len(bait), 20 + len(bait))
    monkeypatch.setattr(search, limit, 5 if limit == "_MOST_TRIES" else 5 * 61)
    first, second = made.damages(damaged + damaged)
    assert (first.size, second.size) == (20 + len(bait), len(damaged) - 738)


def test_a_batch_is_found_wherever_the_search_reads_on(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_READ_AHEAD", 64)
    data = data_of(LOG)
    for size in range(17, 220):
        [damage] = made.damages(data[:738] + b"\xff" * size + data[738:])
        assert damage.size == size


def test_any_bytes_are_walked_over_to_their_end(made: Made) -> None:
    picked = random.Random(3)
    data = data_of(LOG)[:3000]
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(picked.randrange(1, 6)):
            damaged[picked.randrange(len(damaged))] = picked.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
        found = made.walk(bytes(damaged[: picked.randrange(1, len(data))]))
        end = 0
        for one in found:
            assert one.position == end
            assert one.size > 0
            end += one.size


def test_a_length_is_not_believed(made: Made) -> None:
    data = (
        data_of(LOG)[:738] + bytes(8) + (2**31 - 1).to_bytes(4, "big") + b"\0\0\0\0\x02" + bytes(44)
    )
    with traced() as memory:
        [damage] = made.damages(data)
    assert "2147483659 bytes, but the file ends after 61" in damage.reason
    assert memory.most < 8 * 1024 * 1024


def test_a_batch_longer_than_any_is_damage(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segments, search):
        monkeypatch.setattr(module, "MAX_BATCH_BYTES", 1000)
    assert [damage.size for damage in made.damages(data_of(LOG))] == [1280, 3074]


def test_a_file_that_becomes_shorter_is_an_error_of_ours(made: Made) -> None:
    path = write(made.root, LOG)
    with open_log(path) as log:
        places = [place for place in walk(log) if isinstance(place, BatchPlace)]
        path.write_bytes(b"")
        log.read(0, 1)
        with pytest.raises(RecordError):
            read_batch(log, places[-1]._replace(position=10**9))


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot open"), open_log(tmp_path / "absent.log"):
        pass
    with pytest.raises(CaptureError, match="cannot open"), open_log(tmp_path):
        pass


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        (f"{BASE}.log", 0),
        ("00000000000000000042.timeindex.deleted", 42),
        ("42.log", None),
        ("00000000000000000042-0000000001.checkpoint", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_the_base_offset_is_in_the_name(tmp_path: Path, name: str, offset: int | None) -> None:
    assert base_offset_of(tmp_path / name) == offset
