"""A piece hands over an exchange that ends within one step only if the exchange matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from flexwire.capture.pairing.layout import REQUEST
from flexwire.storage.file_search import list_captures
from flexwire.survey import piece_survey
from flexwire.survey import piece_survey as exchanges
from flexwire.survey.piece_survey import survey_piece
from flexwire.survey.pieces import cut_into_pieces
from flexwire.survey.survey import AnalysisRequest, Survey, list_readable_files
from tests.capture.interleaved import write_capture
from tests.capture.traffic import request, response
from tests.spark.traffic import framed, made
from tests.spark.traffic import request as encoded_request
from tests.spark.traffic import response as encoded_response
from tests.tables.folding import write_steps
from tests.tables.test_fold import MORE, same, size_of

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.survey.pieces import PieceFrames
    from tests.capture.exchanges import Step

PIECES = 3


def handed_over(files: list[Path]) -> list[PieceFrames]:
    """Return the frames that each piece hands over."""
    asked = AnalysisRequest(tuple(list_captures(files)))
    pieces = cut_into_pieces(list_readable_files(asked, Survey()) or [], size_of(files) // PIECES)
    found = [survey_piece(asked, one, is_first=not at) for at, one in enumerate(pieces)]
    assert all(found)
    return [one.frames for one in found if one is not None]


def talk(number: int, ids: list[int], *, depth: int = 1) -> list[Step]:
    """Return exchanges with these correlation ids, this many of them pending at the same time."""
    steps: list[Step] = []
    for start in range(0, len(ids), depth):
        some = ids[start : start + depth]
        steps += [("request", request(one)) for one in some]
        steps += [("response", response(one, 20 + number)) for one in some]
    return steps


@pytest.mark.slow
def test_what_is_handed_over_does_not_grow_with_what_was_said(tmp_path: Path) -> None:
    sizes = []
    for count in (100, 1000):
        talks = [talk(number, list(range(count))) for number in range(4)]
        files = write_steps(tmp_path / str(count), talks)
        frames = handed_over(files)
        sizes.append([len(one.connection) for one in frames])
        assert len(frames) == PIECES
        # Each connection has its own span.
        assert [len(one.left_out) for one in frames] == [0, 4, 4]
    few, many = sizes
    assert max(many) <= max(few) + 8
    assert sum(many) < 4 * 20 * PIECES


def in_parts(data: bytes, count: int) -> list[Step]:
    """Return a request in this many segments. A piece may begin between any two segments."""
    size = -(-len(data) // count)
    return [("request", data[at : at + size]) for at in range(0, len(data), size)]


# An unanswered request shifts each later response with the same correlation id.
LONG = 20_000
SHIFTED: dict[str, list[list[Step]]] = {
    "waits": [[("request", request(7)), *talk(0, [7] * 200)]],
    "came early": [[*talk(0, [1, 2]), ("response", response(7)), *talk(0, [7] * 200)]],
    "crosses": [
        [*talk(0, [*range(100, 130)]), *in_parts(request(7, LONG), 90), *talk(0, [7] * 60)],
    ],
    "crosses in turn": [
        [*talk(0, [*range(100, 130)]), *in_parts(request(7, LONG), 90), *talk(0, [5, 6, 7] * 80)],
    ],
    "at once": [talk(0, [7] * 400, depth=5), talk(0, list(range(300)), depth=3)],
    "in turn": [[*talk(0, [1, 2, 3]), ("request", request(4)), *talk(0, [1, 2, 3, 4] * 60)]],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIFTED)
def test_exchanges_with_the_id_of_what_waits_are_read_again(name: str, tmp_path: Path) -> None:
    files = write_steps(tmp_path, SHIFTED[name])
    same(files, size_of(files) // PIECES, 1 << 20)


def test_with_many_requests_at_once_all_are_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_steps(tmp_path, [talk(0, list(range(300)), depth=6), talk(1, list(range(300)))])
    few = [len(one.connection) for one in handed_over(files)]
    monkeypatch.setattr(exchanges, "_MOST_PENDING", 5)
    found = handed_over(files)
    for before, one in zip(few, found, strict=True):
        crowded = [number for number, name in enumerate(one.names) if ":40000" in name]
        count = int((one.connection == crowded[0]).sum())
        assert before < 40 < count
        assert len(one.connection) - count < 20


def clients() -> list[Step]:
    """Return several clients' requests on one connection, some of which name the software."""
    steps = talk(0, list(range(400)))
    for at in range(2, len(steps), 6):
        steps[at] = "request", steps[at][1].replace(b"test", b"else")
    named = made("ApiVersionsRequest", client_software_name="some", client_software_version="1")
    answer = made("ApiVersionsResponse")
    for number, at in enumerate(range(700, 0, -100), 1000):
        steps[at:at] = [
            ("request", framed(encoded_request(named, 3, number))),
            ("response", framed(encoded_response(answer, 3, number))),
        ]
    return steps


def answered_last_first() -> list[Step]:
    """Write two clients on one connection. The second one's request is answered first."""
    steps = talk(0, list(range(400)), depth=2)
    for at in range(0, len(steps), 4):
        steps[at + 2 : at + 4] = steps[at + 3], steps[at + 2]
        steps[at + 1] = "request", steps[at + 1][1].replace(b"test", b"else")
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["long", "alone", "large", "clients"])
def test_what_is_left_out_says_nothing_more(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "clients":
        files = write_steps(tmp_path, [clients(), clients()[2:], answered_last_first()])
    else:
        files = write_capture(tmp_path, 1, MORE[name])
    found = handed_over(files)
    monkeypatch.setattr(piece_survey, "drop_exchanges", lambda frames, *_, **__: frames)
    every = handed_over(files)
    assert sum(len(one.connection) for one in found) < sum(len(one.connection) for one in every) / 2
    for some, full in zip(found, every, strict=True):
        assert told(some) == told(full)
        assert set(some.topics.values()) == set(full.topics.values())
        assert sorted(some.software.values()) == sorted(full.software.values())


def told(frames: PieceFrames) -> list[object]:
    """Return the combined facts of each connection's rows."""
    found: list[object] = []
    headers = frames.headers
    for number, name in enumerate(frames.names):
        its = frames.connection == number
        times, asks = frames.time_us[its], np.flatnonzero(its & (headers.kind == REQUEST))
        both = [
            (headers.flags[one], headers.client[one]) for one in asks[[0, -1] if len(asks) else []]
        ]
        found.append((name, times.min(initial=1 << 62), times.max(initial=0), both))
    return found
