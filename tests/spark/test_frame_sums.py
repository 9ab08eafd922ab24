"""Sums of frames and connections equal the reference's facts, no matter how rows are divided."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flexwire.capture.pairing.state import NOT_KAFKA
from flexwire.facts.facts import LATENCY_EDGES_MS
from flexwire.measures.analysis import bucket_us
from flexwire.measures.connections import SHOWN, ConnectionSums
from flexwire.measures.counters import MOST_DIFFERENT
from flexwire.measures.failures import (
    DIFFERENT_REASONS,
    FAILURES,
    SHOWN_FAILURES,
    FailureSums,
    ReasonCounts,
)
from flexwire.measures.frames import FrameSums
from flexwire.measures.groups import RowGroups, coded
from flexwire.protocol import WITHHELD
from flexwire.storage.file_search import list_captures
from flexwire.survey.ranges import FRAMES, decode_range
from flexwire.survey.survey import AnalysisRequest, Surveyor
from flexwire.tables.frames import connection_rows, packet_rows
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, PACKETS_TABLE
from tests.capture.interleaved import CLEAN, EVERYTHING, LOSSY, STRANGE, write_capture
from tests.reference import facts as reference_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

S = TypeVar("S", FrameSums, ConnectionSums, FailureSums, ReasonCounts)

SHAPES = {"CLEAN": CLEAN, "LOSSY": LOSSY, "STRANGE": STRANGE, "EVERYTHING": EVERYTHING}
WIDTH_US = 1000
START_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Captured:
    """The rows of a capture's tables. ``packets`` contains the rows of the table of packets."""

    frames: pa.RecordBatch
    connections: pa.RecordBatch
    packets: pa.RecordBatch

    def of_files(self) -> dict[str, int]:
        rows = self.packets.to_pylist()
        return {row["source"]: row["packets"] for row in rows if row["reason"] is None}

    def skipped(self) -> int:
        rows = self.packets.to_pylist()
        return sum(row["packets"] for row in rows if row["reason"] is not None)

    def span_us(self) -> int:
        is_kafka = pc.not_equal(self.frames["outcome"], NOT_KAFKA)
        times = self.frames.filter(is_kafka)["time"].cast(pa.int64()).to_pylist()
        span: int = max(times) - min(times)
        return span


@pytest.fixture(scope="module", params=sorted(SHAPES))
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    files = write_capture(tmp_path_factory.mktemp("capture"), 3, SHAPES[request.param])
    asked = AnalysisRequest(tuple(list_captures(files)), chunk_bytes=1 << 14)
    kept: dict[str, bytes] = {}
    survey = Surveyor(asked, kept.__setitem__).run()
    assert survey.ranges == 1
    batches = [rows for name, rows in decode_range(asked, 0, kept.__getitem__) if name == FRAMES]
    return Captured(
        pa.concat_batches(batches), connection_rows(survey.connections), packet_rows(survey.notes)
    )


def rows_of(columns: dict[str, list[Any]]) -> pa.RecordBatch:
    """Return rows of the table of frames. Missing columns take the values of a plain request."""
    count = len(next(iter(columns.values())))
    plain: dict[str, list[Any]] = {
        "time": [START_US] * count,
        "connection": ["10.0.0.9:4000>10.0.0.1:9092"] * count,
        "broker": ["10.0.0.1:9092"] * count,
        "direction": ["request"] * count,
        "frame_index": list(range(count)),
        "message": ["FetchRequest"] * count,
        "api_key": [1] * count,
        "api_version": [4] * count,
        "size": [100] * count,
        "outcome": ["decoded"] * count,
        "withheld_credentials": [0] * count,
        "source": ["a.pcap"] * count,
    }
    given = plain | columns
    arrays = [
        pa.array(given[one.name], pa.int64()).cast(one.type)
        if one.name == "time"
        else pa.array(given.get(one.name, [None] * count), one.type)
        for one in FRAMES_TABLE
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAMES_TABLE)


def summed(sums: S, rows: Any) -> S:
    """Return the sums of all rows, added in one step."""
    sums.add(rows)
    return sums


def moved(sums: S) -> S:
    """Return the sums as another process receives them."""
    there: S = pickle.loads(pickle.dumps(sums))  # noqa: S301 - this line also pickled the data
    return there


