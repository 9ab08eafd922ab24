"""A run gives way if another run holds an output's lease, but nothing depends on the lease."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli import main
from flexwire.cli.app import app
from flexwire.errors import FlexwireError, StorageError
from flexwire.spark.delta import layout
from flexwire.spark.delta.output import output
from flexwire.spark.delta.staging import AlreadyInError, upkeep_lock
from flexwire.spark.publishing.lease import MOST_BYTES, STALE_SECONDS, Lease, leased
from flexwire.storage.output_directory import OutputDirectory
from tests.capture.interleaved import CLEAN, write_capture
from tests.searching import in_make_long
from tests.spark.faulty import Store, wait_for
from tests.spark.grown import MESSAGE, analyze, delta_staging, sources, write
from tests.storage.faulty_store import Answer as StoreAnswer
from tests.storage.faulty_store import Asked, error, serving
from tests.storage.faulty_store import Store as FaultyStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.storage.input_file import InputFile
    from flexwire.storage.store_listing import FileEntry

YEARS = 9 * 365 * 24 * 60 * 60.0
BEYOND = 2 * STALE_SECONDS
HELD = "another run has been writing to .* since 20..-..-..T..:..:..Z; wait until that run is done"


@pytest.fixture(autouse=True)
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])


@pytest.fixture
def out(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FaultyStore, str]]:
    store = FaultyStore()
    with serving(store) as bucket:
        yield store, bucket


@pytest.fixture
def stored(served: tuple[FaultyStore, str]) -> tuple[FaultyStore, OutputDirectory]:
    store, bucket = served
    store.way = lambda _: ""
    return store, OutputDirectory(f"{bucket}/{uuid.uuid4().hex}")


def names(out: OutputDirectory) -> list[str]:
    return [entry.name.removeprefix("_lease/") for entry in out.entries("_lease/")]


def age(out: Store, seconds: float) -> None:
    """Make all leases and probes older, according to the store's clock."""
    for path in (out.root / "_lease").iterdir():
        when = path.stat().st_mtime - seconds
        os.utime(path, (when, when))


def content(out: OutputDirectory, name: str = "1") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(out.read(f"_lease/{name}"))
    return told


def test_a_lease_has_its_run_s_random_name_and_its_time_and_nothing_else(out: Store) -> None:
    with leased(out) as lease:
        assert names(out) == ["1"]
        first = content(out)
        lease.renew()
        second = content(out)
    assert names(out) == []
    assert lease.notes == []
    assert first["since"] == ""
    assert second.keys() == {"format", "owner", "since"}
    assert (second["format"], second["owner"]) == (1, first["owner"])
    with leased(out):
        assert content(out)["owner"] != first["owner"]


def test_while_a_lease_is_held_the_next_run_gives_way_at_once(out: Store) -> None:
    with leased(out) as lease:
        for _ in range(2):
            with pytest.raises(FlexwireError, match=HELD) as told, leased(out):
                pass
            assert "If that run was killed, its lease" in str(told.value)
            assert "_lease/1 ends at 20" in str(told.value)
            lease.renew()
        assert names(out) == ["1"]
    with leased(out):
        pass


def test_a_lease_is_renewed_while_its_run_works(out: Store) -> None:
    with leased(out, 0.1):
        wait_for(lambda: content(out)["since"] != "")
        before = (out.root / "_lease/1").stat().st_mtime_ns
        wait_for(lambda: (out.root / "_lease/1").stat().st_mtime_ns != before)
    assert names(out) == []
    assert "flexwire-lease" not in {thread.name for thread in threading.enumerate()}


def test_a_stale_lease_is_taken_over_and_its_user_is_told(out: Store) -> None:
    for name in ("1", "7", "now-0123456789abcdef", "notes"):
        out.write(f"_lease/{name}", b"")
    age(out, STALE_SECONDS - 60)
    with pytest.raises(FlexwireError, match="_lease/7, which another release"), leased(out):
        pass
    age(out, 120)
    with leased(out) as lease:
        # Foreign objects are left alone.
        assert names(out) == ["8", "notes"]
        (note,) = lease.notes
        assert "took over the lease of a run on" in note
        with pytest.raises(FlexwireError, match=HELD), leased(out):
            pass
    assert names(out) == ["notes"]


