"""Columns and objects produce the same counts of which clients send which field."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.codec import message
from flexwire.columnar import decode_messages
from flexwire.errors import FlexwireError
from flexwire.schema.catalog import catalog
from flexwire.schema.resolve import resolve
from flexwire.specs.guide import bundled_messages, render
from flexwire.specs.guide.traffic import (
    MOST_CLIENTS,
    GuideTraffic,
    Senders,
    VersionTraffic,
    read_traffic,
)
from flexwire.wire.schema import Schema, struct_of
from tests.guide.built import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parents[1] / "vectors" / "messages.jsonl.gz"
# Nested arrays, tagged fields, null structures, uuids, bytes and numbers of all kinds.
NAMES = (
    "FetchRequest",
    "FetchResponse",
    "MetadataResponse",
    "ApiVersionsResponse",
    "DescribeTopicPartitionsRequest",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupDescribeResponse",
)


def vectors() -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            if one["message"] in NAMES:
                found[one["message"]].append(one)
    return found


def write_analysis(place: Path, tables: dict[str, list[tuple[str | None, int, bytes]]]) -> Path:
    """Write message tables as an analysis does, from (client id, version, bytes)."""
    for name, rows in tables.items():
        clients, versions, data = (list(column) for column in zip(*rows, strict=True))
        body = decode_messages(name, pa.array(data), versions)
        columns = {
            "client_id": pa.array(clients, pa.string()),
            "body_version": versions,
            "body": body,
        }
        where = place / "tables" / "messages" / name
        where.mkdir(parents=True)
        pq.write_table(pa.table(columns), where / "part-0.parquet")
    (place / "tables" / "_flexwire.json").write_text('{"format": 3}')
    (place / "tables" / "_SUCCESS").touch()
    return place


def sent_by_object(value: Any, schema: Schema, prefix: str = "") -> Iterator[str]:
    """Yield the paths of an object's fields that differ from their default."""
    for field in (*schema.inline, *schema.tagged.values()):
        held = getattr(value, field.attribute)
        inner = struct_of(field.type)
        if inner is not None and not isinstance(held, list):
            if held is not None:
                yield prefix + field.name
                yield from sent_by_object(held, inner, f"{prefix}{field.name}.")
        elif isinstance(held, list):
            if held:
                yield prefix + field.name
            for each in held if inner is not None else ():
                yield from sent_by_object(each, inner or schema, f"{prefix}{field.name}.")
        elif held != field.default and field.type.name not in {"RECORDS", "COMPACT_RECORDS"}:
            yield prefix + field.name


@pytest.mark.slow
def test_columns_count_what_objects_hold(tmp_path: Path) -> None:
    tables: dict[str, list[tuple[str | None, int, bytes]]] = {}
    wanted: dict[tuple[str, int, str], Counter[str]] = defaultdict(Counter)
    for name, lines in vectors().items():
        entry = catalog().entry(name)
        for number, one in enumerate(lines):
            version, data = one["version"], bytes.fromhex(one["hex"])
            client = (None, "a", "b")[number % 3]
            tables.setdefault(name, []).append((client, version, data))
            schema = resolve(entry.spec(version), version)
            decoded = message(name).decode(data, version)
            for path in {*sent_by_object(decoded, schema)}:
                wanted[name, version, path][client or ""] += 1
    traffic = read_traffic(write_analysis(tmp_path, tables))
    seen: dict[tuple[str, int, str], Counter[str]] = {
        (name, version, path): Counter(dict(senders.named))
        for (name, version), sent in traffic.sent.items()
        for path, senders in sent.fields.items()
        if senders.named
    }
    assert {key: value for key, value in wanted.items() if "ecords" not in key[2]} == {
        key: value for key, value in seen.items() if "ecords" not in key[2]
    }
    assert len(wanted) > 300
    assert sum(one.messages for one in traffic.sent.values()) == sum(map(len, tables.values()))


def test_those_that_send_most_are_named_and_the_others_counted(tmp_path: Path) -> None:
    data = message("HeartbeatRequest")(group_id="g").encode(4)
    rows: list[tuple[str | None, int, bytes]] = [
        (f"client-{n}", 4, data) for n in range(6) for _ in range(6 - n)
    ]
    sent = read_traffic(write_analysis(tmp_path, {"HeartbeatRequest": rows})).of(
        "HeartbeatRequest", 4
    )
    assert sent is not None
    assert [name for name, _ in sent.senders.named] == [f"client-{n}" for n in range(MOST_CLIENTS)]
    assert (sent.senders.others, sent.messages) == (2, 21)
    assert sent.fields["GroupId"] == sent.senders
    assert sent.fields["GenerationId"] == Senders((), 0)


def test_without_an_analysis_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FlexwireError, match="contains no flexwire tables"):
        read_traffic(tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_a_page_says_who_sends_a_field_and_where_it_came_from() -> None:
    evil = "</td><script>alert(1)</script>"
    fields = {"GroupId": Senders(((evil, 2),), 3), "MemberId": Senders((), 0)}
    sent = VersionTraffic(9, Senders((("a", 7), ("b", 2)), 0), fields)
    bundled = catalog()
    traffic = GuideTraffic({("HeartbeatRequest", 4): sent})
    pages = render(bundled_messages(bundled), "all", bundled.releases, traffic)
    text = pages[page_of("HeartbeatRequest")]
    assert evil not in text
    assert "alert(1)&lt;/script&gt; (2) and 3 more clients" in text
    assert "a (7), b (2): 9 messages" in text
    assert text.count(">nobody<") == 1
    assert "nobody in the capture" in text
    assert ">from v" not in text
    fetch = pages[page_of("FetchRequest")]
    assert "from v13, in 3.1.2" in fetch


@pytest.mark.long
@pytest.mark.slow
def test_the_command_takes_an_analysis(tmp_path: Path) -> None:
    data = message("HeartbeatRequest")(group_id="g").encode(4)
    analysis = write_analysis(tmp_path / "analysis", {"HeartbeatRequest": [("billing", 4, data)]})
    asked = ["schema", "docs", "release:4.4.0", "--capture", str(analysis), "--out"]
    answer = CliRunner().invoke(app, [*asked, str(tmp_path / "guide")])
    assert answer.exit_code == 0, answer.output
    page = (tmp_path / "guide" / "api" / "Heartbeat.html").read_text(encoding="utf-8")
    assert "billing (1): 1 message" in page
    refused = CliRunner().invoke(app, [*asked, str(tmp_path / "md"), "--format", "markdown"])
    assert refused.exit_code == 2
