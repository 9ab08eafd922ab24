"""The records that the demo's clients write: random records of every kind, with fixed seeds."""

from __future__ import annotations

import importlib
import json
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexwire.extras import needed_by

if TYPE_CHECKING:
    from types import ModuleType


# The number of partitions of each topic. Each topic belongs to a single client, so that the client
# reads back only its own records.
TOPICS = {
    "orders": 6,
    "payments": 3,
    "clicks": 12,
    "inventory": 4,
    "audit": 1,
    "ledger": 3,
    "shipments": 4,
    "customers": 6,
    "returns": 2,
    "prices": 3,
    "invoices": 3,
    "mainframe": 2,
    "gauges": 2,
    "stock": 2,
    "museum": 1,
}

_CITIES = ("Zürich", "Kraków", "São Paulo", "東京", "Reykjavík", "Nairobi", "Denver", "Ιωάννινα")
_KINDS = ("created", "changed", "confirmed", "shipped", "cancelled")
_NULL_KEY_EVERY = 7
_TOMBSTONE_EVERY = 11
_BARE_EVERY = 5


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A produced or consumed record. Records are equal if keys, values and headers are equal."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def make_samples(
    topic: str, count: int, *, null_headers: bool = True, headers: bool = True
) -> list[SampleRecord]:
    """Return records for a topic, which are the same in every run.

    The records include null keys, tombstones (a key but no value), records without headers, and
    record headers that are repeated, binary, UTF-8, empty or null. Use ``null_headers=False`` for
    clients that cannot write null, and ``headers=False`` for clients that do not support record
    headers.

    >>> [sample.key for sample in make_samples("orders", 3)]
    [None, b'orders-30', b'orders-76']
    """
    source = random.Random(topic)  # noqa: S311 - these are sample values, not secrets, and are the same in every run
    records = [_sample(topic, number, source, null_headers=null_headers) for number in range(count)]
    return records if headers else [replace(record, headers=()) for record in records]


def _sample(topic: str, number: int, source: random.Random, *, null_headers: bool) -> SampleRecord:
    entity = source.randrange(100)
    headers = _headers(number, source, null_headers=null_headers)
    event = {
        "id": number,
        "entity": entity,
        "kind": source.choice(_KINDS),
        "city": source.choice(_CITIES),
        "amount": round(source.uniform(1, 500), 2),
        "note": "lorem ipsum dolor sit amet " * source.randrange(6),
    }
    value = json.dumps(event, ensure_ascii=False).encode()
    key = f"{topic}-{entity}".encode()
    if number % _NULL_KEY_EVERY == 0:
        return SampleRecord(topic, None, value, headers)
    if number % _TOMBSTONE_EVERY == 0:
        return SampleRecord(topic, key, None, headers)
    return SampleRecord(topic, key, value, headers)


def _headers(
    number: int, source: random.Random, *, null_headers: bool
) -> tuple[tuple[str, bytes | None], ...]:
    trace = f"00-{source.getrandbits(128):032x}-{source.getrandbits(64):016x}-01"
    city = source.choice(_CITIES)
    sequence = source.randbytes(8)
    if number % _BARE_EVERY == 0:
        return ()
    return (
        ("traceparent", trace.encode()),
        ("content-type", b"application/json"),
        ("retry", b"1"),
        ("retry", b"2"),
        ("sequence", sequence),
        ("city", city.encode()),
        ("flag", b""),
        ("tenant", None if null_headers and number % 2 else b"acme"),
    )


def require(module: str) -> ModuleType:
    """Import a module of the demo, or raise an error that names the extra to install.

    Raises `MissingExtraError` if a package that the module requires is not installed.

    >>> require("flexwire.demo.content").__name__
    'flexwire.demo.content'
    """
    with needed_by("the demo", "demo"):
        return importlib.import_module(module)
