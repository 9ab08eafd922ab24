"""Strings, arrays and empty tag sections, which are frequent, are read correctly at each length.

The kernels have special code for short values, and the reference executor has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from flexwire.columnar import (
    decode_messages,
    encode_messages,
    message_sizes,
    message_type,
    reference,
)
from flexwire.errors import CodecError
from flexwire.messages import MetadataResponse, RequestHeader
from tests.columnar.expected import decoded, same, written

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTHS = [*range(36), 47, 48, 49, 63, 64, 65, 126, 127, 128, 129, 300]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the reference executor handles a row."""

    def fail(self: reference.MessageRows, row: int) -> Any:
        raise AssertionError(f"row {row} of {len(self.data)} was refused")

    monkeypatch.setattr(reference.MessageRows, "_one", fail)


def headers() -> list[bytes]:
    texts: list[str | None] = [None, *("x" * length for length in LENGTHS)]
    # One letter of two bytes, at every position.
    texts += ["x" * before + "\u00e9" + "y" * (18 - before) for before in range(19)]
    texts += ["x" * (length - 2) + "\u00e9" for length in LENGTHS if length > 1]
    return [
        RequestHeader(client_id=one, correlation_id=at).encode(2) for at, one in enumerate(texts)
    ]


def metadata(version: int) -> list[bytes]:
    made = MetadataResponse
    several = [
        [
            made.MetadataResponsePartition(
                partition_index=few,
                replica_nodes=list(range(few)),
                isr_nodes=list(range(-more, 0)),
            )
            for few in range(7)
        ]
        for more in [0, 1, 2, 3, 4, 5, 126, 127, 130, 0, 4]
    ]
    return [
        made(
            topics=[
                made.MetadataResponseTopic(name="t" * (version + 5), partitions=partitions[:count])
            ]
        ).encode(version)
        for partitions in several
        for count in (7, 5, 1, 0)
    ]


def check(made: Any, messages: Sequence[bytes], version: int) -> None:
    expected, errors = decoded(made, messages, [version] * len(messages))
    assert not any(errors)
    sizes = list(map(len, messages))
    for kind in (pa.binary(), pa.large_binary()):
        data = pa.array([b"before", *messages, None], kind)[1:]
        found = decode_messages(made, data, version)
        assert found[-1].as_py() is None
        same(pa.concat_arrays([found[:-1]]), expected)
        # Each row serves once as the last row of a column.
        for count in range(len(messages)):
            assert decode_messages(made, data[:count], version).equals(expected[:count])
    for first in range(len(messages)):
        structs = expected[first:]
        assert encode_messages(made, structs, version).to_pylist() == messages[first:]
        assert message_sizes(made, structs, version).to_pylist() == sizes[first:]


@pytest.mark.usefixtures("alone")
def test_texts_of_every_length() -> None:
    check("RequestHeader", headers(), 2)


@pytest.mark.usefixtures("alone")
def test_a_tagged_field_among_rows_that_have_none() -> None:
    plain = headers()[:12]
    tagged = [one[:-1] + b"\x01\x63\x02zz" for one in plain]
    check("RequestHeader", [plain[0], *tagged, *plain], 2)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("version", [8, 12])
def test_arrays_of_every_count(version: int) -> None:
    check("MetadataResponse", metadata(version), version)


@pytest.mark.parametrize("length", [0, 1, 3, 7, 8, 9, 15, 16, 17, 24])
def test_bytes_that_are_no_text_are_refused_wherever_they_stand(length: int) -> None:
    sound = RequestHeader(client_id="x" * length).encode(2)
    messages = [sound]
    for place in range(10, 10 + length):
        messages += [sound[:place] + byte + sound[place + 1 :] for byte in (b"\x80", b"\xff")]
    expected, errors = decoded("RequestHeader", messages, [2] * len(messages))
    found = decode_messages("RequestHeader", pa.array(messages), 2, mode="PERMISSIVE")
    same(found.values, expected)
    assert found.errors.to_pylist() == errors
    assert sum(map(bool, errors)) == 2 * length


