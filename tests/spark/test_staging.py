"""The output of an analysis is complete or absent, wherever the analysis is killed."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import FlexwireError
from flexwire.spark.publishing import local as module
from flexwire.spark.publishing.local import LOCK, PARTS, PREFIX, LocalStaging, local_staging
from flexwire.spark.publishing.output import ANSWERS
from flexwire.spark.tables import TABLES, Tables, finished_tables, mark
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.output import MARKER, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD, NEW, THEIRS = "old", "new", "their own"
# Each output contains parts that the other lacks.
LACKING = {OLD: "audit.json", NEW: "tables/messages"}
STEPS = 2 * (len(PARTS) - 1) + 2


class Killed(BaseException):
    """End a process immediately, without any cleanup."""


def write(place: Path, text: str) -> None:
    """Write the output of an analysis, with ``text`` in every file."""
    for part in PARTS:
        if part == LACKING[text]:
            continue
        file = file_of(place, part)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (place / ANSWERS / MARKER).touch()
    mark(Tables(place / "tables"), [text])


def file_of(place: Path, part: str) -> Path:
    is_directory = part == ANSWERS or part.startswith("tables/")
    return place / part / "part-0" if is_directory else place / part


def found(out: Path) -> dict[str, str]:
    """Return the content of each existing part, without intermediate files."""
    parts = {}
    for part in PARTS:
        file = file_of(out, part)
        if file.exists():
            parts[part] = file.read_text()
    return parts


def whole(text: str) -> dict[str, str]:
    return {part: text for part in PARTS if part != LACKING[text]}


def state(out: Path) -> str:
    """Return what a reader finds: old, new or unfinished. Fail if it is a mixture."""
    parts = found(out)
    assert len(set(parts.values())) <= 1, parts
    try:
        finished_tables(out / "tables")
    except FlexwireError:
        return "unfinished"
    text = next(iter(parts.values()))
    assert parts == whole(text)
    assert f'"{text}"' in (out / "tables" / SUCCESS).read_text()
    return text


@pytest.fixture(params=[True, False], ids=["again", "first"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make a directory with or without an earlier output and other files of its owner."""
    place = tmp_path / "out"
    place.mkdir(mode=0o755)
    if request.param:
        with local_staging(place) as first:
            write(first.new, OLD)
            first.publish()
        (place / "tables" / "notes.txt").write_text(THEIRS)
    return place


def before(out: Path) -> str:
    return OLD if (out / "tables").exists() else "unfinished"


@contextmanager
def ending(monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException) -> Iterator[list[int]]:
    """Make rename number ``step`` raise and, after a kill, every later rename too."""
    real, calls = module.move, [0]

    def move(source: Path, target: Path) -> None:
        calls[0] += 1
        if calls[0] == step or (calls[0] > step and isinstance(error, Killed)):
            raise error
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(module, "move", move)
        yield calls


def staged(out: Path) -> LocalStaging:
    """Write the files of a killed analysis whose output is still in its own directory."""
    place = out / f"{PREFIX}dead"
    place.mkdir()
    write(place / "new", NEW)
    return LocalStaging(OutputDirectory(str(out)), place)


