"""The tests' random captures are reproducible and interleaved, and have the promised content."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files.links import Segment, SegmentCounts, read_segments
from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.wire.segment_layout import FIN, RST, SYN
from tests.capture.interleaved import (
    CLEAN,
    EVERYTHING,
    MID_STREAM,
    ONE_CONNECTION,
    SHAPES,
    Shape,
    captured_packets,
    write_capture,
)

if TYPE_CHECKING:
    from pathlib import Path


def segments(paths: list[Path]) -> list[Segment]:
    return [one for path in paths for one in read_segments(path) if isinstance(one, Segment)]


@pytest.mark.parametrize("name", SHAPES)
def test_a_seed_gives_one_capture(tmp_path: Path, name: str) -> None:
    made = [write_capture(tmp_path / one, 3, SHAPES[name]) for one in ("one", "again")]
    other = write_capture(tmp_path / "other", 4, SHAPES[name])
    one, again, others = ([path.read_bytes() for path in paths] for paths in (*made, other))
    assert [path.name for path in made[0]] == [path.name for path in made[1]]
    assert one == again
    assert one != others


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_every_seed_gives_a_capture(name: str) -> None:
    for seed in range(10):
        assert captured_packets(seed, SHAPES[name])


@pytest.mark.parametrize("seed", range(3))
def test_all_that_was_sent_in_a_clean_capture_is_read_and_paired(tmp_path: Path, seed: int) -> None:
    found = list(read_messages(write_capture(tmp_path, seed, CLEAN)))
    assert [one for one in found if not isinstance(one, CapturedMessage)] == []
    by_type = Counter(one.type for one in found if isinstance(one, CapturedMessage))
    each = CLEAN.connections * (CLEAN.talk.exchanges + 1)
    assert sorted(by_type.values()) == [each, each]


def test_segments_of_connections_interleave_within_their_frames(tmp_path: Path) -> None:
    shape = replace(CLEAN, segment=(60, 60))
    keys = [connection_key(one) for one in segments(write_capture(tmp_path, 1, shape))]
    changes = sum(one != other for one, other in pairwise(keys))
    assert changes > len(keys) / 3
    assembler = {key: FrameAssembler() for key in keys}
    frames = [
        frame
        for one in segments(sorted(tmp_path.iterdir()))
        for frame in assembler[connection_key(one)].push(one)
    ]
    long = [one for one in frames if one.size > 120]
    assert len([one for one in long if one.first_us < one.timestamp_us]) > len(long) / 2


def test_frames_begin_within_segments_and_reach_over_many() -> None:
    packets = [one for one in captured_packets(1, ONE_CONNECTION) if one.payload]
    frames = 2 * (ONE_CONNECTION.talk.exchanges + 1)
    begun = len([one for one in packets if one.begins])
    assert 0 < begun < frames * 2 / 3
    assert len(packets) - begun > 50
    assert max(len(one.payload) for one in packets) == ONE_CONNECTION.segment[1]


def test_other_files_hold_the_same_packets(tmp_path: Path) -> None:
    shape = Shape(files=4, formats=("pcap", "pcapng", "nanoseconds"))
    few = write_capture(tmp_path / "few", 5, replace(shape, files=1))
    many = write_capture(tmp_path / "many", 5, shape)
    assert len(many) == 4
    assert segments(few) == segments(many)


def test_connections_begin_before_the_capture_and_go_on_after_it(tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    for seed in range(4):
        seen = segments(write_capture(tmp_path / str(seed), seed, MID_STREAM))
        counted["all"] += len({connection_key(one) for one in seen})
        counted["begin"] += len({connection_key(one) for one in seen if one.flags & SYN})
        counted["end"] += len({connection_key(one) for one in seen if one.flags & (FIN | RST)})
    assert counted["all"] == 4 * MID_STREAM.connections
    assert 0 < counted["begin"] < counted["all"]
    assert 0 < counted["end"] < counted["all"]


def test_everything_has_every_kind_of_trouble(tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    names: set[str] = set()
    for seed in range(6):
        paths = write_capture(tmp_path / str(seed), seed, EVERYTHING)
        for one in read_messages(paths):
            if isinstance(one, CapturedMessage):
                names.add(one.name)
            else:
                kinds[one.kind] += 1
        for path in paths:
            counts = SegmentCounts()
            list(read_segments(path, counts))
            reasons.update(counts.skipped)
    assert set(kinds) == {"packet", "frame", "header", "unpaired", "token", "not Kafka"}
    assert "IP protocol 17" in reasons
    assert len(names) > 60
