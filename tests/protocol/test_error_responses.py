"""An error response equals that of Kafka's own class, also when errors are set in a response.

`tools/error_response_vectors.py` wrote the vectors. Error messages depend on the release, so the
tests compare responses without them.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pytest

from flexwire.codec import Message, MessageStruct, message, message_of
from flexwire.codec.samples import filled_message, random_message
from flexwire.errors import ArgumentError
from flexwire.protocol import error_responses
from flexwire.protocol.error_responses import error_response, set_errors
from flexwire.protocol.readable_json import (
    error_code_names,
    record_field_names,
    walk_structures,
)
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions
from tests.codec.vectors import class_of, load
from tools.error_response_vectors import CODES, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).parents[1] / "vectors" / "error-responses.jsonl.gz"
NEWEST = RELEASES[-1]
NO_RESPONSE = "null"
UNSUPPORTED_VERSION = 35
UNKNOWN_ID = UUID(int=7)

# Kafka's classes collect these partitions in a hash map, so their order has no meaning.
UNORDERED = {
    ("Produce", "3.9.2"): "partitions by size, in a HashMap",
    ("Produce", "4.4.0"): "partitions by size, in a HashMap",
    ("OffsetFetch", "3.9.2"): "up to 1: partitions with their data, in a HashMap; 4.4 has a list",
    ("WriteTxnMarkers", "3.9.2"): "errors by partition, in a HashMap",
    ("WriteTxnMarkers", "4.4.0"): "errors by partition, in a HashMap",
}
# The value that flexwire always writes, by field, instead of the old release's value.
NEWER = {
    ("Fetch", "3.9.2"): "records are null; in 4.4 they are empty",
}
# Requests by API and error code.
ELSEWHERE = {
    ("ApiVersions", UNSUPPORTED_VERSION): "lists the versions of this API that the release has",
}
# Requests for which flexwire builds no response because Kafka's response contains no error, by API
# and versions.
REFUSED = {
    "DescribeLogDirs": "0-2",  # only the broker's directories have an error
    "ElectLeaders": "0",  # null asks for all partitions; from version 1 the top level has the error
    "Metadata": "0-12",  # null asks for all topics, empty in 0; from 13 the top level has the error
}


class ErrorVector(NamedTuple):
    """A request, and the responses of some releases' classes to the request for one error code."""

    releases: tuple[str, ...]
    api: str
    version: int
    body: bytes
    code: int
    answer: str

    @property
    def request(self) -> Message:
        kind = message(f"{self.api}Request", self.releases[-1])
        return kind.decode(self.body, self.version)

    @property
    def response(self) -> Message:
        """Return Java's response without error messages and without an old release's fields."""
        kind = message(f"{self.api}Response", self.releases[-1])
        response = kind.decode(bytes.fromhex(self.answer), self.version)
        without_texts(response, self.version)
        if (self.api, self.releases[-1]) in NEWER:
            for structure in structures(response):
                if getattr(structure, "records", b"") is None:
                    structure.records = b""  # type: ignore[attr-defined] # it has the field
        return response

    @property
    def is_unordered(self) -> bool:
        return any((self.api, release) in UNORDERED for release in self.releases)


@cache
def vectors() -> dict[str, list[ErrorVector]]:
    """Return all vectors by API, with or without a response, except those for which Java throws."""
    found: dict[str, list[ErrorVector]] = defaultdict(list)
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            for code, answer in line["responses"].items():
                if not answer.startswith("!"):
                    body, releases = bytes.fromhex(line["request"]), tuple(line["releases"])
                    found[line["api"]].append(
                        ErrorVector(releases, line["api"], line["version"], body, int(code), answer)
                    )
    return dict(found)


def structures(value: Any) -> Iterator[MessageStruct]:
    """Yield the structures of a message, beginning with the message."""
    if isinstance(value, MessageStruct):
        yield value
        for name in value.__struct_fields__:
            yield from structures(getattr(value, name))
    elif isinstance(value, list):
        for one in value:
            yield from structures(one)


