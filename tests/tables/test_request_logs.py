"""Lines of request logs become rows: bodies in columns equal those of objects, without guesses."""

from __future__ import annotations

import itertools
import json
import random
import re
import resource
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest

from flexwire.codec import message
from flexwire.logs.request_log import LoggedRequest, RefusedRequest
from flexwire.logs.request_log.lines import RequestLogFile
from flexwire.logs.request_log.requests import LoggedHeader
from flexwire.logs.request_log.requests import ends as ends_of_connection
from flexwire.measures.audit_rows import ids_of_lines_without, logged_connections, logged_rows
from flexwire.protocol.headers import request_name
from flexwire.schema.catalog import catalog, use_catalog
from flexwire.schema.spec import camel_case
from flexwire.storage.input_file import InputFile
from flexwire.tables import request_log_bodies
from flexwire.tables import request_log_bodies as request_log_columns
from flexwire.tables.listeners import LONGEST_NAME, MOST_LISTENERS, ListenerCounts
from flexwire.tables.request_log_bodies import (
    MOST_STRUCTURES,
    MOST_VALUES,
    body_rows,
    is_too_large,
    rows_by_objects,
)
from flexwire.tables.request_log_text import body_of_text
from flexwire.tables.request_logs import (
    LOGGED,
    FileItem,
    LoggedIds,
    RequestLogCounts,
    RequestLogRows,
)
from flexwire.tables.spec_places import RECORDS_FIELDS, RecordsField
from tests.capture.request_lines import JSON_RELEASES, PLACE, RELEASES, line, read, real_lines
from tests.each import each
from tests.schema.trunk import trunk_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

IDS = ("client_id", "client_instance_id")


def rows_of(
    path: Path, *, show_credentials: bool = False, ids: Mapping[str, LoggedIds] | None = None
) -> tuple[dict[str, Any], RequestLogCounts]:
    made = RequestLogRows(show_credentials=show_credentials, ids=ids or {})
    file = RequestLogFile(InputFile(str(path), 0, ""), 3)
    items = [one for one in read(path) if isinstance(one, LoggedRequest | RefusedRequest)]
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for table, batch in made.of([FileItem(file, one) for one in items]):
        batch.validate(full=True)
        found[table] += batch.to_pylist()
    return found, made.counts


def bodies(release: str) -> dict[tuple[str, int], list[bytes]]:
    found: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
    for one in read(PLACE / f"{release}.log"):
        assert isinstance(one, LoggedRequest)
        key, version = one.header.request_api_key, one.header.request_api_version
        name = request_name(key, version)
        if one.request is not None:
            found[name, version].append(one.request)
        if one.response is not None and not one.response.startswith(b'{"errorCode":35'):
            found[f"{name.removesuffix('Request')}Response", version].append(one.response)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("release", JSON_RELEASES)
def test_columns_say_what_objects_say(release: str) -> None:
    refused = set()
    for (name, version), texts in bodies(release).items():
        expected = rows_by_objects(name, version, texts).columns
        assert expected["error"].null_count == len(texts)
        plans = request_log_columns._plans(name, version)
        found = [one for one in (request_log_columns._in_columns(p, texts) for p in plans) if one]
        if not found:
            refused.add(name.removesuffix("Request").removesuffix("Response"))
            continue
        for column, values in expected.items():
            assert found[0][column].type == values.type
            assert found[0][column].to_pylist() == values.to_pylist()
    # These messages contain fields with bytes, or fields that brokers leave out if they do not know
    # them.
    assert refused <= {"JoinGroup", "SyncGroup", "AlterUserScramCredentials", "ApiVersions"}


@pytest.mark.parametrize("release", JSON_RELEASES)
def test_values_are_those_that_kafka_wrote(release: str) -> None:
    for (name, version), texts in bodies(release).items():
        for text in texts:
            if b"SizeInBytes" in text or name.startswith(("Alter", "ApiVersionsRequest")):
                continue
            made = message(name)
            expected = made.from_json(json.loads(text), version)
            found = body_rows(name, version, [text]).columns["body"].to_pylist()[0]
            for one in made.definition.schema(version).inline:
                value = getattr(expected, one.attribute)
                if isinstance(value, int | str | None):
                    assert found[one.attribute] == value


