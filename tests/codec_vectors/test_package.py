"""The vector package: its format, its builder, and the content of the kept package."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from collections import Counter
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from flexwire.codec import message
from flexwire.codec.samples import Boundary, boundary_message, filled_message
from flexwire.errors import VectorsError
from flexwire.schema.catalog import catalog
from flexwire.vectors import Expected, Vector, read_package
from flexwire.vectors.package import INSTALLED, MANIFEST, json_schema
from tests.codec_vectors.kept import FEW, GZIPS, KEPT, few, judge, vectors
from tools import vectors_package
from tools.vectors_package import RELEASE, Contradiction, build, judged
from tools.vectors_proposals import Proposal, header_proposals, proposals, record_proposals
from tools.vectors_wheel import wheel, wheel_name

if TYPE_CHECKING:
    from pathlib import Path


def _built() -> dict[str, bytes]:
    return build(judge, few().manifest.jars, vectors_package.FEW, vectors_package.FEW_BATCHES)


def test_the_builder_makes_the_kept_package_of_what_kafka_said() -> None:
    built = _built()
    for name in GZIPS:
        # Another zlib may compress differently, so only the lines are compared.
        assert gzip.decompress(built[name]) == gzip.decompress((FEW / name).read_bytes()), name
    assert built[MANIFEST] == (FEW / MANIFEST).read_bytes()


def test_the_same_specs_give_the_same_bytes_twice() -> None:
    first, second = _built(), _built()
    assert first == second
    assert wheel(first, "1") == wheel(second, "1")


def test_what_the_repository_keeps_is_small() -> None:
    assert sum(one.stat().st_size for one in KEPT.rglob("*") if one.is_file()) < 400_000


@pytest.mark.long
@pytest.mark.slow
def test_every_version_of_every_message_has_cases() -> None:
    found = Counter((one.facts["message"], one.facts["version"]) for one in proposals(RELEASE))
    every = {
        (name, version)
        for name in catalog().names()
        for version in catalog().entry(name).releases.get(RELEASE, ())
    }
    assert set(found) == every
    assert len(every) == 744
    kept = msgspec.json.decode((KEPT / MANIFEST).read_bytes())
    [messages, hostile, headers, records] = kept["files"]
    assert messages["cases"] + hostile["cases"] == found.total()
    assert headers["cases"] == sum(1 for _ in header_proposals(RELEASE))
    assert records["cases"] == sum(1 for _ in record_proposals())


@pytest.mark.long
@pytest.mark.slow
def test_a_case_has_one_name_and_its_bytes_are_unique_in_its_version() -> None:
    every = [*proposals(RELEASE), *header_proposals(RELEASE), *record_proposals()]
    assert len({one.case for one in every}) == len(every)
    of_messages = [(one.case.split("/")[:2], one.data) for one in proposals(RELEASE)]
    assert len({(*stem, data) for stem, data in of_messages}) == len(of_messages)


@pytest.mark.long
@pytest.mark.slow
def test_each_kind_of_case_is_there() -> None:
    kinds = Counter(one.case.split("/", 2)[2] for one in proposals(RELEASE))
    every = {"plain", "full", "unknown-tags", "random-0", "random-1"}
    every |= {f"boundary/{one}" for one in Boundary}
    damages = ("cut", "appended", "length", "varint", "value", "tags", "flipped", "version")
    every |= {f"hostile/{one}-{turn}" for one in damages for turn in (0, 1)}
    assert set(kinds) == every
    # If a message has no fields, all its valid cases are the same.
    assert kinds["plain"] == 744


def test_batches_are_of_every_magic_and_compression() -> None:
    named = {tuple(one.case.split("/")[1].split("-")[1:3]) for one in record_proposals()}
    codecs = ("none", "gzip", "snappy", "lz4")
    assert named == {(m, c) for m in "012" for c in codecs} | {("2", "zstd")}


@pytest.mark.parametrize("boundary", Boundary)
def test_a_message_at_a_boundary_reads_back(boundary: Boundary) -> None:
    for name in vectors_package.FEW:
        kind = message(name, RELEASE)
        for version in kind.entry.releases[RELEASE]:
            sample = boundary_message(kind, version, boundary)
            assert kind.decode(sample.encode(version), version) == sample


def test_the_ends_of_ranges_are_on_the_wire() -> None:
    kind = message("HeartbeatRequest", RELEASE)
    highest = boundary_message(kind, 4, Boundary.HIGHEST).encode(4)
    # The compact length of 127 bytes of text is 128, which takes two bytes.
    assert highest.startswith(b"\x80\x01" + "é".encode() * 63 + b"z" + b"\x7f\xff\xff\xff")
    assert boundary_message(kind, 4, Boundary.LOWEST).encode(4).startswith(b"\x7f" + b"a" * 126)
    assert boundary_message(kind, 4, Boundary.EMPTY).encode(4) == b"\1\0\0\0\0\1\1\0"
    assert boundary_message(kind, 4, Boundary.NULL).encode(4).endswith(b"\x09memberId\0\0")
    told: Any = boundary_message(message("MetadataResponse", RELEASE), 12, Boundary.HIGHEST)
    assert [len(told.brokers), len(told.topics[0].partitions[0].replica_nodes)] == [2, 127]
    tags = filled_message(kind, 4, unknown_tags=True).encode(4)
    # Tag 10,000 is empty, and tag 2**31 - 2 contains seven bytes.
    assert tags.endswith(b"\2\x90\x4e\0\xfe\xff\xff\xff\x07\x07unknown")


def test_a_valid_case_that_kafka_contradicts_stops_the_build() -> None:
    facts = {"message": "HeartbeatRequest", "type": "request", "version": 0}
    case = Proposal("HeartbeatRequest/0/plain", b"\0\1", facts)
    right = {"read": 2, "json": {}, "written": "0001", "known": "0001", "back": "0001"}
    assert judged(case, right).expected is Expected.TAKE
    for wrong in ({"refused": "RuntimeException"}, right | {"read": 1}, right | {"written": "00"}):
        with pytest.raises(Contradiction, match="HeartbeatRequest/0/plain"):
            judged(case, wrong)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"refused": "RuntimeException"}, Expected.REFUSE),
        ({"read": 2, "json": {}, "written": "0001"}, Expected.TAKE),
        ({"read": 1, "json": {}, "written": "00"}, Expected.EITHER),
        ({"read": 2, "json": {}, "written": "0002"}, Expected.EITHER),
        ({"read": 2, "json": {}, "written": None}, Expected.EITHER),
    ],
)
def test_what_is_expected_of_a_hostile_case_is_what_kafka_does(
    answer: dict[str, Any], expected: Expected
) -> None:
    facts = {"message": "HeartbeatRequest", "type": "request", "version": 0}
    vector = judged(Proposal("a", b"\0\1", facts, "damaged"), answer)
    assert vector.expected is expected
    assert not vector.can_be_encoded


def test_no_damaged_batch_must_be_taken() -> None:
    answer = {"read": 2, "json": {"batches": []}}
    assert judged(Proposal("a", b"\0\1", {}, "damaged"), answer).expected is Expected.EITHER
    assert judged(Proposal("a", b"\0\1", {}), answer).expected is Expected.TAKE


def test_a_message_that_kafka_reads_and_cannot_write_is_expected_of_nobody() -> None:
    facts = {"message": "HeartbeatRequest", "type": "request", "version": 4}
    answer = {"read": 2, "json": {}, "written": None, "known": "00", "back": "00"}
    vector = judged(Proposal("a", b"\0\1", facts), answer)
    assert (vector.expected, vector.written) == (Expected.EITHER, None)
    assert not vector.can_be_encoded


def test_header_versions_are_kafkas_own() -> None:
    for vector in vectors().values():
        if vector.type in {"request", "response"} and vector.json is not None:
            entry = catalog().entry(str(vector.message))
            assert vector.version is not None
            assert vector.header_version == entry.header_versions.of(vector.version)


def test_every_line_fits_the_schema_and_the_schema_refuses_others() -> None:
    schema = json_schema()
    properties = schema["$defs"]["Vector"]["properties"]
    assert all("description" in one for one in properties.values())
    assert set(schema["$defs"]["Vector"]["required"]) == {"case", "expected", "hex"}
    keys: set[str] = set()
    for name in GZIPS:
        for line in gzip.decompress((FEW / name).read_bytes()).splitlines():
            keys |= json.loads(line).keys()
    assert keys <= set(properties)
    for wrong in (b"{}", b'{"case":"a","expected":"maybe","hex":""}', b'{"case":"a","hex":1}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=Vector)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return the directory of a copy of the kept package."""
    for one in FEW.iterdir():
        (tmp_path / one.name).write_bytes(one.read_bytes())
    return tmp_path


