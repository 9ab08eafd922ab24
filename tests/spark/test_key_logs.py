"""An analysis of TLS connections with a key log equals one of the same connections without TLS."""

from __future__ import annotations

import json
import pickle
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from flexwire.capture.tls import KeyLog
from flexwire.capture.tls.decryption import NO_SECRET
from flexwire.errors import CaptureError, StorageError
from flexwire.facts.facts import TlsReason
from flexwire.spark import analyze as analyze_module
from flexwire.spark import tls_job
from flexwire.spark.analyze import analyze
from flexwire.spark.publishing.commit import LARGEST_WORK, run_tasks
from flexwire.storage.output_directory import OutputDirectory
from tests.capture.traffic import request
from tests.tls import Authority
from tests.tls_streams import NEAR, capture, contexts, converse, packets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from flexwire.spark.publishing.task_output import TaskOutput
    from tests.tls_streams import Flight

pytestmark = pytest.mark.spark

VERSIONS = bytes.fromhex("0000000a00000000000000000000")


@pytest.mark.long
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
    # Nothing unencrypted remains except the output.
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["plain", "tls"]


@pytest.mark.long
def test_tasks_open_their_shares_and_no_file_has_the_secrets(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges: list[Flight] = [("request", request(number)) for number in range(5)]
    authority = Authority(tmp_path / "authority")
    made = contexts(authority, tmp_path / "keys.log", ssl.TLSVersion.TLSv1_3)
    found = [
        packet
        for number in range(6)
        for packet in packets(
            converse(*made, exchanges)[0].flights, near=NEAR._replace(port=50_000 + number)
        )
    ]
    path = capture(tmp_path / "tls.pcapng", found)
    lines = (tmp_path / "keys.log").read_text("ascii").splitlines()
    secrets = [bytes.fromhex(line.split()[2]) for line in lines if not line.startswith("#")]
    assert len(secrets) >= 6
    rows: list[Any] = []
    seen: list[bytes] = []
    work: list[tuple[int, str, bytes]] = []
    run = run_tasks

    def running(own: SparkSession, count: int, task: Any, output: TaskOutput) -> Any:
        packed: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]  # it has no types
        work.append((count, repr(task), packed))
        seen.extend(contents(output))
        done = run(own, count, task, output)
        seen.extend(contents(output))
        return done

    monkeypatch.setattr(tls_job, "run_tasks", running)
    for shares in (1, 3):
        monkeypatch.setattr(analyze_module, "count_shares", lambda *_, shares=shares: shares)
        done = analyze([path], tmp_path / f"out{shares}", spark=spark, keys=[tmp_path / "keys.log"])
        assert done.facts.tls is not None
        assert done.facts.tls.opened == 6
        columns = ["connection", "direction", "frame_index", "time", "size", "outcome"]
        table = spark.read.parquet(str(done.tables.frames)).select(columns)
        rows.append(sorted(table.collect()))
    assert rows[0] == rows[1]
    assert len(rows[0]) == 30
    assert [count for count, *_ in work] == [1, 3]
    for data in (*seen, *(packed for *_, packed in work)):
        for secret in secrets:
            assert secret not in data
            assert secret.hex().encode() not in data
    for _, told, packed in work:
        key = tls_job_key(packed)
        assert key not in b"".join(seen)
        assert repr(key) not in told
        # A larger object would be sent in a file.
        assert len(packed) < LARGEST_WORK // 100


def contents(output: TaskOutput) -> Iterator[bytes]:
    """Yield the content of the files that a job left behind."""
    for one in Path(output.directory.url).rglob("*"):
        if one.is_file():
            yield one.read_bytes()


def tls_job_key(packed: bytes) -> bytes:
    """Return the key that is sent with the tasks."""
    sealed = pickle.loads(packed).args[0]  # noqa: S301 - our own bytes
    assert isinstance(sealed, tls_job.SealedKeys)
    return sealed.key


def test_a_file_of_keys_that_somebody_else_wrote_is_refused(tmp_path: Path) -> None:
    keys = KeyLog()
    keys.add(b"CLIENT_RANDOM " + b"01" * 32 + b" " + b"02" * 48)
    sealed = tls_job.SealedKeys.seal(keys, OutputDirectory(str(tmp_path)))
    assert sealed.read() == keys
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    for other in (data[:-1], b"", bytes(len(data))):
        file.write_bytes(other)
        with pytest.raises(StorageError, match="the file was changed after the driver wrote it"):
            sealed.read()


@pytest.mark.parametrize(
    ("total", "at_once", "expected"),
    [(0, 8, 1), (100 << 20, 8, 3), (1 << 40, 5, 5), (1 << 40, 99, 8)],
)
def test_as_many_tasks_open_captures_as_have_enough_to_do(
    total: int, at_once: int, expected: int
) -> None:
    assert tls_job.count_shares(total, at_once) == expected


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
