"""The cases of the vector package, as flexwire proposes them from a release's specs.

A case consists of a name and bytes. flexwire does not propose what the bytes mean: Apache Kafka's
own classes determine that (`tools/java/Judge.java`). The name consists of the message, the version
and the kind; together with the spec, it determines the bytes. A name therefore keeps its bytes
until the spec changes.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import google_crc32c

from flexwire.codec import message
from flexwire.codec.hostile import hostile_kinds
from flexwire.codec.samples import Boundary, boundary_message, filled_message, random_message
from flexwire.records import Compression, decode_batches
from flexwire.schema.catalog import catalog
from flexwire.schema.header_versions import HEADER_NAMES
from flexwire.schema.spec import MessageType
from flexwire.wire.batch_layout import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    COMPRESSION_MASK,
    CRC_AT,
    CRC_SIZE,
    CRC_START,
    HEADER_SIZE,
    LEAST_RECORD,
    MAGIC_AT,
    MESSAGE_CRC_START,
    RECORD_BATCH,
    RECORD_COUNT_AT,
)
from flexwire.wire.limits import INT32_MAX
from tools.maven import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Message
    from flexwire.records import RecordBatch

BATCHES = ROOT / "tests" / "vectors" / "records.jsonl.gz"
RANDOM = 2
"""Valid messages with random values, for each version."""
HOSTILE = 2
"""Messages with each kind of damage, for each version."""
_OF_EACH = 6
"""The shortest record batches of each magic, compression and other kind."""
_SEED_BITS = 31


class Proposal(NamedTuple):
    """A case: its name, its bytes, and facts that do not depend on Kafka, in the order of a line.

    ``damage`` is None for a valid case.
    """

    case: str
    data: bytes
    facts: dict[str, Any]
    damage: str | None = None

    @property
    def question(self) -> dict[str, Any]:
        """Return the line that `tools/java/Judge.java` reads."""
        return {**self.facts, "hex": self.data.hex()}


def proposals(release: str, names: tuple[str, ...] = ()) -> Iterator[Proposal]:
    """Yield the cases for all messages of a release, or for the named ones, without their headers.

    The cases are sorted by message and version. No two cases of a version have the same bytes.
    """
    for name in names or catalog().names():
        for version in catalog().entry(name).releases.get(release, ()):
            seen = set()
            for case in _of_version(message(name, release), version, release):
                if case.data not in seen:
                    seen.add(case.data)
                    yield case


def _of_version(kind: type[Message], version: int, release: str) -> Iterator[Proposal]:
    entry = kind.entry
    spec = entry.spec(version, release)
    facts: dict[str, Any] = {"message": entry.name, "type": spec.type.value, "version": version}
    if spec.api_key is not None and spec.type.is_api:
        facts["apiKey"] = spec.api_key
    stem = f"{entry.name}/{version}"
    for name, sample in _valid(kind, version, stem):
        yield Proposal(f"{stem}/{name}", sample.encode(version), facts)
    for turn in range(HOSTILE):
        for name, hostile in hostile_kinds(kind, version, _seed(stem, turn)).items():
            yield Proposal(f"{stem}/hostile/{name}-{turn}", hostile.data, facts, hostile.damage)


def _valid(kind: type[Message], version: int, stem: str) -> Iterator[tuple[str, Message]]:
    yield "plain", kind()
    yield "full", filled_message(kind, version)
    yield "unknown-tags", filled_message(kind, version, unknown_tags=True)
    for boundary in Boundary:
        yield f"boundary/{boundary}", boundary_message(kind, version, boundary)
    for turn in range(RANDOM):
        yield f"random-{turn}", random_message(kind, version, _seed(stem, turn), batches=True)


def _seed(stem: str, turn: int) -> int:
    return zlib.crc32(f"{stem} {turn}".encode()) >> (32 - _SEED_BITS)


def header_proposals(release: str, names: tuple[str, ...] = ()) -> Iterator[Proposal]:
    """Yield the header of each version of each request and response: ``Fetch…/13/header``.

    flexwire proposes the header version, and the judge names its own (`headerVersion`).
    """
    for name in names or catalog().names():
        entry = catalog().entry(name)
        for version in entry.releases.get(release, ()):
            spec = entry.spec(version, release)
            if spec.type not in HEADER_NAMES or spec.api_key is None:
                continue
            header_version = entry.header_versions.of(version)
            header: Any = filled_message(message(HEADER_NAMES[spec.type], release), header_version)
            if spec.type is MessageType.REQUEST:
                header.request_api_key, header.request_api_version = spec.api_key, version
            facts = {
                "message": HEADER_NAMES[spec.type],
                "type": MessageType.HEADER.value,
                "version": header_version,
            }
            yield Proposal(f"{name}/{version}/header", header.encode(header_version), facts)


def record_proposals(sorts: tuple[str, ...] = ()) -> Iterator[Proposal]:
    """Yield record batches and message sets that Kafka's Java wrote, and damaged ones.

    The batches are of all kinds, or of the named kinds, such as ``magic-2-zstd-headers``.

    The batches are selected from `BATCHES`: the shortest of each magic, compression and timestamp
    type, and of transactions, control batches and batches with record headers.
    """
    found: dict[str, list[str]] = {}
    with gzip.open(BATCHES, "rt", encoding="ascii") as lines:
        for vector in map(json.loads, lines):
            found.setdefault(_sort_of(vector), []).append(vector["hex"])
    for sort, texts in sorted(found.items()):
        if sorts and sort not in sorts:
            continue
        for turn, text in enumerate(sorted(texts, key=lambda one: (len(one), one))[:_OF_EACH]):
            yield Proposal(f"records/{sort}-{turn}", bytes.fromhex(text), {})
        shortest = min(texts, key=lambda one: (len(one), one))
        for name, data, words in _damaged_batches(bytes.fromhex(shortest)):
            yield Proposal(f"records/{sort}/hostile/{name}", data, {}, words)


def _sort_of(vector: dict[str, Any]) -> str:
    marks = [f"magic-{vector['magic']}", vector["compression"]]
    batches = vector["batches"]
    if vector["timestampType"] == "LogAppendTime":
        marks.append("log-append-time")
    if any(one["isTransactional"] for one in batches):
        marks.append("transactional")
    if any(one["isControlBatch"] for one in batches):
        marks.append("control")
    if any(record["headers"] for one in batches for record in one["records"]):
        marks.append("headers")
    return "-".join(marks)


def _damaged_batches(data: bytes) -> Iterator[tuple[str, bytes, str]]:
    """Yield damaged forms of the first batch. All but the first five have a correct checksum."""
    batch = next(iter(decode_batches(data)))
    last = batch.size - 1
    yield "cut", data[:-1], "the last byte is missing"
    yield "cut-header", data[: MAGIC_AT + 1], "the bytes end after the magic"
    yield "appended", data + b"\0", "a byte follows the last batch"
    yield "magic", _put(data, MAGIC_AT, b"\x09"), "the magic is 9"
    yield "flipped", _put(data, last, bytes([data[last] ^ 1])), "a bit of the content is flipped"
    for name, length in (("negative", -1), ("zero", 0), ("highest", INT32_MAX)):
        yield (
            f"batch-length-{name}",
            _put(data, BATCH_LENGTH_AT, length.to_bytes(4, "big", signed=True)),
            f"the batch length is {length}",
        )
    at = ATTRIBUTES_AT + 1 if batch.magic == RECORD_BATCH else MAGIC_AT + 1
    codec = bytes([data[at] | COMPRESSION_MASK])
    yield "compression", _sealed(_put(data, at, codec), batch), "the compression type is 7"
    if batch.magic != RECORD_BATCH:
        return
    right = batch.record_count
    counts = {"negative": -1, "less": right - 1, "more": right + 1, "highest": INT32_MAX}
    for name, count in counts.items():
        changed = _put(data, RECORD_COUNT_AT, count.to_bytes(4, "big", signed=True))
        words = f"the record count is {count}, in place of {right}"
        yield f"record-count-{name}", _sealed(changed, batch), words
    content = _put(data, HEADER_SIZE, b"\xff\xff\xff\xff\xff\x7f")
    if batch.compression is Compression.NONE and batch.size > HEADER_SIZE + LEAST_RECORD:
        words = "the length of the first record is a varint of 6 bytes"
        yield "record-length", _sealed(content, batch), words


def _put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _sealed(data: bytes, batch: RecordBatch) -> bytes:
    """Return the data with a correct checksum for its first batch."""
    if batch.magic == RECORD_BATCH:
        crc = google_crc32c.value(data[CRC_START : batch.size])
    else:
        crc = zlib.crc32(data[MESSAGE_CRC_START : batch.size])
    at = CRC_AT if batch.magic == RECORD_BATCH else MAGIC_AT - CRC_SIZE
    return _put(data, at, crc.to_bytes(CRC_SIZE, "big"))
