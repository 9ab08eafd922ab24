"""Tasks that share the connections of several hosts find the same facts as a single task.

Everything is compared: the survey, its state for a later analysis, the entries for ranges, and the
rows of each range in their order.
"""

from __future__ import annotations

import random
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly import idling, merging
from flexwire.capture.reassembly.assembly import WHOLE, ConnectionShare
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.merging import MergedReader
from flexwire.capture.reassembly.segments import FileNotes
from flexwire.storage.file_search import list_captures
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey import state as state_module
from flexwire.survey.request import Continuation
from flexwire.survey.shares import join_shares, survey_share
from flexwire.survey.state import FrameTimes, LateError, SurveyState, UnprovenError
from flexwire.survey.survey import (
    STATE,
    AnalysisRequest,
    Survey,
    look_at_readable_files,
    survey_after,
)
from tests.capture.columns.test_merging import rows_of as segments_of
from tests.capture.columns.test_merging import waiting_of
from tests.capture.exchanges import Talk
from tests.capture.interleaved import EVERYTHING, HOSTS, STRANGE, UNORDERED, write_capture
from tests.searching import in_make_long, times, trying_few
from tests.tables.sharing import assert_same, found_by, in_one, in_shares, no_kernels
from tests.tables.test_going_on import cut_at_random, in_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.tables.sharing import Found, Kept, Make

SHAPES = {
    "hosts": HOSTS,
    "unordered": replace(UNORDERED, taps=3),
    "lossy": replace(
        HOSTS, loss=0.03, unseen=0.03, reorder=0.1, repeats=0.05, reuse=0.5, reset=0.4
    ),
    "secured": replace(HOSTS, talk=Talk(sasl=0.8, hidden=0.5, others=0.2, large=0.05), loss=0.005),
    "damaged": replace(
        HOSTS,
        torn=0.5,
        noise=0.05,
        blocks=0.02,
        snaplen=700,
        formats=("pcapng", "pcap", "nanoseconds"),
    ),
    "strange": replace(STRANGE, hosts=3, shared=0.7, skew=3_000),
    "everything": replace(EVERYTHING, hosts=3, shared=0.7, skew=3_000),
}
SMALL: dict[str, Any] = {"range_bytes": 15_000, "chunk_bytes": 3_000}


def asked_for(files: list[Path], **how: Any) -> AnalysisRequest:
    return AnalysisRequest(tuple(list_captures(files)), record_bytes=True, **how)


def found_in(asked: AnalysisRequest, make: Make, before: bytes | None = None) -> Found:
    kept: Kept = {}
    return found_by(asked, make(asked, kept, before), kept)


# Damaged files are read differently. The shape "everything" contains all that the others contain,
# and takes the longest.
FEW = ("damaged",)


@pytest.mark.slow
@pytest.mark.parametrize("name", trying_few(SHAPES, FEW))
def test_shares_find_what_one_task_finds(name: str, tmp_path: Path) -> None:
    for seed in range(times(1)):
        source = random.Random(f"{name} {seed}")
        files = write_capture(tmp_path / str(seed), seed, SHAPES[name])
        for how in ({}, SMALL):
            asked = asked_for(files, **how, show_credentials=source.random() < 0.5)
            expected = found_in(asked, in_one)
            assert expected["survey"].is_merged
            assert expected["survey"].ranges > 1 or not how
            # Without ranges, the number of shares makes no other difference.
            counts = {1, source.randrange(2, 20)} if how else {source.randrange(2, 5)}
            for shares in counts:
                got = found_in(asked, partial(in_shares, shares=shares))
                assert_same(got, expected, (seed, how, shares))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["everything", *in_make_long("hosts", "secured")])
def test_shares_without_kernels_find_what_one_task_finds(name: str, tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, SHAPES[name])
    asked = asked_for(files, **SMALL)
    with no_kernels():
        expected = found_in(asked, in_one)
        assert_same(found_in(asked, partial(in_shares, shares=3)), expected, "none")
    # Kernels affect only where ranges end, and the order of rows.
    with_kernels = found_in(asked, partial(in_shares, shares=2))
    assert whole_of(with_kernels) == whole_of(expected)


def whole_of(found: Found) -> dict[str, Any]:
    """Return the survey and the rows of all ranges, in a fixed order."""
    rows: dict[str, list[str]] = defaultdict(list)
    for name, some in found.items():
        if name.startswith("rows"):
            rows[name.split()[2]] += map(repr, some)
    tables = {table: sorted(some) for table, some in rows.items()}
    survey = found["survey"]
    notes = sorted(map(repr, survey.notes))
    return {"survey": replace(survey, ranges=0, notes=[]), "notes": notes, **tables}


@pytest.mark.long
@pytest.mark.slow
def test_many_files_that_overlap_are_surveyed_in_shares(tmp_path: Path) -> None:
    talk = Talk(exchanges=60)
    shape = replace(HOSTS, files=110, talk=talk, compressed=0.02, noise=0.0)
    files = write_capture(tmp_path, 1, shape)
    assert len(files) > merging.MOST_OPEN
    for most_open in (merging.MOST_OPEN, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merging, "MOST_OPEN", most_open)
            asked = asked_for(files, range_bytes=50_000, chunk_bytes=30_000)
            expected = found_in(asked, in_one)
            got = found_in(asked, partial(in_shares, shares=4))
        assert_same(got, expected, most_open)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lossy", *in_make_long("hosts", "secured", "unordered")])
