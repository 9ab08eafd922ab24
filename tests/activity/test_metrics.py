"""`flexwire who` writes the activity of connections as OpenMetrics for a monitor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from flexwire.activity.connections import ActivityTable
from flexwire.activity.metrics import OTHERS, ActivityMetrics
from tests.activity.made import capture_files, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.activity.connections import ConnectionActivity


def told(metrics: ActivityMetrics) -> dict[str, int]:
    text = metrics.render().decode()
    assert text.endswith("# EOF\n")
    samples = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len({name for name, _ in samples}) == len(samples)
    return {name: int(value) for name, value in samples}


def total(samples: Mapping[str, int], name: str) -> int:
    return sum(value for key, value in samples.items() if key.partition("{")[0] == name)


def begin(table: ActivityTable, number: int, client_id: str, **counts: int) -> ConnectionActivity:
    row = table.row(f"10.0.0.9:{number}>10.0.0.1:9092", "10.0.0.9", "10.0.0.1", (1, 2))
    row.is_kafka = True
    row.note_client(client_id)
    for name, count in counts.items():
        setattr(row, name, count)
    return row


@pytest.mark.parametrize("most", [1, 2, 1000])
def test_sums_are_those_of_the_list_whatever_the_bound_is(most: int) -> None:
    reader = listed(capture_files("everything"))
    samples = told(ActivityMetrics(reader.table, most))
    rows = list(reader)
    assert total(samples, "flexwire_who_requests_total") == sum(row.requests for row in rows)
    assert total(samples, "flexwire_who_errors_total") == sum(row.errors for row in rows)
    sent = sum(row.request_bytes or 0 for row in rows)
    assert total(samples, "flexwire_who_request_bytes_total") == sent
    series = [name for name in samples if name.startswith("flexwire_who_requests_total")]
    # One additional row counts all other clients together.
    assert len(series) <= most + 1


def test_a_counter_never_falls_though_connections_are_forgotten() -> None:
    table = ActivityTable(most=3)
    metrics = ActivityMetrics(table)
    requests, before = 0, 0
    for number in range(20):
        row = begin(table, number, "billing", requests=number)
        requests += number
        if number % 5 == 0:
            told(metrics)
        row.requests += 1
        requests += 1
        if number % 3 == 0:
            row.end("client", is_reset=False)
            table.close(row.connection)
            table.forget_closed()
        now = total(told(metrics), "flexwire_who_requests_total")
        assert now == requests >= before
        before = now
    assert total(told(metrics), "flexwire_who_left_out_connections_total") == table.left_out > 0


def test_a_connection_that_gives_its_client_id_late_counts_from_then_on() -> None:
    table = ActivityTable()
    metrics = ActivityMetrics(table)
    row = begin(table, 1, "", requests=3)
    told(metrics)
    row.note_client("late")
    row.requests = 5
    counts = {name: value for name, value in told(metrics).items() if "requests_total" in name}
    assert sorted(counts.values()) == [2, 3]


def test_names_of_strangers_end_no_line_and_no_label() -> None:
    table = ActivityTable()
    begin(table, 1, 'a"} 1\n# EOF\n\\', requests=1)
    begin(table, 2, "\ud800", requests=1)
    text = ActivityMetrics(table).render().decode()
    assert text.splitlines().count("# EOF") == 1
    labels = r'\{client_id="(?:[^"\\\n]|\\["\\n])*",software="",software_version=""\}'
    for sample in [line for line in text.splitlines() if "{" in line]:
        assert re.fullmatch(rf"[a-z_]+{labels} \d+", sample), sample


def test_clients_beyond_the_bound_share_a_series() -> None:
    table = ActivityTable()
    for number in range(5):
        begin(table, number, f"client-{number}", requests=1)
    samples = told(ActivityMetrics(table, 2))
    shared = f'flexwire_who_requests_total{{client_id="{OTHERS.client_id}",software="",'
    assert samples[f'{shared}software_version=""}}'] == 3
    assert total(samples, "flexwire_who_connections") == 5


def test_request_logs_have_no_sizes() -> None:
    table = ActivityTable()
    row = begin(table, 1, "c", requests=1)
    row.request_bytes = row.response_bytes = None
    assert "bytes" not in ActivityMetrics(table).render().decode()
