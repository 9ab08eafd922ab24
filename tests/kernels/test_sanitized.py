"""Kernels compiled with sanitizers touch nothing that is not theirs; a mistake in any is found."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fuzz.guard import PROGRAMS
from tests import sanitized
from tests.each import each
from tests.sanitized import FOUND, KERNELS, ROOT

if TYPE_CHECKING:
    from pathlib import Path

_LACKING = sanitized.lacking()
pytestmark = [
    pytest.mark.guard,
    pytest.mark.skipif(_LACKING is not None, reason=_LACKING or "it runs"),
]
ROOMS = {one.stem for one in (ROOT / KERNELS).glob("*.pyx")}
# So many damaged inputs for each program; `make guard` has a million.
ROUNDS = "400"
# What a sanitizer says as the process ends is not to be captured.
_PYTEST = ("pytest", "-q", "-x", "--capture=no", "-p", "no:cacheprovider", "-m", "not guard")
# What writes, and what hashes: the boundaries of each type, and of each size of a buffer.
_WRITES = (
    "tests/kernels/test_boundaries.py",
    "tests/kernels/test_kernels.py::test_every_length_at_the_edges_of_its_prefix",
    "tests/columnar/test_boundaries.py",
    "tests/columnar/test_records.py::test_what_is_decoded_is_encoded_again",
    "tests/columnar/test_record_sums.py",
    "tests/columnar/test_batch_digests.py",
    "tests/records/test_kernels.py",
    "tests/records/test_batch_kernels.py::test_sizes_at_the_edges_of_the_buffer",
    "tests/spark/test_record_sums.py::test_kernel_and_objects_agree_on_any_bytes",
)


def test_damaged_inputs_and_boundaries_touch_nothing_else() -> None:
    kernels = sanitized.built()
    watched = set[str]()
    for arguments in (*((one, ROUNDS) for one in PROGRAMS), (*_PYTEST, *_WRITES)):
        done = sanitized.run(kernels, *arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        assert not any(one in done.stderr for one in FOUND), done.stderr[-6000:]
        watched |= sanitized.rooms(done.stdout)
    # Every room was watched, and not one that was compiled otherwise.
    assert watched >= ROOMS


@dataclass(frozen=True)
class Mistake:
    """What is written instead of what, and which run has to find it, with the room's name."""

    right: str
    wrong: str
    finds: tuple[str, ...]


_RECORDS, _COLUMNS = ("tests.columnar.record_guard", "3000"), ("tests.columnar.guard", "3000")
MISTAKES = {
    "objects_read": Mistake(
        "cursor.end = cursor.at + PyBytes_GET_SIZE(data)",
        "cursor.end = cursor.at + PyBytes_GET_SIZE(data) + 1",
        ("tests.kernels.guard", "3000"),
    ),
    "objects_write": Mistake(
        "cdef uint8_t *at = reserve(out, WIDEST)\n    if at == NULL or not to_int64",
        "cdef uint8_t *at = reserve(out, 1)\n    if at == NULL or not to_int64",
        (*_PYTEST, *_WRITES[:2]),
    ),
    "record_objects_read": Mistake(
        "batch.end = batch.at - start + size",
        "batch.end = batch.at - start + size + 1",
        ("tests.records.guard", "3000"),
    ),
    "record_objects_write": Mistake(
        "reserve(out, size + VARLONG)", "reserve(out, size)", (*_PYTEST, _WRITES[7])
    ),
    "record_objects_iterate": Mistake(
        "for index in range(count):\n            header",
        "for index in range(count + 1):\n            header",
        ("tests.records.guard", "2000", "--batches"),
    ),
    "columns_read": Mistake(
        "WIDTH, &length,\n        )\n        or length > left(&rest)",
        "WIDTH, &length,\n        )\n        or length > left(&rest) + 2",
        _COLUMNS,
    ),
    "columns_write": Mistake(
        "unlikely(run.limit - at < SLACK)", "unlikely(run.limit - at < 0)", _COLUMNS
    ),
    "records_read": Mistake(
        "&rows, readable - SPARE, True)",
        "&rows, readable, True)",
        _RECORDS,
    ),
    "records_write": Mistake(
        "extent = &writing.table[writing.batches]",
        "extent = &writing.table[writing.batches + 1]",
        (*_PYTEST, _WRITES[3]),
    ),
    "record_sums": Mistake(
        "if summing.used == summing.capacity:",
        "if summing.used == summing.capacity + 1:",
        (*_PYTEST, _WRITES[4]),
    ),
    "batches": Mistake(
        "            if end - at < 4:",
        "            if end - at < 1:",
        (*_PYTEST, "tests/columnar/test_inflating.py"),
    ),
    "packets": Mistake(
        "while run.row < run.capacity:",
        "while run.row <= run.capacity:",
        ("tests.capture.packets_guard", "4000"),
    ),
    "frames": Mistake(
        "chunk.data + chunk.payload_at[row] + again, size)",
        "chunk.data + chunk.payload_at[row] + again, size + 1)",
        ("tests.capture.columns.framing_guard", "2000"),
    ),
    "pairing": Mistake(
        "body.at, body.end = begin, run.data + run.stop[row]",
        "body.at, body.end = begin, run.data + run.stop[row] + 1",
        ("tests.capture.columns.turns_guard", "4000"),
    ),
    "hashing": Mistake(
        "for row in range(hashes.shape[0]):",
        "for row in range(hashes.shape[0] + 1):",
        (*_PYTEST, _WRITES[8]),
    ),
}
"""A mistake in a line of each room."""


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels with all mistakes, each in a room of its own."""
    tree = tmp_path_factory.mktemp("mistaken")
    for one in ("src/flexwire/kernels", "tools/package"):
        shutil.copytree(ROOT / one, tree / one, ignore=shutil.ignore_patterns("*.so"))
    for one in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / one, tree / one)
    for room, mistake in MISTAKES.items():
        source = tree / KERNELS / f"{room}.pyx"
        text = source.read_text(encoding="utf-8")
        assert text.count(mistake.right) == 1, room
        source.write_text(text.replace(mistake.right, mistake.wrong), encoding="utf-8")
    return sanitized.built(tree, tree / "built")


@each("room", [*MISTAKES])
def test_a_planted_mistake_is_found_in_each_room(
    room: str, mistaken: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # All other rooms are sound.
    place = tmp_path_factory.mktemp(room) / "kernels"
    shutil.copytree(sanitized.built(), place)
    [wrong] = mistaken.glob(f"{room}.*.so")
    shutil.copy(wrong, place)
    done = sanitized.run(place, *MISTAKES[room].finds)
    told = f"{room}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    assert done.returncode != 0, told
    assert any(one in done.stderr for one in FOUND), told
    assert f"{room}." in done.stderr, told