@each("place", {one.message: one for one in RECORDS_FIELDS})
def test_the_size_of_records_is_what_the_broker_says_and_else_not_known(
    place: RecordsField,
) -> None:
    """In any message, a broker writes a size or an empty string in place of bytes."""
    made = message(place.message)
    version = max(catalog().entry(place.message).current_versions)
    partitions = [{place.records: b""}, {place.records: b""}]
    whole = made.of(**{place.topics: [{place.partitions: partitions}]}).to_json(version)
    [topic] = whole[camel_case(place.topics)]
    name = camel_case(place.records)
    ways = {"size": ({f"{name}SizeInBytes": 700}, 700), "text": ({name: ""}, None)}
    fields = (one for spec in catalog().entry(place.message).all_specs() for one in spec.walk())
    if any(one.attribute == place.records and version in one.nullable_versions for one in fields):
        ways["null"] = ({name: None}, None)
    for chosen in itertools.product(ways.values(), repeat=2):
        for partition, (said, _) in zip(topic[camel_case(place.partitions)], chosen, strict=True):
            partition.pop(name, None)
            partition.pop(f"{name}SizeInBytes", None)
            partition.update(said)
        texts = [json.dumps(whole).encode()] * 8
        for rows in (rows_by_objects, body_rows):
            for body in rows(place.message, version, texts).columns["body"].to_pylist():
                partitions = body[place.topics][0][place.partitions]
                found = [one[f"{place.records}_size"] for one in partitions]
                assert found == [size for _, size in chosen]


def test_a_line_is_a_request_and_a_response_as_long_after_it_as_it_took() -> None:
    found, told = rows_of(PLACE / "4.4.0.log")
    frames = found["frames"]
    requests = [one for one in frames if one["direction"] == "request"]
    responses = [one for one in frames if one["direction"] == "response"]
    assert len(requests) == told.requests == len(found[""])
    assert len(responses) == len(requests) - 1
    by_frame = {one["frame_index"]: one for one in requests}
    assert len(by_frame) == len(requests)
    for one in responses:
        asked = by_frame[one["frame_index"]]
        assert asked["connection"] == one["connection"]
        assert (one["time"] - asked["time"]).total_seconds() * 1e6 == pytest.approx(
            one["latency_us"]
        )
    assert {one["answered"] for one in requests} == {True, None}
    assert {one["size"] for one in frames} == {None}
    assert {one["outcome"] for one in frames} == {"decoded"}
    assert {one["frame_index"] >> 40 for one in frames} == {3}


@pytest.mark.parametrize("release", JSON_RELEASES)
def test_bytes_of_records_come_from_the_log(release: str) -> None:
    found, _ = rows_of(PLACE / f"{release}.log")

    def sizes(name: str, *path: str) -> list[int]:
        return [
            sum(one["records_size"] for topic in row["body"][path[0]] for one in topic[path[1]])
            for row in found[f"messages/{name}"]
            if row["client_id"].startswith("orders")
        ]

    assert 376 in sizes("ProduceRequest", "topic_data", "partition_data")
    assert max(sizes("FetchResponse", "responses", "partitions")) >= 376


def test_forwarded_requests_are_told_apart() -> None:
    found, told = rows_of(PLACE / "4.4.0.log")
    forwarded = found["forwarded_requests"]
    assert told.forwarded == len(forwarded) > 0
    own = {(one["client_id"], one["correlation_id"]): one["api_name"] for one in found["frames"]}
    kinds = {one["api_name"] == own[one["client_id"], one["correlation_id"]] for one in forwarded}
    # One CreateTopics from a client, and one that a broker made from a client's Metadata.
    assert kinds == {True, False}


@pytest.mark.parametrize("release", JSON_RELEASES)
def test_salts_and_passwords_are_withheld_though_brokers_log_them(release: str) -> None:
    name = "messages/AlterUserScramCredentialsRequest"
    found, _ = rows_of(PLACE / f"{release}.log")
    (upsertion,) = found[name][0]["body"]["upsertions"]
    assert (upsertion["salt"], upsertion["salted_password"]) == (b"withheld", b"withheld")
    assert upsertion["name"] == "bob"
    assert found[name][0]["withheld_credentials"] == 2
    shown, _ = rows_of(PLACE / f"{release}.log", show_credentials=True)
    (upsertion,) = shown[name][0]["body"]["upsertions"]
    assert len(upsertion["salt"]) > 8