def test_a_manifest_of_another_format_is_refused(copied: Path) -> None:
    manifest = json.loads((copied / MANIFEST).read_bytes())
    for text, told in (
        (json.dumps({**manifest, "format": 2}), "expected format 1, got 2"),
        ("[]", "expected format 1, got None"),
        ("{", "manifest.json"),
        (json.dumps({"format": 1}), "missing required field"),
    ):
        (copied / MANIFEST).write_text(text, encoding="utf-8")
        with pytest.raises(VectorsError, match=told):
            read_package(copied)


def test_a_damaged_file_is_refused(copied: Path) -> None:
    path = copied / "messages.jsonl.gz"
    lines = gzip.decompress(path.read_bytes())
    for data, told in (
        (path.read_bytes()[:-9], "cannot read"),
        (b"none", "cannot read"),
        (gzip.compress(lines[:-2]), "line [0-9]+: Input data was truncated"),
        (gzip.compress(lines.replace(b'"take"', b'"eat"', 1)), "line 1: Invalid enum value"),
        (
            gzip.compress(b"".join(lines.splitlines(keepends=True)[1:])),
            "the SHA-256 differs from the manifest",
        ),
    ):
        path.write_bytes(data)
        with pytest.raises(VectorsError, match=told):
            list(read_package(copied).vectors())
    path.unlink()
    with pytest.raises(VectorsError, match="cannot read"):
        list(read_package(copied).vectors())


