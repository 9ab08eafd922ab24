"""Packets of files that overlap in time are merged by their clocks, each packet once."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files import merged_packets
from flexwire.capture.files.merged_packets import read_merged_packets
from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import read_packets
from tests.capture.interleaved import CLEAN, EVERYTHING, HOSTS, UNORDERED, write_capture
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


@pytest.mark.parametrize("name", SHAPES)
def test_packets_come_by_the_clocks_of_their_files(name: str, tmp_path: Path) -> None:
    for seed in range(times(3)):
        files = [*map(str, write_capture(tmp_path / str(seed), seed, SHAPES[name]))]
        rows = []
        for file in files:
            packets = [*read_packets(file)]
            rows += [
                (clock, file, number, packet)
                for number, (clock, packet) in enumerate(zip(clocks(packets), packets, strict=True))
            ]
        expected = [packet for *_, packet in sorted(rows, key=lambda row: row[:3])]
        assert [*read_merged_packets(reversed(files))] == expected


def test_files_that_do_not_overlap_come_one_after_the_other(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, CLEAN)
    expected = [packet for file in files for packet in read_packets(file)]
    assert [*read_merged_packets(map(str, files))] == expected


def test_of_very_many_files_each_packet_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [*map(str, write_capture(tmp_path, 1, HOSTS))]
    expected = sorted(map(repr, read_merged_packets(files)))
    for most in (1, 2):
        monkeypatch.setattr(merged_packets, "MOST_OPEN", most)
        assert sorted(map(repr, read_merged_packets(files))) == expected
    # A file that is named twice is read twice.
    assert len([*read_merged_packets([files[0]] * 2)]) == 2 * len([*read_packets(files[0])])


def test_secrets_of_all_files_are_known_before_the_first_packet(tmp_path: Path) -> None:
    from tests.tls_streams import capture  # noqa: PLC0415 - it needs the extra

    known: list[bytes] = []
    for number in range(2):
        capture(tmp_path / f"{number}", [b"packet"] * 3, secrets=b"%d" % number, start=number * 2)
    found = read_merged_packets(
        [str(tmp_path / f"{number}") for number in range(2)],
        on_secrets=lambda body, _order: known.append(body[8:9]),
    )
    next(found)
    assert {*known} == {b"0", b"1"}
