"""The columnar encoder produces the same results and errors as the reference executor."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.samples import random_message
from flexwire.columnar import decode_messages, encode_messages, message_sizes
from flexwire.schema.catalog import catalog
from tests.codec.test_every_version import pairs
from tests.codec.vectors import class_of, load
from tests.columnar.expected import written
from tests.each import each
from tests.searching import in_parts, times

BY_MESSAGE = load()
NAMES = catalog().names()


def check(made: Any, rows: list[bytes], versions: Any, encoding: Encoding = Encoding.KAFKA) -> None:
    """Decode, encode and measure; the bytes must stay the same."""
    data = pa.array(rows)
    structs = decode_messages(made, data, versions, encoding=encoding)
    found = encode_messages(made, structs, versions, encoding=encoding)
    found.validate(full=True)
    assert found.equals(data)
    sizes = message_sizes(made, structs, versions, encoding=encoding)
    assert sizes.to_pylist() == list(map(len, rows))


@pytest.mark.slow
@each("name", sorted(BY_MESSAGE), parts=3)
def test_every_vector_of_a_message_in_one_call(name: str) -> None:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for vector in BY_MESSAGE[name]:
        groups.setdefault(class_of(vector), []).append(vector)
    for made, vectors in groups.items():
        check(
            made,
            [bytes.fromhex(one["hex"]) for one in vectors],
            [one["version"] for one in vectors],
        )


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_every_version_alone_and_together_with_all_others(name: str) -> None:
    by_class: dict[Any, list[tuple[bytes, int]]] = {}
    for made, version in pairs(name):
        rows = [random_message(made, version, seed).encode(version) for seed in range(times(1))]
        rows.append(made().encode(version))
        check(made, rows, version)
        by_class.setdefault(made, []).extend((row, version) for row in rows)
    for made, mixed in by_class.items():
        check(made, [row for row, _ in mixed], [version for _, version in mixed])


@pytest.mark.slow
@pytest.mark.parametrize("part", in_parts(3))
@pytest.mark.parametrize("encoding", Encoding)
def test_every_encoding_of_every_message(encoding: Encoding, part: int) -> None:
    for name in NAMES[part::3]:
        made = message(name)
        version = catalog().entry(name).versions.highest
        rows = [
            random_message(made, version, seed, encoding).encode(version, encoding=encoding)
            for seed in range(3)
        ]
        check(name, rows, version, encoding)


@pytest.mark.slow
@pytest.mark.parametrize("part", in_parts(5))
def test_what_one_version_reads_another_writes_or_refuses_in_the_same_words(part: int) -> None:
    refused = 0
    for name in NAMES[part::5]:
        made, entry = message(name), catalog().entry(name)
        have = entry.versions.highest
        raws = [
            random_message(made, have, seed, tagged=bool(seed % 2)).encode(have)
            for seed in range(times(2))
        ]
        structs = decode_messages(name, pa.array(raws), have, absent="default")
        rows = structs.to_pylist()
        wanted = [*entry.versions]
        # The other encodings change only what all versions have in common, so two versions suffice.
        ends = {wanted[0], wanted[-1]}
        for want in wanted:
            for encoding in Encoding if want in ends else (Encoding.KAFKA,):
                refused += check_written(name, structs, rows, [want] * len(rows), encoding)
    assert refused > 100


def check_written(
    made: Any, structs: pa.Array, rows: list[Any], versions: list[int], encoding: Encoding
) -> int:
    """Check the written bytes against the reference; return how many rows were refused."""
    expected, errors = written(made, rows, versions, encoding)
    found = encode_messages(made, structs, versions, encoding=encoding, mode="PERMISSIVE")
    found.values.validate(full=True)
    assert found.values.to_pylist() == expected
    assert found.errors.to_pylist() == errors
    sizes = message_sizes(made, structs, versions, encoding=encoding, mode="PERMISSIVE")
    assert sizes.errors.equals(found.errors)
    assert sizes.values.to_pylist() == [one if one is None else len(one) for one in expected]
    return sum(error is not None for error in errors)
