"""Measure the driver of a large analysis: a million files, and the results of 20,000 tasks.

``python benchmarks/driver.py [PART...]``, or ``make bench-driver``. Each part runs in a separate
process, and prints its CPU time and its peak memory, imports included:

- ``here``: list a million files of a directory; ``store``: list as many of a bucket, with the real
  client, from a server on this machine that answers with pages as S3 does;
- ``ask``: the request for a survey of a million files, its digest, and its file;
- ``commit``: the results of all tasks, as they come from Spark, are checked;
- ``tables``: which small files of these tables are joined, the plans for that, and the check of the
  final files. Tasks do the joining, which is left out;
- ``sums``: the sums of all tasks are merged;
- ``publish``: the mark, the facts and the report with a million files;
- ``spark``: all tasks run on Spark with their results and sums, for some minutes. The shares of
  Java and the workers are printed separately.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import sys
import tempfile
import time
import zlib
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from captures import AnalysisRequest as Capture
from captures import make
from processes import run

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.facts.audit import Audit
from flexwire.inputs import capture_sources
from flexwire.measures.analysis import AnalysisSums, facts_of
from flexwire.report import render
from flexwire.spark.capture_job import SummedFiles, merged_sums
from flexwire.spark.publishing import commit, compaction
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.manifest import (
    PARTS,
    TABLES,
    CommittedTask,
    WrittenFile,
    WrittenFiles,
    joined_name,
    part_name,
    settle,
)
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.spark.session import session
from flexwire.spark.tables import Tables, mark
from flexwire.storage.file_search import list_captures
from flexwire.storage.input_file import InputFile
from flexwire.storage.local import compress, decompress
from flexwire.storage.output_directory import OutputDirectory
from flexwire.storage.store_listing import FileEntry
from flexwire.survey.survey import AnalysisRequest, Surveyor
from flexwire.tables.inflation import InflationMeter

MOST_TABLES = 60
LARGE = ("records", "frames", "messages/FetchResponse")
PAGE = 1000
DIRECTORY = 1000
MEASURED = ("here", "store", "ask", "commit", "tables", "sums", "publish", "spark")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


# A million files.


def name_of(number: int) -> str:
    return f"host-{number // DIRECTORY:06d}/capture-{number:09d}.pcapng"


def make_tree(root: Path, count: int) -> None:
    for number in range(count):
        path = root / name_of(number)
        if number % DIRECTORY == 0:
            path.parent.mkdir()
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def page(first: int, count: int) -> bytes:
    """Return a page of a bucket's listing."""
    last = min(first + PAGE, count)
    rows = "".join(
        f"<Contents><Key>{name_of(number)}</Key><LastModified>2026-01-01T00:00:00.000Z"
        f'</LastModified><ETag>"{number:032x}"</ETag><Size>{86_400_000 + number}</Size>'
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for number in range(first, last)
    )
    more = f"<NextContinuationToken>{last}</NextContinuationToken>" if last < count else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>captures</Name>'
        f"<Prefix></Prefix><KeyCount>{last - first}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
        f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{rows}</ListBucketResult>"
    ).encode()


