"""Laws for every (message, version) of every release, including those without a vector."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError
from flexwire.schema.catalog import catalog
from tests.each import each

NAMES = catalog().names()
SEEDS = range(2)


def pairs(name: str) -> list[tuple[Any, int]]:
    """Return the class and every version, and every layout that only one release uses."""
    entry = catalog().entry(name)
    found: list[tuple[Any, int]] = [(message(name), version) for version in entry.versions]
    for release, versions in entry.releases.items():
        found += [
            (message(name, release), version)
            for version in versions
            if entry.spec(version, release) is not entry.spec(version)
        ]
    return found


@pytest.mark.slow
@each("name", NAMES, parts=3)
def test_what_is_encoded_decodes_to_the_same_through_both(name: str) -> None:
    for made, version in pairs(name):
        for seed in SEEDS:
            value = random_message(made, version, seed)
            raw = made.definition.encode_generated(value, version)
            assert made.definition.encode_reference(value, version) == raw
            assert made.definition.decode_exactly(raw, version) == value
            assert made.definition.decode_reference(raw, version) == (value, len(raw))
            assert made.decode(raw, version, lenient=True) == value
            assert made.from_json(value.to_json(version), version) == value
            assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES)
def test_the_default_object_goes_through_every_version(name: str) -> None:
    for made, version in pairs(name):
        raw = made().encode(version)
        assert made.decode(raw, version) == made()
        with pytest.raises(DecodeError):
            made.decode(raw + b"\x00", version)
