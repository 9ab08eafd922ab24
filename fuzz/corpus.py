"""Valid inputs from which fuzzing starts, made from the vectors of the tests, for each target."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.codec import Encoding, message
from flexwire.errors import RecordHeaderError
from flexwire.records.conventions import write_headers
from flexwire.records.headers import Headers
from flexwire.records.kip82 import Kip82Message, encode_message_set
from flexwire.records.kip82.message import KNOWN_COMPRESSIONS, MAGIC
from flexwire.schema.catalog import catalog
from flexwire.schema.write import write_spec
from flexwire.wire.batch_layout import MAGIC_AT
from fuzz.modes import MODES
from fuzz.record_headers import join
from fuzz.targets import ENCODINGS, head
from tests.capture import traffic
from tests.codec.vectors import has_changed, load

if TYPE_CHECKING:
    from collections.abc import Iterator

_VECTORS = Path(__file__).parents[1] / "tests" / "vectors"
LONGEST = 2000
"""Longer inputs are left out: fuzzing is the quicker, and they hold nothing else."""


def corpus(target: str) -> Iterator[bytes]:
    """Return the valid inputs of a target."""
    made = _CORPORA.get(target, _messages)
    return (data for data in made() if len(data) <= LONGEST)


def write(target: str, directory: Path) -> None:
    """Write the inputs of a target as files; other files in the directory remain."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(corpus(target)):
        (directory / f"sound-{number:05}").write_bytes(data)


def _messages() -> Iterator[bytes]:
    """Yield every vector, and one of each message in the other encodings that can hold it."""
    for name, vectors in load().items():
        for place, vector in enumerate(vectors):
            raw, version = bytes.fromhex(vector["hex"]), vector["version"]
            if has_changed(vector):
                continue
            yield head(name, version) + raw
            value = message(name).decode(raw, version)
            if place == 0 and not vector["unknown_tagged_fields"]:
                for encoding in set(ENCODINGS) - {Encoding.KAFKA, Encoding.FIXED}:
                    yield head(name, version, encoding) + value.encode(version, encoding=encoding)


def _json() -> Iterator[bytes]:
    for name, vectors in load().items():
        for vector in vectors:
            raw, version = bytes.fromhex(vector["hex"]), vector["version"]
            if not has_changed(vector):
                form = message(name).decode(raw, version).to_json(version)
                yield head(name, version) + json.dumps(form).encode()


def _records() -> Iterator[bytes]:
    with gzip.open(_VECTORS / "records.jsonl.gz", "rt", encoding="ascii") as lines:
        for line in lines:
            raw = bytes.fromhex(json.loads(line)["hex"])
            yield b"\x00" + raw
            yield b"\xff" + raw


def _captures() -> Iterator[bytes]:
    requests = [traffic.packet(traffic.request(at), sequence=7 + 20 * at) for at in range(4)]
    for order in "<>":
        for nanoseconds in (False, True):
            whole = traffic.pcap(requests, order=order, nanoseconds=nanoseconds)
            yield whole
            yield gzip.compress(whole, mtime=0)
        blocks = [traffic.enhanced(one, at, order=order) for at, one in enumerate(requests)]
        yield traffic.section(order) + traffic.interface(order=order) + b"".join(blocks)
    yield traffic.pcap(requests, snaplen=30)


def _pieces() -> Iterator[bytes]:
    """Return the captures with a first byte, so that they are read in pieces of two packets."""
    return (b"\x14" + data for data in _captures())


def _specs() -> Iterator[bytes]:
    for name in catalog().names():
        for spec, _ in catalog().entry(name).specs():
            for mode in range(len(MODES)):
                yield bytes([mode]) + write_spec(spec).encode()


def _lint() -> Iterator[bytes]:
    """Yield specs, some of them with comments that allow findings."""
    rules = ("ABOUT_MISSING", "TAG_SKIPPED", "KEY_UNKNOWN", "FIELD_REMOVED")
    for place, data in enumerate(_specs()):
        yield data
        if place % 7 == 0:
            comment = f"// flexwire: allow {rules[place % len(rules)]} it is so\n".encode()
            yield data[:1] + comment + data[1:].replace(b"\n", b"\n" + comment, 2)


def _changes() -> Iterator[bytes]:
    """Yield each spec with the one before it, and with itself after one word changed."""
    for name in catalog().names():
        texts = [write_spec(spec) for spec, _ in catalog().entry(name).specs()]
        for old, new in pairwise([*reversed(texts), texts[0].replace('"0+"', '"1+"', 3)]):
            yield b"\x00" + old.encode() + b"\x00" + new.encode()


def _kip82() -> Iterator[bytes]:
    """Yield KIP-82's messages in each compression, and the older message sets of the vectors."""
    headers = Headers()
    headers.put_long("user", 7)
    headers.put_string("tag", "new")
    headers.put_bytes("tag", b"\x00")
    messages = [Kip82Message(at, 1000 + at, b"key", b"value" * at, headers) for at in range(3)]
    for check_crc in (b"\x00", b"\xff"):
        for compression in KNOWN_COMPRESSIONS:
            yield check_crc + encode_message_set(messages, compression=compression)
        yield check_crc + encode_message_set([Kip82Message(5, -1, None, None), *messages])
    for data in _records():
        if len(data) > MAGIC_AT + 1 and data[MAGIC_AT + 1] < MAGIC:
            yield data


def _conventions() -> Iterator[bytes]:
    """Yield what Java wrote by a convention, alone and with the classes that Spring names."""
    with gzip.open(_VECTORS / "header-conventions.jsonl.gz", "rt", encoding="ascii") as lines:
        for line in lines:
            vector = json.loads(line)
            with suppress(OverflowError):
                # Values are left out if their length exceeds the one byte that `join` has for it.
                yield join([(b"a", bytes.fromhex(vector.get("hex", ""))), (b"ce_id", None)])
    values = {"i": 3, "l": 1 << 40, "f": 1.5, "b": True, "s": "text", "m": {"a": [1, None]}}
    for name in ("spring-json", "connect", "utf-8"):
        for key, value in values.items():
            with suppress(RecordHeaderError):
                yield join(write_headers([(key, value), (key, value)], name))


def _choices() -> Iterator[bytes]:
    """Return bytes to choose from; any bytes choose something."""
    chosen = random.Random("choices")  # noqa: S311 - chance, not a secret
    return (chosen.randbytes(chosen.randrange(8, LONGEST)) for _ in range(60))


_CORPORA = {
    "json": _json,
    "records": _records,
    "captures": _captures,
    "pieces": _pieces,
    "specs": _specs,
    "lint": _lint,
    "breaking": _changes,
    "kip82": _kip82,
    "conventions": _conventions,
    "connections": _choices,
    "columns": _choices,
}
