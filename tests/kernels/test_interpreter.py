"""Kernels behave well in the interpreter: with threads, garbage collection, interrupts,
and exit.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import uuid
from collections import Counter
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest

from tests.codec.made_up import everything
from tests.kernels.harness import REFUSED, full_message, functions, hooked, row

if TYPE_CHECKING:
    from types import FrameType

MadeUp: Any = everything()
# From this number of bytes, garbage collection is off while objects are made.
LARGE = 1024
pytestmark = [pytest.mark.own_process, pytest.mark.slow]


@pytest.mark.long
def test_threads_share_the_functions() -> None:
    decode, encode = functions(MadeUp, 1)
    value = full_message()
    raw = encode(value)
    faults: list[object] = []

    def work() -> None:
        for _ in range(300):
            faults.extend([value] * (decode(raw) != value or encode(value) != raw))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.long
def test_a_collector_that_decodes_in_the_middle_of_a_decode_does_no_harm() -> None:
    decode = functions(MadeUp, 1)[0]
    value = full_message()
    raw = value.encode(1)
    inner: list[bool] = []

    def decode_again(phase: str, info: dict[str, int]) -> None:
        del phase, info
        inner.append(decode(raw) == value)

    threshold = gc.get_threshold()
    gc.callbacks.append(decode_again)
    gc.set_threshold(7)
    try:
        for _ in range(50):
            assert decode(raw) == value
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(decode_again)
    assert inner
    assert all(inner)


@pytest.mark.long
def test_a_list_that_changes_while_it_is_written_does_no_harm() -> None:
    # While a structure is compared with its default, another thread may run.
    encode = functions(hooked(), 2)[1]
    value = hooked()(rows=[row(lambda: sleep(0)) for _ in range(200)])
    stop = threading.Event()

    others = value.rows[:100]

    def change() -> None:
        while not stop.is_set():
            del value.rows[::2]
            value.rows.extend(others)

    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(200):
            found = encode(value)
            assert found is REFUSED or hooked().decode(found, 2)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


@pytest.mark.long
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_reaches_the_caller(kind: type[BaseException]) -> None:
    def interrupt() -> None:
        raise kind

    with pytest.raises(kind):
        functions(hooked(), 2)[1](hooked()(rows=[row(interrupt)]))


@pytest.mark.long
@pytest.mark.parametrize("kind", [MemoryError, RecursionError, ValueError])
def test_another_exception_is_the_fallback_s_business(kind: type[Exception]) -> None:
    def fail() -> None:
        raise kind

    assert functions(hooked(), 2)[1](hooked()(rows=[row(fail)])) is REFUSED


def test_no_python_code_runs_while_usual_values_are_read_or_written() -> None:
    # Nothing else runs during this time: no other thread, and no signal handler.
    decode, encode = functions(MadeUp, 1)
    value = full_message()
    raw = encode(value)
    ran: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        found, again = decode(raw), encode(value)
    finally:
        sys.setprofile(None)
    assert (found, again) == (value, raw)
    assert ran == []


def test_no_list_is_seen_before_it_is_whole() -> None:
    # Code that accesses an element that does not exist yet, such as a debugger, would crash. From
    # Python 3.12, garbage collection runs only between Python's own steps.
    decode = functions(MadeUp, 1)[0]
    count = 57
    raw = MadeUp(ids=[uuid.UUID(int=number) for number in range(count)]).encode(1)
    assert len(raw) < LARGE
    seen = Counter[bool]()

    def lists() -> set[int]:
        return {id(one) for one in gc.get_objects() if type(one) is list and len(one) == count}

    # Existing objects are not examined again, because that would take most of the time.
    gc.collect()
    gc.freeze()
    others = lists()

    def look(phase: str, info: dict[str, int]) -> None:
        del phase, info
        seen[lists() <= others] += 1

    threshold = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(1)
    try:
        found = decode(raw)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(look)
    assert len(found.ids) == count
    assert seen[False] == 0
    assert seen[True] > count or sys.version_info >= (3, 12)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_left_as_it_was(is_on: bool) -> None:  # noqa: FBT001 - a case
    decode = functions(MadeUp, 1)[0]
    raw = MadeUp(blob=bytes(LARGE)).encode(1)
    (gc.enable if is_on else gc.disable)()
    try:
        for data, is_read in ((raw, True), (raw[:-1], False)):
            assert (decode(data) is not REFUSED) == is_read
            assert gc.isenabled() == is_on
    finally:
        gc.enable()


OUTLIVED = """
import sys
from flexwire.codec import message
header = message("RequestHeader")
sys.kept = header.decoder(2), header.encoder(2)
assert sys.kept[0](sys.kept[1](header(client_id="a"))).client_id == "a"
"""


def test_functions_may_outlive_everything_but_the_interpreter() -> None:
    # Freed memory is overwritten, so that its use causes an error.
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVED],
        env={**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