def test_a_client_is_its_software_from_where_it_says_so(tmp_path: Path) -> None:
    header = {"requestApiKey": 18, "requestApiVersion": 3, "correlationId": 1, "clientId": "c"}
    told = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.0"}
    path = tmp_path / "kafka-request.log"
    changes: list[dict[str, Any]] = [
        {"request": told},
        {"request": told, "clientInformation": {"softwareName": "known"}},
        {"request": {"clientSoftwareName": 5}},
        {"request": []},
    ]
    path.write_bytes(b"\n".join(line(requestHeader=header, **one) for one in changes))
    found, _ = rows_of(path)
    requests = [one for one in found["frames"] if one["direction"] == "request"]
    assert [one["client_software_name"] for one in requests] == ["librdkafka", "known", None, None]
    assert requests[0]["client_software_version"] == "2.0"


def test_a_line_gives_the_client_instance_id_by_header_request_or_response(tmp_path: Path) -> None:
    """The header contains a uuid as Kafka prints it, and so do the bodies of KIP-714."""
    path = tmp_path / "kafka-request.log"
    one, two, none = "AAAAAAAAAAAAAAAAAAAABw", "AAAAAAAAAAAAAAAAAAAACA", "A" * 22
    assigned = {"errorCode": 0, "clientInstanceId": two}
    lines: list[tuple[int, object, dict[str, Any], dict[str, Any], str | None]] = [
        (3, one, {}, {}, one),
        (71, one, {"clientInstanceId": two}, assigned, one),
        (71, none, {"clientInstanceId": none}, assigned, two),
        (72, None, {"clientInstanceId": two}, {}, two),
        (72, None, {"clientInstanceId": none}, {}, None),
        # Other messages do not contain this field, and these values are not uuids.
        (3, None, {"clientInstanceId": two}, {}, None),
        *((3, text, {}, {}, None) for text in ("", "short", 5, ["x"], None, "!" * 22)),
    ]
    made = []
    for number, (key, in_header, asked, answer, _) in enumerate(lines):
        header = {
            "requestApiKey": key,
            "requestApiVersion": 0,
            "correlationId": number,
            "clientId": "c",
            "clientInstanceId": in_header,
        }
        ends = f"10.0.0.1:9092-10.0.0.9:50000-0-{number % 2}"
        made.append(line(requestHeader=header, request=asked, response=answer, connection=ends))
    path.write_bytes(b"\n".join(made))
    found, counts = rows_of(path)
    assert counts.requests == len(lines)
    for direction in ("request", "response"):
        rows = [row for row in found["frames"] if row["direction"] == direction and row["time"]]
        by_id = {row["correlation_id"]: row["client_instance_id"] for row in rows}
        assert by_id == {number: given for number, (*_, given) in enumerate(lines)}
    logged = pa.RecordBatch.from_pylist(found[""], LOGGED)
    connections = logged_connections(logged).to_pylist()
    assert [row["client_instance_id"] for row in connections] == [one, one]


