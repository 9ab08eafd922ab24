"""Kernels write unknown tagged fields as the reference does, between the known ones, or refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flexwire.errors import EncodeError
from flexwire.wire.limits import HIGHEST_TAG
from tests.codec.made_up import everything, made
from tests.kernels.harness import REFUSED, functions

MadeUp: Any = everything()
KNOWN = (0, 3, 4, 200)
OTHER = 7


def level(tag: int, versions: str) -> dict[str, Any]:
    """Return a tagged field that some versions have; unknown fields use the same tags."""
    common = {"type": "int32", "taggedVersions": versions, "tag": tag, "ignorable": True}
    return {"name": f"Level{tag}", "versions": versions, **common}


# The last unknown field has the tag of a field in another version.
Levels: Any = made([*(level(tag, "2+") for tag in KNOWN), level(OTHER, "3+")])
EDGES = [1, 2, 5, 127, 128, 199, 201, 16_383, 16_384, 2**21, HIGHEST_TAG]
TAGS = st.sampled_from(EDGES) | st.integers(0, HIGHEST_TAG)
# The contents are so long that their length prefixes change.
DATA = st.binary(max_size=3) | st.sampled_from([b"x" * size for size in (127, 128, 300, 16_384)])


def written(value: Any, version: int) -> bytes | type[EncodeError]:
    try:
        raw: bytes = value.definition.encode_reference(value, version)
    except EncodeError:
        return EncodeError
    return raw


@given(st.dictionaries(TAGS, DATA, max_size=6), st.sets(st.sampled_from(KNOWN)))
@example(dict.fromkeys(EDGES, b""), set(KNOWN))
@example(dict.fromkeys(EDGES, b"x"), set())
@example({OTHER: b""}, set())
def test_unknown_tagged_fields_stand_between_the_known_ones(
    unknown: dict[int, bytes], known: set[int]
) -> None:
    decode, encode = functions(Levels, 2)
    for tags in (unknown, dict(sorted(unknown.items()))):
        value = Levels(**{f"level{tag}": 5 for tag in known}, unknown_tagged_fields=tags)
        raw, found = written(value, 2), encode(value)
        if raw is EncodeError:
            assert not tags.keys().isdisjoint({*KNOWN, OTHER})
            assert found is REFUSED
        elif list(tags) == sorted(tags):
            assert found == raw
            assert decode(found) == value
            assert list(decode(found).unknown_tagged_fields) == list(tags)
        else:
            assert found is REFUSED


def test_they_are_written_at_every_depth() -> None:
    unknown = {6: b"", 300: b"x" * 200}
    value = MadeUp(
        topics=[MadeUp.Topic(name="t", unknown_tagged_fields=unknown)] * 3,
        current=MadeUp.Current(leader_id=5, unknown_tagged_fields=unknown),
        rack="r",
        unknown_tagged_fields=unknown,
    )
    decode, encode = functions(MadeUp, 1)
    assert encode(value) == written(value, 1)
    assert decode(encode(value)) == value
    assert functions(MadeUp, 0)[1](MadeUp(unknown_tagged_fields=unknown)) is REFUSED


@pytest.mark.slow
def test_any_number_of_them_is_written_in_one_walk() -> None:
    value = MadeUp(unknown_tagged_fields=dict.fromkeys(range(6, 300000), b""))
    assert functions(MadeUp, 1)[1](value) == written(value, 1)


TAGGED = {"versions": "2+", "taggedVersions": "2+", "ignorable": True}
OLD = {"name": "Old", "type": "int32", "versions": "3+", "ignorable": True}
DEEP = [OLD, {"name": "Epoch", "type": "int32", "versions": "2+"}]
INNER = [{"name": "Deep", "type": "Deep", "tag": 0, **TAGGED, "fields": DEEP}]
OUTER = [{"name": "Inner", "type": "Inner", "tag": 9, **TAGGED, "fields": INNER}]


@pytest.mark.parametrize("change", ["added", "removed", "emptied", "taken away"])
@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 50])
def test_a_comparison_that_changes_them_does_no_harm(change: str, call: int, size: int) -> None:
    # A structure with a tag is compared with its default twice, with all tags counted: as a part of
    # the structure that holds it, and when that is written.
    kind: Any = made(OUTER)
    asked: list[object] = []

    class Changes:
        __hash__ = None  # type: ignore[assignment]  # as Python does where __eq__ is

        def __eq__(self, other: object) -> bool:
            asked.append(other)
            tags = value.unknown_tagged_fields
            if len(asked) != call:
                pass
            elif change == "added":
                tags.update({2**20 + len(tags) + number: b"new" for number in range(100)})
            elif change == "removed" and tags:
                del tags[min(tags)]
            elif change == "emptied":
                tags.clear()
            else:
                value.unknown_tagged_fields = {}
            return False

    unknown = {tag: b"x" * tag for tag in range(20, 20 + size)}
    value = kind(
        inner=kind.Inner(deep=kind.Deep(old=Changes(), epoch=1)),
        unknown_tagged_fields=dict(unknown),
    )
    found = functions(kind, 2)[1](value)
    assert len(asked) == 2
    if found is not REFUSED:
        assert kind.decode(found, 2).unknown_tagged_fields in (unknown, value.unknown_tagged_fields)