def serve(count: int, told: object) -> None:
    class Bucket(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            data = page(int(asked.get("continuation-token", ["0"])[0]), count)
            self.send_response(200)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    told.put(server.server_port)
    server.serve_forever()


@contextmanager
def bucket(count: int):
    context = get_context("spawn")
    told = context.Queue()
    process = context.Process(target=serve, args=(count, told), daemon=True)
    process.start()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{told.get()}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    yield "s3://captures/"
    process.terminate()


def listed(path: str, asked: argparse.Namespace) -> str:

    found = capture_sources([path])
    assert len(found) == asked.files
    return f"{len(found):,} files"


def here(asked: argparse.Namespace) -> str:
    return listed(asked.tree, asked)


def store(asked: argparse.Namespace) -> str:
    with bucket(asked.files) as url:
        return listed(url, asked)


def sources(count: int) -> list:

    return [
        InputFile(f"s3://captures/{name_of(number)}", 86_400_000 + number, f"{number:032x}")
        for number in range(count)
    ]


def surveyed(_asked: object, number: int, _task_output: object) -> int:
    return number


def ask(asked: argparse.Namespace) -> str:

    told = AnalysisRequest(tuple(sources(asked.files)))
    assert told.digest
    with tempfile.TemporaryDirectory() as place:
        job = commit._TaskJob(
            None, partial(surveyed, told), OutputDirectory(place), bytes(32)
        ).light()
        size = (Path(place) / job.left).stat().st_size
        return f"{size / 1e6:,.0f} MB left for the survey, {len(pickle.dumps(job)):,} bytes travel"


# The results of 20,000 tasks.


def files_of(number: int) -> list:
    """Return what a range of 4 GB leaves: a few large files of tables, and small files of the
    others.
    """

    names = [*LARGE, *(f"messages/Message{place}" for place in range(MOST_TABLES - len(LARGE)))]
    found = []
    for place, table in enumerate(names):
        is_whole = place < len(LARGE)
        folder, size = (TABLES, 250_000_000) if is_whole else (PARTS, 12_000 * place + number % 997)
        name = f"{folder}/{table}/{part_name('9f86d081884c7d65', number, 0)}"
        found.append(WrittenFile(name, table, size, size // 40, zlib.crc32(name.encode())))
    return found


def results(asked: argparse.Namespace, place: object) -> list:
    """Pass results through a commit's file, as an analysis does."""

    job = commit._TaskJob(None, surveyed, place, bytes(32))
    job.leave(
        (number, pickle.dumps(CommittedTask(number, WrittenFiles(files_of(number)), None)))
        for number in range(asked.tasks)
    )
    return commit._checked(job.opened(place.read(job.results)), asked.tasks)


def committed(asked: argparse.Namespace) -> str:

    with tempfile.TemporaryDirectory() as place:
        found = results(asked, OutputDirectory(place))
        return f"{sum(len(one.files) for one in found):,} files of {len(found):,} tasks"


class Paper:
    """A store that claims to have everything that was written, but keeps only plans."""

    path = None

    def __init__(self, root: Path, asked: argparse.Namespace) -> None:

        self._kept = OutputDirectory(str(root))
        self._tasks = asked.tasks
        self.write, self.read = self._kept.write, self._kept.read
        self.removed = 0
        self.tables: list = []

    def entries(self, prefix: str):

        if prefix == "_parts/":
            for number in range(self._tasks):
                for one in files_of(number):
                    if one.name.startswith(prefix):
                        yield FileEntry(one.name, one.size, FIRST, "")
        elif prefix == "tables/":
            for one in self.tables:
                yield FileEntry(one.name, one.size, FIRST, "")
        else:
            yield from self._kept.entries(prefix)

    def remove(self, names) -> None:
        self.removed += sum(1 for _ in names)

    def sweep(self, _before) -> int:
        return 0


def tables(asked: argparse.Namespace) -> str:

    with tempfile.TemporaryDirectory() as root:
        place = Paper(Path(root), asked)
        counts = []

        def planned(_spark, count, _work, task_output) -> list:
            found = []
            for number in range(count):
                runs = pickle.loads(task_output.directory.read(compaction._plan_of(number)))
                made = [
                    WrittenFile(
                        f"tables/{one.folder}/{joined_name(one.prefix, *one.span, 0)}",
                        *(one.table, one.size, 1, 1),
                    )
                    for one in runs
                ]
                found.append(CommittedTask(number, WrittenFiles(made), None))
            counts.append(count)
            return found

        compaction.run_tasks = planned
        found = results(asked, place)
        written = compaction.compact(None, found, TaskOutput(place))
        compaction.remove_parts(place)
        written = list(written)
        place.tables = written
        settle(place, written)
        large = len(LARGE) * asked.tasks
        return (
            f"{place.removed:,} parts become {len(written) - large:,} files in {counts[0]} tasks, "
            f"beside {large:,} that are large enough"
        )


def sums_of_a_range(folder: Path) -> bytes:
    """Return the sums of a range's task, for both kinds of traffic."""
    merged = AnalysisSums(0)
    for kind in ("heavy", "small"):
        make(folder / kind, Capture(kind, mb=20))
        told = AnalysisRequest(tuple(list_captures([folder / kind])))
        kept = {}
        found = Surveyor(told, kept.__setitem__).run()
        with (
            TaskOutput(OutputDirectory(str(folder))).open_attempt(0) as task_output,
            SummedFiles(task_output, told.digest, 0, 0) as writers,
        ):
            for number in range(found.ranges):
                meter = InflationMeter(told.inflation, 20 << 20)
                writers.write_range(told, number, kept.__getitem__, meter)
        (data,) = [one.read_bytes() for one in (folder / "_sums").rglob("0*") if one.is_file()]
        merged.merge(pickle.loads(decompress(data)))
        shutil.rmtree(folder / "_sums")
    return pickle.dumps(merged, pickle.HIGHEST_PROTOCOL)


def sums(asked: argparse.Namespace) -> str:

    with tempfile.TemporaryDirectory() as folder:
        data = sums_of_a_range(Path(folder))
    merged = AnalysisSums(0, spills=True)
    began = time.process_time()
    for _ in range(asked.tasks):
        merged.merge(pickle.loads(data))
    took = time.process_time() - began
    return f"{len(data):,} bytes a task; the driver merges {asked.tasks} in {took:.1f} CPU s"


def publish(asked: argparse.Namespace) -> str:

    names = [one.url for one in sources(asked.files)]
    gathered = AnalysisSums(0)
    gathered._packets = dict.fromkeys(names, 1)
    facts = facts_of(gathered.parts(BrokerEnds()), Audit(), title="", made_at_us=0)
    with tempfile.TemporaryDirectory() as root:
        mark(Tables(Path(root)), names)
        size = sum(one.stat().st_size for one in Path(root).iterdir())
    told = len(json.dumps(facts.to_json()))
    page = len(render(facts))
    return f"marks {size / 1e6:,.1f} MB, facts {told / 1e6:,.1f} MB, report {page / 1e6:,.1f} MB"


def paper_task(data: bytes, number: int, task_output: object) -> None:
    task_output.files += files_of(number)
    task_output.directory.write(f"_sums/0/{number:06d}", compress(data))


def on_spark(asked: argparse.Namespace) -> str:

    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "capture").mkdir()
        (Path(root) / "out").mkdir()
        data = sums_of_a_range(Path(root) / "capture")
        spark = session(memory="2g")
        task_output = TaskOutput(OutputDirectory(f"{root}/out"))
        began = time.perf_counter()
        found = run_tasks(spark, asked.tasks, partial(paper_task, data), task_output)
        ran = time.perf_counter() - began
        merged_sums(task_output.directory, 0, asked.tasks)
        merged = time.perf_counter() - began - ran
        spark.stop()
    assert sum(len(one.files) for one in found) == MOST_TABLES * asked.tasks
    return f"tasks {ran:.0f} s on the wall, merging their sums {merged:.0f} s"


FUNCTIONS = {
    "here": here,
    "store": store,
    "ask": ask,
    "commit": committed,
    "tables": tables,
    "sums": sums,
    "publish": publish,
    "spark": on_spark,
}


def most_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(one.split()[1]) * 1024 for one in lines if one.startswith("VmHWM"))


def measured(part: str, asked: argparse.Namespace) -> None:
    """Run a part in a separate process; its last line has the result."""
    began, cpu = time.perf_counter(), time.process_time()
    told = FUNCTIONS[part](asked)
    took = time.process_time() - cpu, time.perf_counter() - began
    print(json.dumps([*took, most_memory(), told]))


def show(part: str, given: list[str]) -> None:
    command = [sys.executable, __file__, *given, "--inside", part]
    used = run(command)
    if used.code:
        raise SystemExit(f"{part} ended with {used.code}:\n{used.output}")
    cpu, wall, memory, told = json.loads(used.output.splitlines()[-1])
    print(f"{part:8}{cpu:8.1f}{wall:8.1f}{memory / 1e6:8,.0f}  {told}")
    if part == "spark":
        for kind in ("driver", "java", "workers"):
            seconds, most = used.by_kind.get(kind, 0.0), used.rss.get(kind, 0)
            print(f"  {kind:6}{seconds:8.1f}{'':8}{most / 1e6:8,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*MEASURED, []], default=[])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--tree", type=Path, help="a directory made before, with so many files")
    parser.add_argument("--inside", choices=MEASURED, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        measured(asked.inside, asked)
        return
    given = [f"--files={asked.files}", f"--tasks={asked.tasks}"]
    print(f"{asked.files:,} files, {asked.tasks:,} tasks with {MOST_TABLES} files each")
    print(f"{'':8}{'CPU s':>8}{'wall s':>8}{'MB':>8}")
    for part in asked.parts or MEASURED:
        if part != "here" or asked.tree:
            show(part, [*given, *([f"--tree={asked.tree}"] if asked.tree else [])])
            continue
        with tempfile.TemporaryDirectory() as tree:
            make_tree(Path(tree), asked.files)
            show(part, [*given, f"--tree={tree}"])


if __name__ == "__main__":
    main()
