"""Message classes keep their values, refuse invalid ones, and support unusual uses."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
from typing import Any

import pytest

import flexwire
from flexwire.codec import message, message_of
from flexwire.errors import DecodeError, EncodeError, JsonFormError, SpecError, UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from tests.codec.made_up import everything, made

MadeUp: Any = everything()


def test_a_field_that_only_another_release_s_spec_has_is_not_lost() -> None:
    # v0 has the layout of a preview, and IsRenewAck came with a later spec.
    request: Any = message("ShareFetchRequest")
    assert request().encode(0) == request(is_renew_ack=False).encode(0)
    for write in (request.encode, request.to_json):
        with pytest.raises(EncodeError, match="at isRenewAck: this version has no such field"):
            write(request(is_renew_ack=True), 0)
    form = request().to_json(0)
    assert request.from_json({**form, "isRenewAck": False}, 0) == request()


def test_a_mapping_or_structure_with_other_fields_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"at topics\[0\]: Topic has no field 'nmae'; did you"):
        MadeUp(topics=[{"nmae": "t"}]).encode(1)
    with pytest.raises(EncodeError, match=r"at topics\[0\]: Topic has no field 'leader_id'"):
        MadeUp(topics=[MadeUp.Current(leader_id=4)]).encode(1)


WRONG = [
    {"marks": 5},
    {"rack": 7},
    {"level": "x"},
    {"current": 5},
    {"current": None},
    {"latest": 5},
    {"unknown_tagged_fields": "abc"},
    {"unknown_tagged_fields": [1]},
    {"unknown_tagged_fields": {9: None}},
    {"unknown_tagged_fields": {9: b"", "x": b""}},
    {"names": 5},
    {"topics": [None]},
    {"text": b"bytes"},
    {"flag": "no"},
    {"tiny": 999},
    {"count": 10**5000},
    {"text": 10**5000},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_wrong_value_is_an_encode_error_in_bytes_and_in_json(wrong: dict[str, Any]) -> None:
    value = MadeUp(**wrong)
    for write in (value.encode, value.to_json):
        with pytest.raises(EncodeError):
            write(1)
    # Fields that a version lacks are checked too.
    if "unknown" not in next(iter(wrong)):
        with pytest.raises(EncodeError):
            made_strictly()(**wrong).encode(0)


def made_strictly() -> Any:
    from tests.codec.made_up import EVERY_TYPE, TAGGED  # noqa: PLC0415 - used here alone

    return made([*EVERY_TYPE, *TAGGED], valid="0-1", flexible="1+")


def test_an_error_shows_little_of_a_large_value() -> None:
    with pytest.raises(EncodeError) as caught:
        MadeUp(blob="x" * 1_000_000).encode(1)
    assert len(str(caught.value)) < 200
    with pytest.raises(JsonFormError, match="out of range for a double"):
        MadeUp.from_json({**MadeUp().to_json(1), "ratio": 10**400}, 1)


def test_a_tag_beyond_31_bits_is_refused_but_by_the_lenient_reader() -> None:
    header: Any = message("RequestHeader")
    raw = bytes.fromhex("0012000300000007000161") + b"\x01\xff\xff\xff\xff\x0f\x00"
    with pytest.raises(DecodeError, match="tag 4294967295 is above 2147483647"):
        header.decode(raw, 2)
    kept = header.decode(raw, 2, lenient=True)
    assert kept.unknown_tagged_fields == {2**32 - 1: b""}
    with pytest.raises(EncodeError, match="got 4294967295"):
        kept.encode(2)


def test_an_offset_outside_the_data_is_refused() -> None:
    for offset in (-1, 4):
        with pytest.raises(DecodeError, match=f"expected an offset from 0 to 3, got {offset}"):
            MadeUp.decode_prefix(b"abc", 1, offset)


def test_any_buffer_decodes_and_a_number_is_none() -> None:
    raw = MadeUp(count=7).encode(1)
    for data in (bytearray(raw), memoryview(raw)):
        assert MadeUp.decode(data, 1) == MadeUp(count=7)
    with pytest.raises(TypeError):
        MadeUp.decode(50, 1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_one_class_for_one_name_whoever_asks_first() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    found: list[Any] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.append(message("DescribeQuorumResponse"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_messages_are_copied_and_pickled_by_value() -> None:
    released: Any = message("MetadataRequest", "3.8.1")
    for value in (
        MadeUp(topics=[MadeUp.Topic(name="t", unknown_tagged_fields={9: b"x"})], level=3),
        released(topics=[released.MetadataRequestTopic(name="t")]),
    ):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):  # noqa: S301 - ours
            assert again == value
            assert type(again.topics[0]) is type(value.topics[0])
            again.topics.clear()
            assert value.topics


def test_an_equal_spec_gives_the_same_class() -> None:
    text = json.dumps(
        {
            "type": "data",
            "name": "Ping",
            "validVersions": "0",
            "flexibleVersions": "none",
            "fields": [{"name": "At", "type": "int64", "versions": "0+"}],
        }
    )
    assert message_of(parse_spec(text)) is message_of(parse_spec(text, "elsewhere.json"))
    with pytest.raises(UnknownMessageError, match="Ping has no version 1; it has 0"):
        message_of(parse_spec(text)).decode(b"", 1)


def chain(depth: int, *, twice: bool) -> str:
    """Return a spec of nested structures that each occur once or twice."""
    structs = [
        {
            "name": f"S{level}",
            "versions": "0+",
            "fields": [
                {"name": f"F{side}", "type": f"S{level + 1}", "versions": "0+"}
                for side in range(1 + twice)
            ],
        }
        for level in range(depth)
    ]
    last = {"name": "At", "type": "int64", "versions": "0+"}
    structs.append({"name": f"S{depth}", "versions": "0+", "fields": [last]})
    return json.dumps(
        {
            "type": "data",
            "name": "Chain",
            "validVersions": "0",
            "flexibleVersions": "0+",
            "commonStructs": structs,
            "fields": [{"name": "First", "type": "S0", "versions": "0+"}],
        }
    )


def test_specs_that_would_take_for_ever_are_refused() -> None:
    assert message_of(parse_spec(chain(60, twice=False)))().encode(0)
    with pytest.raises(SpecError, match="more than 100 nested structures"):
        message_of(parse_spec(chain(300, twice=False)))
    with pytest.raises(SpecError, match="contains more than 10000 structures"):
        message_of(parse_spec(chain(40, twice=True)))


def test_elements_that_take_no_bytes_are_refused() -> None:
    later = {"name": "At", "type": "int64", "versions": "1+"}
    empty: Any = made([{"name": "Items", "type": "[]Item", "versions": "0+", "fields": [later]}])
    with pytest.raises(SpecError, match="field Items: the elements take no bytes in version 0"):
        empty.decode(b"\x00\x00\x00\x00", 0)
    assert empty(items=[empty.Item(at=1)]).encode(1)


@pytest.mark.parametrize("name", ["Definition", "UnknownTaggedFields", "Encode", "Class", "Entry"])
def test_a_field_may_have_any_name(name: str) -> None:
    one = made([{"name": name, "type": "int8", "versions": "0+"}])
    attribute = one.__struct_fields__[0]
    assert one.decode(one(**{attribute: 7}).encode(0), 0) == one(**{attribute: 7})


def test_lenient_reads_lengths_and_counts_as_java_s_int32() -> None:
    names = made([{"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "0+"}])
    assert names.decode(b"\x81\x80\x80\x80\x08\x00", 2, lenient=True) == names(name=None)
    assert names.decode(b"\x01\xff\xff\xff\xff\x0f", 2, lenient=True) == names(name="")
    level = {"name": "Level", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0}
    # Java never checks the size of a known tag.
    raw = b"\x01\x00\x7f\x00\x00\x00\x05"
    assert made([level]).decode(raw, 2, lenient=True) == made([level])(level=5)
    repeated = made([level]).decode(b"\x02\x09\x01a\x09\x01b", 2, lenient=True)
    assert repeated.unknown_tagged_fields == {9: b"a", 2**32 + 9: b"b"}


def test_all_names_are_listed_and_imported_at_once() -> None:
    """`from flexwire.messages import *` and `dir(flexwire)` work, as prompts and
    editors need them.
    """
    found: dict[str, object] = {}
    exec("from flexwire.messages import *", found)  # noqa: S102 - a star import is allowed only in modules
    assert {name for name in found if not name.startswith("__")} == set(catalog().names())
    assert dir(flexwire) == sorted(flexwire.__all__)
    for name in dir(flexwire):
        assert getattr(flexwire, name) is not None