def test_a_run_that_was_paused_leaves_the_lease_to_its_successor(out: Store) -> None:
    with leased(out) as paused:
        age(out, BEYOND)
        with leased(out) as other:
            owner = content(out, "2")["owner"]
            paused.renew()
            paused.renew()
            assert names(out) == ["2"]
            assert content(out, "2")["owner"] == owner
        (note,) = paused.notes
        assert "another run took over the lease on" in note
        assert [text.split(" of ")[0] for text in other.notes] == ["took over the lease"]
    assert names(out) == []


def test_a_run_that_was_paused_while_it_renewed_takes_the_lease_from_nobody(out: Store) -> None:
    with leased(out) as paused:
        age(out, BEYOND)
        with leased(out):
            # The run was paused between its read and this write.
            out.write("_lease/1", json.dumps({"format": 1, "owner": "0" * 16}).encode())
            with pytest.raises(FlexwireError, match="another run has been writing to"), leased(out):
                pass
        assert names(out) == ["1"]
        age(out, BEYOND)
        with leased(out):
            assert names(out) == ["2"]
    assert len(paused.notes) == 1
    assert names(out) == []


@dataclass(frozen=True)
class Elsewhere(Store):
    """A store whose clock differs by nine years from this machine's clock."""

    seconds: float = -YEARS

    def __init__(self, url: Path, seconds: float) -> None:
        super().__init__(url)
        object.__setattr__(self, "seconds", seconds)

    def write(self, name: str, data: bytes) -> None:
        super().write(name, data)
        when = (self.root / name).stat().st_mtime + self.seconds
        os.utime(self.root / name, (when, when))


@pytest.mark.parametrize("seconds", [-YEARS, YEARS])
def test_clocks_of_machines_are_not_compared_with_the_store_s(out: Store, seconds: float) -> None:
    place = Elsewhere(out.root, seconds)
    with leased(place):
        with pytest.raises(FlexwireError, match=HELD), leased(place):
            pass
        age(place, BEYOND)
        with leased(place) as other:
            assert len(other.notes) == 1


def test_an_object_of_the_future_is_no_lease_for_ever(out: Store) -> None:
    out.write("_lease/1", b"")
    age(out, -YEARS)
    with leased(out) as lease:
        assert names(out) == ["2"]
        assert len(lease.notes) == 1


GARBAGE = {
    "empty": b"",
    "no text": b"\xff\0" * 9,
    "no object": b"[1]",
    "another format": b'{"format": 2, "owner": "0123456789abcdef", "since": ""}',
    "no owner": b'{"format": 1, "since": ""}',
    "an owner of another type": b'{"format": 1, "owner": [1], "since": ""}',
    "an owner with control characters": b'{"format": 1, "owner": "\\u001b[2J", "since": ""}',
    "deep": b"[" * MOST_BYTES,
    "a long number": b'{"format": 1%s}' % (b"0" * 4000),
    "long": b" " * (MOST_BYTES + 1),
    "infinite": b'{"format": Infinity, "owner": NaN, "since": -1}',
}


@dataclass(frozen=True)
class Bounded(Store):
    """A store that fails if a large object is read from it."""

    def __init__(self, url: Path) -> None:
        super().__init__(url)

    def source(self, entry: FileEntry) -> InputFile:
        assert entry.size <= MOST_BYTES
        return super().source(entry)


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_an_object_of_any_content_holds_until_it_is_stale(out: Store, data: bytes) -> None:
    place = Bounded(out.root)
    place.write("_lease/1", data)
    told = pytest.raises(FlexwireError, match="this release of flexwire cannot read the lease")
    with told as raised, leased(place):
        pass
    assert str(raised.value).isprintable()
    age(place, BEYOND)
    with leased(place) as lease:
        assert len(lease.notes) == 1
        # The lease also replaces such content in its own object.
        place.write("_lease/2", data)
        lease.renew()
        assert content(place, "2")["format"] == 1
    assert names(place) == []


def test_a_time_that_is_none_is_not_repeated(out: Store) -> None:
    told = {"format": 1, "owner": "0123456789abcdef", "since": "\x1b[2J2026-11-28T00:00:00Z\n"}
    out.write("_lease/1", json.dumps(told).encode())
    with pytest.raises(FlexwireError, match=HELD) as raised, leased(out):
        pass
    assert str(raised.value).isprintable()


