"""Only given specs are compared. A message is removed only if the new input should contain it."""

from __future__ import annotations

import json
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition, InputKind, SpecOrigin, released_editions
from flexwire.schema.spec import MessageType
from flexwire.specs.breaking.changes import match_messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from click.testing import Result

RELEASE = next(
    release
    for release in reversed(catalog().releases)
    if len(catalog().release_modules[release]) > 2
)
MESSAGES = released_editions(RELEASE)


def gone(old: Mapping[str, Edition], new: Mapping[str, Edition]) -> set[str]:
    return {one.spec.name for one, other in match_messages(old, new) if other is None}


def at(one: Edition, given: InputKind, directory: str = "", root: str = "new") -> Edition:
    return replace(one, place=SpecOrigin(given, root, directory))


def test_of_one_file_against_a_release_nothing_else_is_asked_for() -> None:
    for name, one in MESSAGES.items():
        assert list(match_messages(MESSAGES, {name: at(one, InputKind.FILE)})) == [
            (one, at(one, InputKind.FILE))
        ]


@pytest.mark.long
@pytest.mark.slow
def test_a_module_against_a_release_lacks_its_own_messages_only() -> None:
    modules = {one.place.directory for one in MESSAGES.values()}
    assert len(modules) > 2
    for module in modules:
        names = [name for name, one in MESSAGES.items() if one.place.directory == module]
        for directory in ("", "common/message", module):
            given = {name: at(MESSAGES[name], InputKind.TREE, directory) for name in names}
            # If the directories are named as in a release, the input is the whole release.
            others = MESSAGES.keys() - names if directory == module else set()
            assert gone(MESSAGES, given) == others
            for name in names if len(names) > 1 else ():
                rest = {other: one for other, one in given.items() if other != name}
                assert gone(MESSAGES, rest) == {name} | others


def test_a_release_lacks_no_module_that_was_not_imported() -> None:
    modules = {one.place.directory for one in MESSAGES.values()}
    for module in modules:
        of_others = {
            name: at(one, InputKind.RELEASE, one.place.directory)
            for name, one in MESSAGES.items()
            if one.place.directory != module
        }
        assert gone(MESSAGES, of_others) == set()
        some = dict(list(of_others.items())[1:])
        assert gone(MESSAGES, some) <= of_others.keys() - some.keys()


def spec(name: str, key: int | None = None, kind: str = "data") -> str:
    facts = {"name": name, "type": kind, "validVersions": "0", "flexibleVersions": "none"}
    return json.dumps(facts | ({} if key is None else {"apiKey": key}) | {"fields": []})


