"""Try everything that works on all platforms: messages, records, columns and schemas.

Tests run this program without modules that only Unix has, and `tools.package.windows` runs it with
a Python for Windows. The program therefore needs only flexwire, and no other file from this
repository. The program leaves out columns if pyarrow is missing, and compression if cramjam is
missing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError, RecordError
from flexwire.records import Record, decode_batches, decode_records, encode_batch
from flexwire.schema.catalog import catalog

MESSAGES = "every version of every message is written, read and refused if damaged"
RECORDS = "records are written, read and refused if damaged: "
COLUMNS = "columns of messages and of records"
SCHEMAS = "schemas of every release"
_PLAIN, _COMPRESSED = ("none", "gzip"), ("snappy", "lz4", "zstd")


def compressions() -> tuple[str, ...]:
    """Return the compression types that this installation supports."""
    return (*_PLAIN, *(_COMPRESSED if find_spec("cramjam") else ()))


def done() -> list[str]:
    """Return what `try_all` prints if all results are correct."""
    columns = [COLUMNS] if find_spec("pyarrow") else []
    return [MESSAGES, RECORDS + ", ".join(compressions()), *columns, SCHEMAS]


def try_all() -> None:
    """Try everything, and print what was done; raise `AssertionError` for a wrong result."""
    try_messages()
    try_records()
    if find_spec("pyarrow"):
        try_columns()
    try_schemas()


def say(text: str) -> None:
    """Print a line as the same bytes on every platform."""
    sys.stdout.buffer.write(f"{text}\n".encode())
    sys.stdout.flush()


def try_messages() -> None:
    """Write and read every version of every message."""

    for name in catalog().names():
        kind: Any = message(name)
        for version in kind.entry.versions:
            value = random_message(kind, version, seed=version)
            raw = value.encode(version)
            assert kind.decode(raw, version) == value, (name, version)
            assert kind.decode(raw, version=version).encode(version) == raw, (name, version)
            try:
                kind.decode(raw + b"\0", version)
            except DecodeError:
                continue
            raise AssertionError((name, version))
    say(MESSAGES)


def try_records() -> None:
    """Write and read records of every compression type."""

    records = [Record(n, 10**12 + n, b"k", b"v" * n, [(b"a", None)]) for n in range(100)]
    for compression in compressions():
        data = encode_batch(records, compression=compression)
        assert decode_records(data) == records, compression
        assert [one for batch in decode_batches(data * 3) for one in batch.records] == records * 3
        try:
            decode_records(data[:-1] + bytes([data[-1] ^ 1]))
        except RecordError:
            continue
        raise AssertionError(compression)
    say(RECORDS + ", ".join(compressions()))


def try_columns() -> None:
    """Write and read messages and records in columns."""
    pa, columnar = import_module("pyarrow"), import_module("flexwire.columnar")

    for name in ("FetchResponse", "MetadataRequest", "ProduceRequest"):
        kind: Any = message(name)
        version = max(kind.entry.versions)
        raw = [random_message(kind, version, seed).encode(version) for seed in range(20)]
        column = columnar.decode_messages(name, pa.array(raw), version)
        assert columnar.encode_messages(name, column, version).to_pylist() == raw
    table = pa.table({"offset": range(1000), "value": [b"x" * (n % 50) for n in range(1000)]})
    found = columnar.decode_records(
        columnar.encode_records(table, compression="gzip"), columns=["offset", "value"]
    )
    assert found.to_pylist() == table.to_pylist()
    say(COLUMNS)


def try_schemas() -> None:
    """Resolve the specs of every release."""

    for release in catalog().releases:
        entry = catalog().entry("FetchRequest")
        version = max(entry.releases[release])
        assert entry.spec(version, release).name == "FetchRequest"
        assert message("FetchRequest", release).definition.schema(version).name == "FetchRequest"
    say(SCHEMAS)


if __name__ == "__main__":
    try_all()