def test_a_number_that_no_run_reaches_stops_nobody_for_ever(out: Store) -> None:
    for name in ("0", "01", "-1", "1.5", "\u0661", "1" * 30, "999999999"):
        out.write(f"_lease/{name}", b"")
    age(out, BEYOND)
    with leased(out):
        assert "1" in names(out)
        assert "999999999" not in names(out)
        with pytest.raises(FlexwireError, match=HELD), leased(out):
            pass


def test_a_store_that_does_not_answer_is_asked_again_at_the_next_renewal(
    out: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [2]
    asked = Store.write

    def write(self: Store, name: str, data: bytes) -> None:
        if failing[0] and content(self)["since"] == "":
            failing[0] -= 1
            raise StorageError("no answer", url=str(self), tried="write")
        asked(self, name, data)

    with leased(out, 0.1) as lease:
        monkeypatch.setattr(Store, "write", write)
        wait_for(lambda: content(out)["since"] != "")
        assert failing == [0]
        assert lease.notes == []


def test_a_run_that_fails_or_is_interrupted_removes_its_lease(out: Store) -> None:
    for raised in (KeyboardInterrupt, ValueError):
        with suppress(raised), leased(out):
            raise raised
        assert names(out) == []


def take(out: OutputDirectory) -> Lease | None:
    lease = Lease(out)
    try:
        lease.take()
    except FlexwireError:
        return None
    return lease


@pytest.mark.slow
@pytest.mark.parametrize("is_stale", [True, *in_make_long(False)])
def test_of_many_runs_that_begin_at_once_one_gets_the_lease(
    stored: tuple[FaultyStore, OutputDirectory], *, is_stale: bool
) -> None:
    store, out = stored
    for _ in range(5):
        if is_stale:
            out.write("_lease/1", b"")
            store.age("/_lease/", BEYOND)
        with ThreadPoolExecutor(8) as pool:
            leases = [*pool.map(lambda _: take(out), range(8))]
        (holder,) = [lease for lease in leases if lease is not None]
        assert len(holder.notes) == is_stale
        assert names(out) == ["2" if is_stale else "1"]
        holder.release()
        assert names(out) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["lost", "500 after", "500", "reset"])
def test_a_run_whose_request_got_no_answer_knows_its_lease(
    stored: tuple[FaultyStore, OutputDirectory], way: str
) -> None:
    store, out = stored
    failed: list[Asked] = []

    def once(asked: Asked) -> str:
        if failed or asked.method != "PUT":
            return ""
        failed.append(asked)
        return way

    store.way = once
    with leased(out) as lease:
        assert failed
        assert names(out) == ["1"]
        assert lease.notes == []
    assert names(out) == []


