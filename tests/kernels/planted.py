"""``python -m tests.kernels.planted``: sanitizers find a planted mistake in each kernel.

This shows whether the runs in `tests/kernels/test_sanitized.py` would find a mistake. Run it when a
kernel or these runs change. `make guard` runs it. If every mistake is found, it writes a digest of
the kernels into ``planted.txt`` beside it. A test compares that digest with the current kernels. It
takes a minute of CPU time.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests import sanitized
from tests.sanitized import FOUND, KERNELS, ROOT

RECORD = Path(__file__).with_name("planted.txt")
PYTEST = ("pytest", "-q", "-x", "--capture=no", "-p", "no:cacheprovider", "-m", "not guard")
"""How tests run with watched kernels: a sanitizer's last output is not captured."""
WRITES = (
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
"""For kernels that write or hash: the boundaries of each type and of each buffer size."""


@dataclass(frozen=True)
class Mistake:
    """The old and the new text, and the run that must find the mistake, with the room's name."""

    right: str
    wrong: str
    finds: tuple[str, ...]


_RECORDS, _COLUMNS = ("tests.columnar.record_guard", "3000"), ("tests.columnar.guard", "3000")
MISTAKES = {
    "objects": Mistake(
        "self.room(len(schema_fields) * sizeof(Field))",
        "self.room(len(schema_fields) * sizeof(void *))",
        ("tests.kernels.guard", "1000"),
    ),
    "objects_read": Mistake(
        "cursor.end = cursor.at + PyBytes_GET_SIZE(data)",
        "cursor.end = cursor.at + PyBytes_GET_SIZE(data) + 1",
        ("tests.kernels.guard", "3000"),
    ),
    "objects_write": Mistake(
        "cdef uint8_t *at = reserve(out, WIDEST)\n    if at == NULL or not to_int64",
        "cdef uint8_t *at = reserve(out, 1)\n    if at == NULL or not to_int64",
        (*PYTEST, *WRITES[:2]),
    ),
    "record_objects_read": Mistake(
        "batch.end = batch.at - start + size",
        "batch.end = batch.at - start + size + 1",
        ("tests.records.guard", "3000"),
    ),
    "record_objects_write": Mistake(
        "reserve(out, size + VARLONG)", "reserve(out, size)", (*PYTEST, WRITES[7])
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
        (*PYTEST, WRITES[3]),
    ),
    "record_sums": Mistake(
        "if summing.used == summing.capacity:",
        "if summing.used == summing.capacity + 1:",
        (*PYTEST, WRITES[4]),
    ),
    "batches": Mistake(
        "            if end - at < 4:",
        "            if end - at < 1:",
        (*PYTEST, "tests/columnar/test_inflating.py"),
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
        (*PYTEST, WRITES[8]),
    ),
}
"""A mistake in a line of each directory; `record_objects` only defines offsets, so it has none."""


def digest() -> str:
    """Return a digest of the kernels and of the list of planted mistakes."""
    sha = hashlib.sha256(Path(__file__).read_bytes())
    files = [path for path in (ROOT / KERNELS).iterdir() if path.suffix in {".pyx", ".pxd", ".h"}]
    for path in sorted(files):
        sha.update(path.name.encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()


def mistaken(tree: Path) -> Path:
    """Build the kernels with each mistake separately; return the directories of the builds."""
    for name in (str(KERNELS), "tools/package"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("*.so"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, tree / name)
    for room, mistake in MISTAKES.items():
        source = tree / KERNELS / f"{room}.pyx"
        text = source.read_text(encoding="utf-8")
        if text.count(mistake.right) != 1:
            sys.exit(f"{room}: the line of its mistake is not there once; plant another one")
        source.write_text(text.replace(mistake.right, mistake.wrong), encoding="utf-8")
    return sanitized.built(tree, tree / "built")


def is_found(room: str, wrong: Path, place: Path) -> bool:
    """Return whether the mistake in one directory is found; all others are unchanged."""
    shutil.copytree(sanitized.built(), place)
    [library] = wrong.glob(f"{room}.*.so")
    shutil.copy(library, place)
    done = sanitized.run(place, *MISTAKES[room].finds)
    says = any(words in done.stderr for words in FOUND) and f"{room}." in done.stderr
    if done.returncode == 0 or not says:
        sys.stderr.write(f"{room}\n{done.stdout[-2000:]}{done.stderr[-3000:]}\n")
        return False
    return True


def main() -> int:
    """Plant the mistakes; return 1 if one of them is not found."""
    if (reason := sanitized.lacking()) is not None:
        sys.stdout.write(f"no mistakes planted: {reason}\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        wrong = mistaken(Path(folder, "mistaken"))
        missed = [room for room in MISTAKES if not is_found(room, wrong, Path(folder, room))]
    if missed:
        sys.stdout.write(f"mistakes that nothing found: {', '.join(missed)}\n")
        return 1
    RECORD.write_text(f"{digest()}\n", encoding="utf-8")
    sys.stdout.write(f"{len(MISTAKES)} planted mistakes found\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
