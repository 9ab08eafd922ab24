"""Survey a capture in pieces, and in order from start to end."""

from __future__ import annotations

import pickle
import random
import struct
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.storage.file_search import list_captures
from flexwire.survey.fold import Fold
from flexwire.survey.piece_survey import survey_piece
from flexwire.survey.pieces import cut_into_pieces
from flexwire.survey.survey import AnalysisRequest, Survey, list_readable_files
from tests.capture.exchanges import Talk, conversation
from tests.capture.interleaved import START_US
from tests.capture.traffic import response

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.exchanges import Step


def surveyed_in_pieces(
    files: list[Path], size: int, **how: Any
) -> tuple[AnalysisRequest, Survey, dict[str, bytes]]:
    """Survey pieces of about this many bytes, hand them over as tasks do, and fold them."""
    asked = AnalysisRequest(tuple(list_captures(files)), record_bytes=True, **how)
    kept: dict[str, bytes] = {}
    survey = Survey()
    ordered = list_readable_files(asked, survey)
    assert ordered is not None
    pieces = cut_into_pieces(ordered, size)
    found = [
        pickle.dumps(survey_piece(asked, piece, is_first=number == 0))
        for number, piece in enumerate(pieces)
    ]
    fold = Fold(asked, kept.__setitem__, ordered, survey)
    return asked, fold.run(pieces, map(pickle.loads, found)), kept


def produced(correlation_id: int, data: bytes) -> bytes:
    """Return a Produce request with a valid header and any bytes as its body."""
    client = b"planted"
    head = struct.pack(">hhih", 0, 3, correlation_id, len(client)) + client
    return struct.pack(">i", len(head) + len(data)) + head + data


def write_steps(path: Path, talks: list[list[Step]]) -> list[Path]:
    """Write the frames of several connections in turn, as the proxy does."""
    source = random.Random(len(talks))
    with PcapngWriter(path, max_bytes=1 << 30) as writer:
        opened = [
            writer.open_connection(
                ("10.0.0.9", 40000 + number), ("10.0.0.1", 9092), timestamp_us=START_US
            )
            for number in range(len(talks))
        ]
        left = [list(talk) for talk in talks]
        now = START_US
        while any(left):
            number = source.choice([number for number, talk in enumerate(left) if talk])
            way, data = left[number].pop(0)
            now += 100
            opened[number].send(way, data, timestamp_us=now)
    return writer.paths


def planted(inner: bytes, times: int) -> list[Step]:
    """Return a conversation in which every field of a request contains these bytes."""
    source = random.Random(1)
    steps = list(conversation(source, Talk(exchanges=2), 0))
    for number in range(times):
        steps.append(("request", produced(1000 + number, bytes(number % 7) + inner)))
        steps.append(("response", response(1000 + number, 20)))
    return steps
