"""The kernels are good citizens of the interpreter: threads, collector, interrupts, exit."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.codec.made_up import everything
from tests.kernels.harness import REFUSED, full_message, functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

MadeUp: Any = everything()


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


def test_a_list_that_changes_while_it_is_written_does_no_harm() -> None:
    # A UUID is written by Python code, in which another thread may run.
    encode = functions(MadeUp, 1)[1]
    value = MadeUp(ids=[uuid.UUID(int=number) for number in range(2000)])
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            del value.ids[::2]
            value.ids.extend(uuid.UUID(int=number) for number in range(1000))

    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(200):
            found = encode(value)
            assert found is REFUSED or MadeUp.decode(found, 1)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


@pytest.fixture
def inside() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Have something called in the middle of a kernel: where it has Python code make a UUID."""

    def call(action: Callable[[], None]) -> None:
        def profile(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_name in ("_make_uuid", "_uuid_bytes"):
                action()

        sys.setprofile(profile)

    yield call
    sys.setprofile(None)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("way", ["decode", "encode"])
def test_an_interrupt_reaches_the_caller(inside: Any, way: str, kind: type[BaseException]) -> None:
    decode, encode = functions(MadeUp, 1)
    value = full_message()
    raw = encode(value)

    def interrupt() -> None:
        raise kind

    inside(interrupt)
    with pytest.raises(kind):
        decode(raw) if way == "decode" else encode(value)
    # Python takes away a profile function that raised.
    assert decode(raw) == value


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, ValueError])
def test_another_exception_is_the_fallback_s_business(
    inside: Any, kind: type[BaseException]
) -> None:
    decode, encode = functions(MadeUp, 1)
    value = full_message()
    raw = encode(value)

    def fail() -> None:
        raise kind

    for call, argument in ((decode, raw), (encode, value)):
        inside(fail)
        assert call(argument) is REFUSED


def test_no_list_is_seen_before_it_is_whole(inside: Any) -> None:
    # Whoever takes an element that is not there yet, a debugger for instance, crashes.
    decode = functions(MadeUp, 1)[0]
    raw = MadeUp(ids=[uuid.UUID(int=number) for number in range(1009)]).encode(1)
    seen: list[bool] = []

    def look() -> None:
        # The first UUID stands before the list.
        if len(seen) < 3:
            seen.append(any(type(one) is list and len(one) == 1009 for one in gc.get_objects()))

    inside(look)
    assert len(decode(raw).ids) == 1009
    assert seen == [False] * 3


OUTLIVED = """
import sys
from flexwire.codec import message
header = message("RequestHeader")
sys.kept = header.decoder(2), header.encoder(2)
assert sys.kept[0](sys.kept[1](header(client_id="a"))).client_id == "a"
"""


def test_functions_may_outlive_everything_but_the_interpreter() -> None:
    # What is freed is overwritten, so that using it shows.
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVED],
        env={**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
