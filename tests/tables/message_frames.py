"""Make frames as `message_rows` accepts them, and the rows that objects make from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.errors import EncodeError, UnknownMessageError
from flexwire.protocol import parse_request, request_header_version, response_header_version
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from flexwire.tables.message_schema import NEEDED, class_of, table_schema
from flexwire.tables.messages import MessageBodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

START_US = 1_700_000_000_000_000
# Frames have more columns than are needed.
FRAMES = pa.schema([("outcome", pa.string()), *NEEDED, ("body", pa.string())])
APIS = tuple(name for name in catalog().names() if catalog().entry(name).type.is_api)


def frame(
    name: str,
    body: bytes,
    version: int,
    number: int = 0,
    *,
    tags: dict[int, bytes] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return the row of a frame with a message, as the frames' headers describe it."""
    entry = catalog().entry(name)
    key = entry.api_key or 0
    is_request = entry.type is MessageType.REQUEST
    payload = _header(key, version, number, tags, is_request=is_request) + body
    told: dict[str, Any] = {
        "connection": f"10.0.0.{number % 5}:50000>10.0.0.1:9092",
        "direction": "request" if is_request else "response",
        "frame_index": number,
        "time": START_US + number,
        "size": len(payload),
        "client_id": "tests" if number % 3 else None,
        "api_key": key,
        "api_version": version,
        "correlation_id": number,
        "payload": payload,
        "is_guarded": False,
        "body": name,
    }
    if is_request:
        read = parse_request(payload)
        header: Any = read.header
        told |= {
            "header_version": read.header_version,
            "body_offset": read.body_offset,
            "header_unknown_tagged_fields": [
                {"tag": tag, "data": data} for tag, data in header.unknown_tagged_fields.items()
            ],
        }
    return told | changes


def _header(
    key: int, version: int, number: int, tags: dict[int, bytes] | None, *, is_request: bool
) -> bytes:
    known: dict[str, Any] = {"correlation_id": number}
    if is_request:
        made, found = message("RequestHeader"), request_header_version(key, version)
        known |= {"request_api_key": key, "request_api_version": version, "client_id": "tests"}
    else:
        made, found = message("ResponseHeader"), response_header_version(key, version)
    try:
        return made(**known, unknown_tagged_fields=tags or {}).encode(found)
    except EncodeError:
        return made(**known).encode(found)


def batch(frames: Iterable[dict[str, Any]]) -> pa.RecordBatch:
    """Return the frames as columns that begin in the middle of their buffers."""
    rows = list(frames)
    return pa.RecordBatch.from_pylist([*rows[:1], *rows], FRAMES).slice(min(1, len(rows)))


def bodies(name: str, seeds: range, release: str | None = None) -> Iterator[tuple[bytes, int]]:
    """Draw messages of every version, encoded."""
    entry = catalog().entry(name)
    for version in entry.versions if release is None else entry.releases.get(release, ()):
        made = class_of(name, version, release)
        for seed in seeds:
            yield random_message(made, version, seed).encode(version), version


def by_objects(
    frames: pa.RecordBatch, name: str, release: str | None = None, *, show: bool = False
) -> pa.RecordBatch:
    """Return the rows that the objects produce, in frame order."""
    schema = table_schema(name, release)
    order: list[int] = []
    parts = [pa.RecordBatch.from_pylist([], schema)]
    for rows, part in MessageBodies(name, release, show).decode(frames):
        order += rows
        parts.append(part)
    places = sorted(range(len(order)), key=order.__getitem__)
    return pa.concat_batches(parts).take(pa.array(places, pa.int64()))


def same(found: pa.RecordBatch, expected: pa.RecordBatch) -> None:
    """Check that rows are valid and equal to others. NaN equals itself."""
    found.validate(full=True)
    assert found.schema == expected.schema
    if found.equals(expected):
        return
    for row, (one, other) in enumerate(zip(found.to_pylist(), expected.to_pylist(), strict=True)):
        for column, value in one.items():
            assert repr(value) == repr(other[column]), (row, column)


def known_versions(name: str) -> list[int]:
    """Return the versions of a message in which its defaults can be encoded."""
    found = []
    for version in catalog().entry(name).versions:
        try:
            message(name)().encode(version)
        except (EncodeError, UnknownMessageError):
            continue
        found.append(version)
    return found
