"""`flexwire records dump` reads the logs of a 4.4 broker, and logs of a given release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.cli.records_dump_options import DumpOptions
from flexwire.cli.records_dump_rows import rows
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.records import Record, encode_batch
from flexwire.schema.catalog import catalog
from tests.capture.log_vectors import BASE, vectors, write_all
from tests.cli.test_records_dump import Run, of
from tests.codec.release_vectors import of_release
from tests.each import each

if TYPE_CHECKING:
    from pathlib import Path

BROKER = "4.4.0"
EARLY = "4.0.2"
FILES = [path for path in vectors() if path.startswith(f"{BROKER}/")]
EARLY_FILES = [path for path in vectors() if path.startswith(f"{EARLY}/")]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("logs")
    write_all(made)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


@each("path", FILES + EARLY_FILES)
def test_nothing_is_wrong_with_what_a_sound_broker_wrote(root: Path, path: str) -> None:
    for release in (None, path.split("/", maxsplit=1)[0]):
        found = rows(root / path, DumpOptions(deep=True, release=release))
        assert of(list(found), "finding") == []


def test_every_record_of_an_internal_topic_is_the_message_of_its_type(root: Path) -> None:
    seen = set()
    for path in FILES:
        topic = path.split("/")[1].rpartition("-")[0]
        if not path.endswith((".log", ".checkpoint")) or not topic.startswith("__"):
            continue
        for row in of(list(rows(root / path, DumpOptions(deep=True))), "record"):
            for content in [row["control"]] if "control" in row else [row["key"], row["value"]]:
                if content is not None:
                    assert "message" in content, (path, row)
                    assert "release" not in content
            for content in (row.get("key"), row.get("value")):
                if content is not None:
                    entry = catalog().entry(content["message"])
                    assert (entry.api_key, entry.last_release) == (content["type"], BROKER)
                    seen.add((topic, content["message"]))
    topics = {one.topic for one in InternalTopic} - {InternalTopic.REMOTE_LOG.topic}
    assert {topic for topic, _ in seen} == topics
    # The broker had groups of every kind of 4.4: classic, consumer, share and streams.
    for kind in ("Group", "ConsumerGroup", "ShareGroup", "StreamsGroup"):
        assert ("__consumer_offsets", f"{kind}MetadataValue") in seen


def test_a_log_of_early_access_is_read_alike_with_its_release_and_without(root: Path) -> None:
    older = set()
    for path in EARLY_FILES:
        known = list(rows(root / path, DumpOptions(deep=True, release=EARLY)))
        guessed = list(rows(root / path, DumpOptions(deep=True)))
        for row, other in zip(known, guessed, strict=True):
            if row["type"] == "record" and row.get("value") is not None and "control" not in row:
                assert "message" in row["value"]
                assert row["value"]["data"] == other["value"]["data"]
                older |= {row["value"]["message"]} if "release" in other["value"] else set()
    assert {"ShareSnapshotValue", "ShareUpdateValue"} <= older


def log_of(release: str, root: Path) -> Path:
    """Write a log of share state in the layout of a given release."""
    by_name = {one.message: one for one in of_release(release)}
    key, value = by_name["ShareSnapshotKey"], by_name["ShareSnapshotValue"]
    record = Record(0, -1, b"\0\0" + key.raw, b"\0\0" + value.raw, [])
    path = root / f"{InternalTopic.SHARE_STATE.topic}-0" / f"{BASE}.log"
    path.parent.mkdir()
    path.write_bytes(encode_batch([record]))
    return path


def test_a_minor_release_is_its_newest_patch(run: Run, tmp_path: Path) -> None:
    path = log_of("4.0.2", tmp_path)
    [row] = of(run.rows(path, "--release", "4.0"), "record")
    assert run.code == 0
    assert row["key"]["message"] == "ShareSnapshotKey"
    assert "createTimestamp" not in row["value"]["data"]
    assert "release" not in row["value"]


def test_without_a_release_what_fits_no_layout_of_today_is_an_older_one(
    run: Run, tmp_path: Path
) -> None:
    path = log_of("4.0.0", tmp_path)
    [row] = of(run.rows(path, "--deep"), "record")
    assert run.code == 0
    assert row["value"]["release"] == catalog().release("4.0")
    assert "ShareSnapshotValue v0 as in 4.0.2 {" in run(path, "--deep").out


def test_another_release_than_the_one_that_wrote_it_is_a_finding(run: Run, tmp_path: Path) -> None:
    found = run.rows(log_of("4.0.2", tmp_path), "--release", "4.1")
    assert run.code == 100
    assert "ShareSnapshotValue v0 at" in of(found, "finding")[0]["reason"]


def test_what_the_release_did_not_have_is_shown_and_no_finding(run: Run, root: Path) -> None:
    path = root / BROKER / "__share_group_state-0" / f"{BASE}.log"
    found = run.rows(path, "--release", "3.9")
    assert run.code == 0
    assert {row["value"]["reason"] for row in of(found, "record")} == {
        "record type 0 is not in 3.9.2",
        "record type 1 is not in 3.9.2",
    }


def test_control_records_are_those_of_the_release_too(run: Run, root: Path) -> None:
    path = next(root / one for one in FILES if one.endswith(".checkpoint"))
    found = of(run.rows(path, "--release", "3.6", "--without", "metadata"), "record")
    assert run.code == 0
    assert found[0]["control"]["message"] == "SnapshotHeaderRecord"
    assert found[1]["value"]["reason"].startswith("KRaftVersionRecord is not in 3.6.2")


def test_a_release_that_there_is_not_names_the_nearest(run: Run, root: Path) -> None:
    run(root / FILES[0], "--release", "4.9")
    assert run.code == 1
    assert run.err == "UnknownMessageError: no release '4.9' in the catalog; the nearest is 4.4.0\n"
