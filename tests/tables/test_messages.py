"""A message's table in columns contains the rows that objects produce, in frame order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.errors import EncodeError
from flexwire.protocol import carries_credentials
from flexwire.protocol.credentials import (
    CREDENTIALS,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    CredentialField,
)
from flexwire.schema.catalog import catalog
from flexwire.tables import messages
from flexwire.tables.message_schema import body_type, class_of
from flexwire.tables.messages import MessageBodies, message_rows
from tests.codec.test_random_specs import damage
from tests.each import each
from tests.spark.planted import MARK, holding
from tests.spark.traffic import TOPIC_ID, record_batch
from tests.tables.message_frames import (
    APIS,
    batch,
    bodies,
    by_objects,
    frame,
    known_versions,
    same,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

PLAIN = tuple(name for name in APIS if not carries_credentials(name))
TAG = 4711
SECRETS = tuple(one for one in CREDENTIALS if one.message_name.endswith(("Request", "Response")))


@pytest.fixture
def by_row(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the indexes of the frames whose bodies went through objects."""
    seen: list[int] = []
    decode = MessageBodies.decode

    def counted(self: MessageBodies, frames: pa.RecordBatch) -> Iterator[Any]:
        seen.extend(frames["frame_index"].to_pylist())
        return decode(self, frames)

    monkeypatch.setattr(MessageBodies, "decode", counted)
    return seen


def frames_of(name: str, seeds: range) -> list[dict[str, Any]]:
    each_of = enumerate(bodies(name, seeds))
    return [frame(name, raw, version, number) for number, (raw, version) in each_of]


def check(name: str, frames: list[dict[str, Any]], release: str | None = None) -> None:
    given = batch(frames)
    for show in (False, True):
        found = message_rows(given, name, release=release, show_credentials=show)
        same(found, by_objects(given, name, release, show=show))


@pytest.mark.long
@pytest.mark.slow
@each("name", APIS)
def test_all_versions_in_one_batch(name: str) -> None:
    source = random.Random(name)
    found = [
        frame(name, raw, version, n) for n, (raw, version) in enumerate(bodies(name, range(3)))
    ]
    source.shuffle(found)
    check(name, found)


@pytest.mark.long
@pytest.mark.slow
@each("name", PLAIN)
def test_what_is_whole_needs_no_object(name: str, by_row: list[int]) -> None:
    found = [
        frame(name, raw, version, n) for n, (raw, version) in enumerate(bodies(name, range(2)))
    ]
    message_rows(batch(found), name)
    assert by_row == []


@pytest.mark.slow
@each("name", APIS)
def test_damaged_lenient_and_guarded_frames_and_tagged_headers(name: str) -> None:
    source = random.Random(name)
    found = []
    for number, (raw, version) in enumerate(bodies(name, range(3))):
        tags = {TAG: b"tag"} if source.random() < 0.3 else None
        one = frame(name, damage(raw, source), version, number, tags=tags)
        one["is_guarded"] = source.random() < 0.3
        if source.random() < 0.1:
            one["payload"] = one["payload"][: source.randrange(len(one["payload"]))]
        if source.random() < 0.1:
            one["api_version"] = source.choice([-1, 99, 0, 32_767])
        found.append(one)
    check(name, found)


def test_only_what_is_refused_goes_through_objects(by_row: list[int]) -> None:
    name = "HeartbeatResponse"
    raw = message(name)().encode(4)
    found = [frame(name, raw, 4, n) for n in range(8)]
    found[1] = frame(name, raw[:-1], 4, 1)
    found[3] = frame(name, raw + b"\0", 4, 3)
    found[4] = frame(name, raw, 4, 4, tags={TAG: b"x"})
    found[6] = frame(name, raw, 99, 6)
    rows = message_rows(batch(found), name).to_pylist()
    assert by_row == [1, 3, 4, 6]
    assert [one["frame_index"] for one in rows] == [*range(8)]
    assert [one["error"] is None for one in rows] == [n not in {1, 3, 6} for n in range(8)]
    assert [one["body_version"] for one in rows] == [4, None, 4, 4, 4, 4, None, 4]
    assert rows[4]["header_unknown_tagged_fields"] == [{"tag": TAG, "data": b"x"}]


