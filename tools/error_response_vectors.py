"""Write `tests/vectors/error-responses.jsonl.gz`: Kafka's own Java error responses.

    python -m tools.error_response_vectors

For each version of each API that a release of `RELEASES` reads, flexwire makes a few requests. For
each request, `tools/java/ErrorResponses.java` runs with the release's jars and returns the response
that Kafka's class for the request builds for an error code. Java 17 or newer and Maven are
required.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.codec import Message, message
from flexwire.records import Record, encode_batch
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from flexwire.wire.schema import Field, NullableStruct, Presence, Schema
from flexwire.wire.types import RECORDS, ArrayType, Boolean, Bytes, Float64, Integer, String, Type
from tools.broker import jars
from tools.maven import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = ROOT / "tools" / "java" / "ErrorResponses.java"
OUT = ROOT / "tests" / "vectors" / "error-responses.jsonl.gz"
# The last release that reads the versions that 4.0 removed, and the newest release.
RELEASES = ("3.9.2", "4.4.0")
# UNKNOWN_SERVER_ERROR, NOT_LEADER_OR_FOLLOWER, COORDINATOR_NOT_AVAILABLE, UNSUPPORTED_VERSION,
# INVALID_TXN_STATE, KAFKA_STORAGE_ERROR, PRODUCER_FENCED and UNKNOWN_TOPIC_ID: a method may behave
# differently for one of these errors, or in one version. All codes were tried: only ApiVersions
# behaves differently, for code 35.
CODES = (-1, 6, 15, 35, 48, 56, 90, 100)


class RequestShape(NamedTuple):
    """How a request is built: the length of the lists, the first number, and the null fields."""

    elements: int
    first: int
    null_lists: bool = False
    null_others: bool = False
    # Elements of a list have the same strings and ids, and so do lists inside them.
    is_alike: bool = False


SHAPES = (
    RequestShape(2, 1),
    RequestShape(0, 0),
    RequestShape(1, 1, null_lists=True, null_others=True),
    RequestShape(1, 3, null_others=True),
    RequestShape(2, 1, is_alike=True),
)
# These methods merge equal topics, which no client sends twice.
MERGING = ("OffsetFetch", "Produce", "WriteTxnMarkers")


class FailedRequest(NamedTuple):
    """A request's body, in a version of an API."""

    api: str
    api_key: int
    version: int
    body: bytes


def made(kind: type[Message], version: int, shape: RequestShape) -> Message:
    """Make a request. Names, ids and numbers differ between the elements of the body's lists."""
    root: Message = _structure(kind, kind.definition.schema(version), shape, "", 0)
    return root


def _structure(
    kind: type[Message], schema: Schema, shape: RequestShape, path: str, index: int
) -> Any:
    values = {
        field.attribute: _field(kind, field, shape, f"{path}{field.json_name}", index)
        for field in schema.fields
        if field.presence is not Presence.ABSENT
    }
    return kind.definition.classes[schema.name](**values)


def _field(kind: type[Message], field: Field, shape: RequestShape, path: str, index: int) -> Any:
    is_null = shape.null_lists if isinstance(field.type, ArrayType) else shape.null_others
    # Kafka cannot answer a request without records, because it needs their size.
    if is_null and field.nullable and not _is_records(field.type):
        return None
    return _value(kind, field.type, shape, path, index)


def _value(kind: type[Message], type_: Type, shape: RequestShape, path: str, index: int) -> Any:
    if isinstance(type_, ArrayType):
        return [
            _value(kind, type_.element, shape, path if shape.is_alike else f"{path}{at}", at)
            for at in range(shape.elements)
        ]
    if isinstance(type_, NullableStruct | Schema):
        schema = type_.schema if isinstance(type_, NullableStruct) else type_
        return _structure(kind, schema, shape, path, index)
    return _scalar(type_, path, index + shape.first)


def _scalar(type_: Type, path: str, number: int) -> Any:
    if isinstance(type_, Integer | Float64):
        return number if isinstance(type_, Integer) else float(number)
    if isinstance(type_, Boolean):
        return False
    if isinstance(type_, String):
        return path
    if isinstance(type_, Bytes):
        return encode_batch([Record(0, 0, None, b"v")]) if _is_records(type_) else path.encode()
    return uuid.uuid5(uuid.NAMESPACE_OID, path)


def _is_records(type_: Type) -> bool:
    return isinstance(type_, Bytes) and type_.kind == RECORDS.kind


def requests(release: str) -> Iterator[FailedRequest]:
    """Yield the requests of every API and version that a release reads, in this order."""
    for name in catalog().names():
        entry = catalog().entry(name)
        if entry.type is not MessageType.REQUEST or entry.api_key is None:
            continue
        api = name.removesuffix("Request")
        shapes = [one for one in SHAPES if not (one.is_alike and api in MERGING)]
        for version in entry.releases.get(release, ()):
            kind = message(name, release)
            bodies = (made(kind, version, shape).encode(version) for shape in shapes)
            for body in dict.fromkeys(bodies):
                yield FailedRequest(api, entry.api_key, version, body)


def answered(release: str) -> Iterator[dict[str, Any]]:
    """Yield each request with the responses of the release's classes, by error code."""
    asked = [*requests(release)]
    codes = " ".join(map(str, CODES))
    lines = "".join(f"{one.api_key} {one.version} {one.body.hex()} {codes}\n" for one in asked)
    command = ["java", "-cp", f"{jars(release)}/*", str(PROGRAM)]
    ran = subprocess.run(
        command, input=lines, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True
    )
    for one, line in zip(asked, ran.stdout.splitlines(), strict=True):
        responses = dict(zip(map(str, CODES), line.split(" "), strict=True))
        yield {
            "api": one.api,
            "version": one.version,
            "request": one.body.hex(),
            "responses": responses,
        }


def main() -> None:
    """Write the file; its bytes are reproducible."""
    found: dict[str, list[str]] = {}
    for release in RELEASES:
        for vector in answered(release):
            found.setdefault(json.dumps(vector), []).append(release)
    vectors = [{"releases": releases, **json.loads(text)} for text, releases in found.items()]
    vectors.sort(key=lambda one: (one["api"], one["version"], one["request"], one["releases"]))
    lines = "".join(f"{json.dumps(one)}\n" for one in vectors)
    OUT.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
    sys.stdout.write(f"{len(vectors)} vectors, {OUT.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
