from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import Catalog, catalog
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

NAMES = catalog().names()
PREVIEW = "4.0-trunk-20241025"


def test_every_release_is_there_in_order_of_age() -> None:
    releases = catalog().releases
    assert (releases[0], catalog().newest_release, len(releases)) == ("2.4.1", "4.4-snapshot", 17)
    assert releases.index("3.9.0-rc3") < releases.index(PREVIEW)
    assert catalog().release_modules["4.4-snapshot"] == ("clients",)


def test_the_index_and_the_files_name_the_same_messages() -> None:
    root = catalog().root
    files = {path.relative_to(root).as_posix() for path in root.glob("*/*.json")}
    assert files == {f"{catalog().entry(name).module}/{name}.json" for name in NAMES}
    assert len(NAMES) == 279
    assert list(NAMES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
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
        assert spec.type is entry.type
        assert spec.api_key == entry.api_key
    served = {version: spec for spec, versions in entry.specs() for version in versions}
    assert served == {version: entry.spec(version) for version in entry.versions}
    assert sum(len(versions) for _, versions in entry.specs()) == len(entry.versions)


def test_all_released_pairs_are_there() -> None:
    assert sum(len(catalog().entry(name).versions) for name in NAMES) == 880
    trunk = [
        (name, version)
        for name in NAMES
        for version in catalog().entry(name).releases.get(PREVIEW, Versions.NONE)
    ]
    assert len(trunk) == 772


@pytest.mark.parametrize("api_key", catalog().api_keys())
def test_a_request_has_its_response(api_key: int) -> None:
    request = catalog().by_api_key(api_key, MessageType.REQUEST)
    response = catalog().by_api_key(api_key, MessageType.RESPONSE)
    assert request.name.removesuffix("Request") == response.name.removesuffix("Response")
    assert request.versions == response.versions
    assert request.flexible_versions == response.flexible_versions
    for version in request.versions:
        assert catalog().by_api_key(api_key, MessageType.REQUEST, version).has(version)


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
    assert (shutdown.current_versions, shutdown.last_release) == (Versions.NONE, PREVIEW)


def test_a_module_that_a_release_lacks_is_not_removed_in_it() -> None:
    key = catalog().entry("OffsetCommitKey")
    assert (key.module, key.former_modules) == ("group-coordinator", ("core",))
    assert key.current_versions == Versions(0, 1)
    assert catalog().newest_release_of("group-coordinator") == PREVIEW
    with pytest.raises(UnknownMessageError, match="no release has a module 'kernel'"):
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