def test_a_line_without_an_id_takes_that_of_its_connection(tmp_path: Path) -> None:
    """KIP-1313 lets a client give its ids once. Kafka's own log reports refused requests.

    A Java broker reads a null client id as an empty one, and logs that.
    """
    path = tmp_path / "kafka-request.log"
    one, two = "AAAAAAAAAAAAAAAAAAAABw", "AAAAAAAAAAAAAAAAAAAACA"
    # The ids of each line, and the ids of its rows.
    lines: list[tuple[str, str | None, str | None, tuple[str | None, str | None]]] = [
        ("1", None, None, (None, one)),
        ("1", "once", one, ("once", one)),
        ("1", "", None, ("once", one)),
        ("2", "b", None, ("b", two)),
        ("2", "c", two, ("c", two)),
        ("2", None, None, ("b", two)),
        ("3", None, None, (None, None)),
        ("4", "all", one, ("all", one)),
        ("5", "", None, (None, None)),
        ("5", None, None, (None, None)),
    ]
    made = []
    for number, (connection, client, instance, _) in enumerate(lines):
        header = {
            "requestApiKey": 3,
            "requestApiVersion": 12,
            "correlationId": number,
            "clientId": client,
            "clientInstanceId": instance,
        }
        ends = f"10.0.0.1:9092-10.0.0.9:50000-0-{connection}"
        made.append(line(requestHeader=header, connection=ends))
    refusal = next(text for text in real_lines("4.4.0-server") if b"Exception while" in text)
    (before,) = re.findall(rb"request from (\S+)", refusal)
    made.append(line(connection=before.decode()))
    # A line that was cut off before its connection names no connection.
    made += [line()[:300], line(requestHeader={**header, "clientId": None})[:300]]
    path.write_bytes(b"\n".join([*made, *real_lines("4.4.0-server")]))
    found, _ = rows_of(path)
    ids = ids_of_lines_without(logged_rows(pa.RecordBatch.from_pylist(found[""], LOGGED)))
    name = ends_of_connection(before.decode()).name
    assert {key.rpartition("#")[2] for key in ids} == {"1", "2", name.rpartition("#")[2]}
    again, _ = rows_of(path, ids=ids)
    for table in ("frames", "messages/MetadataRequest", "messages/MetadataResponse"):
        kept = IDS if table == "frames" else ("client_id",)
        by_id = {
            row["correlation_id"]: tuple(row[key] for key in kept)
            for row in again[table]
            if row["connection"][-2:] in {"#1", "#2", "#3", "#4", "#5"}
        }
        assert by_id == {number: given[: len(kept)] for number, (*_, given) in enumerate(lines)}
    refused = [row for row in again["frames"] if row["connection"] == name]
    assert {row["client_id"] for row in refused} == {"c"}
    assert len(refused) == 3
    # The rows differ in nothing else, and every line has its id now.
    for table, rows in found.items():
        for row, other in zip(rows, again[table], strict=True):
            other |= {key: row[key] for key in IDS if key in row}
            assert row == other
    again, _ = rows_of(path, ids=ids)
    logged = logged_rows(pa.RecordBatch.from_pylist(again[""], LOGGED))
    assert ids_of_lines_without(logged) == {}


@pytest.mark.long
@pytest.mark.slow
def test_the_header_in_a_log_calls_it_as_its_spec_does(tmp_path: Path) -> None:
    use_catalog(trunk_catalog(tmp_path))
    try:
        (field,) = [
            field
            for spec in catalog().entry("RequestHeader").all_specs()
            for field in spec.fields
            if field.identifies_client_instance
        ]
    finally:
        use_catalog(None)
    header = msgspec.json.encode(LoggedHeader(3, 12, 1, client_instance_id="x"))
    assert msgspec.json.decode(header)[field.json_name] == "x"


def test_an_error_about_a_body_with_secrets_quotes_nothing() -> None:
    text = b'{"deletions":[],"upsertions":[{"name":"bob","salt":"not base64: hunter2"}]}'
    found = rows_by_objects("AlterUserScramCredentialsRequest", 0, [text]).columns
    assert found["error"].to_pylist() == [
        "the body does not match its spec and may contain credentials"
    ]


@pytest.mark.parametrize("config", ['"name":null,"value":"hunter2"', '"value":"hunter2"'])
def test_a_configuration_without_its_name_may_be_a_secret(config: str) -> None:
    text = f'{{"topics":[{{"name":"a","configs":[{{{config}}}]}}]}}'.encode()
    found = rows_by_objects("CreateTopicsRequest", 4, [text]).columns
    assert found["withheld_credentials"].to_pylist() == [1]
    (topic,) = found["body"].to_pylist()[0]["topics"]
    assert topic["configs"][0]["value"] == "withheld"


def test_what_a_broker_leaves_out_is_null_or_empty_and_counted() -> None:
    found = body_rows("MetadataRequest", 12, [b'{"topics":[{"name":"a"}]}'] * 5)
    assert found.left_out == 5 * 3
    row = found.columns["body"].to_pylist()[0]
    assert row["topics"][0]["topic_id"] is None
    assert row["allow_auto_topic_creation"] is None
    empty = body_rows("MetadataResponse", 12, [b'{"clusterId":"k"}'])
    assert empty.columns["body"].to_pylist()[0]["brokers"] == []
    assert found.columns["error"].null_count == 5


def test_a_tagged_field_that_is_not_there_has_its_default() -> None:
    name, version = "FetchResponse", 16
    texts = bodies("4.4.0")[name, version]
    partition = body_rows(name, version, texts * 4).columns["body"].to_pylist()[0]["responses"]
    assert partition[0]["partitions"][0]["diverging_epoch"]["epoch"] == -1


