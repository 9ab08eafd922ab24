"""Generated messages are valid, and damaged ones differ as described."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.codec.explanation import explain
from flexwire.codec.hostile import hostile_bytes
from flexwire.codec.mappings import to_plain
from flexwire.codec.samples import filled_message, random_message
from flexwire.errors import DecodeError
from flexwire.records import decode_batches
from flexwire.schema.catalog import catalog
from flexwire.wire.limits import INT32_MAX, INT32_MIN
from flexwire.wire.schema import Presence, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.wire.schema import Schema

VERSIONS = [
    (message(name), version)
    for name in catalog().names()
    for version in catalog().entry(name).versions
]
VALID_AT_TIMES = ("has length", "a bit is flipped", "of version")
DAMAGES = (
    "cut off within",
    "a byte follows the message",
    "a varint of 6 bytes",
    "a varint with a byte more",
    "not UTF-8",
    " is 2",
    "the same tag twice",
    "tags out of order",
    "a tagged field that does not end",
    "more tagged fields than bytes",
    *VALID_AT_TIMES,
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
        sample = random_message(kind, version, seed, batches=True, nan=True)
        data = sample.encode(version)
        assert kind.definition.decode_reference(data, version)[1] == len(data)
        assert kind.decode(data, version).encode(version) == data
        form = json.loads(json.dumps(sample.to_json(version), allow_nan=False))
        assert kind.from_json(form, version).encode(version) == data
        again = random_message(kind, version, seed, batches=True, nan=True)
        assert again.encode(version) == data


def test_a_seed_gives_the_same_bytes_on_every_machine_and_python() -> None:
    # Python promises reproducible values only for `random.Random.random`, but the maker calls other
    # methods too.
    made = b"".join(
        random_message(message(name), version, seed, batches=True, nan=True).encode(version)
        + hostile_bytes(message(name), version, seed).data
        for name, version in (
            ("FetchRequest", 13),
            ("ProduceRequest", 12),
            ("AlterClientQuotasRequest", 1),
        )
        for seed in range(50)
    )
    assert (
        hashlib.sha256(made).hexdigest()
        == "daa192a4f29f59f9424488d71f81f8135ea50bdb0d80ac817a776605f3078211"
    )


def test_numbers_reach_every_boundary_of_their_type() -> None:
    quotas, heartbeat = message("AlterClientQuotasRequest"), message("HeartbeatRequest")
    seen: set[str] = set()
    generations: set[int] = set()
    for seed in range(300):
        sample: Any = random_message(quotas, 1, seed, nan=True)
        seen |= {repr(op.value) for entry in sample.entries for op in entry.ops}
        fields: Any = random_message(heartbeat, 4, seed)
        generations.add(fields.generation_id)
    assert {"nan", "inf", "-inf", "-0.0", "0.0", "5e-324"} <= seen
    assert {0, -1, INT32_MIN, INT32_MAX} <= generations


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


@pytest.mark.long
@pytest.mark.slow
def test_what_is_damaged_is_refused_unless_it_is_a_null_or_a_length_that_fits() -> None:
    seen: Counter[str] = Counter()
    for seed, (kind, version) in enumerate(VERSIONS * 2):
        hostile = hostile_bytes(kind, version, seed)
        seen.update(damage for damage in DAMAGES if damage in hostile.damage)
        is_accepted = hostile.error is None
        may_be_valid = any(words in hostile.damage for words in VALID_AT_TIMES)
        assert not is_accepted or may_be_valid, f"{kind.__name__} v{version}: {hostile.damage}"
        assert hostile_bytes(kind, version, seed) == hostile
    assert {*DAMAGES} == {*seen}


def test_the_error_of_damaged_bytes_is_that_of_the_reference() -> None:
    for seed, (kind, version) in enumerate(VERSIONS):
        hostile = hostile_bytes(kind, version, seed)
        error = explain(kind, hostile.data, version).error
        assert hostile.error == (error and error.reason)
        # The lenient reader accepts the bytes or raises the same errors.
        with suppress(DecodeError):
            kind.decode(hostile.data, version, lenient=True)