def without_texts(response: Message, version: int) -> None:
    """Set error messages to null, or to an empty string if the version does not allow null."""
    served = response.definition.served
    fields = served.entry.spec(version, served.release).fields_by_structure()
    for structure in structures(response):
        for field in fields[type(structure).__name__]:
            if field.name.endswith("ErrorMessage") and version in field.versions:
                text = None if version in field.nullable_versions else ""
                setattr(structure, field.attribute, text)


def in_order(value: Any) -> Any:
    """Return a value for comparison, with lists in a fixed order."""
    if isinstance(value, list):
        return sorted(map(in_order, value), key=repr)
    if isinstance(value, dict):
        return {name: in_order(one) for name, one in value.items()}
    return value


def fault(vector: ErrorVector) -> str | None:
    """Return how our response differs, or None if it equals Kafka's or the difference is known."""
    try:
        ours = error_response(vector.request, vector.version, vector.code)
    except ArgumentError as error:
        refused = Versions.parse(REFUSED.get(vector.api, "none"))
        if vector.answer == NO_RESPONSE:
            return None
        says_no_error = set_errors(vector.response, vector.version, vector.code) == 0
        return None if vector.version in refused and says_no_error else str(error)
    if vector.answer == NO_RESPONSE:
        return "a response that Kafka does not give"
    theirs, version = vector.response, vector.version
    if vector.is_unordered:
        same = in_order(ours.to_json(version)) == in_order(theirs.to_json(version))
    else:
        same = ours.encode(version) == theirs.encode(version)
    return None if same else f"version {version}: {ours}, expected {theirs}"


def is_elsewhere(vector: ErrorVector) -> bool:
    return (vector.api, vector.code) in ELSEWHERE


@pytest.mark.parametrize("api", sorted(vectors()))
def test_a_response_is_the_one_that_kafkas_class_of_the_request_builds(api: str) -> None:
    compared = [vector for vector in vectors()[api] if not is_elsewhere(vector)]
    assert compared
    faults = [found for vector in compared if (found := fault(vector)) is not None]
    assert not faults, f"{len(faults)} of {len(compared)}:\n" + "\n".join(faults[:3])


def test_every_version_of_every_api_has_vectors_of_each_release() -> None:
    found = {
        (vector.api, vector.version, release, vector.code)
        for of_api in vectors().values()
        for vector in of_api
        for release in vector.releases
    }
    expected = {
        (name.removesuffix("Request"), version, release, code)
        for name in catalog().names()
        for release in RELEASES
        for version in catalog().entry(name).releases.get(release, ())
        for code in CODES
        if catalog().entry(name).type is MessageType.REQUEST
    }
    assert found == expected


def test_every_known_difference_is_one() -> None:
    for api, release in UNORDERED:
        assert any(
            error_response(vector.request, vector.version, vector.code).encode(vector.version)
            != vector.response.encode(vector.version)
            for vector in vectors()[api]
            if release in vector.releases and vector.answer != NO_RESPONSE
        ), api
    for api, code in ELSEWHERE:
        assert all(fault(vector) for vector in vectors()[api] if vector.code == code)
    for api, versions in REFUSED.items():
        refused = set()
        for vector in vectors()[api]:
            try:
                error_response(vector.request, vector.version, vector.code)
            except ArgumentError:
                refused.add(vector.version)
        assert refused == {*Versions.parse(versions)}, api


TABLES = ("_VALUES", "_FILLED", "_MIRRORED", "_NAMES", "_ALL", "_COPIED", "_NEVER_NULL", "_ONCE")
EXCEPTIONS = [
    (table, place) for table in TABLES for place in sorted(getattr(error_responses, table))
]


