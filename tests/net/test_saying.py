"""An event that a peer or a failure can repeat without limit is logged once a second."""

from __future__ import annotations

import ast
import asyncio
import logging
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import flexwire.tap
from flexwire.capture.files import pcapng
from flexwire.tap import log_limit
from flexwire.tap.log_limit import SECONDS, LogLimiter
from tests.net.broker import settled
from tests.net.test_lost_frames import ROUNDS, relayed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import FileIO

    import pytest

KINDS = ("frames that are lost", "clients that left")
# For each file, the log calls that neither a peer nor a failure can repeat, with the reason.
BOUNDED = {
    # There are at most 1,000 addresses.
    "connections.py": (7, "once for each address until it is reached again, and for each text"),
    "listeners.py": (
        3,
        "once for each listener, of 1,000 at most; after an error it waits",
    ),
    "processes.py": (4, "after each it waits, or a process ended; the lines of processes"),
    "rehearsal.py": (1, "once for each run"),
    "relay.py": (2, "lines for debugging, once for each connection"),
    "log_limit.py": (2, "these are the lines once a second"),
    "tap.py": (3, "each once for each run"),
    "worker.py": (1, "after each it does not ask for some seconds"),
}


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def logger(lines: Lines) -> logging.Logger:
    """Return a logger whose only handler is ``lines``."""
    log = logging.getLogger(f"{__name__}.{id(lines)}")
    log.propagate = False
    log.handlers = [lines]
    return log


@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS), st.integers(1, 9), st.integers(0, 12).map(lambda n: n / 8)
        )
    )
)
def test_lines_of_a_kind_are_a_second_apart_and_tell_of_everything(
    said: list[tuple[str, int, float]],
) -> None:
    lines, now = Lines(), 0.0
    one = LogLimiter(logger(lines), lambda: now)
    times: dict[str, list[float]] = defaultdict(list)
    told: Counter[str] = Counter()
    for kind, count, wait in said:
        now += wait
        before = len(lines.texts)
        one.say(logging.ERROR, kind, f"{kind}/{count}", count=count)
        for text in lines.texts[before:]:
            times[kind].append(now)
            told[kind] += count + sum(map(int, re.findall(r"and (\d+) more", text)))
    for kind, at in times.items():
        assert at[0] >= 0
        assert all(b - a >= SECONDS for a, b in pairwise(at)), kind
    before = len(lines.texts)
    one.close()
    for text in lines.texts[before:]:
        kind, _, count_text = text.partition(": ")
        told[kind] += int(count_text.removesuffix(" more"))
    expected: Counter[str] = Counter()
    for kind, count, _ in said:
        expected[kind] += count
    assert told == expected


def test_what_was_left_out_is_told_by_itself_where_an_event_loop_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_limit, "SECONDS", 0.01)
    lines = Lines()

    async def job() -> None:
        one = LogLimiter(logger(lines))
        for _ in range(3):
            one.say(logging.WARNING, KINDS[0], "text")
        await settled(lambda: len(lines.texts) == 2)

    asyncio.run(job())
    assert lines.texts == ["text", f"{KINDS[0]}: 2 more"]


def test_a_full_disk_is_said_once_a_second_with_the_count_of_lost_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: FileIO, pieces: Sequence[bytes]) -> int:
        del file, pieces
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_limit, "SECONDS", 1e6)
    with caplog.at_level(logging.INFO, "flexwire.tap"):
        stats = relayed(
            tmp_path,
            lambda: monkeypatch.setattr(pcapng, "_write_whole", full),
            max_bytes=1 << 20,
        )
    assert stats.capture_failures == ROUNDS // 2 * 3 * 2
    lost = [one.getMessage() for one in caplog.records if "not captured" in one.getMessage()]
    assert [bool(re.search(r"not captured: .*No space left", one)) for one in lost] == [
        True,  # the first lost frames
        True,  # the end of the connection
        False,
    ]
    (more,) = re.findall(r"^frames that are not captured: (\d+) more$", lost[-1])
    # Frames that arrive together are lost together.
    assert stats.capture_failures - 3 <= int(more) < stats.capture_failures


def test_every_line_of_the_tap_is_bounded() -> None:
    found: Counter[str] = Counter()
    for path in Path(flexwire.tap.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                on = ast.unparse(node.func.value)
                asks = node.func.attr in {"isEnabledFor", "getEffectiveLevel"}
                found[path.name] += on in {"log", "self._log", "_LOG"} and not asks
    assert +found == {name: count for name, (count, _) in BOUNDED.items()}
