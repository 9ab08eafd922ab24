"""Messages that are made up are valid, and damaged ones differ from them in what is said."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.codec.explanation import explain
from flexwire.codec.hostile import hostile_bytes
from flexwire.codec.mappings import to_plain
from flexwire.codec.samples import filled_message, random_message
from flexwire.records import decode_batches
from flexwire.schema.catalog import catalog
from flexwire.wire.schema import Presence, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.wire.schema import Schema

VERSIONS = [
    (message(name), version)
    for name in catalog().names()
    for version in catalog().entry(name).versions
]
DAMAGES = (
    "cut off within",
    "a byte follows the message",
    "has length",
    "a varint of 6 bytes",
    "a varint with a byte more",
    "not UTF-8",
    " is 2",
    "the same tag twice",
    "tags out of order",
    "a tagged field that does not end",
    "more tagged fields than bytes",
)


def test_every_field_of_a_filled_message_has_a_value_of_its_own() -> None:
    for kind, version in VERSIONS:
        sample = filled_message(kind, version)
        at_default = [*fields_at_default(sample, kind.definition.schema(version))]
        assert not at_default, f"{kind.__name__} v{version}"
        assert kind.decode(sample.encode(version), version) == sample
        assert filled_message(kind, version) == sample


def fields_at_default(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    for field in schema.fields:
        if field.presence is Presence.ABSENT:
            continue
        held, here = getattr(value, field.attribute), f"{path}{field.json_name}"
        if field.is_default(to_plain(held, field.type)):
            yield here
        inner = struct_of(field.type)
        if inner is not None:
            for item in held if isinstance(held, list) else [held]:
                yield from fields_at_default(item, inner, f"{here}.")


def test_a_random_message_is_written_and_read_back() -> None:
    for seed, (kind, version) in enumerate(VERSIONS):
        sample = random_message(kind, version, seed, batches=True)
        data = sample.encode(version)
        assert kind.decode(data, version).encode(version) == data
        assert random_message(kind, version, seed, batches=True).encode(version) == data


def test_fields_of_records_hold_batches() -> None:
    kind = message("ProduceRequest")
    samples: list[Any] = [filled_message(kind, 12)]
    samples += [random_message(kind, 12, seed, batches=True) for seed in range(50)]
    held = [
        partition.records
        for sample in samples
        for topic in sample.topic_data
        for partition in topic.partition_data
        if partition.records
    ]
    assert len(held) > 20
    for records in held:
        [batch] = decode_batches(records)
        assert batch.records


@pytest.mark.slow
def test_what_is_damaged_is_refused_unless_it_is_a_null_or_a_length_that_fits() -> None:
    seen: Counter[str] = Counter()
    for seed, (kind, version) in enumerate(VERSIONS * 2):
        hostile = hostile_bytes(kind, version, seed)
        seen.update(damage for damage in DAMAGES if damage in hostile.damage)
        is_accepted = hostile.error is None
        assert not is_accepted or "has length" in hostile.damage, (
            f"{kind.__name__} v{version}: {hostile.damage}"
        )
        assert hostile_bytes(kind, version, seed) == hostile
    assert {*DAMAGES} == {*seen}


def test_the_error_of_damaged_bytes_is_that_of_the_reference() -> None:
    for seed, (kind, version) in enumerate(VERSIONS):
        hostile = hostile_bytes(kind, version, seed)
        error = explain(kind, hostile.data, version).error
        assert hostile.error == (error and error.reason)