@pytest.mark.parametrize(("table", "place"), EXCEPTIONS)
def test_every_exception_is_needed(
    table: str, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exceptions = getattr(error_responses, table)
    kept = [one for one in exceptions if one != place]
    monkeypatch.setattr(
        error_responses,
        table,
        {one: exceptions[one] for one in kept} if isinstance(exceptions, dict) else {*kept},
    )
    # A layout stores nothing from the table of codes.
    of_api = [vector for vector in vectors()[place[0]] if vector.code == CODES[0]]
    if table == "_ALL":
        # Without this error, the response would report none, as Kafka's does.
        assert any(not _is_refused(vector) for vector in of_api if vector.version == 0)
    else:
        assert any(map(fault, of_api))


def _is_refused(vector: ErrorVector) -> bool:
    try:
        error_response(vector.request, vector.version, vector.code)
    except ArgumentError:
        return True
    return False


REQUESTS = sorted(
    name
    for name in catalog().names()
    if catalog().entry(name).type is MessageType.REQUEST
    and name.replace("Request", "Response") in catalog().names()
)


@pytest.mark.parametrize("name", REQUESTS)
def test_whatever_the_request_its_error_response_can_be_sent(name: str) -> None:
    kind, sent = message(name), message(name.replace("Request", "Response"))
    for version in catalog().entry(name).versions:
        for seed in range(8):
            request = random_message(kind, version, seed)
            try:
                response = error_response(request, version, 41)
            except ArgumentError:
                continue
            assert sent.decode(response.encode(version), version) == response


def test_a_request_is_not_changed_and_shares_nothing_that_can_be() -> None:
    request = filled_message(message("ProduceRequest"), 12)
    before = request.encode(12)
    response: Any = error_response(request, 12, 6)
    set_errors(response, 12, 9)
    response.responses[0].partition_responses.clear()
    assert request.encode(12) == before


def test_a_request_that_has_no_such_response_says_why() -> None:
    produce = message("ProduceRequest")(acks=0)
    with pytest.raises(
        ArgumentError, match="with Acks 0 has no response that could contain an error"
    ):
        error_response(produce, 9, 6)
    everything = message("MetadataRequest")(topics=None)
    with pytest.raises(
        ArgumentError,
        match=r"^Metadata version 12: only a broker can create the response, "
        "because Topics in the request is null, which means everything$",
    ):
        error_response(everything, 12, 6)
    assert error_response(everything, 13, 6).encode(13)
    with pytest.raises(
        ArgumentError, match="Topics in the request is empty, which means everything"
    ):
        error_response(message("MetadataRequest")(), 0, 6)
    with pytest.raises(ArgumentError, match="Results does not correspond to a list in the request"):
        error_response(message("DescribeLogDirsRequest")(topics=[]), 1, 6)
    with pytest.raises(ArgumentError, match=r"^request: expected a request, got 'FetchResponse'$"):
        error_response(message("FetchResponse")(), 12, 6)
    with pytest.raises(ArgumentError, match="code: expected a 16-bit int"):
        error_response(message("HeartbeatRequest")(), 4, 1 << 15)


# Error fields in responses of brokers.


class Parts(NamedTuple):
    """A response's JSON form in two parts: what `set_errors` may change, and the rest."""

    codes: list[int]
    data: list[str | None]
    rest: dict[str, Any]


def parts(response: Message, version: int) -> Parts:
    """Return both parts by this project's rule for error fields."""
    kind = type(response)
    form, records = response.to_json(version), record_field_names(kind, version)
    codes: list[int] = []
    data: list[str | None] = []
    for structure in walk_structures(form, kind.definition.schema(version)):
        names = [name for name in error_code_names(structure.schema) if name in structure.form]
        codes += [structure.form.pop(name) for name in names]
        if names:
            is_data = {one: one.lower().endswith("errormessage") for one in structure.form}
            is_data |= dict.fromkeys(records & is_data.keys(), True)
            data += [structure.form.pop(one) for one in is_data if is_data[one]]
    return Parts(codes, data, form)


RESPONSES = sorted(name for name in load() if load()[name][0]["type"] == "response")


@pytest.mark.parametrize("name", RESPONSES)
def test_after_it_every_error_field_has_the_code_and_nothing_else_is_changed(name: str) -> None:
    for vector in load()[name]:
        kind, version = class_of(vector), vector["version"]
        response = kind.decode(bytes.fromhex(vector["hex"]), version)
        before = parts(response, version)
        count = set_errors(response, version, 77)
        after = parts(response, version)
        # The JSON form leaves out a tagged field that has its default value.
        assert count == len(after.codes) >= len(before.codes)
        assert {*after.codes} <= {77}
        assert len(after.data) == len(before.data)
        assert {*after.data} <= {None, ""}
        assert after.rest == before.rest
        assert kind.decode(response.encode(version), version) == response


def test_only_error_fields_of_the_topics_that_are_meant_are_set() -> None:
    kind = message("ProduceResponse")
    asked = []

    def is_meant(name: str | None, topic_id: UUID | None) -> bool:
        asked.append((name, topic_id))
        return name == "b"

    partitions = [{"index": 0, "error_message": "words"}, {"index": 1}]
    topics = [{"name": name, "partition_responses": partitions} for name in ("a", "b")]
    response: Any = kind.of(responses=topics)
    assert set_errors(response, 9, 6, topics=is_meant) == 2
    assert asked == [("a", None), ("b", None)]
    first, second = response.responses
    assert [one.error_code for one in first.partition_responses] == [0, 0]
    assert [one.error_code for one in second.partition_responses] == [6, 6]
    assert [topic.partition_responses[0].error_message for topic in (first, second)] == [
        "words",
        None,
    ]


def test_a_topic_may_be_named_by_its_id_alone_or_by_both() -> None:
    asked = []

    def is_meant(name: str | None, topic_id: UUID | None) -> bool:
        asked.append((name, topic_id))
        return topic_id == UNKNOWN_ID

    fetch: Any = message("FetchResponse").of(
        responses=[
            {"topic_id": one, "partitions": [{"records": b"abc"}]}
            for one in (UNKNOWN_ID, UUID(int=8))
        ]
    )
    assert set_errors(fetch, 13, 100, topics=is_meant) == 1
    assert asked == [(None, UNKNOWN_ID), (None, UUID(int=8))]
    # The error of the whole response is not an error of a topic.
    assert fetch.error_code == 0
    assert [one.partitions[0].records for one in fetch.responses] == [b"", b"abc"]
    asked.clear()
    metadata = message("MetadataResponse").of(
        topics=[
            {"name": "a", "topic_id": UNKNOWN_ID, "partitions": [{}, {}]},
            {"name": "b", "partitions": [{}]},
        ]
    )
    assert set_errors(metadata, 12, 5, topics=is_meant) == 3
    assert asked == [("a", UNKNOWN_ID), ("b", None)]


def test_a_response_without_topics_has_none_that_is_meant() -> None:
    response: Any = message("HeartbeatResponse")()
    assert set_errors(response, 4, 27, topics=lambda *_: True) == 0
    assert response.error_code == 0


def test_a_version_without_the_error_field_cannot_say_the_error() -> None:
    # Up to version 6, only partitions contain an error.
    response = message("FetchResponse")()
    assert set_errors(response, 6, 5) == 0
    assert set_errors(response, 7, 5) == 1


def test_a_structure_that_is_null_has_no_error() -> None:
    # In no Kafka spec does a structure outside a list contain an error code.
    inner = [
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+"},
    ]
    fields = [
        {
            "name": name,
            "type": name,
            "versions": "0+",
            "nullableVersions": "0+",
            "default": "null",
            "fields": inner,
        }
        for name in ("One", "Two")
    ]
    spec = {
        "apiKey": 1,
        "type": "response",
        "name": "OwnResponse",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": fields,
    }
    kind = message_of(parse_spec(json.dumps(spec)))
    response: Any = kind.of(one={"error_code": 1, "error_message": "words"})
    assert set_errors(response, 0, 25) == 1
    assert response == kind.of(one={"error_code": 25, "error_message": ""})
