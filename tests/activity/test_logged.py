"""Whole and growing request logs show the same activity: the same sums, clients and topics."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.activity.growing_logs import GrowingRequestLogs
from flexwire.activity.listing import to_form
from flexwire.activity.logged import LoggedActivity
from flexwire.activity.sources import RequestLogActivity, open_activity
from flexwire.errors import ArgumentError, CaptureError
from flexwire.logs.request_log import Zone
from tests.activity.made import capture_files
from tests.capture.request_lines import JSON_RELEASES, PLACE, RELEASES, line, real_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.activity.sources import ActivitySource

    Follow = Callable[..., RequestLogActivity]


def forms(source: ActivitySource) -> list[dict[str, Any]]:
    return sorted(map(to_form, source.table), key=lambda form: form["connection"])


def at_once(*paths: Path) -> RequestLogActivity:
    source = RequestLogActivity(paths, Zone())
    for _ in source.read(must_exist=True):
        pass
    source.finish()
    return source


def grow(source: RequestLogActivity) -> None:
    for _ in source.read():
        pass


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Yield a function that follows growing logs; close its sources at the end."""
    with ExitStack() as stack:

        def begin(*paths: Path) -> RequestLogActivity:
            source = RequestLogActivity(paths, Zone())
            stack.callback(source.close)
            return source

        yield begin


def error_codes(value: Any) -> list[int]:
    """Return every error code in a response's JSON, found by the name of its field."""
    if isinstance(value, list):
        return [code for one in value for code in error_codes(one)]
    if not isinstance(value, dict):
        return []
    own = [one for name, one in value.items() if name == "errorCode"]
    return own + [code for one in value.values() for code in error_codes(one)]


@pytest.mark.parametrize("release", JSON_RELEASES)
def test_sums_are_those_of_the_lines(release: str) -> None:
    counted: Counter[str] = Counter()
    for text in real_lines(release):
        said = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1])
        if said["isForwarded"]:
            counted["forwarded"] += 1
            continue
        counted[f"api {said['requestHeader']['requestApiKeyName'].replace('_', '')}"] += 1
        counted[f"by {said['principal']}"] += 1
        counted["responses"] += bool(said["response"])  # with acks 0, there is no response
        counted["errors"] += len([code for code in error_codes(said["response"]) if code])
    source = at_once(PLACE / f"{release}.log")
    found: Counter[str] = Counter()
    for row in source.table:
        for api, requests in row.apis.items():
            found[f"api {api.upper()}"] += requests
        found[f"by {row.principal}"] += row.requests
        found["responses"] += row.responses
        found["errors"] += row.errors
    told = [text for text in source.notes if "forwarded" in text]
    found["forwarded"] = int(told[0].split()[0]) if told else 0
    assert +found == +counted
    assert found["errors"]


def test_text_has_the_clients_and_topics_of_json() -> None:
    # The same clients sent the same requests to both releases.
    topics = {"orders", "payments"}
    for release in RELEASES:
        rows = list(at_once(PLACE / f"{release}.log").table)
        named = {name for row in rows for name in row.topics}
        assert topics <= named
        assert {"User:alice", "User:ANONYMOUS"} == {row.principal for row in rows}
        assert "confluent-kafka-python" in {row.software_name for row in rows}
        assert all(row.request_bytes is row.response_bytes is row.is_open is None for row in rows)


def test_a_topic_that_is_known_by_its_id_has_its_name() -> None:
    rows = list(at_once(PLACE / "4.4.0.log").table)
    fetching = [row for row in rows if "Fetch" in row.apis]
    assert fetching
    assert all(row.topics for row in fetching)


def test_a_line_is_read_when_only_its_end_arrives(tmp_path: Path, follow: Follow) -> None:
    log = tmp_path / "kafka-request.log"
    header = {"requestApiKey": 3, "requestApiVersion": 12, "correlationId": 1, "clientId": "c"}
    source = follow(log)
    for part, requests in ((line(requestHeader=header), 0), (b"\n", 1), (b"\n", 1)):
        with log.open("ab") as file:
            file.write(part)
        grow(source)
        assert sum(row.requests for row in source.table) == requests


def test_a_client_id_that_comes_once_stays(tmp_path: Path) -> None:
    """A broker logs a client's null id as an empty one (KIP-1313)."""
    log = tmp_path / "kafka-request.log"
    header = {"requestApiKey": 3, "requestApiVersion": 12, "correlationId": 1}
    lines = [line(requestHeader=header | {"clientId": client}) for client in ("c", "", None)]
    log.write_bytes(b"".join(each + b"\n" for each in lines))
    assert [(row.client_id, row.requests) for row in at_once(log).table] == [("c", 3)]


def test_a_line_names_the_client_instance(tmp_path: Path) -> None:
    asked = {"requestApiKey": 71, "requestApiVersion": 0, "correlationId": 1, "clientId": "c"}
    log = tmp_path / "kafka-request.log"
    told = {"errorCode": 0, "clientInstanceId": "AAAAAAAAAAAAAAAAAAAACA"}
    log.write_bytes(
        line(requestHeader=asked, request={"clientInstanceId": "A" * 22}, response=told) + b"\n"
    )
    assert [row.instance_id for row in at_once(log).table] == ["AAAAAAAAAAAAAAAAAAAACA"]


