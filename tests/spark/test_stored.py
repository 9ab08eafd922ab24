"""In an object store, a reader finds one whole output, wherever the writing analysis is killed."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import FlexwireError
from flexwire.spark.publishing.lease import STALE_SECONDS
from flexwire.spark.publishing.object_store import StoreStaging, store_staging
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.output import CURRENT, output, published
from tests.searching import in_make_long
from tests.spark.faulty import Store
from tests.storage.faulty_store import Store as FaultyStore
from tests.storage.faulty_store import serving
from tests.storage.servers import gs, s3
from tests.tables.test_reading import write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

NAMES = ("tables/frames/a", "tables/messages/X/a", "report.html", "tables/_SUCCESS")
DAY = 24 * 60 * 60


class Killed(BaseException):
    """End a process immediately, without any cleanup."""


@dataclass(frozen=True)
class Ending(Store):
    """A store that fails after this many changes.

    With ``does``, the failing change nevertheless takes effect.
    """

    calls: list[int] = field(default_factory=lambda: [1 << 30])
    error: type[BaseException] = Killed
    does: bool = False

    def child(self, name: str) -> Ending:
        return Ending(str(self.root / name), calls=self.calls, error=self.error, does=self.does)

    def write(self, name: str, data: bytes) -> None:
        self.count()
        if self.calls[0] >= 0 or (self.does and self.calls[0] == -1):
            super().write(name, data)
        self.end()

    def remove(self, names: Iterable[str]) -> None:
        self.count()
        self.end()
        super().remove(names)

    def count(self) -> None:
        self.calls[0] -= 1

    def end(self) -> None:
        if self.calls[0] == -1 or (self.calls[0] < 0 and self.error is Killed):
            raise self.error


@pytest.fixture
def out(tmp_path: Path) -> Path:
    place = tmp_path / "store"
    place.mkdir()
    return place


def write(staging: StoreStaging, text: str) -> None:
    for name in NAMES:
        staging.files.write(name, text.encode())


def analyze(out: Store, text: str) -> None:
    with store_staging(out) as staging:
        write(staging, text)
        staging.publish()


def state(out: Path) -> str:
    """Return what a reader finds. Fail if it is a mixture or lacks a part."""
    if not (out / CURRENT).exists():
        with pytest.raises(FlexwireError, match="there is no complete analysis"):
            published(Store(out))
        return ""
    place = published(Store(out))
    texts = {place.read(name) for name in NAMES}
    assert len(texts) == 1, texts
    return texts.pop().decode()


def age(out: Path, run: str, seconds: float) -> None:
    """Make everything that a run has written older by a given number of seconds."""
    for path in out.rglob("*"):
        if run in str(path) and path.is_file():
            when = path.stat().st_mtime - seconds
            os.utime(path, (when, when))


def runs(out: Path) -> set[str]:
    return {one.name for one in (out / "runs").iterdir() if any(one.rglob("*.html"))}


def end_lease(out: Path) -> None:
    """Make the lease of a killed run stale."""
    age(out, "_lease", 2 * STALE_SECONDS)


# The lease and the beginning of an output are written first. The lease is removed last.
PUBLISHED = len(NAMES) + 2
STEPS = PUBLISHED + 2


@pytest.mark.parametrize("before", ["", "old"])
@pytest.mark.parametrize("does", [True, False])
@pytest.mark.parametrize("error", [Killed, OSError])
@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_ended_at_any_step_a_reader_finds_old_or_new(
    out: Path, steps: int, error: type[BaseException], before: str, *, does: bool
) -> None:
    if before:
        analyze(Store(out), before)
    try:
        analyze(Ending(str(out), calls=[steps], error=error, does=does), "new")
    except error:
        assert steps < STEPS
        is_new = steps > PUBLISHED or (steps == PUBLISHED and does)
        assert state(out) == ("new" if is_new else before)
    else:
        # The output is complete even if the lease was not removed.
        assert steps >= STEPS - 1
        assert state(out) == "new"
    end_lease(out)
    # In every case, the next output is complete. A day later, only those files of the earlier
    # output remain that a reader may still use.
    for text in ("1", "2", "3"):
        analyze(Store(out), text)
        assert state(out) == text
        for run in (out / "_staging").iterdir():
            age(out, run.name, 2 * DAY)
    left = {(out / "runs" / run / "report.html").read_text() for run in runs(out)}
    assert left == {"1", "2", "3"}
    assert {one.name for one in (out / "_staging").iterdir()} == runs(out)


def test_what_fails_is_removed_at_once(out: Path) -> None:
    analyze(Store(out), "old")
    before = runs(out)
    with pytest.raises(KeyboardInterrupt), store_staging(Store(out)) as staging:  # noqa: PT012  # this call fails
        write(staging, "new")
        raise KeyboardInterrupt
    assert runs(out) == before
    with store_staging(Store(out)) as staging:
        write(staging, "not published")
    assert runs(out) == before
    assert state(out) == "old"


def test_of_two_at_once_the_last_is_the_output_and_neither_is_touched(out: Path) -> None:
    with store_staging(Store(out)) as one:
        write(one, "one")
        end_lease(out)  # one run is paused for a long time
        with store_staging(Store(out)) as other:
            write(other, "other")
            other.publish()
        assert state(out) == "other"
        one.publish()
        assert state(out) == "one"
    # A reader that began earlier can continue.
    assert runs(out) == {one.run, other.run}


def test_what_is_written_to_within_a_day_is_not_swept(out: Path) -> None:
    with pytest.raises(Killed):
        analyze(Ending(str(out), calls=[4]), "new")
    end_lease(out)
    (run,) = [one.name for one in (out / "_staging").iterdir()]
    age(out, run, DAY - 60)
    with store_staging(Store(out)):
        assert (out / "_staging" / run).exists()
    age(out, run, 120)
    # A task of that analysis is still writing.
    (out / "runs" / run / "late").touch()
    with store_staging(Store(out)):
        assert (out / "_staging" / run).exists()
    (out / "runs" / run / "late").unlink()
    with store_staging(Store(out)):
        assert not (out / "_staging" / run).exists()
        assert not list((out / "runs" / run).rglob("*.html"))


def test_only_what_is_ours_is_swept(out: Path) -> None:
    theirs = ["_staging/notes", "runs/notes/a", "tables/frames/a", "runs/20260101/a"]
    for name in theirs:
        Store(out).write(name, b"1")
        age(out, name, 9 * DAY)
    analyze(Store(out), "new")
    assert all((out / name).exists() for name in theirs)


def test_without_the_marker_nothing_is_published(out: Path) -> None:
    told = pytest.raises(
        FlexwireError, match=r"tables.* is unfinished, because _SUCCESS is missing"
    )
    with told, store_staging(Store(out)) as staging:
        staging.files.write("report.html", b"new")
        staging.publish()
    assert state(out) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 2, "run": null, "before": null}',
        '{"format": 1, "run": "../x", "before": null}',
        '{"format": 1, "run": 1, "before": null}',
    ],
)
def test_what_another_wrote_is_left_alone(out: Path, text: str) -> None:
    Store(out).write(CURRENT, text.encode())
    with pytest.raises(FlexwireError, match=r"current\.json was not written by this version"):
        published(Store(out))
    with pytest.raises(FlexwireError, match=r"current\.json was not written by this version"):
        analyze(Store(out), "new")
    assert (out / CURRENT).read_text() == text


@pytest.mark.slow
def test_a_store_that_answers_with_what_was_there_before_loses_no_output(tmp_path: Path) -> None:
    store = FaultyStore()
    with serving(store) as bucket:
        place = OutputDirectory(f"{bucket}/{tmp_path.name}")

        def analyze_there(text: str) -> None:
            with store_staging(place) as staging:
                write_output(staging.files)
                staging.files.write("report.html", text.encode())
                staging.publish()
                # After this point, the writer cannot learn whether the output was published.
                store.way = lambda asked: "gone" if asked.is_read and not asked.is_lease else ""

        for text in ("old", "new"):
            store.way = lambda _: ""
            analyze_there(text)
        for way in ("older", "gone"):
            store.way = lambda asked, way=way: (  # type: ignore[misc] # mypy takes the default for an argument
                way if asked.is_read and not asked.is_lease else ""
            )
            with suppress(FlexwireError), store_staging(place, abandoned=-1) as staging:
                write_output(staging.files)
                staging.publish()
        store.way = lambda _: ""
        assert output(place.url).read("report.html") == b"new"
        assert output(place.url).table("frames").num_rows == 2


@pytest.mark.slow
@pytest.mark.parametrize("store", [s3, *in_make_long(gs)])
def test_a_store_itself_has_one_output(
    store: Callable[[], AbstractContextManager[str]], tmp_path: Path
) -> None:
    with store() as bucket:
        place = OutputDirectory(f"{bucket}/{tmp_path.name}")
        for text in ("old", "new"):
            with store_staging(place) as staging:
                write_output(staging.files)
                staging.files.write("report.html", text.encode())
                staging.publish()
            found = output(place.url)
            assert found.place == staging.files
            assert found.read("report.html") == text.encode()
            assert found.table("frames", ["frame_index"]).num_rows == 2
        with pytest.raises(KeyboardInterrupt), store_staging(place) as staging:  # noqa: PT012  # this call fails
            write_output(staging.files)
            raise KeyboardInterrupt
        assert not list(staging.files.entries())
        assert output(place.url) == found
