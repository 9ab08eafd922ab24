"""The constants for formats and for rows in memory are the same in Cython and in Python."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from flexwire.capture.pairing import layout
from flexwire.capture.reassembly import flows, packet_scan
from flexwire.columnar import batch_table
from tests.each import each

KERNELS = Path(__file__).parents[2] / "src" / "flexwire" / "kernels"
FILES = sorted([*KERNELS.glob("*.pxd"), *KERNELS.glob("*.pyx")])
# The Python module with the constants of each package.
_WIRE = ("wire.limits", "wire.batch_layout", "wire.segment_layout", "wire.frame_layout")
_HOMES: dict[str, tuple[str, ...]] = {
    "packets": ("wire.packet_layout", "capture.reassembly.packet_scan"),
    "frames": (*_WIRE, "capture.reassembly.course", "capture.reassembly.streams"),
    "pairing": ("capture.pairing.layout", "wire.segment_layout"),
    "cursor": (*_WIRE, "columnar.operations"),
    "columns": ("columnar.operations", "columnar.layout"),
    "columns_read": ("columnar.layout",),
    "columns_write": ("columnar.layout",),
    "batches": (*_WIRE, "columnar.batch_table"),
    "hashing": ("columnar.value_hash",),
}
# These constants have the same name but a different meaning, such as a magic value in byte order.
_OTHERS = {"LZ4_MAGIC", "ZSTD_MAGIC"}
_ENUM = re.compile(r"^cdef enum ?\w*:\n((?:(?: .*)?\n)*)", re.MULTILINE)
_DEFINED = re.compile(r"^ +#define (\w+) ((?:0x)?[0-9A-F]+)(?:U?LL)?$", re.MULTILINE)
_STRUCT = re.compile(r"^cdef (?:packed )?struct (\w+):\n((?: .*\n|\n(?= ))*)", re.MULTILINE)
_MEMBER = re.compile(r"(\w+)(?:\[\w+\])?$")


def numbers(source: str) -> dict[str, int]:
    """Return the constants of a Cython file, by name."""
    found = {name: int(value, 0) for name, value in _DEFINED.findall(source)}
    for body in _ENUM.findall(source):
        following = 0
        for item in re.split(r"[,\n]", re.sub(r"#.*", "", body)):
            name, _, value = (one.strip() for one in item.partition("="))
            if name:
                following = eval(value, {"__builtins__": {}}, found) if value else following  # noqa: S307 - our own source
                found[name] = following
                following += 1
    return found


def members(source: str, name: str) -> list[str]:
    """Return the names of a struct's members, in order."""
    body = dict(_STRUCT.findall(source))[name]
    lines = [re.sub(r"#.*", "", line).strip() for line in body.splitlines()]
    return [match[1] for line in lines if (match := _MEMBER.search(line))]


@each("file", FILES)
def test_a_number_is_the_one_that_python_has(file: Path) -> None:
    known: dict[str, Any] = {}
    for home in _HOMES.get(file.stem, _WIRE):
        known |= vars(import_module(f"flexwire.{home}"))
    found = numbers(file.read_text(encoding="utf-8"))
    same = {name: value for name, value in found.items() if name in known and name not in _OTHERS}
    assert same == {name: known[name] for name in same}
    assert len(same) >= {
        "packets": 40,
        "frames": 12,
        "pairing": 30,
        "columns": 26,
        "cursor": 9,
    }.get(file.stem if file.suffix == ".pyx" or file.stem in {"columns", "cursor"} else "", 0)


ROWS: dict[str, Any] = {
    "packets.Run": [one[0] for one in packet_scan.ScanWords._fields_],
    "packets.Interface": packet_scan.INTERFACE_ROW.names,
    "packets.Flow": packet_scan._FLOW.names,
    "frames.Side": flows._SIDE.names,
    "frames.Connection": flows._CONNECTION.names,
    "frames.Run": flows._RUN.names,
    "frames.Frame": flows._FRAME.names,
    "frames.Chunk": [one[0] for one in flows._FramingWords._fields_],
    "pairing.Run": [one[0] for one in layout.PairingWords._fields_],
}


@each("row", ROWS)
def test_a_row_in_memory_has_the_same_members_in_the_same_order(row: Any) -> None:
    [name] = [name for name, names in ROWS.items() if names is row]
    room, _, struct = name.partition(".")
    source = (KERNELS / f"{room}.pyx").read_text(encoding="utf-8")
    assert members(source, struct) == list(row)


def test_the_table_of_batches_is_the_struct() -> None:
    source = (KERNELS / "batches.pxd").read_text(encoding="utf-8")
    assert members(source, "Batch") == list(batch_table.BATCH.names or ())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("cdef enum:\n    A = 4  # of it\n    B = A * 2\n", {"A": 4, "B": 8}),
        (
            "cdef enum Kind:\n    A, B,\n    C = 7\n    D\n\n\ncdef int a\n",
            {"A": 0, "B": 1, "C": 7, "D": 8},
        ),
        ('cdef extern from *:\n    """\n    #define A 0x10ULL\n    """\n', {"A": 16}),
    ],
)
def test_the_numbers_of_a_file_are_found(source: str, found: dict[str, int]) -> None:
    assert numbers(source) == found


def test_the_members_of_a_struct_are_found() -> None:
    source = (
        "cdef struct A:\n    const int8_t *one  # of it\n\n    # Both.\n    int two[3]\n\n\nX = 1\n"
    )
    assert members(source, "A") == ["one", "two"]
