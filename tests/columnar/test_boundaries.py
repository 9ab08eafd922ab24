"""The columnar kernels pass every case of `tests.codec.boundaries`, by name.

The reference executor receives each row that a kernel refuses, and must refuse it too. Otherwise
this directory's `kernels_only` fails.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from flexwire.columnar import decode_messages, encode_messages, message_sizes
from flexwire.columnar.types import message_type
from flexwire.errors import EncodeError
from flexwire.kernels import load_kernel
from flexwire.wire.varint import uuid_text
from tests.codec.boundaries import DECODED, ENCODED, FLEXIBLE, REFUSED, Case
from tests.each import each

Group = tuple[str, str, int]


def groups(cases: list[Case]) -> dict[Group, list[Case]]:
    found: dict[Group, list[Case]] = defaultdict(list)
    for case in cases:
        found[case.kind, case.place, case.version].append(case)
    return found


WRITTEN, READ = groups(ENCODED), groups(DECODED)


def in_arrow(value: Any) -> Any:
    if isinstance(value, list):
        return [in_arrow(one) for one in value]
    return uuid_text(value) if isinstance(value, uuid.UUID) else value


def flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def is_held(case: Case, kind: pa.DataType) -> bool:
    """Return whether a field's column can hold the value at all."""
    kind = kind.value_type if pa.types.is_list(kind) else kind
    try:
        pa.array(map(in_arrow, flat(case.value)), kind)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return False
    return True


def column_of(cases: list[Case]) -> pa.Array:
    kind = message_type(cases[0].message)
    return pa.array([{"value": in_arrow(case.value)} for case in cases], kind)


def agreed(raw: Any) -> Any:
    """Return the null that replaces a refused value."""
    return None if raw is REFUSED else raw


@pytest.mark.long
@pytest.mark.slow
@each("group", [*WRITTEN])
def test_what_is_written_at_every_boundary(group: Group) -> None:
    assert load_kernel("columns_write") is not None
    cases = WRITTEN[group]
    message, version = cases[0].message, cases[0].version
    field = message_type(message).field("value").type
    cases = [one for one in cases if is_held(one, field)]
    expected = [agreed(case.raw) for case in cases]
    structs = column_of(cases)
    found = encode_messages(message, structs, version, mode="PERMISSIVE").values.to_pylist()
    wrong = [str(one) for one, got, raw in zip(cases, found, expected, strict=True) if got != raw]
    assert wrong == []
    sizes = message_sizes(message, structs, version, mode="PERMISSIVE").values.to_pylist()
    assert sizes == [None if one is None else len(one) for one in expected]
    # Each row is also read alone: its neighbours must not affect the result.
    for row, raw in enumerate(expected):
        alone = encode_messages(message, structs.slice(row, 1), version, mode="PERMISSIVE")
        assert alone.values.to_pylist() == [raw], str(cases[row])


@each("group", [*WRITTEN])
def test_what_its_column_cannot_hold_is_refused(group: Group) -> None:
    for case in WRITTEN[group]:
        kind = message_type(case.message).field("value").type
        if is_held(case, kind):
            continue
        assert case.raw is REFUSED
        wide = wider(case.value)
        if wide is not None:
            structs = pa.StructArray.from_arrays([wide], names=["value"])
            with pytest.raises(EncodeError, match="cannot convert"):
                encode_messages(case.message, structs, case.version)


def wider(value: Any) -> pa.Array | None:
    """Return a column with an integer that is too large for the field's own column, or None."""
    numbers = flat(value)
    if not all(isinstance(one, int) for one in numbers):
        return None
    for kind in (pa.int64(), pa.uint64()):
        try:
            column = pa.array(numbers, kind)
        except (pa.ArrowInvalid, OverflowError):
            continue
        offsets = pa.array([0, len(numbers)], pa.int32())
        return pa.ListArray.from_arrays(offsets, column) if isinstance(value, list) else column
    return None


@pytest.mark.long
@pytest.mark.slow
@each("group", [*READ])
def test_what_is_read_at_every_boundary(group: Group) -> None:
    assert load_kernel("columns_read") is not None
    cases = READ[group]
    message, version = cases[0].message, cases[0].version
    rows = pa.array([case.raw for case in cases], pa.binary())
    found = decode_messages(message, rows, version, mode="PERMISSIVE").values.to_pylist()
    for case, row in zip(cases, found, strict=True):
        if case.value is REFUSED:
            assert row is None, (str(case), case.raw[:20].hex())
        else:
            assert row is not None, str(case)
            value = in_arrow(case.value)
            # A tagged field that was not on the wire has its default value.
            if case.place == "tagged" and version == FLEXIBLE and case.raw == b"\x00":
                value = in_arrow(case.message().value)  # type: ignore[attr-defined]
            assert repr(row["value"]) == repr(value), str(case)
