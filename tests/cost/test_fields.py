from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from flexwire.codec import message
from flexwire.columnar import decode_messages, message_sizes
from flexwire.errors import DecodeError, EncodeError
from flexwire.specs.cost.sizes import read_sizes
from flexwire.wire.encoding import Encoding
from tests.codec.vectors import class_of, load
from tests.each import each

pytestmark = pytest.mark.slow

BY_MESSAGE = load()
Sizes = dict[str, int]


def sizes_of(made: Any, version: int, encoding: Encoding = Encoding.KAFKA) -> Sizes:
    schema = type(made).definition.schema(version, encoding)
    return read_sizes(schema, made.encode(version, encoding=encoding))[1]


@pytest.mark.long
@each("name", sorted(BY_MESSAGE), parts=5)
def test_fields_add_up_to_the_message_in_every_encoding(name: str) -> None:
    for vector in BY_MESSAGE[name]:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        decoded = made.decode(raw, version)
        # The columnar kernels need a program for each version, which takes time to make.
        columnar = list(Encoding)[version % len(Encoding)]
        for encoding in Encoding:
            try:
                written = decoded.encode(version, encoding=encoding)
            except EncodeError:
                continue
            value, sizes = read_sizes(made.definition.schema(version, encoding), written)
            assert sum(sizes.values()) == len(written)
            assert min(sizes.values(), default=0) >= 0
            if encoding is columnar:
                structs = decode_messages(made, pa.array([raw], pa.binary()), version)
                found = message_sizes(made, structs, version, encoding=encoding)
                assert found.to_pylist() == [len(written)]
            plain, _ = read_sizes(made.definition.schema(version), raw)
            assert value == plain


def test_each_byte_belongs_to_the_field_that_it_is_there_for() -> None:
    made = message("FetchResponse")(
        session_id=1,
        responses=[
            {"partitions": [{"records": b"abc", "preferred_read_replica": 5}, {"records": None}]},
            {"partitions": []},
        ],
        node_endpoints=[{"node_id": 1, "host": "ab", "port": 2, "rack": None}],
        unknown_tagged_fields={200: b"xyz"},
    )
    sizes = sizes_of(made, 16)
    partition = "responses[].partitions[]"
    assert sizes == {
        "throttleTimeMs": 4,
        "errorCode": 2,
        "sessionId": 4,
        "responses": 1,
        "responses[].topicId": 32,
        "responses[].partitions": 2,
        f"{partition}.partitionIndex": 8,
        f"{partition}.errorCode": 4,
        f"{partition}.highWatermark": 16,
        f"{partition}.lastStableOffset": 16,
        f"{partition}.logStartOffset": 16,
        f"{partition}.abortedTransactions": 2,
        f"{partition}.preferredReadReplica": 8,
        f"{partition}.records": 5,
        f"{partition}._taggedFields": 2,
        "responses[]._taggedFields": 2,
        "_taggedFields": 1,
        # The tag, the size, and the length of the array; the other bytes are inside the array.
        "nodeEndpoints": 3,
        "nodeEndpoints[].nodeId": 4,
        "nodeEndpoints[].host": 3,
        "nodeEndpoints[].port": 4,
        "nodeEndpoints[].rack": 1,
        "nodeEndpoints[]._taggedFields": 1,
        # A tag of two bytes, a size, three bytes.
        "_unknownTaggedFields": 6,
    }


@pytest.mark.parametrize(
    ("encoding", "header", "end"),
    [
        (Encoding.KAFKA, 2, 1),
        (Encoding.INTERLEAVED, 1, 1),
        (Encoding.OPTIONAL_BUFFERS, 3, 1),
    ],
)
def test_a_tag_and_a_size_belong_to_the_field_in_every_form(
    encoding: Encoding, header: int, end: int
) -> None:
    made = message("FetchRequest")(cluster_id="abc", unknown_tagged_fields={2: b"z"})
    sizes = sizes_of(made, 12, encoding)
    length = 2 if encoding is Encoding.OPTIONAL_BUFFERS else 1
    assert sizes["clusterId"] == header + length + 3
    assert sizes["_unknownTaggedFields"] == header + 1
    assert sizes["_taggedFields"] == end


def test_a_structure_that_is_tagged_keeps_its_own_tagged_fields_apart() -> None:
    made = message("FetchResponse")(
        responses=[{"partitions": [{"records": None, "current_leader": {"leader_id": 7}}]}]
    )
    for encoding in (Encoding.KAFKA, Encoding.OPTIONAL_BUFFERS):
        sizes = sizes_of(made, 12, encoding)
        leader = "responses[].partitions[].currentLeader"
        assert sizes[leader] == (2 if encoding is Encoding.KAFKA else 3)
        assert sizes[f"{leader}.leaderId"] == 4
        assert sizes[f"{leader}._taggedFields"] == 1
        assert sizes["responses[].partitions[]._taggedFields"] == 1


def test_the_elements_of_an_array_are_part_of_it() -> None:
    made = message("MetadataResponse")(
        topics=[{"partitions": [{"replica_nodes": [1, 2, 3]}, {"replica_nodes": [4]}]}]
    )
    assert sizes_of(made, 1)["topics[].partitions[].replicaNodes"] == 2 * 4 + 4 * 4


def test_what_is_no_message_is_refused() -> None:
    schema = message("RequestHeader").definition.schema(2)
    raw = message("RequestHeader")(client_id="ab").encode(2)
    for cut in range(len(raw)):
        with pytest.raises(DecodeError):
            read_sizes(schema, raw[:cut])
    with pytest.raises(DecodeError, match="1 bytes follow"):
        read_sizes(schema, raw + b"\0")