@pytest.mark.parametrize("kernels", [True, *in_make_long(False)])
def test_appended_analyses_in_shares_go_on_as_those_of_one_task(
    name: str, tmp_path: Path, *, kernels: bool
) -> None:
    went_on = 0
    for seed in range(times(1)):
        root, source = tmp_path / str(seed), random.Random(seed)
        shape = replace(SHAPES[name], compressed=0.0, files=3, unended=0.6)
        files = in_time(write_capture(root / "capture", seed, shape))
        for number, some in enumerate(cut_at_random(source, files)):
            found: list[Found] = []
            for name_of, shares in (("one", 1), ("many", source.randrange(2, 6))):
                place = root / name_of
                before = OutputDirectory(str(place / f"run{number - 1}")) if number else None
                continuation = Continuation(f"run{number}", before)
                asked = AnalysisRequest(
                    tuple(some), record_bytes=True, continuation=continuation,
                    show_credentials=True, **SMALL,
                )  # fmt: skip
                make = in_one if shares == 1 else partial(in_shares, shares=shares)
                kept: Kept = {}
                with nullcontext() if kernels else no_kernels():
                    survey = survey_after(asked, partial(made, make, kept))
                    assert survey.begins_anew is None
                    assert survey.state is not None
                    OutputDirectory(str(place / f"run{number}")).write(STATE, survey.state)
                    found.append(found_by(asked, survey, kept))
            assert_same(found[1], found[0], (seed, number))
            went_on += sum(one.began_in is not None for one in survey.connections)
    assert went_on


def made(make: Make, kept: Kept, asked: AnalysisRequest, before: bytes | None) -> Survey:
    return make(asked, kept, before)


@pytest.mark.long
def test_a_late_capture_is_late_for_a_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path / "capture", 1, replace(HOSTS, files=1, compressed=0.0))
    asked = replace(asked_for(files, **SMALL), continuation=Continuation("first"))
    state = in_one(asked, {}).state
    for late_us, is_late in ((0, True), (60_000_000, False)):
        monkeypatch.setattr(state_module, "LATE_US", late_us)
        for make in (in_one, partial(in_shares, shares=3)):
            if is_late:
                with pytest.raises(LateError):
                    make(asked, {}, state)
            else:
                make(asked, {}, state)


@pytest.mark.long
@pytest.mark.slow
def test_a_state_in_shares_is_without_connections_that_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idling, "OVER_US", 0)
    monkeypatch.setattr(idling, "MOST_PAUSED", 4)
    files = write_capture(tmp_path, 1, replace(HOSTS, unended=0.8))
    asked = replace(asked_for(files, **SMALL), continuation=Continuation("first"))
    expected = found_in(asked, in_one)
    assert 0 < len(expected["state"]["assemblers"]) <= 4
    assert_same(found_in(asked, partial(in_shares, shares=3)), expected, "over")


def test_parts_whose_ranges_differ_are_refused(tmp_path: Path) -> None:
    asked = asked_for(write_capture(tmp_path, 1, HOSTS), **SMALL)
    known = Survey()
    looks = look_at_readable_files(asked, known)
    assert looks is not None
    kept: Kept = {}
    parts = [
        survey_share(one, looks, ConnectionShare(number, 2), kept.__setitem__)
        for number, one in enumerate((asked, replace(asked, range_bytes=16_000)))
    ]
    with pytest.raises(UnprovenError):
        join_shares(asked, kept.__setitem__, looks, known, parts)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [HOSTS, replace(UNORDERED, taps=3), replace(EVERYTHING, taps=2)])
def test_shares_of_a_reader_have_each_segment_once_and_end_chunks_alike(
    tmp_path: Path, shape: Any
) -> None:
    waiting = waiting_of(write_capture(tmp_path, 1, shape))

    def read(share: ConnectionShare) -> tuple[list[Any], list[Any], list[FileNotes]]:
        reader = MergedReader(waiting, chunk_bytes=3_000, most_skipped=1 << 30)
        reader.share = share
        rows: list[Any] = []
        places: list[Any] = []
        notes: list[FileNotes] = []
        for item in reader:
            if isinstance(item, FileNotes):
                notes.append(item)
                continue
            assert item.clock_us is not None
            own = segments_of(item)
            assert all(share.has(key) for key, *_ in own)
            rows += [(len(places), *one) for one in zip(own, item.clock_us.tolist(), strict=True)]
            places.append((item.totals, reader.position))
        return rows, places, notes

    whole, places, notes = read(WHOLE)
    shares = [read(ConnectionShare(number, 3)) for number in range(3)]
    assert sorted(row for rows, *_ in shares for row in rows) == sorted(whole)
    for rows, *others in shares:
        its = {row[1][0] for row in rows}
        assert rows == [row for row in whole if row[1][0] in its]
        assert others == [places, notes]


def lose_a_key(patch: pytest.MonkeyPatch) -> None:
    has = ConnectionShare.has
    patch.setattr(ConnectionShare, "has", lambda own, key: has(own, key) and key[-1] != "1")


def count_notes_twice(patch: pytest.MonkeyPatch) -> None:
    join = SurveyState.join

    def twice(own: SurveyState, parts: Any) -> None:
        join(own, parts)
        own.survey.notes += parts[1].notes

    patch.setattr(SurveyState, "join", twice)


def turn_keys_around(patch: pytest.MonkeyPatch) -> None:
    joined = Flows.joined.__func__  # type: ignore[attr-defined]  # of the class method
    patch.setattr(
        Flows, "joined", classmethod(lambda own, parts, keys: joined(own, parts, [*keys][::-1]))
    )


def forget_times(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FrameTimes, "add", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant", [lose_a_key, *in_make_long(count_notes_twice, turn_keys_around, forget_times)]
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_for(write_capture(tmp_path, 1, replace(HOSTS, unended=0.8)), **SMALL)
    expected = found_in(asked, in_one)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_same(found_in(asked, partial(in_shares, shares=2)), expected, plant)