BROKEN = (
    (b'{"topics":5}', "expected an array"),
    (b'{"topics":[{"name":7}]}', "got 7"),
    (b'{"topics":[null]}', "expected an object"),
    (b'{"topics":[],"surprise":1}', "has no field"),
    (b'{"topics":[{"name":"a","topicId":"not a uuid"}]}', "expected a UUID"),
    (b"5", "expected an object"),
    (b"[]", "expected an object"),
    (b'{"topics":NaN}', "not JSON"),
    (b'{"topics":' + b"[" * 20_000, "not JSON"),
)


@pytest.mark.parametrize(("text", "expected"), BROKEN, ids=lambda one: repr(one[:24]))
def test_a_body_that_is_not_what_its_spec_says_has_the_reason(text: bytes, expected: str) -> None:
    right = b'{"topics":null,"allowAutoTopicCreation":true,"includeTopicAuthorizedOperations":true}'
    for texts in ([text], [right, right, text, right, right]):
        found = body_rows("MetadataRequest", 12, texts).columns
        errors = [one for one in found["error"].to_pylist() if one]
        assert len(errors) == 1
        assert expected in errors[0]
        assert found["body"].null_count == 1
        assert found["body_version"].null_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("release", JSON_RELEASES)
def test_bodies_in_parts_are_those_at_once(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for (name, version), texts in bodies(release).items():
        for given in (texts, [None, *texts, None]):
            whole = rows_by_objects(name, version, given)
            with monkeypatch.context() as patched:
                patched.setattr(request_log_bodies, "_AT_ONCE", 3)
                parts = rows_by_objects(name, version, given)
            assert parts.left_out == whole.left_out
            assert parts.columns == whole.columns


def test_an_empty_structure_is_three_bytes_and_a_row_so_there_are_so_many() -> None:
    small = b'{"topics":[]}'
    for element, most in ((b"{}", MOST_STRUCTURES), (b"[]", MOST_VALUES)):
        large = b'{"topics":[' + element + (b"," + element) * (most + 1) + b"]}"
        for texts in ([large], [small, small, large, small, small]):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            found = body_rows("MetadataResponse", 12, texts).columns
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
            told = dict(zip(texts, found["error"].to_pylist(), strict=True))
            assert "more than 131,072 structures or 1,572,864 values" in told[large]
            assert told.get(small) is None
    partition = (
        b'{"errorCode":0,"partitionIndex":1,"leaderId":1,"leaderEpoch":2,"replicaNodes":[1,2,3],'
        b'"isrNodes":[1,2,3],"offlineReplicas":[]}'
    )
    assert not is_too_large(b",".join([partition] * 100_000))
    assert body_of_text("{group_id=" + "{" * MOST_STRUCTURES + "}}", "HeartbeatRequest", 0) is None


def test_listeners_are_told_apart_up_to_so_many_and_the_rest_is_counted() -> None:
    names: list[tuple[str | None, str | None]] = [(f"L{at:04}", None) for at in range(3000)]
    names += [("x" * 1_000_000, "PLAINTEXT"), (None, None)]
    expected: ListenerCounts | None = None
    for seed in range(3):
        random.Random(seed).shuffle(names)
        whole = ListenerCounts()
        for start in range(0, len(names), 700):
            part = ListenerCounts()
            part.add(names[start : start + 700])
            for one in names[start : start + 700]:
                part.add_replicas(one, 1)
            whole.merge(part)
        assert len(whole.requests) == MOST_LISTENERS
        assert sum(whole.requests.values()) + whole.beyond == len(names)
        assert whole.replicas == whole.requests
        assert max(len(name or "") for name, _ in whole.requests) <= LONGEST_NAME + 1
        expected = expected or whole
        assert whole == expected


def test_a_number_beyond_its_field_is_found_among_others() -> None:
    right = b'{"throttleTimeMs":0,"brokers":[],"clusterId":"k","controllerId":1,"topics":[]}'
    wrong = right.replace(b":1,", b":99999999999,")
    found = body_rows("MetadataResponse", 12, [right] * 4 + [wrong] + [right]).columns
    assert found["error"].to_pylist()[4] == "a value in the body does not fit its field"
    assert found["error"].null_count == 5


def test_versions_and_apis_that_no_release_has(tmp_path: Path) -> None:
    header = {"requestApiKey": 3, "requestApiVersion": 999, "correlationId": 1, "clientId": None}
    path = tmp_path / "kafka-request.log"
    path.write_bytes(
        line(requestHeader=header) + b"\n" + line(requestHeader=header | {"requestApiKey": 9999})
    )
    found, _ = rows_of(path)
    assert {one["outcome"] for one in found["frames"]} == {"failed"}
    errors = {one["error"] for one in found["frames"]}
    assert "no Kafka release in the catalog has this api key" in errors
    assert len(errors) == 3


def test_a_line_that_is_cut_has_a_frame_and_no_message(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(line()[:300])
    found, told = rows_of(path)
    (frame,) = found["frames"]
    assert (frame["outcome"], frame["connection"], told.cut) == ("header", "?>?", 1)
    assert (frame["api_name"], frame["client_id"]) == ("Metadata", "c")
    assert not [one for one in found if one.startswith("messages/")]


def test_requests_that_a_broker_refused_are_frames_on_connections_that_it_closed() -> None:
    found, told = rows_of(PLACE / "4.4.0-server.log")
    assert told.refused == 2
    assert [(one["api_name"], one["api_version"], one["answered"]) for one in found["frames"]] == [
        ("Fetch", 3, False),
        ("Produce", 2, False),
    ]
    assert {one["closed_by"] for one in found[""]} == {"broker"}


def test_text_says_what_json_says() -> None:
    found, _ = rows_of(PLACE / "2.7.2.log")
    later, _ = rows_of(PLACE / "2.8.2.log")

    def first(rows: dict[str, Any], name: str, client: str) -> dict[str, Any]:
        body: dict[str, Any] = next(
            one["body"] for one in rows[f"messages/{name}"] if one["client_id"] == client
        )
        return body

    # The same clients sent the same requests to both releases.
    for name, client, told in (
        ("CreateTopicsRequest", "admin", ("topics", "timeout_ms", "validate_only")),
        ("ListOffsetsRequest", "orders-reader", ("replica_id", "isolation_level")),
        ("FetchRequest", "orders-reader", ("replica_id", "max_wait_ms", "rack_id", "session_id")),
        ("ApiVersionsRequest", "admin", ("client_software_name", "client_software_version")),
        ("IncrementalAlterConfigsRequest", "admin", ("resources", "validate_only")),
    ):
        one, other = first(found, name, client), first(later, name, client)
        assert {part: one[part] for part in told} == {part: other[part] for part in told}
    sizes = [
        partition["records_size"]
        for row in found["messages/FetchResponse"]
        for topic in row["body"]["responses"]
        for partition in topic["partitions"]
    ]
    assert max(sizes) >= 376


HEARTBEAT = "HeartbeatRequest"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "{group_id=g,generation_id=1,member_id=m",
        "{group_id=g,generation_id=1,member_id=m}}",
        "{group_id=g,generation_id=x,member_id=m}",
        "{group_id=g,generation_id=1}",
        "{generation_id=1,group_id=g,member_id=m}",
        "{group_id=a,b,generation_id=1,member_id=m}",
        "{group_id=a=b,generation_id=1,member_id=m}",
        "{group_id={,generation_id=1,member_id=m}",
        "{group_id=g,generation_id=1,generation_id=2,member_id=m}",
        "{group_id=g,generation_id=1,member_id=m,more=1}",
        "{" * 5_000,
    ],
)
def test_text_that_is_not_surely_fields_has_no_body(text: str) -> None:
    assert body_of_text(text, HEARTBEAT, 0) is None


def test_names_that_no_release_has_and_versions_of_none() -> None:
    right = "{group_id=g,generation_id=1,member_id=m}"
    assert body_of_text(right, HEARTBEAT, 0) is not None
    # This is the name of the field in the oldest releases. No field of the message has this name.
    assert body_of_text(right.replace("generation_id", "group_generation_id"), HEARTBEAT, 0)
    assert body_of_text(right, HEARTBEAT, 99) is None
    assert body_of_text(right, "NoMessage", 0) is None


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_counted_is_in_the_rows(release: str) -> None:
    found, told = rows_of(PLACE / f"{release}.log")
    assert sum(told.listeners.requests.values()) == told.requests
    # For Produce requests, the text contains only the number of partitions.
    produced = [one for one in found["frames"] if one["outcome"] == "header"]
    assert told.text == len(produced)
    assert {one["message"] for one in produced} <= {"ProduceRequest", "ApiVersionsRequest"}
    assert bool(produced) == (release == "2.7.2")
    assert pa.array([one["requests"] for one in found[""]]).to_pylist().count(1) == told.requests
