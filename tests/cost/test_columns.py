"""Sizes from the columns of a message table equal the sizes that the reference writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from flexwire.codec import Message, message
from flexwire.columnar import decode_messages
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.columns import ERROR_TAGS, FRAME_SIZES, WITHOUT_ERROR_TAGS, frame_sizes
from flexwire.specs.cost.meter import ComparisonSide, CostMeter, SentMessage
from flexwire.specs.cost.sides import ErrorTaggedSpecs, bundled_specs
from flexwire.tables.schema import without_record_bytes
from flexwire.wire.encoding import Encoding
from tests.codec.vectors import has_changed, load
from tests.each import each

BY_MESSAGE = load()
APIS = [name for name in sorted(BY_MESSAGE) if catalog().entry(name).type.is_api]
CLIENT_ID = "billing-ü"
OLD = bundled_specs()


def rows_of(name: str, bodies: list[bytes], versions: list[int]) -> pa.RecordBatch:
    """Return some rows of the message's table."""
    entry = catalog().entry(name)
    headers = [header_of(name, version) for version in versions]
    unknown = [
        [{"tag": tag, "data": data} for tag, data in one.unknown_tagged_fields.items()]
        for one in headers
    ]
    client_ids = [getattr(one, "client_id", None) for one in headers]
    decoded = decode_messages(name, pa.array(bodies, pa.binary()), versions)
    return without_record_bytes(
        pa.RecordBatch.from_pydict(
            {
                "api_key": pa.array([entry.api_key] * len(bodies), pa.int32()),
                "body_version": pa.array(versions, pa.int32()),
                "client_id": pa.array(client_ids, pa.string()),
                "header_unknown_tagged_fields": pa.array(unknown, RAW_TAGGED_FIELDS),
                "size": pa.array([len(one) for one in bodies], pa.int64()),
                "body": decoded,
            }
        )
    )


def header_of(name: str, version: int) -> Message:
    entry = catalog().entry(name)
    at = entry.header_versions.of(version)
    values: dict[str, Any] = {}
    if entry.type is MessageType.REQUEST and at:
        values["client_id"] = CLIENT_ID
    if version % 2 and message(name).definition.schema(version).flexible and at:
        # Messages in some versions contain values that an encoding without tagged fields cannot
        # hold.
        values["unknown_tagged_fields"] = {7: b"trace"}
    kind = "RequestHeader" if entry.type is MessageType.REQUEST else "ResponseHeader"
    return message(kind)(**values)


def measured(name: str, body: bytes, version: int, new: ComparisonSide) -> int | None:
    """Return the size that the reference writes, or None if the encoding cannot hold
    the message.
    """
    entry = catalog().entry(name)
    meter = CostMeter(ComparisonSide(OLD), new)
    header = header_of(name, version)
    meter.add(SentMessage(name, entry.api_key, entry.type, version, body, header))
    found = [one.whole.new.total + 4 for one in meter.rows.values() if one.messages]
    return found[0] if found else None


@pytest.mark.long
@pytest.mark.slow
@each("name", APIS, parts=5)
def test_every_message_and_version_is_as_large_as_the_reference_writes_it(name: str) -> None:
    vectors = [one for one in BY_MESSAGE[name] if not has_changed(one)]
    bodies = [bytes.fromhex(one["hex"]) for one in vectors]
    versions = [one["version"] for one in vectors]
    sides = {
        column: ComparisonSide(OLD, one)
        for one, column in zip(Encoding, FRAME_SIZES.names, strict=False)
    }
    sides[ERROR_TAGS] = ComparisonSide(ErrorTaggedSpecs(OLD))
    found = frame_sizes(name, rows_of(name, bodies, versions)).to_pydict()
    flexible = [one for one in versions if message(name).definition.schema(one).flexible]
    whole = {*versions[:1], *versions[-1:], *flexible[:1]}
    for column, side in sides.items():
        for row, (body, version) in enumerate(zip(bodies, versions, strict=True)):
            # The other encodings change only what all versions have in common.
            if column == FRAME_SIZES.names[0] or version in whole:
                assert found[column][row] == measured(name, body, version, side), (column, version)


def test_record_batches_count_by_their_size_alone() -> None:
    name, version = "ProduceRequest", 9
    topics = [{"name": "orders", "partition_data": [{"records": b"x" * 70_000}, {"records": None}]}]
    body = message(name)(topic_data=topics).encode(version)
    rows = rows_of(name, [body] * 3, [version] * 3)
    assert sum(column.nbytes for column in rows.columns) < 70_000
    found = frame_sizes(name, rows)
    assert found["kafka"].to_pylist() == [measured(name, body, version, ComparisonSide(OLD))] * 3
    assert found["has_error"].to_pylist() == [None] * 3


def test_large_frames_are_measured_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    name, version = "HeartbeatResponse", 4
    bodies = [message(name)(error_code=code).encode(version) for code in (0, 25, 0)]
    rows = rows_of(name, bodies, [version] * 3)
    whole = frame_sizes(name, rows)
    monkeypatch.setattr("flexwire.specs.cost.columns._MOST_BYTES", 1)
    assert frame_sizes(name, rows) == whole
    assert whole["has_error"].to_pylist() == [False, True, False]
    # KIP-636: a code of 0 takes 2 bytes less, and any other code 2 bytes more.
    assert whole["kafka"].to_pylist() == [16, 16, 16]
    assert whole[ERROR_TAGS].to_pylist() == [14, 18, 14]


@pytest.mark.parametrize(
    ("name", "version", "sizes"),
    [
        # The version is not flexible, so the cost of KIP-482 is not charged to KIP-636.
        ("HeartbeatResponse", 3, (14, 16, 14, 16)),
        # The request is flexible only because its response contains the errors: all its savings are
        # due to KIP-482.
        ("ProduceRequest", 3, (36, 34, 34, 34)),
        # KIP-636 leaves the message unchanged, so it does not save the cost of KIP-482.
        ("SaslHandshakeRequest", 1, (26, 27, 26, 26)),
    ],
)
def test_error_tags_are_compared_with_what_kip_482_alone_makes(
    name: str, version: int, sizes: tuple[int, ...]
) -> None:
    found = frame_sizes(name, rows_of(name, [message(name)().encode(version)], [version]))
    columns = ("kafka", "flexible", ERROR_TAGS, WITHOUT_ERROR_TAGS)
    assert tuple(found[one][0].as_py() for one in columns) == sizes


def test_a_body_that_was_not_decoded_has_no_size() -> None:
    rows = rows_of("HeartbeatResponse", [], [])
    body = pa.nulls(1, rows.schema.field("body").type)
    one = rows_of("HeartbeatResponse", [bytes(7)], [4]).set_column(5, "body", body)
    assert {*frame_sizes("HeartbeatResponse", one).to_pylist()[0].values()} == {None}


@each("version", [None, 99])
def test_a_version_that_is_not_known_has_no_size(version: int | None) -> None:
    row = rows_of("HeartbeatResponse", [bytes(7)], [4])
    row = row.set_column(1, "body_version", pa.array([version], pa.int32()))
    found = frame_sizes("HeartbeatResponse", row).to_pylist()[0]
    assert {*found.values()} == {None}