def cut(source: random.Random, rows: pa.RecordBatch, empty: S) -> S:
    """Return the sums of the rows in random batches and parts, merged in random order."""
    batches = []
    start = 0
    while start < len(rows):
        size = source.randint(1, 1 + len(rows) // source.randint(1, 12))
        batches.append(rows.slice(start, size))
        start += size
    source.shuffle(batches)
    parts = [moved(empty) for _ in range(source.randint(1, 6))]
    for one in batches:
        source.choice(parts).add(one)
    while len(parts) > 1:
        one = parts.pop(source.randrange(len(parts)))
        source.choice(parts).merge(moved(one))
    return parts[0]


def in_order(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=repr)


def told(sums: FrameSums, captured: Captured) -> dict[str, Any]:
    """Return all facts about frames; sort those without a fixed order."""
    return {
        "totals": sums.totals(skipped_packets=captured.skipped()),
        "withheld": sums.withheld_credentials(),
        "timeline": sums.timeline(),
        "sources": in_order(sums.sources(captured.of_files())),
        "apis": in_order(sums.apis()),
        "clients": in_order(sums.clients()),
        "version_uses": in_order(sums.version_uses()),
        "failures": in_order(sums.failures.earliest()),
        "failure_counts": sums.failures.counts(),
        "lenient_uses": sums.lenient_uses(),
    }


def by_reference(rows: pa.RecordBatch, packets: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute the same facts in plain Python over all rows."""
    tables = {"frames": rows.to_pylist(), "packets": packets, "connections": [], "records": []}
    found: dict[str, Any] = reference_facts.facts(tables)
    return found


@pytest.mark.slow
def test_the_sums_of_frames_are_those_of_the_reference(captured: Captured) -> None:
    width = bucket_us(captured.span_us())
    sums = told(cut(random.Random(1), captured.frames, FrameSums(width)), captured)
    sums["withheld_credentials"] = sums.pop("withheld")
    found = reference_facts.ordered(msgspec.to_builtins(sums))
    for name, value in by_reference(captured.frames, captured.packets.to_pylist()).items():
        if name in found:
            assert found.pop(name) == value, name
    assert found == {}
    assert sums["totals"].frames
    assert sums["apis"]


def test_the_sums_of_connections_are_those_of_the_reference(captured: Captured) -> None:
    found = cut(random.Random(1), captured.connections, ConnectionSums()).facts()
    expected = reference_facts.connections(captured.connections.to_pylist())
    assert json.loads(msgspec.json.encode(found)) == expected


def test_percentiles_and_buckets_are_those_of_the_reference() -> None:
    numbers = [1, 2, 3, 4, 9, 10, 11, 99, 100, 101, 1000]
    latencies = {number: [*range(1, number + 1)] for number in numbers}
    edges = [round(edge * 1000) for edge in LATENCY_EDGES_MS]
    latencies[20] = [edge + off for edge in edges for off in (-1, 0, 1)]
    latencies[21] = [0, -5, -2, 0, 10**12]
    latencies[22] = [7] * 30 + [8] * 3
    rows = rows_of(
        {
            "api_key": [key for key, some in latencies.items() for _ in some],
            "latency_us": [one for some in latencies.values() for one in some],
        }
    )
    sums = cut(random.Random(1), rows, FrameSums(WIDTH_US))
    found = reference_facts.ordered({"apis": msgspec.to_builtins(sums.apis())})
    assert found["apis"] == by_reference(rows, [])["apis"]


@pytest.mark.slow
def test_however_frames_are_cut_the_facts_are_the_same(captured: Captured) -> None:
    whole = told(summed(FrameSums(WIDTH_US), captured.frames), captured)
    for seed in range(25):
        source = random.Random(seed)
        assert told(cut(source, captured.frames, FrameSums(WIDTH_US)), captured) == whole


def test_however_connections_are_cut_the_facts_are_the_same(captured: Captured) -> None:
    whole = summed(ConnectionSums(), captured.connections).facts(("port 9092",))
    assert whole.given == ("port 9092",)
    for seed in range(25):
        source = random.Random(seed)
        found = cut(source, captured.connections, ConnectionSums())
        assert found.facts(("port 9092",)) == whole


def test_nothing_has_no_facts() -> None:
    sums = summed(FrameSums(WIDTH_US), rows_of({"time": []}))
    sums.add(rows_of({"outcome": [NOT_KAFKA]}))
    sums.merge(FrameSums(WIDTH_US))
    assert sums.totals().first_time_us is None
    assert sums.totals().frames == sums.totals().connections == 0
    for nothing in (
        sums.timeline().buckets,
        sums.apis(),
        sums.clients(),
        sums.version_uses(),
        sums.failures.earliest(),
        sums.failures.counts(),
        sums.lenient_uses(),
    ):
        assert nothing == ()
    assert [one.frames for one in sums.sources({"a.pcap": 3})] == [0]
    no_connections = pa.RecordBatch.from_pylist([], CONNECTIONS_TABLE)
    assert summed(ConnectionSums(), no_connections).facts().not_kafka == 0


def test_each_frame_counts_where_it_belongs() -> None:
    rows = rows_of(
        {
            "time": [START_US, START_US + 999, START_US + 1000, START_US + 1001],
            "direction": ["request", "response", "response", "request"],
            "message": ["FetchRequest", "FetchResponse", None, None],
            "api_key": [1, 1, None, None],
            "api_version": [4, 4, None, None],
            "connection": ["a", "a", "b", "c"],
            "outcome": ["decoded", "decoded", "unpaired", "failed"],
            "error": [None, None, None, "cut off"],
            "answered": [True, None, None, False],
            "latency_us": [None, 999, None, None],
            "size": [10, 20, 30, 40],
        }
    )
    sums = summed(FrameSums(WIDTH_US), rows)
    slices = [
        (one.time_us, one.request_bytes, one.response_bytes, one.frames)
        for one in sums.timeline().buckets
    ]
    assert slices == [(START_US, 10, 20, 2), (START_US + 1000, 40, 30, 2)]
    (client,), (use,), (api,) = sums.clients(), sums.version_uses(), sums.apis()
    assert (client.connections, client.requests, client.bytes_received, client.apis) == (
        1,
        1,
        20,
        1,
    )
    assert (use.api_name, use.version, use.requests) == ("Fetch", 4, 1)
    assert (api.requests, api.responses, api.failures, api.versions) == (1, 1, 0, (4,))
    totals = sums.totals(undecodable_records=2, skipped_packets=7)
    assert (totals.first_time_us, totals.last_time_us) == (START_US, START_US + 1001)
    assert (totals.connections, totals.clients, totals.unanswered_requests) == (3, 1, 1)
    assert (totals.unpaired_responses, totals.decode_failures, totals.skipped_packets) == (1, 3, 7)


def test_sums_over_other_slices_do_not_merge() -> None:
    with pytest.raises(ValueError, match="slices of the same width"):
        FrameSums(1000).merge(FrameSums(2000))


def test_many_latencies_keep_four_digits_and_their_order_means_nothing() -> None:
    source = random.Random(2)
    values = [int(source.lognormvariate(10, 3)) for _ in range(40_000)]
    assert len(set(values)) > MOST_DIFFERENT
    rows = rows_of({"latency_us": values, "api_key": [source.choice([1, 1, 3]) for _ in values]})
    whole = in_order(summed(FrameSums(WIDTH_US), rows).apis())
    for seed in range(5):
        assert in_order(cut(random.Random(seed), rows, FrameSums(WIDTH_US)).apis()) == whole
    for one in whole:
        some = sorted(rows.filter(pc.equal(rows["api_key"], one.api_key))["latency_us"].to_pylist())
        latency = one.latency
        assert (latency.count, latency.min_ms, latency.max_ms) == (
            len(some), some[0] / 1000, some[-1] / 1000,
        )  # fmt: skip
        for share, found in ((0.5, latency.p50_ms), (0.9, latency.p90_ms), (0.99, latency.p99_ms)):
            exact = some[math.ceil(share * len(some)) - 1] / 1000
            assert math.isclose(found, exact, rel_tol=0.0005)
        for bucket in latency.histogram:
            within = [value for value in some if bucket.low_ms <= value / 1000 < bucket.high_ms]
            assert bucket.count == len(within) or bucket.low_ms == 0
    assert any(one.latency.p99_ms * 1000 % 10 == 0 for one in whole)
    assert len(pickle.dumps(summed(FrameSums(WIDTH_US), rows))) < 1_000_000


def test_latencies_that_were_rounded_round_those_that_they_merge_with() -> None:
    values = [1_000_000 + number for number in range(MOST_DIFFERENT + 1)]
    many = summed(FrameSums(WIDTH_US), rows_of({"latency_us": values}))
    few = summed(FrameSums(WIDTH_US), rows_of({"latency_us": [123_456] * 3 * len(values)}))
    one, other = moved(many), moved(few)
    one.merge(few)
    other.merge(many)
    assert one.apis() == other.apis()
    (api,) = one.apis()
    assert api.latency is not None
    assert (api.latency.min_ms, api.latency.p50_ms) == (123.456, 123.5)


def test_as_many_latencies_as_are_kept_are_exact() -> None:
    values = [123_451 + 7 * number for number in range(MOST_DIFFERENT)]
    (api,) = cut(random.Random(1), rows_of({"latency_us": values}), FrameSums(WIDTH_US)).apis()
    assert api.latency is not None
    assert api.latency.p50_ms == values[MOST_DIFFERENT // 2 - 1] / 1000


def failed(count: int, **columns: list[Any]) -> pa.RecordBatch:
    told = {"outcome": ["failed"] * count, "error": ["cut off"] * count} | columns
    return rows_of(told)


def test_the_earliest_failures_are_kept_where_all_are_at_once_too() -> None:
    source = random.Random(1)
    count = 5 * SHOWN_FAILURES
    times = [START_US + source.randrange(3) for _ in range(count)]
    rows = failed(count, time=times, bytes=[bytes([one % 256]) * 100 for one in range(count)])
    whole = summed(FrameSums(WIDTH_US), rows).failures.earliest()
    assert [one.time_us for one in whole] == sorted(times)[:SHOWN_FAILURES]
    # At equal times, connection, direction and place, in this order, decide which frame is first.
    places = [place for place, time in enumerate(times) if time == START_US][:SHOWN_FAILURES]
    assert [one.sample_hex for one in whole] == [f"{one % 256:02x}" * 64 for one in places]
    for seed in range(10):
        found = cut(random.Random(seed), rows, FrameSums(WIDTH_US)).failures
        assert found.earliest() == whole
        assert [(one.reason, one.count) for one in found.counts()] == [("cut off", count)]


def test_a_sample_is_withheld_where_credentials_may_be() -> None:
    sample = [None, None, b"\x00\xff"]
    sums = summed(FrameSums(WIDTH_US), failed(3, bytes=sample, withheld_credentials=[1, 0, 1]))
    assert [one.sample_hex for one in sums.failures.earliest()] == [WITHHELD, "", "00ff"]
    assert sums.withheld_credentials() == 2


def test_other_failures_may_be_added() -> None:
    sums = summed(FrameSums(WIDTH_US), failed(2))
    rows = failed(1, time=[START_US - 1], error=["no batch"]).select(FAILURES.names)
    sums.failures.merge(summed(FailureSums(), rows))
    assert [one.reason for one in sums.failures.earliest()] == ["no batch", "cut off", "cut off"]
    assert sums.totals(undecodable_records=1).decode_failures == 3


def test_reasons_that_differ_in_figures_are_one() -> None:
    errors = ["byte 5: cut off", "byte 7: cut off", "tag 4", "tag 4", "tag ٤", "none"]
    rows = failed(len(errors), error=errors)
    for seed in range(10):
        counts = cut(random.Random(seed), rows, FrameSums(WIDTH_US)).failures.counts()
        assert [(one.reason, one.count) for one in counts] == [
            ("byte …: cut off", 2), ("tag 4", 2), ("none", 1), ("tag ٤", 1),
        ]  # fmt: skip


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_a_capture_that_makes_up_reasons_is_counted_and_bounded() -> None:
    kept, count = 500, 5000
    errors = [letters(number) for number in range(count)] + ["frequent"] * 60
    random.Random(3).shuffle(errors)
    rows = failed(len(errors), error=errors)
    expected = Counter(errors)
    sums = ReasonCounts(kept)
    for start in range(0, len(rows), 50):
        part = ReasonCounts(kept)
        part.add(RowGroups(coded(rows["error"].slice(start, 50))))
        sums.merge(part)
    frequent, rest = sums.most_frequent()
    assert len(frequent) == DIFFERENT_REASONS
    assert frequent[0] == ((), "frequent", expected["frequent"])
    assert sum(one[2] for one in frequent) + rest == len(errors)
    assert len(moved(sums)._counts) <= 2 * kept
    assert sums.uncounted
    twice = moved(sums)
    twice.merge(sums)
    frequent, rest = twice.most_frequent()
    assert sum(one[2] for one in frequent) + rest == 2 * len(errors)
    counts = summed(FailureSums(), rows.select(FAILURES.names)).counts()
    assert counts[-1].reason == "other reasons"
    assert sum(one.count for one in counts) == len(errors)


def test_groups_are_told_apart_where_a_number_for_each_does_not_fit() -> None:
    # Six columns with 2 ** 12 values each: in 64 bits, a factor of 2 ** 60 would overwrite the
    # first column.
    rows = [(number,) * 6 for number in range(1 << 12)]
    rows += [(number, 0, 0, 0, 0, 0) for number in range(16, 1 << 12, 16)]
    groups = RowGroups(*(coded(pa.array(column)) for column in zip(*rows, strict=True)))
    assert sorted(groups.values()) == sorted(rows)
    assert groups.counts() == [1] * len(rows)


def test_the_largest_of_very_many_connections_are_shown(captured: Captured) -> None:
    one = captured.connections.to_pylist()[0] | {"is_kafka": False, "response_bytes": 0}
    source = random.Random(1)
    many = [
        one | {"connection": f"connection {number}", "request_bytes": source.randrange(0, 50)}
        for number in range(10 * SHOWN)
    ]
    rows = pa.RecordBatch.from_pylist(many, CONNECTIONS_TABLE)
    facts = cut(source, rows, ConnectionSums()).facts()
    carried = sorted((-row["request_bytes"], row["connection"]) for row in many)
    assert [-one.request_bytes for one in facts.others] == [size for size, _ in carried[:SHOWN]]
    assert facts.silent == sum(row["request_bytes"] == 0 for row in many)
    assert facts.not_kafka == len(many) - facts.silent


def test_connections_are_silent_or_unread_or_others() -> None:
    rows = [
        {
            "connection": f"{carried} {is_kafka} {reads}",
            "request_bytes": carried,
            "response_bytes": 2 * carried,
            "request_frames": 1,
            "response_frames": 3,
            "is_kafka": is_kafka,
            "reads_as_kafka": reads,
        }
        for carried in (0, 5, 6)
        for is_kafka in (False, True)
        for reads in (False, True)
    ]
    facts = summed(ConnectionSums(), pa.RecordBatch.from_pylist(rows, CONNECTIONS_TABLE)).facts()
    assert (facts.silent, facts.unread, facts.not_kafka) == (4, 2, 4)
    assert (facts.not_kafka_frames, facts.not_kafka_bytes) == (16, 2 * 15 + 2 * 18)
    assert [one.request_bytes for one in facts.others] == [6, 6, 5, 5]


def test_a_kafka_connection_without_client_id_and_beginning_is_nameless() -> None:
    rows = [
        {
            "connection": f"{number} {client} {is_kafka} {begins}",
            "client_id": client,
            "seen_from_start": begins,
            "is_kafka": is_kafka,
            "request_frames": number,
            "response_frames": 1,
            "request_bytes": 9,
            "response_bytes": 9,
            "reads_as_kafka": is_kafka,
        }
        for number in (0, 1, 2)
        for client in (None, "", "c")
        for is_kafka in (False, True)
        for begins in (False, True)
    ]
    batch = pa.RecordBatch.from_pylist(rows, CONNECTIONS_TABLE)
    assert summed(ConnectionSums(), batch).facts().nameless == 2
    assert cut(random.Random(4), batch, ConnectionSums()).facts().nameless == 2


def test_slices_are_about_as_many_as_are_drawn() -> None:
    for span in (0, 119_999, 120_000, 10**9, 3_600_000_000, 80 * 86_400_000_000):
        width = bucket_us(span)
        assert span < 120 * width
        assert width == 1000 or span * 3 >= 120 * width
    assert bucket_us(10**18) == 86_400_000_000


def test_a_packets_row_is_of_a_file_or_a_reason(captured: Captured) -> None:
    assert captured.packets.schema == PACKETS_TABLE
    assert set(captured.of_files()) == set(captured.packets["source"].to_pylist())
    assert replace(captured, packets=captured.packets.slice(0, 0)).skipped() == 0
