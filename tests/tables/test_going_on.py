"""Captures that are analyzed part by part produce the same result as a single analysis.

The rows come from Arrow columns, after a survey in order or in pieces. A row contains the facts of
its own analysis. On Spark, views join the rows (`flexwire.spark.answers`). In this test, a few
lines do so.
"""

from __future__ import annotations

import pickle
import random
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.pairing.state import NOT_KAFKA, UNPAIRED
from flexwire.capture.reassembly import idling
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.storage.file_search import list_captures
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey import state as state_module
from flexwire.survey.fold import Fold
from flexwire.survey.piece_survey import has_kernels, survey_piece
from flexwire.survey.pieces import Piece
from flexwire.survey.ranges import FRAMES, decode_range
from flexwire.survey.request import Continuation, look_at_files
from flexwire.survey.saved_state import SavedState
from flexwire.survey.survey import (
    STATE,
    AnalysisRequest,
    Survey,
    Surveyor,
    list_readable_files,
    survey_after,
)
from flexwire.tables.frames import TOPIC_NAMES, connection_rows, topic_name_rows
from tests.capture.interleaved import SHAPES, write_capture
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.storage.input_file import InputFile

    Row = dict[str, Any]
    Rows = dict[str, list[Row]]
    Kept = dict[str, bytes]
    Make = Callable[[AnalysisRequest, Kept, bytes | None], Survey]

IN_ORDER = sorted(name for name in SHAPES if name not in {"HOSTS", "UNORDERED"})
INTRODUCED = ("client_software_name", "client_software_version", "client_instance_id")
CONNECTIONS = "connections"
SLOW = ("EVERYTHING", "ONE_CONNECTION", "STRANGE")
"""The shapes whose analyses take longest."""


def in_turn(asked: AnalysisRequest, kept: Kept, before: bytes | None) -> Survey:
    return Surveyor(asked, kept.__setitem__, before=before).run()


def in_pieces(asked: AnalysisRequest, kept: Kept, before: bytes | None) -> Survey:
    survey = Survey()
    ordered = list_readable_files(asked, survey) or []
    pieces = [Piece((file,)) for file in ordered]
    found = [
        pickle.dumps(survey_piece(asked, piece, is_first=number == 0 and before is None))
        for number, piece in enumerate(pieces)
    ]
    fold = Fold(asked, kept.__setitem__, ordered, survey, before)
    return fold.run(pieces, map(pickle.loads, found))


def asked_for(files: list[InputFile], run: str, before: str | None, root: Path) -> AnalysisRequest:
    earlier = None if before is None else OutputDirectory(str(root / before))
    return AnalysisRequest(
        tuple(files), record_bytes=True, continuation=Continuation(run, earlier),
        range_bytes=15_000, chunk_bytes=3_000, show_credentials=True,
    )  # fmt: skip


def analyzed(files: list[InputFile], run: str, before: str | None, root: Path, make: Make) -> Rows:
    """Return the rows of one analysis, which leaves its state in its directory."""
    kept: Kept = {}
    asked = asked_for(files, run, before, root)
    found = survey_after(asked, lambda request, state: make(request, kept, state))
    assert found.begins_anew is None
    assert found.state is not None
    OutputDirectory(str(root / run)).write(STATE, found.state)
    rows: Rows = defaultdict(list)
    for number in range(found.ranges):
        for table, batch in decode_range(asked, number, kept.__getitem__):
            rows[table] += batch.to_pylist()
    rows[CONNECTIONS] = connection_rows(found.connections).to_pylist()
    rows[TOPIC_NAMES] = topic_name_rows(found.topic_names).to_pylist()
    return rows


def joined(parts: dict[str, Rows]) -> Rows:
    """Return the rows of several analyses, as views join them."""
    origin = {
        (run, row["connection"]): row["began_in"] or run
        for run, rows in parts.items()
        for row in rows[CONNECTIONS]
    }
    found: Rows = defaultdict(list)
    for run, rows in parts.items():
        for table, some in rows.items():
            found[table] += [
                row | ({"analysis": origin[run, row["connection"]]} if table != TOPIC_NAMES else {})
                for row in some
            ]
    answered = {
        (row["analysis"], row["connection"], index)
        for row in found[CONNECTIONS]
        for index in row["answered_indexes"] or ()
    }
    for row in found[FRAMES]:
        key = row["analysis"], row["connection"], row["frame_index"]
        if row["direction"] == "request" and key in answered:
            assert not row["answered"]
            row["answered"] = True
    found[CONNECTIONS] = united(found[CONNECTIONS])
    topics = {row["topic_id"]: row["topic"] for row in found.pop(TOPIC_NAMES)}
    return {table: mended(rows, found[FRAMES], topics) for table, rows in found.items()}


def united(rows: list[Row]) -> list[Row]:
    """Return the rows of connections. Several may describe one continued connection."""
    by_key = defaultdict(list)
    for row in rows:
        by_key[row["analysis"], row["connection"]].append(row)
    found = []
    for some in by_key.values():
        some.sort(key=lambda row: row["last_time"])
        sums = {
            name: sum(row[name] for row in some)
            for name, value in some[-1].items()
            if isinstance(value, int) and not isinstance(value, bool)
        }
        first = min(row["first_time"] for row in some)
        known = {"began_in": None, "answered_indexes": None, "first_time": first}
        found.append(some[-1] | sums | known)
    return found


def mended(rows: list[Row], frames: list[Row], topics: dict[str, str]) -> list[Row]:
    """Return rows with the facts of other analyses about their connections and topics."""
    said = {
        (frame["analysis"], frame["connection"], name): frame[name]
        for frame in frames
        for name in INTRODUCED
        if frame[name] is not None
    }
    return [
        row
        | {
            name: said.get((row["analysis"], row["connection"], name))
            for name in INTRODUCED
            if name in row
        }
        | ({"topic": row["topic"] or topics.get(row["topic_id"])} if "topic_id" in row else {})
        for row in rows
    ]


