"""If the state of a connection differs from a piece's guess, the difference is found."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from flexwire.capture.reassembly.streams import (
    SEEKS_REQUEST,
    Handoff,
    HandoffResult,
    SideResult,
    SideState,
)
from flexwire.survey.piece_merger import prove
from flexwire.survey.speculation import MARK, MARK_ID, FastPathStep

LIMIT = 1 << 20
FRAME = struct.pack(">i", 40) + bytes(range(40))
HEAD, TAIL = FRAME[:13], FRAME[13:]
RESPONSE = struct.pack(">i", 9)  # a frame of 9 bytes, none of which was captured
TRUE = Handoff(
    "a:1>b:2",
    "a:1",
    SideState(1000, HEAD, 10, 12, 7),
    SideState(500, RESPONSE, 11, 11, 3),
)
SAID = Handoff(
    "?a:1|b:2",
    "a:1",
    SideState(1000, struct.pack(">i", len(MARK) + len(TAIL)) + MARK, 99, -99, 0),
    SideState(500, RESPONSE, 11, 11, 2),
)
TAKEN = HandoffResult(
    segments=4,
    captured=60,
    time_us=40,
    is_marked=False,
    noted=[(True, MARK_ID), (True, 8)],
    request=SideResult(len(TAIL) + 16, b"\0\0", 30, 31, 2, 4 + len(MARK) + len(TAIL) + 14, 10),
    response=SideResult(5, RESPONSE + bytes(5), 11, 35, 0, 0, 0),
)
RUN = FastPathStep(SAID, TAKEN, (True, False))


def test_what_is_proven_is_what_truly_became_of_it() -> None:
    proof = prove(TRUE, RUN, (MARK + TAIL, None), LIMIT)
    assert proof is not None
    assert proof.connection == TRUE.connection
    assert proof.indexes == (7, 1)
    assert proof.crossings[0] is not None
    assert (proof.crossings[0].payload, proof.crossings[0].last_us) == (FRAME[4:], 12)
    assert proof.crossings[1] is None
    assert proof.result.request.sizes == len(FRAME) + 14
    assert list(proof.result.noted) == [(True, 0x04050607), (True, 8)]


def test_a_frame_that_is_not_whole_goes_on_growing() -> None:
    went = SideResult(6, SAID.request.held + TAIL[:6], 20, 22, 0, 0, 0)
    run = replace(RUN, result=replace(TAKEN, request=went, noted=[]))
    proof = prove(TRUE, run, (None, None), LIMIT)
    assert proof is not None
    assert proof.result.request[1:4] == (HEAD + TAIL[:6], 10, 22)


def test_a_clock_that_goes_back_within_a_frame_is_its_earliest_and_its_latest_time() -> None:
    went = SideResult(6, SAID.request.held + TAIL[:6], 3, 5, 0, 0, 0)
    run = replace(RUN, result=replace(TAKEN, request=went, noted=[]))
    proof = prove(TRUE, run, (None, None), LIMIT)
    assert proof is not None
    assert proof.result.request[2:4] == (3, 12)


@pytest.mark.parametrize(
    "other",
    [
        TRUE.request._replace(sequence=1001),
        TRUE.request._replace(seeks=SEEKS_REQUEST),
        TRUE.request._replace(room=TAKEN.request.size - 1),
        TRUE.request._replace(held=FRAME[:12]),
        TRUE.request._replace(held=b""),
        TRUE.request._replace(held=struct.pack(">i", 41) + FRAME[4:13]),
        TRUE.request._replace(held=struct.pack(">i", -1) + FRAME[4:13]),
        TRUE.request._replace(held=struct.pack(">i", LIMIT + 1) + FRAME[4:13]),
    ],
)
def test_another_request_end_is_found_out(other: SideState) -> None:
    assert prove(replace(TRUE, request=other), RUN, (MARK + TAIL, None), LIMIT) is None


@pytest.mark.parametrize(
    "other",
    [
        TRUE.response._replace(sequence=499),
        TRUE.response._replace(held=b""),
        TRUE.response._replace(held=struct.pack(">i", 8)),
        TRUE.response._replace(first_us=10),
        TRUE.response._replace(last_us=12),
    ],
)
def test_another_response_end_is_found_out(other: SideState) -> None:
    assert prove(replace(TRUE, response=other), RUN, (MARK + TAIL, None), LIMIT) is None


def test_another_client_and_ids_that_are_not_sure_are_found_out() -> None:
    payloads = (MARK + TAIL, None)
    assert prove(replace(TRUE, client="b:2"), RUN, payloads, LIMIT) is None
    twice = replace(TAKEN, noted=[(True, MARK_ID), (True, MARK_ID)])
    assert prove(TRUE, replace(RUN, result=twice), payloads, LIMIT) is None
