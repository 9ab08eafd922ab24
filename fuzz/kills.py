"""``python -m fuzz.kills [--rounds N] [--seed N]``: kill analyses at random moments.

Each analysis reads a capture and a log, and computes the answers about both.

Each round kills one analysis with SIGKILL. Afterwards the output must be complete and from one
analysis, or say that it is unfinished. The last analysis is not killed, and must remove everything
that earlier ones left. Java survives a killed analysis for a moment and is left alone, as when
memory runs out.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexwire.errors import FlexwireError
from flexwire.spark.publishing.local import PARTS, PREFIX
from flexwire.spark.tables import SUCCESS, finished_tables
from flexwire.tables.log_schema import BATCHES
from flexwire.tables.request_logs import FORWARDED
from fuzz.arguments import asked
from tests.capture.made_logs import MadeSegment, plain
from tests.spark.traffic import Traffic, made

ROOT = Path(__file__).parents[1]
_POLL_SECONDS = 0.005
# About as many files as an analysis of such a capture writes, so some end before they are killed.
MOST_FILES = 60
ANSWERS = ("errors", "storage")


def write_input(directory: Path, exchanges: int) -> None:
    """Write a capture of this many requests and responses, and a log of as many records.

    These numbers identify the analysis.
    """
    segment = MadeSegment(0)
    for offset in range(exchanges):
        segment.add(plain(offset, 1))
    segment.write(directory / "orders-0")
    traffic = Traffic(directory)
    connection = traffic.connect()
    for number in range(exchanges):
        request, response = made("MetadataRequest"), made("MetadataResponse")
        traffic.exchange(connection, request, response, 9, number)
    connection.close(timestamp_us=traffic.now_us)
    traffic.close()


def analysis(given: Path, out: Path) -> subprocess.Popen[bytes]:
    """Return an analysis that was started, in a separate process."""
    command = [sys.executable, "-m", "flexwire", "analyze", str(given), "--out", str(out)]
    return subprocess.Popen(  # noqa: S603 - our own
        [*command, "--memory", "512m", "--answers", ",".join(ANSWERS)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kill_when(running: subprocess.Popen[bytes], out: Path, files: int) -> str:
    """Kill an analysis when it has written this many files; return what happened, in a word.

    Files are counted, and not seconds, so each moment is as likely on a slow machine as on a fast
    one.
    """
    try:
        while running.poll() is None and _written(out) < files:
            time.sleep(_POLL_SECONDS)
    finally:
        running.kill()
        _, errors = running.communicate()
    if running.returncode not in {0, -signal.SIGKILL}:
        raise RuntimeError(f"the analysis failed: {errors.decode(errors='replace')}")
    return "ended" if running.returncode == 0 else "killed"


def _written(out: Path) -> int:
    # The walk continues if files are removed during it.
    return sum(
        len(names) + len(places)
        for one in out.glob(f"{PREFIX}*")
        for _, places, names in os.walk(one)
    )


def state(out: Path, known: set[int | None]) -> int | None:
    """Return the number of exchanges in the output ``out``, or None if it is marked unfinished.

    Raises `AssertionError` if the output mixes two analyses, or lacks parts of one without a mark.
    """
    told = {}
    if (out / "facts.json").exists():
        facts = json.loads((out / "facts.json").read_text())
        told["facts"] = facts["totals"]["frames"] / 2
        told["facts of logs"] = facts["logs"]["records"]
    tables = out / "tables"
    if (tables / "frames").exists():
        told["frames"] = pq.read_table(tables / "frames").num_rows / 2
    for name in (BATCHES, "answers/storage"):
        if (tables / name).exists():
            told[name] = pc.sum(pq.read_table(tables / name)["records"]).as_py()
    if len(set(told.values())) > 1:
        raise AssertionError(f"a mix: {told}")
    try:
        finished_tables(out / "tables")
    except FlexwireError:
        return None
    # The captures have messages, and answers are computed. So each part exists, except those that
    # only request logs have.
    answered = [f"answers/{one}.csv" for one in ANSWERS]
    wanted = [part for part in (*PARTS, *answered) if part != f"tables/{FORWARDED}"]
    if missing := [part for part in wanted if not (out / part).exists()]:
        raise AssertionError(f"{missing} are missing, and {SUCCESS} is there")
    sources = json.loads((out / "tables" / SUCCESS).read_text())["sources"]
    (found,) = {int(part) for one in sources for part in Path(one).parts if part.isdigit()}
    if {*told.values()} != {found}:
        raise AssertionError(f"a mix: {told}, of {sources}")
    if found not in known:
        raise AssertionError(f"{found} exchanges are those of no capture")
    return found


def rounds(place: Path, count: int, seed: int) -> list[str]:
    """Kill this many analyses, and let one end; return what happened to each.

    Raises `AssertionError` like `complete`.
    """
    chosen = random.Random(seed)  # noqa: S311 - chance, not a secret
    out, told, before = place / "out", [], None
    for number in range(1, count + 2):
        write_input(place / str(number), number)
        is_last = number > count
        files = sys.maxsize if is_last else chosen.randrange(1, MOST_FILES)
        became = kill_when(analysis(place / str(number), out), out, files)
        found = state(out, {number, before})
        if became == "ended" and found != number:
            raise AssertionError(f"analysis {number} ended, and {found} is there")
        if found is None and before is not None and not list(out.glob(f"{PREFIX}*/old")):
            raise AssertionError(f"analysis {number} was not published yet, and {before} is gone")
        left = len(list(out.glob("_*")))
        told.append(f"{number}: {became} at {files} files, {found} is there, {left} are left")
        before = found
    if became != "ended" or left:
        raise AssertionError(f"the last analysis left {left}: {told}")
    return told


def main() -> int:
    """Run the requested rounds; raise an error if the law is broken."""
    given = asked("fuzz.kills", __doc__, rounds=30, of="analyses to kill")
    sys.stdout.write(f"== {given.rounds} analyses are killed, --seed {given.seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="flexwire-kills-") as place:
        for line in rounds(Path(place), given.rounds, given.seed):
            sys.stdout.write(f"   {line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