def told(rows: list[Row]) -> list[Row]:
    """Return rows in a fixed order. Analyses have different names."""
    plain = [{name: value for name, value in row.items() if name != "analysis"} for row in rows]
    return sorted(plain, key=repr)


def in_time(paths: list[Path]) -> list[InputFile]:
    looks = look_at_files(list_captures(paths))
    looks.sort(key=lambda look: (look.first_us, look.source.name))
    return [look.source for look in looks]


def cut_at_random(source: random.Random, files: list[Any]) -> list[list[Any]]:
    cuts = sorted(source.sample(range(1, len(files)), source.randrange(1, len(files))))
    return [files[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(files)], strict=True)]


# `make test` tries each shape in one of two ways: in pieces or in order.
FORMS = [
    pytest.param(make, name, marks=[pytest.mark.long] if (number + way) % 2 else [])
    for number, name in enumerate(IN_ORDER)
    for way, make in enumerate((in_turn, in_pieces))
]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("make", "name"), FORMS)
def test_parts_say_what_the_whole_says(name: str, make: Make, tmp_path: Path) -> None:
    if make is in_pieces and not has_kernels():
        pytest.skip("pieces are surveyed with kernels alone")
    went_on = 0
    for seed in range(times(1 if name in SLOW else 2)):
        root = tmp_path / str(seed)
        shape = replace(SHAPES[name], files=8, compressed=0.0, torn=0.0)
        files = in_time(write_capture(root / "capture", seed, shape))
        parts: dict[str, Rows] = {}
        before = None
        for number, some in enumerate(cut_at_random(random.Random(seed), files)):
            run = f"run{number}"
            parts[run] = analyzed(some, run, before, root, make)
            went_on += sum(row["began_in"] is not None for row in parts[run][CONNECTIONS])
            before = run
        whole, got = joined({"run0": analyzed(files, "whole", None, root, in_turn)}), joined(parts)
        assert got.keys() == whole.keys()
        for table, rows in whole.items():
            for one, other in zip(told(rows), told(got[table]), strict=True):
                assert one == other or is_unproven(one, other), (seed, table)
    assert went_on


def is_unproven(whole: Row, part: Row) -> bool:
    """Return whether nothing so far had shown that a frame's connection is Kafka."""
    return (whole.get("outcome"), part.get("outcome")) == (UNPAIRED, NOT_KAFKA)


def two_parts(tmp_path: Path) -> tuple[list[InputFile], list[InputFile], bytes]:
    """Return the files of a capture in two parts, and the state after the first part."""
    files = in_time(write_capture(tmp_path / "capture", 1, replace(SHAPES["CLEAN"], files=4)))
    analyzed(files[:2], "first", None, tmp_path, in_turn)
    return files[:2], files[2:], OutputDirectory(str(tmp_path / "first")).read(STATE)


def analyzed_after(asked: AnalysisRequest, make: Make = in_turn) -> Survey:
    return survey_after(asked, lambda request, state: make(request, {}, state))


@pytest.mark.long
def test_a_capture_from_before_is_told_and_leaves_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "LATE_US", 0)
    early, later, _ = two_parts(tmp_path)
    analyzed(later, "later", None, tmp_path, in_turn)
    found = analyzed_after(asked_for(early, "second", "later", tmp_path))
    alone = in_turn(replace(asked_for(early, "", None, tmp_path), continuation=None), {}, None)
    assert "from before the end of the previous analysis" in (found.begins_anew or "")
    # Nothing continues from this state, so its connections end with it.
    assert found.connections == alone.connections
    assert found.state == OutputDirectory(str(tmp_path / "later")).read(STATE)
    # Connections that continue after the end begin a new state.
    both = analyzed_after(asked_for(early + later, "both", "first", tmp_path))
    assert "from before the end of the previous analysis" in (both.begins_anew or "")
    begun = {*SavedState.from_bytes(both.state or b"").began.values()}
    assert begun == {"both"}
    assert analyzed_after(asked_for(later, "third", "first", tmp_path)).begins_anew is None


@pytest.mark.parametrize("lost", ["gone", "damaged", "other brokers", "credentials"])
def test_a_lost_state_is_told_and_the_analysis_begins_anew(lost: str, tmp_path: Path) -> None:
    _, later, state = two_parts(tmp_path)
    asked = asked_for(later, "second", "first", tmp_path)
    if lost == "gone":
        (tmp_path / "first" / STATE).unlink()
    elif lost == "damaged":
        (tmp_path / "first" / STATE).write_bytes(state[:-1])
    elif lost == "other brokers":
        asked = replace(asked, brokers=BrokerEnds.parse([9092], []))
    else:
        asked = replace(asked, show_credentials=False)
    found = analyzed_after(asked)
    alone = analyzed_after(replace(asked, continuation=Continuation("second")))
    assert "the state of the previous analysis cannot be used" in (found.begins_anew or "")
    assert found.connections == alone.connections
    assert found.state == alone.state != state


def test_a_state_is_without_connections_that_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idling, "OVER_US", 0)
    files, later, _ = two_parts(tmp_path)
    both = analyzed_after(asked_for(files + later, "whole", None, tmp_path))
    saved = SavedState.from_bytes(both.state or b"")
    first, *others = sorted(one.last_us for one in both.connections)
    over = {one.connection for one in both.connections if one.closed_by and one.last_us == first}
    assert over
    assert others
    assert over.isdisjoint(saved.began)
