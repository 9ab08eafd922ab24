"""What fuzzing starts from: sound inputs for each target, made from the vectors of the tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.codec import Encoding, message
from flexwire.schema.catalog import catalog
from flexwire.schema.write import write_spec
from fuzz.targets import ENCODINGS, MODES, head
from tests.capture import traffic
from tests.codec.vectors import PREVIEW, load

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECORDS = Path(__file__).parents[1] / "tests" / "vectors" / "records.jsonl.gz"
LONGEST = 2000
"""Longer inputs are left out: fuzzing is the quicker, and they hold nothing else."""


def corpus(target: str) -> Iterator[bytes]:
    """Give the sound inputs of a target."""
    made = _CORPORA.get(target, _messages)
    return (data for data in made() if len(data) <= LONGEST)


def write(target: str, directory: Path) -> None:
    """Write the inputs of a target as files; what else is there stays."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(corpus(target)):
        (directory / f"sound-{number:05}").write_bytes(data)


def _messages() -> Iterator[bytes]:
    """Every vector as it is, and one of each message in the other encodings that can hold it."""
    for name, vectors in load().items():
        for place, vector in enumerate(vectors):
            raw, version = bytes.fromhex(vector["hex"]), vector["version"]
            if (name, version) == PREVIEW:
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
            if (name, version) != PREVIEW:
                form = message(name).decode(raw, version).to_json(version)
                yield head(name, version) + json.dumps(form).encode()


def _records() -> Iterator[bytes]:
    with gzip.open(_RECORDS, "rt", encoding="ascii") as lines:
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


def _specs() -> Iterator[bytes]:
    for name in catalog().names():
        for spec, _ in catalog().entry(name).specs():
            for mode in range(len(MODES)):
                yield bytes([mode]) + write_spec(spec).encode()


_CORPORA = {"json": _json, "records": _records, "captures": _captures, "specs": _specs}