@pytest.mark.slow
def test_a_store_without_conditional_writes_has_leases_too(
    stored: tuple[FaultyStore, OutputDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out = stored
    done = FaultyStore.request

    def request(
        self: FaultyStore, asked: Asked, headers: dict[str, str], body: bytes, way: str
    ) -> StoreAnswer:
        if "if-none-match" in headers:
            return error(501, "NotImplemented")
        return done(self, asked, headers, body, way)

    monkeypatch.setattr(FaultyStore, "request", request)
    with leased(out):
        assert names(out) == ["1"]
        with pytest.raises(FlexwireError, match=HELD), leased(out):
            pass
    assert names(out) == []


@pytest.mark.long
@pytest.mark.slow
def test_an_analysis_gives_way_before_it_reads_or_writes(
    stored: tuple[FaultyStore, OutputDirectory],
) -> None:
    _, out = stored
    assert analyze(out, "one")
    with delta_staging(out, sources("two"), lambda _: "two", append=True) as writing:
        begun = {entry.name for entry in out.entries()}
        told = pytest.raises(FlexwireError, match=HELD)
        with told, delta_staging(out, sources("three"), lambda _: "three", append=True):
            pass
        assert {entry.name for entry in out.entries()} == begun
        write(writing, "two")
        writing.publish()
    assert analyze(out, "three")
    clients = output(out.url).table("frames", ["client_id"])["client_id"].to_pylist()
    assert sorted(clients) == ["one", "three", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["other", *in_make_long("paused")])
def test_if_a_lease_was_lost_the_ledger_decides(
    stored: tuple[FaultyStore, OutputDirectory], first: str
) -> None:
    store, out = stored
    assert analyze(out, "one")
    with delta_staging(out, sources("two"), lambda _: "two", append=True) as paused:
        write(paused, "two")
        store.age("/_lease/", BEYOND)
        with delta_staging(out, sources("two"), lambda _: "two", append=True) as other:
            write(other, "two")
            runs = [paused, other] if first == "paused" else [other, paused]
            runs[0].publish()
            with pytest.raises(AlreadyInError):
                runs[1].publish()
        assert other.notes
    assert paused.notes
    clients = output(out.url).table("frames", ["client_id"])["client_id"].to_pylist()
    assert sorted(clients) == ["one", "two"]
    assert names(out) == []
    # The next run finds nothing to do, and finds no lease.
    assert not analyze(out, "two")


CHILD = """
import sys
from flexwire.spark.publishing.lease import leased
from flexwire.storage.output_directory import OutputDirectory

with leased(OutputDirectory(sys.argv[1]), 0.5) as lease:
    print("begun", flush=True)
    sys.stdin.readline()
print(*lease.notes, flush=True)
"""


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_is_killed_leaves_a_lease_that_becomes_stale(
    stored: tuple[FaultyStore, OutputDirectory],
) -> None:
    store, out = stored
    with child(out) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        with pytest.raises(FlexwireError, match=HELD), leased(out):
            pass
        running.kill()
        running.wait()
        with pytest.raises(FlexwireError, match=HELD), leased(out):
            pass
    store.age(out.url.rpartition("/")[2], BEYOND)
    with leased(out) as lease:
        assert len(lease.notes) == 1
    assert names(out) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_is_paused_finds_its_successor_when_it_comes_back(
    stored: tuple[FaultyStore, OutputDirectory],
) -> None:
    store, out = stored
    with child(out) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, running.pid, os.WSTOPPED)
        # The last request of the other run may still be in transit.
        wait_for(lambda: _take_over(store, out))
        running.send_signal(signal.SIGCONT)
        told, _ = running.communicate("\n")
        assert "another run took over the lease on" in told
        assert running.returncode == 0
    assert names(out) == ["2"]


def _take_over(store: FaultyStore, out: OutputDirectory) -> bool:
    store.age(out.url.rpartition("/")[2], BEYOND)
    return take(out) is not None


def child(out: OutputDirectory) -> subprocess.Popen[str]:
    """Start another run, which works until it receives a line."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, out.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["compact"], ["retain", "--days", "1"], ["vacuum"], ["undo", "20261122T101500Z-1a2b3c4d"]],
    ids=lambda command: command[0],
)
def test_commands_of_tables_give_way_too(
    stored: tuple[FaultyStore, OutputDirectory], command: list[str]
) -> None:
    store, out = stored
    assert analyze(out, "one")
    run = CliRunner()
    line = ["tables", command[0], out.url, *command[1:]]
    with upkeep_lock(out, dry_run=False):
        assert "another run has been writing to" in str(run.invoke(app, line).exception)
        # A dry run writes nothing, and needs no lease.
        before = store.now()
        dry = run.invoke(app, [*line, "--dry-run"])
        assert "another run has been writing to" not in str(dry.exception)
        assert store.now() == before
    if command[0] == "vacuum":
        out.write("_lease/1", b"")
        store.age("/_lease/", BEYOND)
        done = run.invoke(app, line)
        assert done.exit_code == 0
        assert "took over the lease of a run on" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_command_gives_way_before_it_starts_spark(
    stored: tuple[FaultyStore, OutputDirectory],
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out = stored
    (capture,) = write_capture(tmp_path, 5, replace(CLEAN, files=1))
    line = ["analyze", str(capture), "--out", out.url, "--tables", kind]
    with leased(out):
        monkeypatch.setattr(sys, "argv", ["flexwire", *line])
        with pytest.raises(SystemExit, match="1"):
            main()
    assert "another run has been writing to" in capsys.readouterr().err
