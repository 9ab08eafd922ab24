"""Brokers' request logs are read line by line: every release, envelope and layout, and
any bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import random
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import ArgumentError, CaptureError
from flexwire.logs.request_log import (
    BadLine,
    BrokerLogKind,
    LoggedRequest,
    RefusedRequest,
    RequestLogPiece,
    RequestLogReader,
    Zone,
    kind_of,
    read_lines,
)
from flexwire.logs.request_log.lines import LONGEST, Line, RequestLogFile, split, unwrap_lines
from flexwire.logs.request_log.recognition import log_file
from flexwire.logs.request_log.requests import ends
from flexwire.spark.request_log_job import undivided_note
from flexwire.storage.file_search import list_files
from flexwire.storage.input_file import InputFile
from tests.capture.request_lines import JSON_RELEASES, PLACE, RELEASES, line, read, real_lines

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.logs.request_log.requests import Item


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    return path


def one(path: Path, text: bytes, zone: str = "UTC") -> LoggedRequest:
    (found,) = read(written(path, text), zone)
    assert isinstance(found, LoggedRequest)
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_every_line_of_every_release_is_a_request(release: str) -> None:
    found = read(PLACE / f"{release}.log")
    assert len(found) == len(real_lines(release))
    for item in found:
        assert isinstance(item, LoggedRequest)
        assert item.error is None
        assert item.ends.client.startswith("127.0.0.1:")
        assert item.total_us > 0
        assert item.listener in {"PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER"}
        expected = "User:alice" if item.listener == "SASL_PLAINTEXT" else "User:ANONYMOUS"
        assert item.principal == expected
        assert item.request is not None
        assert item.is_text == (release == "2.7.2")
    named = {item.software_name for item in found if isinstance(item, LoggedRequest)}
    assert {"confluent-kafka-python", None} <= named


@pytest.mark.parametrize("release", RELEASES)
def test_acks_0_has_no_response_in_any_release(release: str) -> None:
    silent = [one for one in read(PLACE / f"{release}.log") if not one.has_response]  # type: ignore[union-attr]
    assert [(item.header.client_id, item.header.request_api_key) for item in silent] == [  # type: ignore[union-attr]
        ("careless", 0)
    ]


@pytest.mark.parametrize("release", JSON_RELEASES)
def test_forwarded_ones_have_the_client_id_and_correlation_id_of_the_first(release: str) -> None:
    found = [one for one in read(PLACE / f"{release}.log") if isinstance(one, LoggedRequest)]
    forwarded = [one for one in found if one.is_forwarded]
    assert bool(forwarded) == (release != "2.8.2")
    own = {(one.header.client_id, one.header.correlation_id) for one in found}
    assert {(one.header.client_id, one.header.correlation_id) for one in forwarded} <= own
    assert {one.listener for one in forwarded} <= {"CONTROLLER"}


def test_at_info_every_line_says_that_its_version_is_deprecated() -> None:
    found = read(PLACE / "3.9.2-info.log")
    assert [one.header.request_api_version_deprecated for one in found] == [True, True]  # type: ignore[union-attr]


def test_a_brokers_own_log_says_what_it_refused() -> None:
    found = read(PLACE / "4.4.0-server.log")
    assert all(isinstance(one, RefusedRequest) for one in found)
    assert [(one.api_key, one.api_version) for one in found] == [(1, 3), (0, 2)]  # type: ignore[union-attr]
    assert [one.ends.name.partition("#")[2] for one in found] == ["6", "7"]  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [100, 1_000, 7_777, 50_000])
def test_however_a_file_is_cut_each_line_is_read_once(size: int) -> None:
    for release in RELEASES:
        path = PLACE / f"{release}.log"
        assert read(path, size=size) == read(path)


@pytest.mark.parametrize("block", [b"", b"\n", b"a", b"a\n", b"\na\n\nbc\n", b"ab\ncd", b"\n\n"])
def test_lines_belong_to_the_piece_that_they_begin_in(block: bytes) -> None:
    whole = [*split(io.BytesIO(block), 0, 0, None)]
    for cut in range(len(block) + 1):
        every = [*split(io.BytesIO(block), 0, 0, cut)]
        first = [one for one in every if not one.is_next]
        assert [one.text for one in every] == [one.text for one in whole]
        at = max(0, cut - 1)
        assert [*first, *split(io.BytesIO(block[at:]), at, cut, None)] == whole


def test_docker_and_cri_give_the_lines_that_were_printed(tmp_path: Path) -> None:
    lines = [*real_lines("4.4.0")]
    plain = read(written(tmp_path / "plain.log", *lines))
    docker, cri = [], []
    for text in lines:
        half = len(text) // 2
        seen = "2026-11-22T19:53:56.600000001Z"
        for part in (text[:half], text[half:] + b"\n"):
            inner = {"log": part.decode(), "stream": "stdout", "time": seen}
            docker.append(json.dumps(inner, separators=(",", ":")).encode())
        cri += [f"{seen} stdout P ".encode() + text[:half], b"2026-11-22T19:53:56.7Z stderr F x"]
        cri.append(f"{seen} stdout F ".encode() + text[half:])
    for name, wrapped in (("docker", docker), ("cri", cri)):
        found = read(written(tmp_path / f"{name}.log", *wrapped), size=1000)
        for one_, expected in zip(found, plain, strict=True):
            assert isinstance(one_, LoggedRequest)
            assert isinstance(expected, LoggedRequest)
            one_.offset = expected.offset
            assert one_ == expected


def test_a_part_that_nothing_follows_is_a_line_that_is_cut() -> None:
    found = [*unwrap_lines([Line(0, b"2026-11-22T20:00:00.1Z stdout P half")])]
    assert [(one.text, one.is_cut) for one in found] == [(b"half", True)]


def test_gzip_is_seen_by_its_bytes_and_one_that_ends_early_says_so(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log.1"
    packed = gzip.compress(b"\n".join(real_lines("3.9.2")))
    path.write_bytes(packed)
    assert len(read(path)) == len(real_lines("3.9.2"))
    path.write_bytes(packed[: len(packed) // 2])
    *some, last = read(path)
    assert some
    assert last == BadLine("the gzip file ends early or is damaged")


def test_files_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    def kind(name: str, data: bytes) -> BrokerLogKind | None:
        (tmp_path / name).write_bytes(data)
        (source,) = list_files([tmp_path / name], lambda _: True, "")
        found = kind_of(source)
        return None if found is None else found[0]

    assert kind("anything", line()) is BrokerLogKind.REQUESTS
    assert kind("anything", (PLACE / "4.4.0-server.log").read_bytes()) is BrokerLogKind.SERVER
    assert kind("kafka-request.log", b"") is BrokerLogKind.REQUESTS
    assert kind("server.log.1", b"") is BrokerLogKind.SERVER
    assert kind("anything", b"") is None
    assert kind("anything", b"\x0a\x0d\x0d\x0a" + bytes(100)) is None
    assert kind("anything", b"\x1f\x8b" + bytes(100)) is None


def test_one_that_has_but_the_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log.1.bz2").write_bytes(b"BZh9" + bytes(50))
    with pytest.raises(CaptureError, match="does not begin with lines of such a log"):
        read(tmp_path / "kafka-request.log.1.bz2")


@pytest.mark.parametrize(
    ("zone", "text", "expected"),
    [
        ("UTC", b"[2026-11-22 20:00:00,123]", 1795377600123000),
        ("Europe/Berlin", b"[2026-11-22 20:00:00,123]", 1795374000123000),
        ("Europe/Berlin", b"2026-07-22T20:00:00.123456789 x", 1784743200123456),
        ("-03:30", b"[2026-11-22 20:00:00]", 1795390200000000),
        ("Europe/Berlin", b"2026-11-22T20:00:00.5Z", 1795377600500000),
        ("Europe/Berlin", b"2026-11-22 20:00:00,5+0530", 1795357800500000),
        ("UTC", b"2026-13-45 99:00:00", None),
        ("UTC", b"2026-11-22 24:00:00", None),
        ("UTC", b"no time", None),
    ],
)
def test_a_time_is_local_unless_it_says_its_zone(
    zone: str, text: bytes, expected: int | None
) -> None:
    assert Zone(zone).moment(text) == expected


def test_an_envelope_says_the_zone_of_a_time_that_does_not() -> None:
    seen = 1795377600200000
    assert Zone("Asia/Kolkata").moment(b"[2026-11-22 15:00:00,123]", seen) == 1795377600123000
    assert Zone("Asia/Kolkata").moment(b"[2026-11-23 01:45:00,123]", seen) == 1795377600123000


@pytest.mark.parametrize("zone", ["", "nowhere", "../../etc/passwd", "+2", 7])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(ArgumentError):
        Zone(zone)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("10.0.0.1:9092-10.0.0.9:50000-7", "10.0.0.9:50000>10.0.0.1:9092#7"),
        ("10.0.0.1:9092-10.0.0.9:50000-2-7", "10.0.0.9:50000>10.0.0.1:9092#7"),
        ("0:0:0:0:0:0:0:1:9092-fe80:0:0:0:0:0:0:2%eth0:5-0", "[fe80::2]:5>[::1]:9092#0"),
        ("broker-1:9092-client-2:50000-0-3", "client-2:50000>broker-1:9092#3"),
        ("", "?>?"),
        ("10.0.0.1:9092", "?>?"),
    ],
)
def test_connections_have_the_names_of_captures(name: str, expected: str) -> None:
    assert ends(name).name == expected


def test_the_request_came_as_long_before_the_line_as_it_took(tmp_path: Path) -> None:
    found = one(tmp_path / "log", line())
    assert (found.time_us, found.total_us) == (1795377600123000, 2500)
    assert one(tmp_path / "log", line(totalTimeMs=-5)).total_us == 0
    assert one(tmp_path / "log", line(totalTimeMs=1e300)).total_us == 10**12


@pytest.mark.parametrize("release", JSON_RELEASES)
def test_of_a_line_that_is_cut_anywhere_the_header_is_kept_or_it_is_counted(
    release: str, tmp_path: Path
) -> None:
    text = real_lines(release)[5]
    after_header = text.index(b'"request":')
    for at in range(0, len(text), 41):
        found = read(written(tmp_path / "log", b"[x] Completed request:", text[:at]))
        # The previous line has no time.
        assert found[0] == BadLine("the line contains no time")
        if b"Completed request:" not in text[:at]:
            assert len(found) == 1
        elif at < after_header - 1:
            assert isinstance(found[1], BadLine)
        else:
            item = found[1]
            assert isinstance(item, LoggedRequest)
            assert item.header == one(tmp_path / "log", text).header
            whole = at > text.rindex(b"}")
            assert (item.error is None) == whole


def test_a_line_longer_than_is_read_is_cut_and_the_next_is_whole(tmp_path: Path) -> None:
    long = line(request={"topics": [{"name": "x" * (LONGEST + 5)}]})
    found = read(written(tmp_path / "log", long, line()))
    assert [item.error for item in found] == ["the line is too long", None]  # type: ignore[union-attr]
    assert found[1].offset == len(long) + 1  # type: ignore[union-attr]


HOSTILE = (
    b'{"requestHeader":{}}',
    b'{"requestHeader":{"requestApiKey":1e400,"requestApiVersion":1,"correlationId":1}}',
    b'{"requestHeader":{"requestApiKey":70000,"requestApiVersion":1,"correlationId":1}}',
    b'{"requestHeader":{"requestApiKey":"3","requestApiVersion":1,"correlationId":1}}',
    b'{"requestHeader":{"requestApiKey":3,"requestApiVersion":1,"correlationId":NaN}}',
    b'{"requestHeader":' * 100_000,
    b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    b"{" + b'"requestHeader":3,' * 3 + b"}",
    b"RequestHeader(apiKey=NONE, apiVersion=1, clientId=a, correlationId=1) -- ",
    b"RequestHeader(apiKey=FETCH, apiVersion=99999, clientId=a, correlationId=1) -- {}",
    b"\xff\xfe",
    b"",
)


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:30]))
def test_what_no_broker_writes_is_counted_with_its_reason(body: bytes, tmp_path: Path) -> None:
    text = b"[2026-11-22 20:00:00,123] DEBUG Completed request:" + body
    (found,) = read(written(tmp_path / "log", text))
    assert isinstance(found, BadLine)


def test_keys_that_stand_twice_and_characters_that_are_not_utf_8(tmp_path: Path) -> None:
    twice = line().replace(b'"principal":', b'"principal":"User:eve","principal":', 1)
    assert one(tmp_path / "log", twice).principal == "User:alice"
    broken = line(principal="User:PLACE").replace(b"PLACE", b"\xff\xfe")
    assert one(tmp_path / "log", broken).error is not None


def test_any_bytes_are_lines_or_are_counted(tmp_path: Path) -> None:
    chosen = random.Random(16)
    for release in (*RELEASES, "4.4.0-server"):
        lines = (PLACE / f"{release}.log").read_bytes().splitlines()
        for _ in range(60):
            text = bytearray(chosen.choice(lines))
            for _ in range(chosen.choice([1, 3, 30])):
                at = chosen.randrange(len(text) + 1)
                text[at : at + chosen.choice([0, 1, 9])] = chosen.randbytes(chosen.choice([0, 1]))
            text.extend(b"\n" + line())
            path = tmp_path / "kafka-request.log"
            path.write_bytes(text)
            for item in read(path):
                assert isinstance(item, LoggedRequest | RefusedRequest | BadLine)


def test_both_loggers_may_write_to_one_file(tmp_path: Path) -> None:
    refusals = (PLACE / "4.4.0-server.log").read_bytes().splitlines()
    start = [b"[2026-11-22 19:00:00,000] INFO Loading (kafka.log.LogManager)"] * 5000
    assert sum(map(len, start)) > 1 << 18
    for path, lines in (
        ("printed.log", [line(), *refusals, line()]),
        ("server.log", [*start, line(), *refusals, line()]),
    ):
        found = read(written(tmp_path / path, *lines))
        requests = [one for one in found if isinstance(one, LoggedRequest)]
        refused = [one for one in found if isinstance(one, RefusedRequest)]
        assert (len(requests), len(refused)) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("between", [[], [b""], [b"", b"\r"], ["line"], ["line", b"", "line"]])
def test_a_refusal_is_read_once_wherever_its_two_lines_are_cut(
    between: list[bytes | str], tmp_path: Path
) -> None:
    whose, why = (PLACE / "4.4.0-server.log").read_bytes().splitlines()[5:7]
    filling = [line() if one == "line" else one for one in between]
    lines = [line(), whose, *filling, why, line(), whose, b"another thing", why, whose + why]
    path = written(tmp_path / "both.log", *lines)  # type: ignore[arg-type]  # no text is left
    whole = read(path)
    is_apart = b"\r" in between
    assert [type(one) for one in whole].count(RefusedRequest) == (1 if is_apart else 2)
    text = path.read_bytes()
    file = log_file(next(iter(list_files([path], lambda _: True, ""))), 0)
    assert file is not None
    for cut in range(len(text) + 1):
        pieces = RequestLogPiece(file, 0, cut), RequestLogPiece(file, cut, None)
        found = [
            i for one in pieces for i in RequestLogReader(Zone("UTC")).read(read_lines(one)) if i
        ]
        # A refused line is returned with the piece in which it begins, before the next piece's
        # lines.
        assert sorted(found, key=_offset) == sorted(whole, key=_offset)


def _offset(item: Item) -> int:
    assert isinstance(item, LoggedRequest | RefusedRequest)
    return item.offset


def test_a_refusal_is_not_looked_for_without_end(tmp_path: Path) -> None:
    whose, why = (PLACE / "4.4.0-server.log").read_bytes().splitlines()[5:7]
    completed = [line()] * (2 * (1 << 20) // len(line()))
    path = written(tmp_path / "both.log", line(), whose, *completed, why)
    for size in (1 << 30, 100_000):
        assert not [one for one in read(path, size=size) if isinstance(one, RefusedRequest)]


@pytest.mark.parametrize(
    "text",
    [
        b"2026-11-22 20:00:00 INFO " * 10_000,
        b"Exception while processing request from " + b":1-" * (1 << 20),
        b"Exception while processing request from a"
        + b"Received request for api with key 1 (" * 100_000,
        b"2026-11-22 20:00:00,000 Completed request:RequestHeader(apiKey=PRODUCE, apiVersion=1, "
        b"clientId=a, correlationId=1) -- {},response: from connection x;totalTime:1,"
        b"securityProtocol:P,principal:a"
        + b",listener:x,clientInformation:ClientInformation(softwareName=" * 50_000
        + b"\t",
    ],
    ids=["times", "ends", "refusals", "listeners"],
)
def test_no_line_takes_longer_than_its_length(text: bytes, tmp_path: Path) -> None:
    # Regular expressions that retry every position would take hours.
    start = b"[2026-11-22 19:00:00,000] INFO Loading (kafka.log.LogManager)"
    # The first bytes of a file indicate its type.
    lines = (text, start) if len(text) < 1 << 18 else (start, text)
    found = read(written(tmp_path / "server.log", *lines))
    assert {type(one) for one in found} <= {LoggedRequest}


def test_zeros_between_parts_of_a_gzipped_file_end_nothing(tmp_path: Path) -> None:
    packed = gzip.compress(line() + b"\n")
    for zeros in (0, 1, 1 << 16, 3 << 20):
        path = tmp_path / "kafka-request.log.gz"
        path.write_bytes(packed + bytes(zeros) + packed + bytes(zeros))
        assert len(read(path)) == 2


def test_parts_are_held_for_two_streams_at_the_most() -> None:
    lines = [
        Line(at, json.dumps({"log": "x", "stream": f"s{at}"}, separators=(",", ":")).encode())
        for at in range(100)
    ]
    assert [(one.text, one.is_cut) for one in unwrap_lines(lines)] == [(b"x" * 100, True)]


def test_large_files_that_are_one_task_are_named() -> None:
    def file(name: str, size: int, **how: bool) -> RequestLogFile:
        return RequestLogFile(InputFile(f"/{name}", size, ""), 0, **how)

    plain = file("a.log", 1 << 40)
    small = file("b.gz", 1000, is_gzipped=True)
    assert undivided_note([plain, small]) == ()
    packed = file("c", 3 << 20, is_gzipped=True)
    (note,) = undivided_note([plain, small, packed])
    assert note.startswith("/c: one task reads each file")
    (note,) = undivided_note([packed, file("d", 1 << 30, is_enveloped=True), plain])
    assert note.startswith("/d and 1 more: one task reads each file")
