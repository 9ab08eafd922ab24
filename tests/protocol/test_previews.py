"""If the catalog has a preview of a release, the preview's messages are read without verdicts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import ArgumentError
from flexwire.messages import message
from flexwire.protocol import accepted, parse_request, verdict
from flexwire.protocol.audit import (
    OPENING_APIS,
    Conduct,
    Party,
    Use,
    audited_releases,
    fitting_releases,
    judge,
    refusal,
    role_of,
    to_audited_releases,
)
from flexwire.protocol.audit.evidence import find_release_reading_again, read_versions
from flexwire.schema.catalog import bundled_catalog, catalog, is_preview, use_catalog
from flexwire.schema.importer import import_specs
from tests.schema.trunk import OFFSET_DELETE, RELEASE, trunk_catalog, write_trunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEWEST = bundled_catalog().newest_release


@pytest.fixture(scope="module", autouse=True)
def _trunk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    use_catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))
    yield
    use_catalog(None)


@pytest.mark.slow
def test_bundled_releases_are_final() -> None:
    assert bundled_catalog().final_releases == bundled_catalog().releases
    assert catalog().releases == (*catalog().final_releases, RELEASE)
    assert is_preview(RELEASE)


@pytest.mark.slow
def test_messages_of_a_preview_are_read() -> None:
    data = message("OffsetDeleteRequest")(group_id="g", topics=[]).encode(1)
    request = bytes.fromhex("002f00010000000a000000") + data
    assert parse_request(request).header_version == 3


@pytest.mark.slow
def test_nothing_is_judged_by_a_preview() -> None:
    brokers = (RELEASE,), (NEWEST,), ()
    assert {audited_releases(each)[-1] for each in brokers} == {NEWEST}
    with pytest.raises(ArgumentError, match=f"expected a final release, got {RELEASE}"):
        to_audited_releases(["4.0", RELEASE])
    assert to_audited_releases(["4.0", "4.0.2"]) == ("4.0.2",)
    # OffsetDelete v1 exists only in the preview.
    assert read_versions(OFFSET_DELETE, RELEASE).highest == 1
    assert refusal(OFFSET_DELETE, 1, NEWEST) == (None, None)
    assert find_release_reading_again(OFFSET_DELETE, 1, NEWEST) is None
    assert verdict(OFFSET_DELETE, 1) == "unknown"


@pytest.mark.slow
def test_a_preview_that_somebody_names_is_refused() -> None:
    client = Conduct("client", (Use(OFFSET_DELETE, 1, 1, 0, 0, "here"),))
    for by in (
        lambda: verdict(OFFSET_DELETE, 1, RELEASE),
        lambda: accepted(OFFSET_DELETE, 1, RELEASE),
        lambda: judge(Party("a", "10.0.0.9"), client, RELEASE),
    ):
        with pytest.raises(
            ArgumentError, match=f"release: expected a final release, got {RELEASE}"
        ):
            by()
    result = CliRunner().invoke(app, ["conform", "127.0.0.1:9", "--release", RELEASE])
    assert result.exit_code == 1
    assert f"expected a final release, got {RELEASE}, which is a preview" in str(result.exception)
    assert verdict(OFFSET_DELETE, 0, NEWEST) == "accepted"


@pytest.mark.long
@pytest.mark.slow
def test_a_preview_removes_nothing(tmp_path: Path) -> None:
    """A version that only the preview lacks is not deprecated."""
    specs = write_trunk(tmp_path / "specs")
    for spec in specs.rglob("DeleteRecords*.json"):
        text = spec.read_text(encoding="utf-8")
        spec.write_text(text.replace('"validVersions": "0-2"', '"validVersions": "1-2"'))
    import_specs(specs, tmp_path / "catalog", base=bundled_catalog())
    before = catalog().root
    use_catalog(tmp_path / "catalog")
    try:
        assert read_versions(21, RELEASE).lowest == 1
        assert verdict(21, 0, "3.9.2") == verdict(21, 0) == "accepted"
    finally:
        use_catalog(before)


@pytest.mark.slow
def test_a_broker_that_runs_a_preview_is_recognised() -> None:
    offered = {key: read_versions(key, RELEASE) for key in (OFFSET_DELETE, *OPENING_APIS)}
    assert fitting_releases(offered) == (RELEASE,)


@pytest.mark.long
@pytest.mark.slow
def test_a_final_name_becomes_that_of_a_preview(tmp_path: Path) -> None:
    """A candidate's own jars and tree have the name of the future release."""
    specs = write_trunk(tmp_path / "specs")
    words = ["schema", "import", "--preview", "--out", str(tmp_path / "own")]
    for named, expected in [
        (["--release", "4.5.0"], "4.5.0-preview"),
        (["--release", "4.5.0-rc2"], "4.5.0-rc2"),
        ([], RELEASE),
    ]:
        result = CliRunner().invoke(app, [*words, "--fresh", *named, str(specs)])
        assert (result.exit_code, f"releases {expected}" in result.output) == (0, True)


@pytest.mark.slow
def test_an_analysis_refuses_to_judge_by_a_preview(tmp_path: Path) -> None:
    words = ["analyze", str(tmp_path), "--out", str(tmp_path / "out"), "--release", RELEASE]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert f"expected a final release, got {RELEASE}, which is a preview" in str(result.exception)


@pytest.mark.long
@pytest.mark.slow
def test_a_preview_does_not_change_what_other_releases_say(tmp_path: Path) -> None:
    """The preview has its own listeners, defaults and other facts besides the layout."""
    specs = write_trunk(tmp_path / "specs")
    (path,) = specs.rglob("FetchRequest.json")
    spec = path.read_text(encoding="utf-8")
    own = re.sub(r'"listeners": \[[^]]*\]', '"listeners": ["controller"]', spec)
    assert own != spec
    path.write_text(own, encoding="utf-8")
    import_specs(specs, tmp_path / "catalog", base=bundled_catalog())
    before = catalog().root
    use_catalog(tmp_path / "catalog")
    try:
        fetch, bundled = catalog().entry("FetchRequest"), bundled_catalog().entry("FetchRequest")
        version = fetch.releases[NEWEST].highest
        assert fetch.spec(version, RELEASE).listeners == ("controller",)
        for release in (NEWEST, "3.9.2"):
            highest = bundled.releases[release].highest
            assert fetch.spec(highest, release) == bundled.spec(highest, release)
            assert fetch.whole_spec(release) == bundled.whole_spec(release)
        # Clients send this version, whatever the preview says.
        sent = Conduct("client", (Use(1, version, 1, 0, 0, "here"),))
        assert role_of({1}) == "client"
        assert judge(Party("a", "10.0.0.9"), sent, NEWEST)[0].verdict == "nothing seen against it"
    finally:
        use_catalog(before)