def test_a_connection_that_a_broker_refused_is_closed_by_it() -> None:
    rows = list(at_once(PLACE / "4.4.0-server.log").table)
    assert [(row.requests, row.closed_by, row.is_open) for row in rows] == [
        (1, "broker", False)
    ] * 2


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_that_grows_gives_what_a_whole_one_gives(
    release: str, tmp_path: Path, follow: Follow
) -> None:
    data = (PLACE / f"{release}.log").read_bytes()
    expected = forms(at_once(PLACE / f"{release}.log"))
    # The seed is fixed, so that a failure can be repeated.
    random_numbers = random.Random(release)
    for _ in range(3):
        log = tmp_path / "kafka-request.log"
        log.write_bytes(b"")
        source = follow(tmp_path)
        cuts = sorted(random_numbers.sample(range(len(data)), 8))
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            with log.open("ab") as growing:
                growing.write(data[begin:end])
            grow(source)
        source.finish()
        assert forms(source) == expected


def numbered(count: int, begin: int = 0) -> bytes:
    lines = [
        line(connection=f"10.0.0.1:9092-10.0.0.9:50000-0-{number}")
        for number in range(begin, begin + count)
    ]
    return b"".join(text + b"\n" for text in lines)


def test_a_renamed_log_is_read_to_its_end_and_once(tmp_path: Path, follow: Follow) -> None:
    log, old = tmp_path / "kafka-request.log", tmp_path / "kafka-request.log.2026-11-22-20"
    log.write_bytes(numbered(2))
    source = follow(log)
    grow(source)
    with log.open("ab") as growing:
        growing.write(numbered(1, 2))
        log.rename(old)
        # The broker may still append to the renamed file.
        growing.write(numbered(1, 3))
    log.write_bytes(numbered(1, 4))
    grow(source)
    assert sum(row.requests for row in source.table) == len(list(source.table)) == 5
    # A log that is compressed after it was read is not read again.
    (tmp_path / "kafka-request.log.2026-11-22-20.gz").write_bytes(gzip.compress(old.read_bytes()))
    whole = follow(tmp_path)
    grow(whole)
    assert sum(row.requests for row in whole.table) == 9
    (tmp_path / "kafka-request.log.2026-11-22-19.gz").write_bytes(gzip.compress(numbered(3)))
    grow(whole)
    assert sum(row.requests for row in whole.table) == 9


def test_a_log_that_became_shorter_is_read_again_and_told(tmp_path: Path, follow: Follow) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes(numbered(3))
    source = follow(log)
    grow(source)
    log.write_bytes(numbered(1, 9))
    grow(source)
    assert sum(row.requests for row in source.table) == 4
    assert source.notes == [f"{log}: the file became shorter, so it is read again from the start"]


def test_parts_of_a_line_in_envelopes_are_joined_as_they_come(
    tmp_path: Path, follow: Follow
) -> None:
    text = line().decode()
    log = tmp_path / "kafka-request.log"
    source = follow(log)
    for begin, end, tag in ((0, 100, "P"), (100, 200, "P"), (200, None, "F")):
        with log.open("a") as growing:
            growing.write(f"2026-11-22T20:00:00.1Z stdout {tag} {text[begin:end]}\n")
        grow(source)
        assert len(list(source.table)) == (tag == "F")


def test_lines_that_say_nothing_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    cut = line()[:200]
    log.write_bytes(numbered(1) + b"[2026-11-22] DEBUG Completed request:{broken\n" + cut)
    source = at_once(log)
    assert [text.partition(": ")[2].partition(":")[0] for text in source.notes] == [
        "1 lines cannot be read"
    ]
    # A line that is cut off after its client id still counts for that client.
    assert [row.requests for row in source.table] == [1, 1]


def test_memory_is_bounded_and_what_is_left_out_is_counted() -> None:
    source = LoggedActivity(most=10)
    logs = GrowingRequestLogs([PLACE / "4.4.0.log"], Zone())
    items = [*logs.poll(), *logs.finish()]
    source.read(items)
    kept = {row.connection for row in source.table}
    assert len(kept) == 10
    rows = {item.ends.name for item in items if not getattr(item, "is_forwarded", False)}
    assert source.table.left_out >= len(rows) - 10


def test_paths_tell_what_they_are(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes(numbered(1))
    assert isinstance(open_activity([log]), RequestLogActivity)
    empty = tmp_path / "captures"
    empty.mkdir()
    assert not isinstance(open_activity([empty]), RequestLogActivity)
    with pytest.raises(CaptureError, match="would be counted twice"):
        open_activity([log, *capture_files("everything")])
    with pytest.raises(CaptureError, match="no such file"):
        open_activity([tmp_path / "nothing"])
    with pytest.raises(ArgumentError, match="timezone"):
        open_activity([log], "Mars/Olympus")
    segment = tmp_path / "orders-0"
    segment.mkdir()
    (segment / f"{0:020d}.log").write_bytes(bytes(100))
    with pytest.raises(CaptureError, match="log segments contain no connections"):
        open_activity([segment])
