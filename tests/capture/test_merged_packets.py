"""Packets of files that overlap in time are merged by their clocks, each packet once."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files import merged_packets
from flexwire.capture.files.merged_packets import read_merged_packets
from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import read_packets
from tests.capture.interleaved import CLEAN, EVERYTHING, HOSTS, UNORDERED, write_capture
from tests.capture.opened_files import Opened
from tests.capture.traffic import enhanced, interface, packet, section
from tests.searching import times

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = {
    "hosts": HOSTS,
    "unordered": replace(UNORDERED, taps=3),
    "everything": replace(EVERYTHING, hosts=3, shared=0.7, skew=3_000),
}


def clocks(packets: list[Any]) -> list[int]:
    """Return the clock of a file at each of its packets."""
    first = next((one.timestamp_us for one in packets if isinstance(one, CapturedPacket)), 0)
    each = [one.timestamp_us if isinstance(one, CapturedPacket) else 0 for one in packets]
    return [*accumulate(each, max, initial=max(0, first))][1:]


def in_order(files: list[str]) -> list[Any]:
    """Return the packets of all files, ordered by the files' clocks."""
    rows = []
    for file in files:
        packets = [*read_packets(file)]
        rows += [
            (clock, file, number, packet)
            for number, (clock, packet) in enumerate(zip(clocks(packets), packets, strict=True))
        ]
    return [packet for *_, packet in sorted(rows, key=lambda row: row[:3])]


@pytest.mark.parametrize("most_open", [1, 2, 3, 256])
@pytest.mark.parametrize("name", SHAPES)
def test_packets_come_by_the_clocks_of_their_files(
    name: str, most_open: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_packets, "MOST_OPEN", most_open)
    # From closed files, only a few packets are read ahead.
    monkeypatch.setattr(merged_packets, "bytes_ahead", lambda _among: 1_000)
    for seed in range(times(3)):
        files = [*map(str, write_capture(tmp_path / str(seed), seed, SHAPES[name]))]
        opened = Opened()
        found = [*read_merged_packets(reversed(files), opened.open_file)]
        assert found == in_order(files)
        assert opened.most <= most_open
        assert opened.open == 0


def test_files_that_do_not_overlap_come_one_after_the_other(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, CLEAN)
    expected = [packet for file in files for packet in read_packets(file)]
    assert [*read_merged_packets(map(str, files))] == expected


def test_a_file_that_is_named_twice_is_read_twice(tmp_path: Path) -> None:
    [file, *_] = map(str, write_capture(tmp_path, 1, HOSTS))
    assert len([*read_merged_packets([file] * 2)]) == 2 * len([*read_packets(file)])


def test_files_that_can_go_on_are_closed_first_and_go_on_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_packets, "MOST_OPEN", 3)
    monkeypatch.setattr(merged_packets, "bytes_ahead", lambda _among: 1_000)
    head = section() + interface()
    files = [tmp_path / f"{number}.pcapng{'.gz' * (number < 2)}" for number in range(6)]
    for number, file in enumerate(files):
        data = head + b"".join(enhanced(packet(), 100 + number + 10 * step) for step in range(30))
        file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    opened = Opened()
    names = [*map(str, files)]
    assert [*read_merged_packets(names, opened.open_file)] == in_order(names)
    # Each file is also opened once to read its first timestamp.
    assert [len(opened.starts[name]) for name in names[:2]] == [2, 2]
    for name in names[2:]:
        first, begun, *again = opened.starts[name]
        assert (first, begun) == (0, 0)
        assert again == sorted({*again})
        assert again[0] > 0


def test_all_files_are_closed_if_the_reader_stops(tmp_path: Path) -> None:
    opened = Opened()
    found = read_merged_packets(map(str, write_capture(tmp_path, 1, HOSTS)), opened.open_file)
    next(found)
    assert opened.open > 0
    found.close()  # type: ignore[attr-defined]  # this iterator is a generator
    assert opened.open == 0


def test_secrets_of_all_files_are_known_before_the_first_packet(tmp_path: Path) -> None:
    from tests.tls_streams import capture  # noqa: PLC0415 - the import needs an optional package

    known: list[bytes] = []
    for number in range(2):
        capture(tmp_path / f"{number}", [b"packet"] * 3, secrets=b"%d" % number, start=number * 2)
    found = read_merged_packets(
        [str(tmp_path / f"{number}") for number in range(2)],
        on_secrets=lambda body, _order: known.append(body[8:9]),
    )
    next(found)
    assert {*known} == {b"0", b"1"}
