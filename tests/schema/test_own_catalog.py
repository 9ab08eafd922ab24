"""A user's own catalog is made from a jar and used everywhere, without any other catalog's data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import flexwire
from flexwire.cli.app import app
from flexwire.columnar import decode_messages
from flexwire.columnar.types import message_type
from flexwire.errors import SpecError, UnknownMessageError
from flexwire.protocol import api_name, request_header_version, verdict
from flexwire.schema.catalog import VARIABLE, catalog, use_catalog, use_packed_catalog
from tests.schema.own import API_VERSIONS, PING, clients_jar


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bundled catalog plus a Kafka 4.5 with an additional message and a new version."""
    place = tmp_path_factory.mktemp("imported")
    arguments = ["schema", "import", str(clients_jar(place)), "--out", str(place / "own")]
    ran = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    assert "3 files of 4.5.0" in ran.output
    return place


@pytest.fixture
def own(imported: Path, tmp_path: Path) -> Path:
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    return tmp_path / "own"


@pytest.fixture
def used(own: Path) -> object:
    use_catalog(own)
    yield own
    use_catalog(None)


def test_it_has_all_that_is_bundled_and_what_was_read(own: Path) -> None:
    bundled, made = catalog(), use_catalog(own)
    try:
        assert made.releases == (*bundled.releases, "4.5.0")
        assert set(made.names()) == {*bundled.names(), "PingRequest", "PingResponse"}
        for name in bundled.names():
            for release, valid in bundled.entry(name).releases.items():
                assert made.entry(name).releases[release] == valid
    finally:
        use_catalog(None)


@pytest.mark.usefixtures("used")
def test_everything_uses_it() -> None:
    ping = flexwire.message("PingRequest")
    assert ping.decode(b"\x03hi\0", 0).encode(0) == b"\x03hi\0"
    assert (api_name(PING), verdict(PING, 0), verdict(API_VERSIONS, 6)) == (
        "Ping",
        "accepted",
        "accepted",
    )
    assert request_header_version(PING, 0) == 2
    assert message_type("PingRequest").field("text") is not None
    columns = decode_messages("ApiVersionsRequest", pa.array([b"\x02a\x02b\x07\0"]), 6)
    assert columns.field("added").to_pylist() == [7]


def test_what_was_made_before_is_forgotten(own: Path) -> None:
    before = flexwire.message("ApiVersionsRequest")
    assert verdict(API_VERSIONS, 6) == "unknown"
    use_catalog(own)
    after = flexwire.message("ApiVersionsRequest")
    use_catalog(None)
    assert "added" in after.__struct_fields__
    assert "added" not in before.__struct_fields__
    assert verdict(API_VERSIONS, 6) == "unknown"
    assert "added" not in flexwire.message("ApiVersionsRequest").__struct_fields__
    with pytest.raises(UnknownMessageError, match="no message 'PingRequest'; see"):
        flexwire.message("PingRequest")


def test_another_process_is_given_it_whole(own: Path) -> None:
    carried = use_catalog(own).packed
    assert carried == use_catalog(own).packed
    use_catalog(None)
    assert catalog().packed is None
    for file in own.rglob("*.json"):
        file.unlink()
    use_packed_catalog(carried)
    try:
        assert flexwire.message("PingRequest").decode(b"\x02a\0", 0).encode(0) == b"\x02a\0"
        assert (catalog().place, catalog().packed) == (str(own), carried)
        before = catalog()
        use_packed_catalog(carried)
        assert catalog() is before
    finally:
        use_packed_catalog(None)
    assert catalog().packed is None
    with pytest.raises(UnknownMessageError):
        flexwire.message("PingRequest")


def test_what_it_lacks_is_an_error_that_names_it(tmp_path: Path, own: Path) -> None:
    alone = tmp_path / "alone"
    arguments = ["schema", "import", "--fresh", str(own.parent / "kafka-clients-4.5.0.jar")]
    CliRunner().invoke(app, [*arguments, "--out", str(alone)], catch_exceptions=False)
    use_catalog(alone)
    try:
        with pytest.raises(
            UnknownMessageError, match=r"no message 'FetchRequest' in the catalog /"
        ):
            flexwire.message("FetchRequest")
        with pytest.raises(
            UnknownMessageError, match=r"no release '4\.4\.0' .* nearest is 4\.5\.0"
        ):
            flexwire.message("PingRequest", "4.4.0")
    finally:
        use_catalog(None)


def test_where_there_is_no_catalog_nothing_changes(tmp_path: Path) -> None:
    before = catalog()
    with pytest.raises(SpecError, match="no spec catalog"):
        use_catalog(tmp_path)
    assert catalog() is before


def test_commands_use_it_where_they_are_told_to_and_only_they(own: Path) -> None:
    decode = ["decode", "PingRequest", "03686900", "-V", "0", "--compact"]
    for arguments in ([*decode, "--catalog", str(own)], ["--catalog", str(own), *decode]):
        ran = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert (ran.exit_code, ran.output) == (0, '{"text": "hi"}\n')
        assert VARIABLE not in os.environ
        assert "PingRequest" not in catalog().names()


def run(program: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_the_variable_names_it_for_a_whole_process(own: Path) -> None:
    program = "from flexwire.messages import PingRequest; print(PingRequest(text='a').encode(0))"
    assert run(program, **{VARIABLE: str(own)}).stdout == "b'\\x02a\\x00'\n"
    assert "cannot import name 'PingRequest'" in run(program).stderr
    missing = run(
        "import flexwire; flexwire.message('FetchRequest')", **{VARIABLE: str(own.parent)}
    )
    assert "no spec catalog (No such file or directory), from FLEXWIRE_CATALOG" in (missing.stderr)


@pytest.mark.slow
def test_the_package_works_from_a_zip(tmp_path: Path) -> None:
    """The catalog works as Spark's ``--py-files`` delivers it; enough is decoded to
    need kernels.
    """
    package = Path(flexwire.__file__).parent
    place = tmp_path / "flexwire.zip"
    with zipfile.ZipFile(place, "w") as zipped:
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                zipped.write(file, Path("flexwire") / file.relative_to(package))
    program = """
import flexwire
from flexwire.messages import MetadataRequest
from flexwire.schema.catalog import catalog
assert ".zip" in flexwire.__file__, flexwire.__file__
topics = [MetadataRequest.MetadataRequestTopic(name="a" * 100) for _ in range(100)]
data = MetadataRequest(topics=topics).encode(12)
for _ in range(2_000_000 // len(data)):
    assert MetadataRequest.decode(data, 12).encode(12) == data
print(len(catalog().releases), flexwire.message("FetchRequest", "3.9").__name__)
"""
    ran = run(program, PYTHONPATH=str(place), PYTHONSAFEPATH="1")
    assert ran.stdout == f"{len(catalog().releases)} FetchRequest\n", ran.stderr
