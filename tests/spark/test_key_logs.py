"""An analysis of TLS with a key log is that of the same connections without TLS."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.tls.decryption import NO_SECRET
from flexwire.errors import CaptureError
from flexwire.facts.facts import TlsReason
from flexwire.spark.analyze import analyze
from tests.capture.traffic import request
from tests.tls import Authority
from tests.tls_streams import capture, contexts, converse, packets

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.tls_streams import Flight

pytestmark = pytest.mark.spark

VERSIONS = bytes.fromhex("0000000a00000000000000000000")


def test_the_tables_are_those_of_plain_connections(spark: SparkSession, tmp_path: Path) -> None:
    exchanges: list[Flight] = []
    for number in range(5):
        answer = number.to_bytes(4) + VERSIONS[8:]
        exchanges += [
            ("request", request(number)),
            ("response", len(answer).to_bytes(4) + answer),
        ]
    authority = Authority(tmp_path / "authority")
    near, far = contexts(authority, tmp_path / "keys.log", ssl.TLSVersion.TLSv1_3)
    one, _ = converse(near, far, exchanges)
    other, _ = converse(*contexts(authority, None, ssl.TLSVersion.TLSv1_3), exchanges)
    found = packets(one.flights) + packets(other.flights, start=500_000)
    path = capture(tmp_path / "tls.pcapng", found)
    secret = (tmp_path / "keys.log").read_text(encoding="ascii").split()[-1]

    done = analyze([path], tmp_path / "out" / "tls", spark=spark, keys=[tmp_path / "keys.log"])
    plain = capture(tmp_path / "plain.pcapng", packets(exchanges))
    beside = analyze([plain], tmp_path / "out" / "plain", spark=spark)

    told = done.facts.tls
    assert told is not None
    assert (told.opened, told.partly_opened, told.not_opened) == (1, 0, 1)
    assert told.unopened == (TlsReason(NO_SECRET, 1),)
    assert told.sources == (str(path),)
    assert done.facts.totals.frames == beside.facts.totals.frames == len(exchanges)
    assert done.facts.totals.bytes == beside.facts.totals.bytes
    assert done.facts.totals.decode_failures == beside.facts.totals.decode_failures == 0
    assert done.facts.connections.not_kafka == 1
    columns = ["connection", "direction", "frame_index", "size", "api_key", "correlation_id"]
    frames, same = (spark.read.parquet(str(x.tables.frames)) for x in (done, beside))
    rows = [row for row in frames.select(columns).collect() if row.api_key is not None]
    assert sorted(rows) == sorted(same.select(columns).collect())

    report = done.report.read_text(encoding="utf-8")
    assert NO_SECRET in report
    assert secret not in report + json.dumps(done.facts.to_json()) + "".join(done.notes)
    assert any(NO_SECRET in note for note in done.notes)
    # Nothing plain is left but the output.
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["plain", "tls"]


def test_nothing_is_left_of_what_failed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "no.pcapng").write_bytes(b"no capture at all")
    (tmp_path / "keys.log").write_text("# empty\n", encoding="ascii")
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        analyze(
            [tmp_path / "no.pcapng"],
            tmp_path / "out" / "x",
            spark=spark,
            keys=[tmp_path / "keys.log"],
        )
    assert list((tmp_path / "out").glob(".flexwire-opened-*")) == []
