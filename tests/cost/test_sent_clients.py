"""Requests are measured as if clients named themselves once, or sent an instance id (KIP-1313)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest

from flexwire.columnar import decode_messages
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.schema.catalog import catalog, use_catalog
from flexwire.specs.cost.columns import frame_sizes
from flexwire.wire.encoding import Encoding
from tests.protocol.payloads import make
from tests.schema.trunk import trunk_catalog
from tests.searching import in_make_long

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTANCE = UUID(int=7)
# The bytes of a tagged field: its tag, its size, and the id.
TAGGED = 18


@pytest.fixture(scope="module", autouse=True)
def _trunk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    use_catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))
    yield
    use_catalog(None)


@pytest.mark.parametrize("name", ["HeartbeatRequest", *in_make_long("OffsetDeleteRequest")])
def test_a_size_is_that_of_the_header_that_was_sent(name: str) -> None:
    """The table contains the client id of the connection, but no client instance id."""
    entry = catalog().entry(name)
    version = entry.versions.highest
    header_version = entry.header_versions.of(version)
    body = make(name, group_id="g").encode(version)
    ids: list[dict[str, Any]] = [{}]
    if header_version > 2:
        ids.append({"client_instance_id": INSTANCE})
    # Each of them also contains an unknown tag.
    tags: list[dict[int, bytes]] = [{}, {9: b"trace"}]
    sent = [
        make("RequestHeader", client_id=client_id, unknown_tagged_fields=tagged, **given)
        for client_id in ("billing", None)
        for given in ids
        for tagged in tags
    ]
    headers = [header.encode(header_version) for header in sent]
    unknown = [
        [{"tag": tag, "data": data} for tag, data in header.unknown_tagged_fields.items()]
        for header in sent
    ]
    rows = pa.RecordBatch.from_pydict(
        {
            "api_key": pa.array([entry.api_key] * len(sent), pa.int32()),
            "body_version": pa.array([version] * len(sent), pa.int32()),
            "client_id": pa.array(["billing"] * len(sent), pa.string()),
            "header_unknown_tagged_fields": pa.array(unknown, RAW_TAGGED_FIELDS),
            "size": pa.array([4 + len(header) + len(body) for header in headers], pa.int64()),
            "body": decode_messages(name, pa.array([body] * len(sent), pa.binary()), version),
        }
    )
    sizes = frame_sizes(name, rows)
    assert sizes["kafka"].to_pylist() == rows["size"].to_pylist()
    # An encoding without tagged fields leaves out the id, which is ignorable, but cannot hold an
    # unknown tag.
    fixed = make(name, group_id="g").encode(version, encoding=Encoding.FIXED)
    assert sizes["fixed"].to_pylist() == [
        None
        if one.unknown_tagged_fields
        else 4 + len(make("RequestHeader", client_id=one.client_id).encode(1)) + len(fixed)
        for one in sent
    ]
    if header_version > 2:
        assert len(headers[len(tags)]) - len(headers[0]) == TAGGED