@pytest.mark.parametrize("field", ["replica_nodes", "isr_nodes"])
@pytest.mark.parametrize("nodes", [None, [None], [1, None], [1, 2, 3, 4, None]])
def test_a_null_where_none_can_be_is_refused(field: str, nodes: Any) -> None:
    structs = decode_messages("MetadataResponse", pa.array(metadata(12)[:6]), 12).to_pylist()
    structs[2]["topics"][0]["partitions"][0][field] = nodes
    column = pa.array(structs, message_type("MetadataResponse"))
    expected, errors = written("MetadataResponse", structs, [12] * len(structs))
    found = encode_messages("MetadataResponse", column, 12, mode="PERMISSIVE")
    assert found.values.to_pylist() == expected
    assert found.errors.to_pylist() == errors
    assert [at for at, error in enumerate(errors) if error] == [2]


@pytest.mark.usefixtures("alone")
def test_columns_and_output_grow_in_the_middle_of_a_message() -> None:
    small, large = metadata(12)[3], metadata(12)[24]
    for before in range(3):
        messages = [small] * before + [large] * 9 + [small]
        column = decode_messages("MetadataResponse", pa.array([small]), 12)
        assert encode_messages("MetadataResponse", column, 12)[0].as_py() == small
        # The buffer size that was learned from a small message is too small for the next one.
        check("MetadataResponse", messages, 12)


def test_every_prefix_of_a_message_is_refused() -> None:
    for made, version, message in [
        ("RequestHeader", 2, RequestHeader(client_id="x" * 12).encode(2)),
        ("MetadataResponse", 12, metadata(12)[12]),
        ("MetadataResponse", 8, metadata(8)[12]),
    ]:
        messages = [message[:end] for end in range(len(message) + 1)] + [message + b"\x00"]
        expected, errors = decoded(made, messages, [version] * len(messages))
        found = decode_messages(made, pa.array(messages), version, mode="PERMISSIVE")
        same(found.values, expected)
        assert found.errors.to_pylist() == errors
        assert sum(map(bool, errors)) == len(messages) - 1


def of_texts(texts: pa.Array) -> pa.Array:
    sound = decode_messages("RequestHeader", pa.array([headers()[1]] * len(texts)), 2)
    arrays = [texts if one.name == "client_id" else sound.field(one.name) for one in sound.type]
    return pa.StructArray.from_arrays(arrays, [one.name for one in sound.type])


@pytest.mark.parametrize("lie", [-1, -4, -12, 13, 2**30])
def test_an_offset_before_or_behind_its_column_is_no_place_to_read(lie: int) -> None:
    # The row before the false offset is null, so that no other row reads this offset.
    offsets = pa.py_buffer(np.array([0, lie, 10, 12], np.int32))
    valid = pa.py_buffer(b"\x06")
    texts = pa.Array.from_buffers(pa.string(), 3, [valid, offsets, pa.py_buffer(b"x" * 12)])
    for write in (encode_messages, message_sizes):
        with pytest.raises(CodecError, match="not a valid Arrow array"):
            write("RequestHeader", of_texts(texts), 2)


@pytest.mark.parametrize("length", [1, 7, 8, 12, 16, 17])
def test_a_string_column_of_what_is_no_text_is_refused(length: int) -> None:
    offsets = pa.py_buffer(np.array([0, length], np.int32))
    for place in range(length):
        text = pa.py_buffer(b"x" * place + b"\xff" + b"x" * (length - place - 1))
        structs = of_texts(pa.Array.from_buffers(pa.string(), 1, [None, offsets, text]))
        for write in (encode_messages, message_sizes):
            with pytest.raises(CodecError, match="not a valid Arrow array"):
                write("RequestHeader", structs, 2)
