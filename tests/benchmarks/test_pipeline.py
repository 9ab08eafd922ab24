"""The pipeline benchmark writes complete captures, and measures the cost of all processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flexwire.capture.files.links import Segment, read_segments
from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.codec import message
from flexwire.records import decode_batches
from tests.searching import in_make_long

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# The process leaves a child process running, and both report their CPU time.
COMPUTING = """
import os, time
if os.fork():
    os._exit(0)
while time.process_time() < 0.5:
    bytes(1000)
print(time.process_time(), flush=True)
"""
MEASURING = """
import json, sys
from processes import run
used = run([sys.executable, "-c", sys.argv[1]])
print(json.dumps([used.cpu, used.code, used.output]))
"""


def ran(*command: str) -> Any:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=BENCHMARKS,
        # For such a small capture, compiling the writer takes ten times as long as writing.
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def records_in(one: CapturedMessage) -> int:
    """Return the number of records in a message, and check that offsets continue across batches."""
    body: Any = message(one.name).decode(one.body, one.version)
    if one.name == "ProduceRequest":
        parts = [part for topic in body.topic_data for part in topic.partition_data]
    elif one.name == "FetchResponse":
        parts = [part for topic in body.responses for part in topic.partitions]
    else:
        return 0
    batches = [batch for part in parts for batch in decode_batches(part.records)]
    offsets = [record.offset for batch in batches for record in batch.records]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    return len(offsets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("heavy", {"connections": 1, "mb": 2, "file-mb": 9, "segment": 32768}),
        ("small", {"connections": 40, "mb": 1, "file-mb": 0.05, "segment": 1448}),
        *in_make_long(
            ("heavy", {"connections": 5, "mb": 3, "file-mb": 1, "segment": 1448}),
            ("small", {"connections": 3, "mb": 1, "file-mb": 9, "segment": 7}),
        ),
    ],
)
def test_every_frame_of_a_made_capture_decodes_and_pairs(
    tmp_path: Path, kind: str, settings: dict[str, float]
) -> None:
    given = [f"--{name}={value}" for name, value in settings.items()]
    told = ran("captures.py", str(tmp_path), "--kind", kind, *given)
    files = sorted(tmp_path.iterdir())
    assert told["bytes"] == sum(one.stat().st_size for one in files) > settings["mb"] * 1e6
    assert told["files"] == len(files) >= settings["mb"] / settings["file-mb"]
    found = list(read_messages(files))
    read = [one for one in found if isinstance(one, CapturedMessage)]
    assert (len(read), len(found)) == (told["frames"], told["frames"])
    assert sum(map(records_in, read)) == told["records"]
    by_type = Counter(one.type for one in read)
    assert len(set(by_type.values())) == 1
    packets = [one for file in files for one in read_segments(file)]
    assert len(packets) == told["packets"]
    segments = [one for one in packets if isinstance(one, Segment) and one.payload]
    assert max(len(one.payload) for one in segments) == settings["segment"]
    if settings["connections"] > 1:
        ends = [frozenset((one.source, one.destination)) for one in segments]
        assert len(set(ends)) == settings["connections"]
        assert sum(one != other for one, other in pairwise(ends)) > len(ends) / 2


@pytest.mark.long
@pytest.mark.slow
def test_what_an_orphan_takes_is_counted() -> None:
    cpu, code, output = ran("-c", MEASURING, COMPUTING)
    assert code == 0
    assert cpu >= float(output) >= 0.5


def test_a_command_s_failure_and_its_words_are_told() -> None:
    _, code, output = ran("-c", MEASURING, "import sys; sys.exit('no such luck')")
    assert (code, output) == (1, "no such luck\n")


@pytest.mark.long
@pytest.mark.slow
def test_a_case_that_is_not_one_is_refused() -> None:
    for case, told in (("huge", 'got "huge"'), ("heavy,colour=1", 'got "colour"')):
        done = subprocess.run(
            [sys.executable, "pipeline.py", case],
            cwd=BENCHMARKS,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert told in done.stderr