def write(root: str, paths: Iterable[str]) -> None:
    for path in paths:
        file = Path(root, path).with_suffix(".json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(spec(file.stem), encoding="utf-8")


def breaking(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["schema", "breaking", *arguments, "--format", "json"])


def told(*arguments: str) -> str:
    found = json.loads(breaking(*arguments).output)
    assert {one["rule"] for one in found} <= {"MESSAGE_REMOVED"}
    return " ".join(sorted(one["message"].split()[0] for one in found))


OLD = "a/One a/Two b/Three b/Four c/deep/Five"
# A case contains the whole new side, its named part, the named part of the old side, and the
# removed messages.
CASES = [
    ("a/One", "a/One.json", "", ""),
    ("a/One", "a/One.json", "a", ""),
    ("a/One", "a/One.json", "a/One.json", ""),
    ("a/One", "a/One.json", "a/One.json a/Two.json", "Two"),
    ("a/One", "", "a/Two.json", "Two"),
    ("a/One", "a", "a", "Two"),
    ("a/One", "a", "", "Two"),
    ("One", "", "", "Two"),
    ("One", "", "a", "Two"),
    ("One Two", "", "", ""),
    ("One Three", "", "", "Four Two"),
    ("a/One b/Four", "a b", "", "Three Two"),
    ("a/One b/Four", "a b", "a b c", "Three Two"),
    # The input is the whole release, but one directory is missing.
    ("a/One a/Two", "", "", "Five Four Three"),
    ("x/y/a/One x/y/a/Two", "", "", "Five Four Three"),
    ("x/y/a/One x/y/a/Two", "x/y", "", "Five Four Three"),
    ("x/y/a/One x/y/a/Two", "x/y/a", "", ""),
    ("x/One x/Two", "", "a", ""),
    ("deep/Five", "", "", ""),
    ("deep/Six", "", "c", "Five"),
    ("Six", "", "", ""),
    ("Six", "", "a", "One Two"),
    ("Six", "Six.json", "a", ""),
    ("Six", "Six.json", "a/One.json", "One"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("new", "named", "against", "expected"), CASES)
@pytest.mark.parametrize("form", ["directory", "jar", "git"])
def test_what_is_gone_depends_on_what_was_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    form: str,
    new: str,
    named: str,
    against: str,
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write("old", OLD.split())
    write("new", new.split())
    newer = [f"new/{one}".rstrip("/") for one in named.split() or [""]]
    older = [f"old/{one}".rstrip("/") for one in against.split() or [""]]
    if form == "jar" and not named:
        with zipfile.ZipFile("new.jar", "w") as jar:
            for one in sorted(Path("new").rglob("*.json")):
                jar.writestr(one.relative_to("new").as_posix(), one.read_bytes())
        newer = ["new.jar"]
    if form == "git":
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x", "--no-gpg-sign"]):
            subprocess.run(["git", *identity, *arguments], check=True)
        newer, older = ([f"HEAD:{one}" for one in side] for side in (newer, older))
    against_all = [part for one in older for part in ("--against", one)]
    assert told(*newer, *against_all) == expected


def test_jars_stand_for_those_they_share_messages_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, messages in (("a-1", "One Two"), ("b-1", "Three"), ("a-2", "One"), ("c-2", "Three")):
        with zipfile.ZipFile(f"{name}.jar", "w") as jar:
            for one in messages.split():
                jar.writestr(f"common/message/{one}.json", spec(one))
    both = ("--against", "a-1.jar", "--against", "b-1.jar")
    assert told("a-2.jar", *both) == "Two"
    assert told("a-2.jar", "c-2.jar", *both) == "Two"
    assert told("c-2.jar", *both) == ""
    assert told("b-1.jar", "--against", "a-1.jar") == "One Two"


def test_a_directory_of_jars_has_the_modules_that_its_jars_are_named_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, messages in (
        ("old/kafka-clients-4.3.1", "One Two"),
        ("old/kafka-storage-4.3.1", "Three Four"),
        ("new/kafka-clients-4.4.0", "One"),
        ("new/kafka-storage-4.4.0", "Three"),
    ):
        Path(path).parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(f"{path}.jar", "w") as jar:
            for one in messages.split():
                jar.writestr(f"common/message/{one}.json", spec(one))
    assert told("new", "--against", "old") == "Four Two"
    assert told("new/kafka-clients-4.4.0.jar", "--against", "old") == "Two"
    assert told("new", "--against", "old/kafka-clients-4.3.1.jar") == "Two"
    Path("new/kafka-storage-4.4.0.jar").unlink()
    # The whole directory is the input, so messages of missing jars count as removed.
    assert told("new", "--against", "old") == "Four Three Two"


def test_records_have_their_api_keys_in_their_own_module() -> None:
    # Each coordinator numbers its record types from 0.
    (key, *_) = [one for one in MESSAGES.values() if one.spec.type is MessageType.METADATA]
    for kind in MessageType:
        one = replace(key.spec, type=kind, name="OldOne")
        other = replace(key.spec, type=kind, name="NewOne")
        neighbour = replace(key.spec, name="Neighbour", api_key=9999)
        old = {
            "OldOne": Edition(one, place=SpecOrigin(directory="a")),
            "Neighbour": Edition(neighbour, place=SpecOrigin(directory="a")),
        }
        for directory, same in (("x", True), ("y", False)):
            new = {
                "NewOne": Edition(other, place=SpecOrigin(root="new", directory=directory)),
                "Neighbour": Edition(neighbour, place=SpecOrigin(root="new", directory="x")),
            }
            partner = {one.spec.name: other for one, other in match_messages(old, new)}["OldOne"]
            assert (partner is not None) is (same or kind.is_api)
