"""Headers determine which response answers which request, regardless of missing body bytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.links import read_segments
from flexwire.capture.files.packets import Segment
from flexwire.capture.messages import CapturedMessage, UnusedBytes, read_messages
from flexwire.capture.pairing.headers import FrameReader
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.tables.row_filter import FRAMES
from tests.capture.exchanges import Talk
from tests.capture.interleaved import Shape, write_capture
from tests.capture.test_accounts import assembled
from tests.searching import in_make_long, times
from tests.tables.folding import surveyed_in_pieces
from tests.tables.test_following import at_once, given_in_the_end, streamed
from tests.tables.test_ranges import rows_of, surveyed

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.capture.reassembly.connections import CapturedFrame

Key = tuple[str, str, int]
Said = dict[Key, tuple[Any, ...]]

WHOLE = Shape(
    connections=6, talk=Talk(exchanges=14, depth=5, sasl=0.2, any_api=0.2, large=0.3),
    segment=(40, 1448), acks=0.5, options=0.3, files=2, reset=0.2, unended=0.3,
)  # fmt: skip
LOSSES = {
    "lost": replace(WHOLE, body_loss=0.3),
    "seldom lost": replace(WHOLE, body_loss=0.03),
    "cut off": replace(WHOLE, body_cut=0.5),
    "all cut off": replace(WHOLE, body_cut=1.0),
    "both": replace(WHOLE, body_loss=0.2, body_cut=0.2),
}
FORMS = ["both", *in_make_long("all cut off", "lost", "seldom lost", "cut off")]
OF_HEADER = ("message", "api_key", "api_version", "correlation_id", "client_id", "answered")


def said_by(rows: list[dict[str, Any]], *, is_stream: bool = False) -> Said:
    """Return each frame's header and pair. A stream does not know which requests are answered."""
    names = OF_HEADER[:-1] if is_stream else OF_HEADER
    return {
        (one["connection"], one["direction"], one["frame_index"]): tuple(one[it] for it in names)
        for one in rows
    }


def without_answers(said: Said) -> Said:
    return {key: one[:-1] for key, one in said.items()}


def said_by_objects(files: list[Path]) -> tuple[Said, dict[Key, CapturedFrame]]:
    """Do the same with objects only, which also account for bytes. Return the frames too."""
    by_key: dict[str, list[Segment]] = defaultdict(list)
    for segment in chain.from_iterable(map(read_segments, files)):
        assert isinstance(segment, Segment)
        by_key[connection_key(segment)].append(segment)
    frames = [frame for segments in by_key.values() for frame in assembled(segments)[0]]
    readers: dict[str, FrameReader] = {}
    told = [readers.setdefault(one.connection, FrameReader()).read(one) for one in frames]
    pairs: dict[tuple[str, int], dict[str, Any]] = {}
    answered = set()
    for frame, one in zip(frames, told, strict=True):
        if one.get("pair") is not None and frame.direction == "request":
            pairs[frame.connection, one["pair"]] = one
        elif one.get("pair") is not None:
            answered.add((frame.connection, one["pair"]))
    said: Said = {}
    for frame, one in zip(frames, told, strict=True):
        pair = frame.connection, one.get("pair", 0)
        about = one if frame.direction == "request" else pairs.get(pair, {})
        name = about.get("message")
        is_answered = None
        if frame.direction == "request" and one.get("pair") is not None:
            is_answered = pair in answered or (None if frame.error else False)
        elif frame.direction == "response" and name is not None:
            name = name.removesuffix("Request") + "Response"
        key = frame.connection, frame.direction, frame.index
        said[key] = (
            name, about.get("api_key"), about.get("api_version"), one.get("correlation_id"),
            about.get("client_id"), is_answered,
        )  # fmt: skip
    return said, {(one.connection, one.direction, one.index): one for one in frames}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(1)))
@pytest.mark.parametrize("loss", FORMS)
def test_what_is_lost_of_bodies_changes_no_pair(loss: str, seed: int, tmp_path: Path) -> None:
    whole = write_capture(tmp_path / "whole", seed, WHOLE)
    lossy = write_capture(tmp_path / "lossy", seed, LOSSES[loss])
    expected, frames = said_by_objects(whole)
    found, damaged = said_by_objects(lossy)
    assert sum(one.error is not None for one in damaged.values()) > len(damaged) / 100
    # A damaged request may be known to have an answer, but never to have none.
    expected = {
        key: (*one[:-1], None) if damaged[key].error and one[-1] is False else one
        for key, one in expected.items()
    }
    assert found == expected
    for key, one in damaged.items():
        assert one.size == frames[key].size
        assert frames[key].first_us <= one.first_us <= one.timestamp_us <= frames[key].timestamp_us

    assert said_by(rows_of(*surveyed(lossy))[FRAMES]) == expected
    in_ranges = surveyed(lossy, range_bytes=15_000, chunk_bytes=3_000)
    assert said_by(rows_of(*in_ranges)[FRAMES]) == expected
    in_pieces = surveyed_in_pieces(lossy, 9_000, chunk_bytes=4_000, range_bytes=20_000)
    assert said_by(rows_of(*in_pieces)[FRAMES]) == expected


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("loss", FORMS)
def test_a_stream_pairs_what_has_lost_bodies_as_it_comes(loss: str, tmp_path: Path) -> None:
    whole = write_capture(tmp_path / "whole", 4, WHOLE)
    lossy = write_capture(tmp_path / "lossy", 4, LOSSES[loss])
    expected = without_answers(said_by_objects(whole)[0])
    found = said_by(at_once(tmp_path / "lossy").rows[FRAMES], is_stream=True)
    assert found.items() <= expected.items()
    missing = expected.keys() - found.keys()
    assert missing == given_in_the_end(tmp_path / "lossy")
    assert len(found) > len(expected) / 2
    cut = said_by(streamed(lossy, tmp_path / "grown", 4).rows[FRAMES], is_stream=True)
    assert cut == found


@pytest.mark.parametrize("loss", LOSSES)
def test_whole_responses_to_requests_with_lost_bodies_are_read(loss: str, tmp_path: Path) -> None:
    write_capture(tmp_path / "whole", 5, WHOLE)
    write_capture(tmp_path / "lossy", 5, LOSSES[loss])
    read = {
        name: list(read_messages(sorted((tmp_path / name).iterdir())))
        for name in ("whole", "lossy")
    }
    damaged = [one for one in read["lossy"] if isinstance(one, UnusedBytes) and one.kind == "frame"]
    assert damaged
    messages = {
        name: Counter(
            (one.name, one.version, one.body) for one in found if isinstance(one, CapturedMessage)
        )
        for name, found in read.items()
    }
    assert messages["lossy"] <= messages["whole"]
    lost = messages["whole"].total() - messages["lossy"].total()
    assert lost <= len(damaged)
    others = [
        [
            one
            for one in found
            if isinstance(one, UnusedBytes) and one.kind not in {"frame", "token"}
        ]
        for found in read.values()
    ]
    assert len(others[0]) == len(others[1])
