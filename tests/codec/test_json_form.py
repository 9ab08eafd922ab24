"""The JSON form keeps what Kafka's converters lose and says where JSON goes wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest

from flexwire.errors import EncodeError, JsonFormError
from tests.codec.made_up import everything, made

MadeUp: Any = everything()


def test_records_and_unknown_tagged_fields_are_kept() -> None:
    value = MadeUp(batch=b"\x00\xff", unknown_tagged_fields={9: b"\x01\x02"})
    form = value.to_json(1)
    assert form["batch"] == "AP8="
    assert form["_unknownTaggedFields"] == [{"tag": 9, "data": "AQI="}]
    assert MadeUp.from_json(form, 1) == value


def test_tagged_fields_stand_in_it_only_where_they_are_not_default() -> None:
    assert "rack" not in MadeUp().to_json(1)
    assert MadeUp(rack="r").to_json(1)["rack"] == "r"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 1e300])
def test_every_double_comes_back(number: float) -> None:
    again = MadeUp.from_json(MadeUp(ratio=number).to_json(0), 0).ratio
    assert str(again) == str(number)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"count": "7"}, "at count: expected a int32, got '7'"),
    ({"count": True}, "at count: expected a int32, got True"),
    ({"flag": 1}, "at flag: expected a boolean, got 1"),
    ({"blob": "?"}, "at blob: expected base64, got '?'"),
    ({"id": "AAAA"}, "at id: expected a UUID in base64url, got 'AAAA'"),
    ({"names": "x"}, "at names: expected an array, got 'x'"),
    ({"topics": [{"name": "t"}]}, "at topics[0].leader: missing, and mandatory"),
    ({"topics": [3]}, "at topics[0]: expected an object for Topic, got 3"),
    ({"texd": "x"}, "has no field 'texd' in any version; did you mean 'text'?"),
    ({"_unknownTaggedFields": [{"tag": 9}]}, 'expected {"tag": …, "data": …}'),
    ({"_unknownTaggedFields": [{"tag": "9", "data": ""}]}, "a tag is an integer"),
]


@pytest.mark.parametrize(("change", "reason"), FAULTS)
def test_faults_are_errors_with_a_path(change: dict[str, Any], reason: str) -> None:
    form = {**MadeUp().to_json(1), **change}
    with pytest.raises(JsonFormError) as caught:
        MadeUp.from_json(form, 1)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("MadeUp v1 at ")


def test_a_mandatory_field_that_is_missing_is_named() -> None:
    form = MadeUp().to_json(0)
    del form["offset"]
    with pytest.raises(JsonFormError, match="MadeUp v0 at offset: missing"):
        MadeUp.from_json(form, 0)


def test_a_field_that_the_version_lacks_is_refused_unless_ignorable() -> None:
    one = made([{"name": "Rack", "type": "string", "versions": "1+"}])
    with pytest.raises(EncodeError, match="MadeUp v0 at rack: this version has no such field"):
        one(rack="r").to_json(0)
    assert one().to_json(0) == {}
