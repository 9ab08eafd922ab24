from __future__ import annotations

import json
import zipfile
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.catalog import Catalog, catalog, release_order
from flexwire.schema.importer import ImportReport, import_specs
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "2.9.0", "3.0.0"


def field(name: str, type_: str = "int8", versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "versions": versions} | more


def put(source: Path, place: str, name: str, valid: str, *fields: Any, **more: Any) -> None:
    path = source / place / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {"name": name, "type": "data", "validVersions": valid, "flexibleVersions": "1+"}
    path.write_text(json.dumps(facts | more | {"fields": fields}), encoding="utf-8")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Make two releases whose messages contain each possible change once."""
    root = tmp_path / "specs"
    # This message gains a version: the newer spec serves both releases.
    put(root, f"{OLD}/clients", "Grows", "0-1", field("A", about="Words."))
    put(root, f"{NEW}/clients", "Grows", "0-2", field("A"), field("B", versions="2+"))
    # This one loses versions, and with them the field that only these versions had.
    put(root, f"{OLD}/clients", "Loses", "0-2", field("A", versions="0"), field("B"))
    put(root, f"{NEW}/clients", "Loses", "1-3", field("B"))
    # This one changes version 0, and only version 0, in place.
    put(root, f"{OLD}/clients", "Changes", "0-1", field("A", versions="1+"), field("B", "int16"))
    put(root, f"{NEW}/clients", "Changes", "0-1", field("A"), field("B", "int16"))
    # This one changes facts that do not affect the wire.
    put(root, f"{OLD}/clients", "Facts", "0", field("A", default="5", ignorable=True))
    put(root, f"{NEW}/clients", "Facts", "0", field("A"))
    # This one renames a field.
    put(root, f"{OLD}/clients", "Names", "0", field("A"))
    put(root, f"{NEW}/clients", "Names", "0", field("Z"))
    # This one is removed by a spec that says so; its module contains others.
    put(root, f"{OLD}/clients", "GoneRequest", "0-1", type="request", apiKey=2)
    put(root, f"{NEW}/clients", "GoneRequest", "none", type="request", apiKey=2)
    # This one is renamed.
    put(root, f"{OLD}/clients", "ListThing", "0-1", type="request", apiKey=1)
    put(root, f"{NEW}/clients", "ListThings", "1-2", type="request", apiKey=1)
    # This one moves to another module; yet another module does not exist in the newer release.
    put(root, f"{OLD}/core", "Moves", "0", field("A"))
    put(root, f"{NEW}/coordinator", "Moves", "0", field("A"))
    put(root, f"{OLD}/raft", "Stays", "0", field("A"))
    return root


@pytest.fixture
def report(source: Path, tmp_path: Path) -> ImportReport:
    return import_specs(source, tmp_path / "out")


@pytest.fixture
def imported(report: ImportReport, tmp_path: Path) -> Catalog:
    assert report.releases == (OLD, NEW)
    return Catalog(tmp_path / "out")


def test_the_report_counts(report: ImportReport, tmp_path: Path) -> None:
    assert report.files == 17
    assert (report.messages, report.pairs, report.specs) == (10, 19, 13)
    assert report.changed == (("Changes", 0),)
    assert report.renamed == (("Names", 0),)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert report.written_bytes == sum(path.stat().st_size for path in files)
    assert len(files) == report.messages + 1


def test_the_index_says_which_spec_serves_what(imported: Catalog) -> None:
    assert (imported.root / "index.json").read_text(encoding="utf-8") == (
        """{
  "releases": {
    "2.9.0": ["clients", "core", "raft"],
    "3.0.0": ["clients", "coordinator"]
  },
  "messages": {
    "Changes": {"module": "clients", "type": "data", "versions": "0-1", "flexibleVersions": "1+", \
"specs": [[["3.0.0", "3.0.0", "0-1"], ["2.9.0", "2.9.0", "1"]], \
[["2.9.0", "2.9.0", "0"]]]},
    "Facts": {"module": "clients", "type": "data", "versions": "0", "flexibleVersions": "1+", \
"specs": [[["2.9.0", "3.0.0", "0"]]]},
    "GoneRequest": {"module": "clients", "type": "request", "apiKey": 2, "versions": "0-1", \
"flexibleVersions": "1+", "specs": [[["2.9.0", "2.9.0", "0-1"]]]},
    "Grows": {"module": "clients", "type": "data", "versions": "0-2", "flexibleVersions": "1+", \
"specs": [[["3.0.0", "3.0.0", "0-2"], ["2.9.0", "2.9.0", "0-1"]]]},
    "ListThing": {"module": "clients", "type": "request", "apiKey": 1, "versions": "0-1", \
"flexibleVersions": "1+", "specs": [[["2.9.0", "2.9.0", "0-1"]]]},
    "ListThings": {"module": "clients", "type": "request", "apiKey": 1, "versions": "1-2", \
"flexibleVersions": "1+", "specs": [[["3.0.0", "3.0.0", "1-2"]]]},
    "Loses": {"module": "clients", "type": "data", "versions": "0-3", "flexibleVersions": "1+", \
"specs": [[["3.0.0", "3.0.0", "1-3"], ["2.9.0", "2.9.0", "1-2"]], \
[["2.9.0", "2.9.0", "0"]]]},
    "Moves": {"module": "coordinator", "formerModules": ["core"], "type": "data", \
"versions": "0", "flexibleVersions": "1+", "specs": [[["2.9.0", "3.0.0", "0"]]]},
    "Names": {"module": "clients", "type": "data", "versions": "0", "flexibleVersions": "1+", \
"specs": [[["3.0.0", "3.0.0", "0"]], [["2.9.0", "2.9.0", "0"]]]},
    "Stays": {"module": "raft", "type": "data", "versions": "0", "flexibleVersions": "1+", \
"specs": [[["2.9.0", "2.9.0", "0"]]]}
  }
}
"""
    )


def test_a_message_file_is_a_spec_without_prose(imported: Catalog) -> None:
    assert (imported.root / "clients" / "Grows.json").read_text(encoding="utf-8") == (
        """{
  "type": "data",
  "name": "Grows",
  "validVersions": "0-2",
  "flexibleVersions": "1+",
  "fields": [
    {"name": "A", "type": "int8", "versions": "0+"},
    {"name": "B", "type": "int8", "versions": "2+"}
  ]
}
"""
    )


def test_the_newest_release_gives_the_layout(imported: Catalog) -> None:
    entry = imported.entry("Changes")
    assert entry.spec(0) is entry.spec(0, release=NEW)
    assert [str(one.versions) for one in entry.spec(0).fields] == ["0+", "0+"]
    assert [str(one.versions) for one in entry.spec(0, release=OLD).fields] == ["1+", "0+"]
    # Version 1 is the same in both, so one spec serves it.
    assert entry.spec(1, release=OLD) is entry.spec(1)
    assert entry.specs() == ((entry.spec(0), Versions(0, 1)),)


def test_a_version_that_was_removed_keeps_its_spec(imported: Catalog) -> None:
    entry = imported.entry("Loses")
    assert [str(versions) for _, versions in entry.specs()] == ["1-3", "0"]
    assert entry.versions == Versions(0, 3)
    assert entry.current_versions == Versions(1, 3)
    assert entry.releases == {OLD: Versions(0, 2), NEW: Versions(1, 3)}


def test_names_are_those_of_the_release(imported: Catalog) -> None:
    entry = imported.entry("Names")
    assert entry.spec(0).fields[0].name == "Z"
    assert entry.spec(0, release=OLD).fields[0].name == "A"


def test_a_removed_message_is_there_and_a_missing_module_removes_nothing(imported: Catalog) -> None:
    gone, stays = imported.entry("GoneRequest"), imported.entry("Stays")
    assert (gone.current_versions, list(gone.releases)) == (Versions.NONE, [OLD])
    assert (stays.current_versions, list(stays.releases)) == (Versions(0, 0), [OLD])
    moved = imported.entry("Moves")
    assert (moved.module, moved.former_modules) == ("coordinator", ("core",))


def test_an_api_key_has_a_name_for_every_version(imported: Catalog) -> None:
    request = MessageType.REQUEST
    assert imported.by_api_key(1, request).name == "ListThings"
    assert imported.by_api_key(1, request, 1).name == "ListThings"
    assert imported.by_api_key(1, request, 0).name == "ListThing"
    with pytest.raises(UnknownMessageError, match=r"ListThings has no version 3; released are 1-2"):
        imported.by_api_key(1, request, 3)
    with pytest.raises(UnknownMessageError, match="no response has api key 1"):
        imported.by_api_key(1, MessageType.RESPONSE)
    assert imported.api_keys() == (1, 2)


@pytest.mark.parametrize(
    ("name", "version", "release", "reason"),
    [
        ("Grows", 3, None, "Grows has no version 3; released are 0-2"),
        ("Grows", 2, OLD, f"Grows has no version 2 in {OLD}; the valid versions are 0-1"),
        ("ListThings", 1, OLD, f"ListThings is not in {OLD}; it is in {NEW}"),
        ("Grows", 0, "3.0.0-rc", f"no release '3.0.0-rc' in the catalog; the nearest is {NEW}"),
        ("Grows", 0, "x", f"no release 'x' in the catalog; it has {OLD}, {NEW}"),
    ],
)
def test_what_there_is_not_is_said(
    imported: Catalog, name: str, version: int, release: str | None, reason: str
) -> None:
    with pytest.raises(UnknownMessageError) as caught:
        imported.entry(name).spec(version, release)
    assert reason in str(caught.value)


def test_importing_again_touches_nothing(source: Path, imported: Catalog) -> None:
    before = {path: path.stat().st_mtime_ns for path in imported.root.rglob("*")}
    import_specs(source, imported.root)
    assert {path: path.stat().st_mtime_ns for path in imported.root.rglob("*")} == before


def test_files_of_an_earlier_import_go_and_others_stay(source: Path, imported: Catalog) -> None:
    stranger = imported.root / "clients" / "Stranger.json"
    stranger.write_text("{}", encoding="utf-8")
    (source / NEW / "coordinator" / "Moves.json").unlink()
    import_specs(source, imported.root)
    assert not (imported.root / "coordinator" / "Moves.json").exists()
    assert (imported.root / "core" / "Moves.json").exists()
    assert stranger.exists()


def test_a_single_release_is_imported_too(source: Path, tmp_path: Path) -> None:
    report = import_specs(source / OLD, tmp_path / "single")
    assert (report.releases, report.files, report.changed) == ((OLD,), 9, ())
    assert Catalog(tmp_path / "single").entry("Loses").versions == Versions(0, 2)


def test_the_versions_of_a_release_may_be_served_by_several_specs(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    put(root, "1.0.0/m", "A", "0-3", field("X", versions="0"), field("Y", versions="3"))
    put(root, "1.1.0/m", "A", "0-3", field("X", "int16", versions="0"), field("Y", versions="3"))
    put(root, "1.2.0/m", "A", "1-2")
    import_specs(root, tmp_path / "out")
    entry = Catalog(tmp_path / "out").entry("A")
    assert [str(versions) for _, versions in entry.specs()] == ["1-2", "0", "3"]
    for release, valid in entry.releases.items():
        for version in valid:
            assert version in entry.spec(version, release).valid_versions
    assert str(entry.spec(0, "1.0.0").fields[0].type) == "int8"
    assert str(entry.spec(0).fields[0].type) == "int16"


def test_a_faulty_release_writes_nothing(source: Path, tmp_path: Path) -> None:
    (source / NEW / "clients" / "Grows.json").write_text(
        '{"name": "A",\n "x": 1}', encoding="utf-8"
    )
    with pytest.raises(SpecError, match=rf"/{NEW}/clients/Grows\.json:2:2: unknown key 'x'"):
        import_specs(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("place", "name", "valid", "reason"),
    [
        (f"{NEW}/raft", "Grows", "0", "Grows appears twice in 3.0.0"),
        (f"{NEW}/clients", "Open", "0+", "validVersions 0[+] has no end"),
        ("nightly/clients", "Grows", "0", "not a release name"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(
    source: Path, tmp_path: Path, place: str, name: str, valid: str, reason: str
) -> None:
    put(source, place, name, valid)
    with pytest.raises(SpecError, match=reason):
        import_specs(source, tmp_path / "out")


def test_a_preview_may_become_flexible_in_place(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    put(root, "1.0.0/m", "A", "0", flexibleVersions="none")
    put(root, "1.1.0/m", "A", "0", flexibleVersions="0+")
    assert import_specs(root, tmp_path / "out").changed == (("A", 0),)
    entry = Catalog(tmp_path / "out").entry("A")
    assert 0 in entry.flexible_versions
    assert 0 not in entry.spec(0, "1.0.0").flexible_versions


def test_flexibility_that_depends_on_the_release_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    put(root, "1.0.0/m", "A", "0-1")
    put(root, "1.1.0/m", "A", "2", flexibleVersions="none")
    with pytest.raises(SpecError, match="A v1: the specs disagree on whether it is flexible"):
        import_specs(root, tmp_path / "out")


def test_a_place_without_specs_or_catalog_is_refused(tmp_path: Path, source: Path) -> None:
    with pytest.raises(SpecError, match="no such file or directory"):
        import_specs(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(SpecError, match="no spec catalog"):
        Catalog(tmp_path / "nowhere")
    (tmp_path / "index.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SpecError, match="not the index of a catalog"):
        import_specs(source, tmp_path)


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def test_a_catalog_is_the_same_in_whatever_steps_it_was_made(source: Path, tmp_path: Path) -> None:
    import_specs(source, tmp_path / "whole")
    for first, second in permutations([source / OLD, source / NEW]):
        steps = tmp_path / f"{first.name} first"
        import_specs(first, steps)
        import_specs(second, steps, base=Catalog(steps))
        assert files(steps) == files(tmp_path / "whole")


@pytest.mark.long
@pytest.mark.slow
def test_the_bundled_catalog_made_anew_of_itself_is_the_same(tmp_path: Path) -> None:
    import_specs([], tmp_path, base=catalog())
    assert files(tmp_path) == files(catalog().root)


def test_a_module_is_added_to_a_release_and_read_anew_without_the_others(
    source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    import_specs(source, out)
    put(tmp_path, f"again/{NEW}/clients", "Grows", "0-3", field("A"))
    report = import_specs(tmp_path / "again" / NEW, out, base=Catalog(out))
    assert (report.read, report.releases) == ((NEW,), (OLD, NEW))
    made = Catalog(out)
    assert made.release_modules[NEW] == ("clients", "coordinator")
    assert made.entry("Grows").releases[NEW] == Versions(0, 3)
    # Messages that the module lost are gone, but another module's messages remain.
    assert NEW not in made.entry("Loses").releases
    assert NEW in made.entry("Moves").releases


def test_a_release_is_dropped(source: Path, tmp_path: Path) -> None:
    import_specs(source, tmp_path / "both")
    import_specs(source / OLD, tmp_path / "old")
    import_specs([], tmp_path / "dropped", base=Catalog(tmp_path / "both"), drop=[NEW])
    left, alone = Catalog(tmp_path / "dropped"), Catalog(tmp_path / "old")
    assert (left.releases, left.names()) == (alone.releases, alone.names())
    for name in alone.names():
        for version in alone.entry(name).versions:
            mine, its = left.entry(name).spec(version), alone.entry(name).spec(version)
            assert resolve(mine, version).layout() == resolve(its, version).layout()
    with pytest.raises(UnknownMessageError, match="no release '9'"):
        import_specs([], tmp_path / "x", base=left, drop=["9"])


def test_a_jar_is_of_the_release_and_module_that_its_name_says(tmp_path: Path) -> None:
    put(tmp_path, "made", "Ping", "0-1", field("A"))
    path = tmp_path / "kafka-clients-4.5.0.jar"
    with zipfile.ZipFile(path, "w") as jar:
        jar.write(tmp_path / "made" / "Ping.json", "common/message/Ping.json")
    assert import_specs(path, tmp_path / "out").read == ("4.5.0",)
    assert Catalog(tmp_path / "out").release_modules == {"4.5.0": ("clients",)}
    report = import_specs(path, tmp_path / "out", base=Catalog(tmp_path / "out"), release="4.6.0")
    assert report.releases == ("4.5.0", "4.6.0")
    assert str(Catalog(tmp_path / "out").entry("Ping").releases["4.6.0"]) == "0-1"


def test_a_source_that_names_no_release_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "made", "Ping", "0-1", field("A"))
    with pytest.raises(SpecError, match="the release is unknown"):
        import_specs(tmp_path / "made" / "Ping.json", tmp_path / "out")
    with pytest.raises(SpecError, match="not a release name"):
        import_specs(tmp_path / "made", tmp_path / "out", release="next")
    assert import_specs(tmp_path / "made", tmp_path / "out", release="4.5").releases == ("4.5",)


RELEASES = [
    *("2.4.1", "2.10.0", "3.9.0-rc3", "3.9.0-rc10", "3.9.0", "3.9.1"),
    *("4.0-trunk-20241025", "4.0.0-rc0", "4.0.0", "4.4-snapshot", "4.4.0", "10.0.0"),
]


def test_releases_sort_by_age() -> None:
    keys = [release_order(release) for release in RELEASES]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    for few in permutations(RELEASES[2:6]):
        assert sorted(few, key=release_order) == RELEASES[2:6]
    with pytest.raises(SpecError, match="not a release name"):
        release_order("3")
