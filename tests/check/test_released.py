"""Every spec file that Kafka released passes, in the mode of its time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from flexwire.schema.catalog import catalog, release_order
from flexwire.specs.lint.config import Config
from tests.check.pages import findings
from tests.check.released import by_directory

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode

pytestmark = pytest.mark.slow

DIRECTORIES = by_directory()
RELEASES = sorted({release for release, _ in DIRECTORIES}, key=release_order)
# Specs that Kafka's generator of 2024 refuses, but the generators of their releases accepted.
BEFORE_STRICT = release_order("3.0.0")
OF_ITS_TIME = {
    "3.5.2": {("FetchRequest.json", "VERSIONS_MISSING")},
    "2.8.2": {("DescribeProducersRequest.json", "TEXT_AFTER_SPEC")},
}


def of_its_time(release: str) -> Mode:
    old = release_order(release) < BEFORE_STRICT or release in OF_ITS_TIME
    return "legacy" if old else "strict"


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_passes_in_the_mode_of_its_time(release: str) -> None:
    config = Config(mode=of_its_time(release))
    for (one, _), files in DIRECTORIES.items():
        if one == release:
            assert findings(files, config) == ()


@pytest.mark.parametrize("release", RELEASES)
def test_strict_refuses_of_a_release_only_what_is_known(release: str) -> None:
    found = {
        (one.source, one.rule)
        for (other, _), files in DIRECTORIES.items()
        if other == release
        for one in findings(files)
    }
    missing = {one for one in found if one[1] == "FLEXIBLE_VERSIONS_MISSING"}
    assert found - missing == OF_ITS_TIME.get(release, set())
    assert not missing or release_order(release) < BEFORE_STRICT


def test_they_are_the_files_of_the_catalog_s_releases() -> None:
    assert list(catalog().releases) == RELEASES
    assert sum(map(len, DIRECTORIES.values())) == 4135


def test_a_released_file_with_a_slip_does_not_pass() -> None:
    files = DIRECTORIES["3.8.1", "clients"]
    spec = json.loads(files["FetchRequest.json"])
    spec["fields"][0]["tag"] = 5
    found = findings(files | {"FetchRequest.json": json.dumps(spec)})
    assert {(one.source, one.rule) for one in found} == {("FetchRequest.json", "TAG_SKIPPED")}
