from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import Catalog, catalog, release_order
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions
from tests.each import each

if TYPE_CHECKING:
    from pathlib import Path

NAMES = catalog().names()
# In this release, share groups were a preview.
PREVIEW = "4.0.2"


def test_every_release_is_there_in_order_of_age() -> None:
    releases = catalog().releases
    assert (releases[0], catalog().newest_release, len(releases)) == ("2.4.1", "4.4.0", 21)
    assert list(releases) == sorted(releases, key=release_order)


def test_every_release_is_final_and_of_each_minor_one_there_is_the_newest_patch() -> None:
    orders = [release_order(release) for release in catalog().releases]
    for release, order in zip(catalog().releases, orders, strict=True):
        assert re.fullmatch(r"\d+\.\d+\.\d+", release)
        assert catalog().release(release) == release
        newest = max(one for one in orders if one[:2] == order[:2])
        assert catalog().release(".".join(release.split(".")[:2])).split(".") == [
            str(number) for number in newest[:3]
        ]
    minors = [order[:2] for order in orders]
    assert [minor for minor in sorted(set(minors)) if minors.count(minor) > 1] == [(4, 0)]


@pytest.mark.parametrize(
    ("asked", "found"), [("4.0", "4.0.2"), ("4.0.0", "4.0.0"), ("3", "3.9.2"), ("4", "4.4.0")]
)
def test_the_beginning_of_a_release_means_its_newest(asked: str, found: str) -> None:
    assert catalog().release(asked) == found


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("4.1.1", "the nearest is 4.1.2"),
        ("4.0.7", "the nearest are 4.0.0 and 4.0.2"),
        ("1.0", "the nearest is 2.4.1"),
        ("5", "the nearest is 4.4.0"),
        ("3.95.1", "the nearest are 3.9.2 and 4.0.0"),
        ("4.4-snapshot", "the nearest is 4.4.0"),
        ("trunk", "it has 2.4.1, "),
        ("", "it has 2.4.1, "),
        ("4.", "it has 2.4.1, "),
    ],
)
def test_a_release_that_is_not_there_is_answered_with_the_nearest(asked: str, told: str) -> None:
    with pytest.raises(UnknownMessageError, match=re.escape(f"no release {asked!r} in ")) as found:
        catalog().release(asked)
    assert told in str(found.value)


def test_a_patch_that_changed_something_stands_beside_the_newest() -> None:
    join = catalog().entry("JoinGroupRequest").releases
    assert (str(join["4.0.0"]), str(join["4.0.2"])) == ("2-9", "0-9")


def test_versions_that_were_never_released_are_holes() -> None:
    key = catalog().entry("GroupMetadataKey")
    assert (str(key.versions), 1 in key.versions) == ("0,2", False)
    with pytest.raises(UnknownMessageError, match=r"has no version 1; released are 0,2"):
        key.spec(1)
    assert str(catalog().entry("OffsetCommitKey").versions) == "0-1"


def test_the_versions_of_a_message_are_those_that_a_spec_serves() -> None:
    for entry in map(catalog().entry, catalog().names()):
        served = [version for _, versions in entry.specs() for version in versions]
        assert Versions.of(served) == entry.versions
        assert len(served) == len(entry.versions)


def test_the_index_and_the_files_name_the_same_messages() -> None:
    root = catalog().root
    files = {path.relative_to(root).as_posix() for path in root.glob("*/*.json")}
    assert files == {f"{catalog().entry(name).module}/{name}.json" for name in NAMES}
    assert len(NAMES) == 299
    assert list(NAMES) == sorted(NAMES)


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES)
def test_the_newest_release_gives_each_version_its_layout(name: str) -> None:
    entry = catalog().entry(name)
    latest: dict[int, str] = {}
    for release, valid in entry.releases.items():
        for version in valid:
            spec = entry.spec(version, release)
            assert spec.name == name
            assert version in spec.valid_versions
            resolve(spec, version)
            latest[version] = release
    assert sorted(latest) == list(entry.versions)
    for version, release in latest.items():
        spec = entry.spec(version)
        assert spec is entry.spec(version, release)
        assert (version in spec.flexible_versions) == (version in entry.flexible_versions)
        if entry.type.is_api:
            assert (spec.type, spec.api_key) == (entry.type, entry.api_key)
    served = {version: spec for spec, versions in entry.specs() for version in versions}
    assert served == {version: entry.spec(version) for version in entry.versions}
    assert sum(len(versions) for _, versions in entry.specs()) == len(entry.versions)


