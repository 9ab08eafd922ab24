from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import FrameError
from flexwire.protocol import SENT_FRAME_LIMIT, FrameSplitter
from tests.protocol.payloads import frame

PAYLOADS = st.lists(st.binary(max_size=50), max_size=8)


def feed_in_pieces(splitter: FrameSplitter, data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    payloads = []
    for start, stop in pairwise(edges):
        payloads += splitter.feed(data[start:stop])
    return payloads


@given(PAYLOADS, st.lists(st.integers(0, 400)))
def test_payloads_do_not_depend_on_how_the_bytes_arrive(
    payloads: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(frame, payloads))
    splitter = FrameSplitter()
    assert feed_in_pieces(splitter, stream, cuts) == payloads
    assert splitter.pending == b""


@given(PAYLOADS, st.lists(st.integers(0, 400)))
def test_frames_are_given_as_they_stood(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, payloads)) + b"\0"
    splitter = FrameSplitter()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    found = b""
    for start, stop in pairwise(edges):
        cut = splitter.cut(stream[start:stop])
        assert cut.whole == b"".join(map(frame, cut.payloads))
        found += cut.whole
    assert found + splitter.pending == stream


def test_frames_that_come_whole_are_not_copied() -> None:
    data = frame(bytes(5000)) + frame(b"")
    assert FrameSplitter().cut(data).whole is data


@given(PAYLOADS, st.integers(0, 400))
def test_a_truncated_stream_gives_whole_frames_and_keeps_the_rest(
    payloads: list[bytes], length: int
) -> None:
    stream = b"".join(map(frame, payloads))[:length]
    splitter = FrameSplitter()
    found = splitter.feed(stream)
    assert found == payloads[: len(found)]
    assert b"".join(map(frame, found)) + splitter.pending == stream
    assert splitter.pending_length == len(splitter.pending)
    assert splitter.peek(1, 3) == splitter.pending[1:3]


@pytest.mark.parametrize("length", [-1, -2147483648, 11, 2147483647])
@pytest.mark.parametrize("pieces", ["whole", "bytes"])
def test_a_length_that_cannot_be_is_refused_after_the_frames_before_it(
    length: int, pieces: str
) -> None:
    bad = length.to_bytes(4, "big", signed=True) + b"xy"
    stream = frame(b"one") + frame(b"") + bad
    splitter = FrameSplitter(limit=10)
    step = len(stream) if pieces == "whole" else 1
    found = []
    for start in range(0, len(stream), step):
        try:
            found += splitter.feed(stream[start : start + step])
        except FrameError:
            break
    assert found == [b"one", b""]
    assert splitter.pending == bad[: len(splitter.pending)]
    assert len(splitter.pending) >= 4
    with pytest.raises(FrameError, match=rf"limit of 10|cannot have {length} bytes"):
        splitter.feed(b"")
    assert splitter.error is not None


@pytest.mark.parametrize("length", [0, 1, 9, 10])
def test_lengths_up_to_the_limit_are_frames(length: int) -> None:
    assert FrameSplitter(limit=10).feed(frame(bytes(length))) == [bytes(length)]


def test_nothing_is_allocated_for_a_length_that_has_not_arrived() -> None:
    splitter = FrameSplitter()
    assert splitter.feed(SENT_FRAME_LIMIT.to_bytes(4, "big") + b"x") == []
    assert splitter.pending_length == 5


@pytest.mark.parametrize("sizes", [[1] * 50, [5000] * 9, [5000, 1, 1, 5000, 3, 5000], [70_000, 7]])
def test_what_came_in_pieces_can_be_looked_at_anywhere(sizes: list[int]) -> None:
    whole = bytes(range(256)) * (sum(sizes) // 256 + 1)
    stream = frame(whole)[: sum(sizes)]
    splitter = FrameSplitter()
    start = 0
    for size in sizes:
        assert splitter.feed(stream[start : start + size]) == []
        start += size
        assert splitter.pending == stream[:start]
        assert splitter.pending_length == start
        for at in (0, 3, size - 1, start - size, start - 1, start):
            assert splitter.peek(at, start) == stream[at:start]
            assert splitter.peek(at, at + 7) == stream[at : min(at + 7, start)]
    assert splitter.feed(frame(whole)[start:]) == [whole]


def test_a_frame_that_comes_byte_by_byte_is_not_as_many_objects() -> None:
    splitter = FrameSplitter()
    for byte in frame(bytes(9000))[:-1]:
        assert splitter.feed(bytes([byte])) == []
    assert len(splitter._parts) == 1


@given(st.binary(max_size=200), st.integers(1, 20))
def test_any_bytes_are_split_or_refused(data: bytes, step: int) -> None:
    splitter = FrameSplitter(limit=64)
    seen = b""
    try:
        for start in range(0, len(data), step):
            for payload in splitter.feed(data[start : start + step]):
                assert len(payload) <= 64
                seen += frame(payload)
            assert splitter.error is not None or splitter.pending_length <= 64 + 4
    except FrameError:
        pass
    assert data.startswith(seen + splitter.pending)