@each("name", ["HeartbeatRequest", "MetadataResponse", "SaslAuthenticateRequest"])
def test_without_kernels_the_rows_are_the_same(name: str, by_row: list[int]) -> None:
    found = [
        frame(name, raw, version, n) for n, (raw, version) in enumerate(bodies(name, range(2)))
    ]
    given = batch(found)
    expected = by_objects(given, name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(messages, "load_kernel", lambda _name: None)
        by_row.clear()
        same(message_rows(given, name), expected)
    assert len(by_row) == len(found)


def test_no_frames_give_no_rows_of_the_same_schema() -> None:
    for name in ("HeartbeatRequest", "SaslAuthenticateRequest", "ProduceRequest"):
        given = batch([])
        for sized in (False, True):
            found = message_rows(given, name, record_bytes=not sized)
            assert found.schema == messages.table_schema(name, record_bytes=not sized)
            assert len(found) == 0


def test_frames_that_say_too_little_are_left_to_the_objects() -> None:
    request, response = message("HeartbeatRequest")().encode(4), message("HeartbeatResponse")()
    name, raw = "HeartbeatResponse", response.encode(4)
    odd: list[dict[str, Any]] = [
        {"api_key": 30_000},
        {"payload": b""},
        {"payload": b"\0\0\0"},
        {"payload": b"\0\0\0\1"},
        # An empty tag section that takes two bytes.
        {"payload": b"\0\0\0\1\x80\0" + raw},
        {"header_unknown_tagged_fields": [{"tag": 1, "data": b"x"}]},
        {"direction": "request", "body_offset": 6, "payload": bytes(6) + raw},
    ]
    check(name, [frame(name, raw, 4, n, **one) for n, one in enumerate([*odd, {}])])
    offsets: list[dict[str, Any]] = [{"body_offset": 10_000}, {"body_offset": 0}]
    nulls = [{"header_unknown_tagged_fields": None}, {"is_guarded": None}, {}]
    name = "HeartbeatRequest"
    check(name, [frame(name, request, 4, n, **one) for n, one in enumerate([*offsets, *nulls])])


def test_a_broker_s_answer_in_version_0_is_read_as_such() -> None:
    name = "ApiVersionsResponse"
    made: Any = message(name)
    keys = [made.ApiVersion(api_key=18, min_version=0, max_version=3)]
    fallback = made(error_code=35, api_keys=keys).encode(0)
    found = [frame(name, fallback, version, version) for version in (4, 3, 2, 1, 0)]
    found += [frame(name, made(api_keys=keys).encode(version), version, 9) for version in (4, 0)]
    check(name, found)
    rows = message_rows(batch(found), name)
    assert rows["body_version"].to_pylist() == [0, 0, 0, 0, 0, 4, 0]


# The release of the captured brokers.


@pytest.mark.long
@pytest.mark.slow
@each("release", ["2.8.2", "3.0.2", "3.6.2", "4.0.2"])
def test_bytes_of_a_release_are_read_as_it_wrote_them(release: str) -> None:
    anew = [name for name in APIS if body_type(name, release) != body_type(name, None)]
    also = [
        name
        for name in APIS
        for version in catalog().entry(name).releases.get(release, ())
        if class_of(name, version, release) is not message(name)
    ]
    assert also
    for name in {*anew, *also}:
        source = random.Random(name)
        raws = [*bodies(name, range(6), release), *bodies(name, range(3))]
        source.shuffle(raws)
        found = [frame(name, raw, version, n) for n, (raw, version) in enumerate(raws)]
        check(name, found, release)
        check(name, [one | {"payload": damage(one["payload"], source)} for one in found], release)


# Bodies with credentials.


def text(rows: pa.RecordBatch) -> str:
    return repr(rows.to_pylist())


@pytest.mark.long
@pytest.mark.slow
@each("one", SECRETS)
def test_no_credential_is_in_a_row(one: CredentialField) -> None:
    secret = MARK + b"secret"
    for version in {known_versions(one.message_name)[0], known_versions(one.message_name)[-1]}:
        for tag in (True, False):
            try:
                raw = holding(one, secret, tag=tag).encode(version)
            except EncodeError:
                continue
            found = []
            for number, data in enumerate([raw, raw + b"\0", raw[:-1], raw[1:]]):
                for is_guarded in (True, False):
                    place: dict[str, Any] = {"is_guarded": is_guarded, "tags": {TAG: secret}}
                    found.append(frame(one.message_name, data, version, number, **place))
            check(one.message_name, found)
            rows = message_rows(batch(found), one.message_name)
            assert MARK.decode() not in text(rows)
            shown = message_rows(batch(found), one.message_name, show_credentials=True)
            # A version may lack the field.
            assert (MARK.decode() in text(shown)) == (MARK in raw or tag)


@pytest.mark.parametrize("version", [4, 12, 13, 17])
def test_records_of_the_cluster_s_metadata_are_withheld(version: int, by_row: list[int]) -> None:
    made: Any = message("FetchResponse")
    records = record_batch((MARK, MARK * 3, []))

    def topic(**values: Any) -> Any:
        part = made.PartitionData(partition_index=0, records=records)
        return made.FetchableTopicResponse(partitions=[part], **values)

    ids = version >= 13
    secret = {"topic_id": METADATA_TOPIC_ID} if ids else {"topic": METADATA_TOPIC}
    other = {"topic_id": TOPIC_ID} if ids else {"topic": "orders"}
    each_of = [[other], [other, secret], [], [secret], [other, other]]
    raws = [made(responses=[topic(**one) for one in topics]).encode(version) for topics in each_of]
    found = [frame("FetchResponse", raw, version, n) for n, raw in enumerate(raws)]
    check("FetchResponse", found)
    by_row.clear()
    rows = message_rows(batch(found), "FetchResponse")
    assert by_row == [1, 3]
    assert rows["withheld_credentials"].to_pylist() == [0, 1, 0, 1, 0]
    assert MARK.decode() not in text(rows.slice(3, 1))
