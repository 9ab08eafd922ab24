"""Kafka's laws hold for any spec: columns equal the reference's result.

``FLEXWIRE_EXAMPLES=5000`` tries that many new specs each time.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given

from flexwire.codec import Encoding
from flexwire.codec.samples import random_message
from flexwire.columnar import decode_messages, encode_messages
from tests.codec.specs import message_specs
from tests.codec.test_random_specs import SEEDS, compiled, damage, law
from tests.columnar.expected import decoded, same
from tests.columnar.test_encoding import check_written

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec

pytestmark = pytest.mark.slow


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_all_versions_of_a_spec_in_one_call_some_rows_damaged(spec: MessageSpec, seed: int) -> None:
    made, source = compiled(spec), random.Random(seed)
    for encoding in Encoding:
        rows: list[bytes] = []
        versions: list[int] = []
        for version in spec.valid_versions:
            for each in range(2):
                value = random_message(made, version, seed + each, encoding)
                raw = value.encode(version, encoding=encoding)
                rows += [raw, damage(raw, source), damage(raw, source)]
                versions += [version] * 3
        for absent in ("null", "default"):
            expected, errors = decoded(spec, rows, versions, encoding, absent=absent)
            found = decode_messages(
                spec, pa.array(rows), versions, encoding=encoding, absent=absent, mode="PERMISSIVE"
            )
            assert found.errors.to_pylist() == errors
            same(found.values, expected)


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_all_versions_are_written_as_the_reference_writes_them(
    spec: MessageSpec, seed: int
) -> None:
    made = compiled(spec)
    for encoding in Encoding:
        rows: list[bytes] = []
        versions: list[int] = []
        for version in spec.valid_versions:
            for each in range(3):
                rows.append(
                    random_message(made, version, seed + each, encoding).encode(
                        version, encoding=encoding
                    )
                )
                versions.append(version)
        for absent in ("null", "default"):
            structs = decode_messages(
                spec, pa.array(rows), versions, encoding=encoding, absent=absent
            )
            back = encode_messages(spec, structs, versions, encoding=encoding)
            assert back.to_pylist() == rows
            # Versions at which other messages were read.
            shifted = versions[3:] + versions[:3]
            check_written(spec, structs, structs.to_pylist(), shifted, encoding)