def test_a_line_without_end_is_refused(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.vectors.package.LONGEST_LINE", 1000)
    with pytest.raises(VectorsError, match="is longer than 1000 bytes"):
        list(read_package(copied).vectors())


def test_a_directory_without_a_package_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(VectorsError, match="specify a directory of vectors"):
        read_package(tmp_path)


def test_without_a_directory_the_installed_package_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(VectorsError, match="install flexwire-vectors"):
        read_package()
    files = _built()
    held = zipfile.ZipFile(BytesIO(wheel(files, "4.4.0.1")))
    held.extractall(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(read_package().vectors()) == list(few().vectors())


@pytest.mark.long
def test_the_wheel_installs_the_files_with_their_licence(tmp_path: Path) -> None:
    path = tmp_path / wheel_name("4.4.0.1")
    path.write_bytes(wheel(_built(), "4.4.0.1"))
    target = tmp_path / "installed"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--target", str(target), str(path)),
        ],
        check=True,
    )
    assert (target / INSTALLED / "schema.json").is_file()
    about = target / f"{INSTALLED}-4.4.0.1.dist-info"
    assert "Apache Software Foundation" in (about / "licenses" / "NOTICE").read_text()
    assert "License-Expression: Apache-2.0" in (about / "METADATA").read_text()
    with zipfile.ZipFile(path) as held:
        told = held.read(f"{INSTALLED}-4.4.0.1.dist-info/RECORD").decode()
        assert len(told.splitlines()) == len(held.namelist())
        digest = hashlib.sha256(held.read(f"{INSTALLED}/{MANIFEST}")).digest()
        assert len(digest) == 32
