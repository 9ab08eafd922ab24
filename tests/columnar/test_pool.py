"""Memory goes to the next column only when nobody holds it any more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.columnar import pool
from flexwire.columnar.pool import Pool, buffer_of

if TYPE_CHECKING:
    import pytest

SIZE = 1 << 20


def test_memory_is_used_again_when_it_is_let_go() -> None:
    rooms = Pool()
    first = rooms.take(SIZE)
    where = first.ctypes.data
    assert rooms.take(SIZE).ctypes.data != where
    del first
    assert rooms.held == 2 * SIZE
    assert {rooms.take(SIZE).ctypes.data, rooms.take(SIZE).ctypes.data} & {where}


def test_a_buffer_and_its_slices_hold_the_memory() -> None:
    rooms = Pool()
    room = rooms.take(SIZE)
    room[:4] = list(b"kept")
    held: Any = pa.py_buffer(b"")
    held = buffer_of(room, SIZE // 2).slice(0, 4)
    del room
    assert rooms.held == 0
    rooms.take(SIZE)[:4] = 0
    assert held.to_pybytes() == b"kept"
    del held
    assert rooms.held == 2 * SIZE


def test_what_is_kept_holds_no_more_than_it_needs() -> None:
    rooms = Pool()
    room = rooms.take(SIZE)
    room[:4] = list(b"kept")
    kept = buffer_of(room, 4, kept=True)
    del room
    assert rooms.held == SIZE
    assert kept.to_pybytes() == b"kept"


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_HELD", 3 * SIZE)
    rooms = Pool()
    taken = [rooms.take(SIZE) for _ in range(5)]
    taken.clear()
    assert rooms.held == 3 * SIZE


def test_threads_never_get_the_same_memory() -> None:
    rooms = Pool()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(2000):
            room = rooms.take(1 << 17)
            room[0] = number
            if room[0] != number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []
    assert 0 <= rooms.held <= 4 << 17