def test_all_released_pairs_are_there() -> None:
    assert sum(len(catalog().entry(name).versions) for name in NAMES) == 917
    pairs = [
        (name, version)
        for name in NAMES
        for version in catalog().entry(name).releases.get("4.4.0", Versions.NONE)
    ]
    assert len(pairs) == 744


@each("api_key", catalog().api_keys())
def test_a_request_has_its_response(api_key: int) -> None:
    request = catalog().by_api_key(api_key, MessageType.REQUEST)
    response = catalog().by_api_key(api_key, MessageType.RESPONSE)
    assert request.name.removesuffix("Request") == response.name.removesuffix("Response")
    assert request.versions == response.versions
    assert request.flexible_versions == response.flexible_versions
    for version in request.versions:
        found = catalog().by_api_key(api_key, MessageType.REQUEST, version)
        assert version in found.versions


def test_a_preview_is_read_at_its_release() -> None:
    entry = catalog().entry("ReadShareGroupStateSummaryResponse")
    names = {
        release: [one.name for one in entry.spec(0, release).structs()["PartitionResult"]]
        for release in (None, PREVIEW)
    }
    assert "LeaderEpoch" in names[None]
    assert "LeaderEpoch" not in names[PREVIEW]
    newest, preview = (resolve(entry.spec(0, release), 0).layout() for release in (None, PREVIEW))
    assert newest != preview


@pytest.mark.parametrize(
    ("former", "versions", "name", "api_key"),
    [
        ("ListOffsetRequest", "0-5", "ListOffsetsRequest", 2),
        ("AlterIsrRequest", "0", "AlterPartitionRequest", 56),
        ("ListClientMetricsResourcesRequest", "0", "ListConfigResourcesRequest", 74),
    ],
)
def test_a_renamed_message_keeps_both_names(
    former: str, versions: str, name: str, api_key: int
) -> None:
    old, new = catalog().entry(former), catalog().entry(name)
    assert (old.api_key, str(old.versions)) == (api_key, versions)
    assert (old.current_versions, new.api_key) == (Versions.NONE, api_key)
    assert catalog().by_api_key(api_key, MessageType.REQUEST) is new
    assert catalog().by_api_key(api_key, MessageType.REQUEST, 0) is new
    assert resolve(old.spec(0), 0).flexible == resolve(new.spec(0), 0).flexible


def test_what_a_newer_release_removed_can_still_be_read() -> None:
    fetch = catalog().entry("FetchRequest")
    assert (fetch.current_versions, fetch.versions) == (Versions(4, 18), Versions(0, 18))
    assert fetch.spec(0) is not fetch.spec(18)
    shutdown = catalog().entry("ControlledShutdownRequest")
    assert (shutdown.current_versions, shutdown.last_release) == (Versions.NONE, "3.9.2")


def test_a_module_that_a_release_lacks_is_not_removed_in_it() -> None:
    key = catalog().entry("OffsetCommitKey")
    assert (key.module, key.former_modules) == ("group-coordinator", ("core",))
    assert key.current_versions == Versions(0, 0)
    info = catalog().entry("SubscriptionInfoData")
    assert catalog().newest_release_of(info.module) == info.last_release != "4.4.0"
    assert info.current_versions == info.versions
    with pytest.raises(UnknownMessageError, match="no release contains module 'kernel'"):
        catalog().newest_release_of("kernel")


def test_a_name_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownMessageError, match=r"did you mean FetchRequest"):
        catalog().entry("fetchrequest")
    with pytest.raises(UnknownMessageError, match=r"did you mean ProduceRequest or ProduceResp"):
        catalog().entry("produce")
    with pytest.raises(UnknownMessageError, match="see 'flexwire schema list'"):
        catalog().entry("Zzz")


def test_the_catalog_is_opened_by_its_index_alone(tmp_path: Path) -> None:
    shutil.copy(catalog().root / "index.json", tmp_path)
    opened = Catalog(tmp_path)
    for name in NAMES:
        entry = opened.entry(name)
        assert entry.releases == catalog().entry(name).releases
    assert opened.api_keys() == catalog().api_keys()
    with pytest.raises(FileNotFoundError):
        opened.entry("FetchRequest").spec(18)


def test_no_prose_is_bundled() -> None:
    for path in catalog().root.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert '"about"' not in text
        assert "//" not in text