@pytest.mark.slow
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_a_reader_finds_old_or_new_or_is_told(
    out: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    was, dead = before(out), staged(out)
    assert state(out) == was
    with ending(monkeypatch, step, Killed()) as calls:
        try:
            dead.publish()
        except Killed:
            expected = {was, "unfinished"} if step == 1 else {"unfinished"}
        else:
            assert calls[0] < step
            expected = {NEW}
    assert state(out) in expected
    # In every case, the next analysis ends with its own output, and nothing remains of the dead
    # one.
    with local_staging(out) as again:
        assert not dead.directory.exists()
        write(again.new, NEW)
        again.publish()
    assert state(out) == NEW
    theirs = {"notes.txt"} if was == OLD else set()
    assert {one.name for one in out.iterdir()} == {"tables"} | {
        part for part in whole(NEW) if "/" not in part
    }
    tables = {ANSWERS, *TABLES} - {"messages"}
    assert {one.name for one in (out / "tables").iterdir()} == theirs | {MARKER, SUCCESS} | tables


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_the_old_output_comes_back_though_the_next_analysis_fails(
    out: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    was, files, dead = before(out), tree(out), staged(out)
    with ending(monkeypatch, step, Killed()), suppress(Killed):
        dead.publish()
    is_published = state(out) == NEW
    with pytest.raises(OSError, match="no room"), local_staging(out):
        raise OSError("no room")
    assert state(out) == (NEW if is_published else was)
    if was == OLD and not is_published:
        assert tree(out) == files


@pytest.mark.slow
@pytest.mark.parametrize("again", range(1, STEPS + 1))
@pytest.mark.parametrize("step", [1, 2, STEPS // 2, STEPS // 2 + 1, STEPS // 2 + 4, STEPS])
def test_killed_while_the_old_output_comes_back_it_comes_back_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, again: int
) -> None:
    with local_staging(tmp_path) as first:
        write(first.new, OLD)
        first.publish()
    files, dead = tree(tmp_path), staged(tmp_path)
    with ending(monkeypatch, step, Killed()), suppress(Killed):
        dead.publish()
    if state(tmp_path) == NEW:
        pytest.fail("the last step was not one of those that publish")
    with ending(monkeypatch, again, Killed()), suppress(Killed), local_staging(tmp_path):
        pass
    assert state(tmp_path) in {OLD, "unfinished"}
    with local_staging(tmp_path):
        pass
    assert tree(tmp_path) == files


@pytest.mark.parametrize("step", range(1, STEPS + 1))
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_where_a_step_fails_the_old_output_is_back(
    out: Path, monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException
) -> None:
    was, files = before(out), tree(out)
    with ending(monkeypatch, step, error) as calls:
        try:
            with local_staging(out) as place:
                write(place.new, NEW)
                place.publish()
        except (OSError, KeyboardInterrupt):
            assert tree(out) == files
            assert state(out) == was
        else:
            assert calls[0] < step
            assert state(out) == NEW
    assert not list(out.glob("_*"))


def test_every_step_was_tried(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ending(monkeypatch, STEPS + 1, Killed()) as calls:
        staged(out).publish()
    # The first time, there is no old output to move, but the directory must be marked as
    # flexwire's.
    assert calls[0] == (STEPS if before_was_old(out) else len(PARTS) + 1)


def before_was_old(out: Path) -> bool:
    return (out / "tables" / "notes.txt").exists()


def tree(out: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(out)): (
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(out.rglob("*"))
    }


@pytest.mark.parametrize("error", [FlexwireError("it failed"), KeyboardInterrupt(), SystemExit(1)])
def test_an_analysis_that_fails_leaves_nothing(out: Path, error: BaseException) -> None:
    files = tree(out)
    with pytest.raises(type(error)), local_staging(out) as place:  # noqa: PT012  # this call fails
        (place.new / "tables" / "frames").mkdir(parents=True)
        (place.new / "tables" / "frames" / "part-0.parquet").write_bytes(b"payload")
        assert place.directory.stat().st_mode & 0o777 == 0o700
        raise error
    assert tree(out) == files


def test_a_directory_that_nothing_came_into_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FlexwireError), local_staging(tmp_path / "a" / "out"):
        raise FlexwireError("it failed")
    assert not (tmp_path / "a" / "out").exists()


def test_a_second_analysis_into_the_same_directory_is_refused(out: Path) -> None:
    with local_staging(out) as first:
        write(first.new, NEW)
        with (
            pytest.raises(FlexwireError, match=r"another analysis is writing to .*out; wait until"),
            local_staging(out),
        ):
            pytest.fail("two at once")
        # And disturbs nothing.
        first.publish()
    assert state(out) == NEW
    with local_staging(out):
        assert (out / LOCK).stat().st_mode & 0o777 == 0o600


def test_of_many_that_begin_at_once_one_at_a_time_is_at_work(tmp_path: Path) -> None:
    out, at_work, most, refused = tmp_path / "out", [0], [0], [0]
    guard, go = threading.Lock(), threading.Barrier(8)

    def one() -> None:
        go.wait()
        for _ in range(20):
            try:
                with local_staging(out) as place:
                    with guard:
                        at_work[0] += 1
                        most[0] = max(most[0], at_work[0])
                    write(place.new, NEW)
                    place.publish()
                    assert place.directory.exists()
                    with guard:
                        at_work[0] -= 1
            except FlexwireError:
                with guard:
                    refused[0] += 1

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, at_work) == ([1], [0])
    assert refused[0] < 8 * 20
    assert state(out) == NEW
    assert not list(out.glob("_*"))


def test_a_lock_that_was_removed_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = fcntl.flock, [0]

    def flock(file: int, operation: int) -> None:
        calls[0] += 1
        if calls[0] == 1:  # the earlier analysis ends here
            (tmp_path / LOCK).unlink()
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with local_staging(tmp_path):
        assert calls[0] == 2
        with pytest.raises(FlexwireError, match="another analysis"), local_staging(tmp_path):
            pytest.fail("two at once")


def test_without_locks_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    told = pytest.raises(FlexwireError, match="cannot lock: Operation not supported")
    with told, local_staging(tmp_path):
        pytest.fail("not locked")


def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{PREFIX}dead").mkdir()
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0)
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", lambda *_, **__: None)
        told = pytest.raises(FlexwireError, match=r"remove .*unfinished-dead: this directory of an")
        with told, local_staging(tmp_path):
            pytest.fail("it is still there")


def test_what_a_dead_one_still_writes_is_removed_in_the_end(out: Path) -> None:
    with local_staging(out) as place:
        write(place.new, NEW)
        late = out / f"{PREFIX}dead" / "work" / "wire"
        late.mkdir(parents=True)
        (late / "part-0.parquet").write_bytes(b"payload")
        place.publish()
    assert not list(out.glob("_*"))


def test_only_our_own_leftovers_are_removed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(theirs)
    (tmp_path / "_flexwire-notes").mkdir()
    (tmp_path / f"{PREFIX}file").touch()
    names = {one.name for one in tmp_path.iterdir()}
    with local_staging(tmp_path):
        pass
    assert {one.name for one in tmp_path.iterdir()} == names


@pytest.mark.parametrize("name", ["tables", ANSWERS])
def test_files_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    theirs = tmp_path / name / "precious.csv"
    theirs.parent.mkdir()
    theirs.write_text(THEIRS)
    with pytest.raises(FlexwireError, match="did not write"), local_staging(tmp_path):
        pytest.fail("it is not ours")
    assert tree(tmp_path).keys() == {name, f"{name}/precious.csv"}
    assert theirs.read_text() == THEIRS


def test_tables_on_another_file_system_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tables = Path.stat, tmp_path / "tables"
    tables.mkdir()

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = list(real(path, follow_symlinks=follow_symlinks))
        found[2] += path == tables  # the device
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat)
    told = pytest.raises(FlexwireError, match="different file systems")
    with told, local_staging(tmp_path):
        pytest.fail("nothing can be renamed into it")


def test_reading_says_what_is_wrong(out: Path) -> None:
    tables = out / "tables"
    tables.mkdir(exist_ok=True)
    (tables / SUCCESS).unlink(missing_ok=True)
    (tables / MARKER).write_text('{"format": 1}')
    expected = r"unfinished, because _SUCCESS is missing.*analyze again"
    with pytest.raises(FlexwireError, match=expected):
        finished_tables(tables)
    (tables / MARKER).unlink()
    with pytest.raises(FlexwireError, match="contains no flexwire tables"):
        finished_tables(tables)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_all_is_its_owners_alone_and_what_was_there_keeps_its_mode(out: Path) -> None:
    tables = out / "tables"
    tables.mkdir(exist_ok=True)
    tables.chmod(0o750)
    umask = os.umask(0)
    try:
        with local_staging(out) as place:
            write(place.new, NEW)  # with umask 0, no permission is removed
            place.publish()
        with local_staging(out / "deeper" / "out") as place:
            write(place.new, NEW)
            place.publish()
    finally:
        os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o755
    assert tables.stat().st_mode & 0o777 == 0o750
    notes = tables / "notes.txt"
    for path in out.rglob("*"):
        if path not in {tables, notes}:
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
