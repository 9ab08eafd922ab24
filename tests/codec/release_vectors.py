"""Messages that Kafka's releases wrote with their own Java, and the results of each executor.

`tools/release_vectors.py` wrote the file. A line holds `releases` (those whose classes wrote these
very bytes and this JSON), `module`, `message`, `type`, `version`, `hex`, `json` (null where the
module has no JSON converters) and `unknown_tagged_fields`: for the path of each structure, its
unknown fields, as a mapping of tags to bytes.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa

from flexwire.codec import Message, message
from flexwire.columnar import decode_messages, encode_messages, reference
from flexwire.errors import FlexwireError
from flexwire.schema.catalog import catalog, release_order
from tests.kernels.harness import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FILE = Path(__file__).parents[1] / "vectors" / "releases.jsonl.gz"
_UNKNOWN = "_unknownTaggedFields"

Tags = dict[str, list[tuple[int, str]]]


class ReleaseVector(NamedTuple):
    """A message that some releases wrote in the same way; ``number`` is its place in the file."""

    number: int
    releases: tuple[str, ...]
    module: str
    message: str
    type: str
    version: int
    raw: bytes
    json: Any
    unknown: Tags


@cache
def release_vectors() -> tuple[ReleaseVector, ...]:
    """Return every vector, by message and version."""
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        return tuple(_vector(number, json.loads(line)) for number, line in enumerate(lines))


def _vector(number: int, line: dict[str, Any]) -> ReleaseVector:
    unknown = line["unknown_tagged_fields"].items()
    return ReleaseVector(
        number,
        tuple(line["releases"]),
        line["module"],
        line["message"],
        line["type"],
        line["version"],
        bytes.fromhex(line["hex"]),
        line["json"],
        {path: [(one["tag"], one["hex"]) for one in tags] for path, tags in unknown},
    )


def releases() -> list[str]:
    """Return the releases that wrote vectors, oldest first."""
    named = {release for vector in release_vectors() for release in vector.releases}
    return sorted(named, key=release_order)


def of_release(release: str, executor: str = "") -> list[ReleaseVector]:
    """Return the vectors that a release wrote, without those that say nothing about an executor."""
    return [
        vector
        for vector in release_vectors()
        if release in vector.releases and (executor != "JSON" or vector.json is not None)
    ]


_CLASSES: dict[tuple[str, int, int], type[Message]] = {}


def class_in(vector: ReleaseVector, release: str) -> type[Message]:
    """Return a class for the vector, from the release's spec of the version.

    Releases with the same spec of a version share the class, so the class is compiled only once.
    """
    spec = catalog().entry(vector.message).spec(vector.version, release)
    key = (vector.message, vector.version, id(spec))
    if key not in _CLASSES:
        _CLASSES[key] = message(vector.message, release)
    return _CLASSES[key]


# An executor returns its error for each vector, or None if it reads and writes the same bytes.
Faults = list[str | None]


def faults(executor: str, release: str) -> dict[ReleaseVector, str]:
    """Return the vectors of a release that an executor does not read or writes differently."""
    outcomes = _outcomes(executor)
    found = {}
    for vector in of_release(release, executor):
        fault = outcomes[vector.number, class_in(vector, release)]
        if fault is not None:
            found[vector] = fault
    return found


@cache
def _outcomes(executor: str) -> dict[tuple[int, type[Message]], str | None]:
    by_class: dict[type[Message], dict[int, ReleaseVector]] = defaultdict(dict)
    for release in releases():
        for vector in of_release(release, executor):
            by_class[class_in(vector, release)][vector.number] = vector
    found: dict[tuple[int, type[Message]], str | None] = {}
    for made, vectors in by_class.items():
        told = EXECUTORS[executor](made, [*vectors.values()])
        found |= {(number, made): fault for number, fault in zip(vectors, told, strict=True)}
    return found


def _one_by_one(judge: Callable[[type[Message], ReleaseVector], str | None]) -> Any:
    def executor(made: type[Message], vectors: list[ReleaseVector]) -> Iterator[str | None]:
        for vector in vectors:
            try:
                yield judge(made, vector)
            except FlexwireError as error:
                yield str(error)

    return executor


@_one_by_one
def _reference(made: type[Message], vector: ReleaseVector) -> str | None:
    value, end = made.definition.decode_reference(vector.raw, vector.version)
    if end != len(vector.raw):
        return f"read to byte {end} of {len(vector.raw)}"
    return _same(made.definition.encode_reference(value, vector.version), vector)


@_one_by_one
def _generated(made: type[Message], vector: ReleaseVector) -> str | None:
    value = made.definition.decode_exactly(vector.raw, vector.version)
    if value != made.definition.decode_reference(vector.raw, vector.version)[0]:
        return "another object than the reference executor's"
    return _same(made.definition.encode_generated(value, vector.version), vector)


@_one_by_one
def _kernels(made: type[Message], vector: ReleaseVector) -> str | None:
    decode, encode = functions(made, vector.version)
    value = decode(vector.raw)
    if value != made.definition.decode_reference(vector.raw, vector.version)[0]:
        return "refused, or another object than the reference executor's"
    return _same(encode(value), vector)


def _columns(made: type[Message], vectors: list[ReleaseVector]) -> Faults:
    raws = pa.array([vector.raw for vector in vectors], pa.binary())
    versions = [vector.version for vector in vectors]

    def put(_: Any, slow: dict[int, Any]) -> Any:
        raise AssertionError(f"{made}: rows {sorted(slow)} were left to the reference executor")

    with patch.object(
        reference, "_put", lambda values, slow: put(values, slow) if slow else values
    ):
        structs = decode_messages(made, raws, versions)
        written = encode_messages(made, structs, versions)
    return [_same(one, vector) for one, vector in zip(written.to_pylist(), vectors, strict=True)]


@_one_by_one
def _json(made: type[Message], vector: ReleaseVector) -> str | None:
    value = made.decode(vector.raw, vector.version)
    ours = value.to_json(vector.version)
    back = _same(made.from_json(ours, vector.version).encode(vector.version), vector)
    if back is not None:
        return f"from our JSON: {back}"
    unknown: Tags = {}
    plain = without_unknown(ours, "", unknown)
    # These are compared as strings, so the order of names counts too.
    if str(plain) != str(vector.json):
        return f"JSON {plain}, expected {vector.json}"
    if unknown != vector.unknown:
        return f"unknown tagged fields {unknown}, expected {vector.unknown}"
    return None


def without_unknown(form: Any, path: str, unknown: Tags) -> Any:
    """Return a JSON form without unknown tagged fields; ``unknown`` receives these by path."""
    if isinstance(form, list):
        return [without_unknown(one, f"{path}[{at}]", unknown) for at, one in enumerate(form)]
    if not isinstance(form, dict):
        return form
    if _UNKNOWN in form:
        told = form[_UNKNOWN]
        unknown[path] = [(one["tag"], b64decode(one["data"]).hex()) for one in told]
    return {
        name: without_unknown(value, f"{path}.{name}", unknown)
        for name, value in form.items()
        if name != _UNKNOWN
    }


def _same(written: Any, vector: ReleaseVector) -> str | None:
    if written == vector.raw:
        return None
    shown = written.hex() if isinstance(written, bytes) else repr(written)
    return f"wrote {shown}, expected {vector.raw.hex()}"


EXECUTORS: dict[str, Callable[[type[Message], list[ReleaseVector]], Any]] = {
    "reference": _reference,
    "generated": _generated,
    "kernels": _kernels,
    "columns": _columns,
    "JSON": _json,
}
