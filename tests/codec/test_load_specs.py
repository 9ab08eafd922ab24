"""A user's specs are read at run time and found by name, and errors name the position."""

from __future__ import annotations

import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import flexwire
from flexwire import SpecSet, load_specs
from flexwire.codec import message
from flexwire.errors import DecodeError, SpecError, UnknownMessageError
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from pathlib import Path

TEXT = {"name": "Text", "type": "string", "versions": "0+"}
HOPS = {
    "name": "Hops",
    "type": "[]Hop",
    "versions": "1+",
    "fields": [{"name": "Host", "type": "string", "versions": "1+"}],
}


def write(path: Path, name: str, fields: list[Any] | None = None, **more: Any) -> Path:
    spec = {
        "type": "data",
        "name": name,
        "validVersions": "0-2",
        "flexibleVersions": "1+",
        "fields": [TEXT, HOPS] if fields is None else fields,
        **more,
    }
    path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
    return path


def refused(paths: Any, **how: Any) -> str:
    with pytest.raises(SpecError) as caught:
        load_specs(paths, **how)
    return str(caught.value)


def test_a_message_of_one_s_own_is_a_message(tmp_path: Path) -> None:
    write(tmp_path / "Ping.json", "Ping")
    ping: Any = load_specs(tmp_path).message("Ping")
    value = ping(text="hi", hops=[ping.Hop(host="a")], unknown_tagged_fields={9: b"x"})
    assert ping.decode(value.encode(1), 1) == value
    assert ping.from_json(value.to_json(1), 1) == value
    with pytest.raises(DecodeError, match="Ping v0 at text, byte 2"):
        ping.decode(b"\x00\x05a", 0)
    with pytest.raises(UnknownMessageError, match="Ping has no version 3; it has 0-2"):
        ping.decode(b"", 3)


def test_files_and_directories_are_read_as_given(tmp_path: Path) -> None:
    for directory in ("a", "b", "a/deeper"):
        (tmp_path / directory).mkdir()
    ping = write(tmp_path / "a" / "Ping.json", "Ping")
    write(tmp_path / "a" / "deeper" / "Deep.json", "Deep")
    (tmp_path / "a" / "notes.txt").write_text("no spec", encoding="utf-8")
    pong = write(tmp_path / "b" / "pong.spec", "Pong")
    assert load_specs(tmp_path / "a").names() == ("Deep", "Ping")
    assert load_specs(str(pong)).names() == ("Pong",)
    both = load_specs([pong, str(tmp_path / "a"), ping])
    assert both.names() == ("Deep", "Ping", "Pong")
    assert "Pong" in both
    assert "Dee" not in both
    assert repr(both) == "<SpecSet of Deep, Ping, Pong>"


def test_own_messages_stand_beside_bundled_ones_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path / "FetchRequest.json", "FetchRequest")
    own = load_specs(tmp_path).message("FetchRequest")
    assert own is not message("FetchRequest")
    assert own.__struct_fields__ == ("text", "hops", "unknown_tagged_fields")
    assert flexwire.message("FetchRequest") is message("FetchRequest")


def test_one_class_for_one_spec(tmp_path: Path) -> None:
    write(tmp_path / "Ping.json", "Ping")
    specs = load_specs(tmp_path)
    assert specs.message("Ping") is specs.message("Ping")
    assert load_specs(tmp_path).message("Ping") is specs.message("Ping")


def test_a_changed_file_is_another_message(tmp_path: Path) -> None:
    before = load_specs(write(tmp_path / "Ping.json", "Ping")).message("Ping")
    after = load_specs(write(tmp_path / "Ping.json", "Ping", [TEXT])).message("Ping")
    assert before().encode(1) == b"\x01\x01\x00"
    assert after().encode(1) == b"\x01\x00"


def test_sets_and_objects_are_pickled(tmp_path: Path) -> None:
    specs = load_specs(write(tmp_path / "Ping.json", "Ping"))
    made: Any = specs.message("Ping")
    value = made(hops=[made.Hop(host="a")])
    again = pickle.loads(pickle.dumps((specs, value)))  # noqa: S301 - our own bytes
    assert isinstance(again[0], SpecSet)
    assert again[0].names() == ("Ping",)
    assert again[0].message("Ping") is made
    assert again[1] == value


def test_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"{number}.json", f"Ping{number}")
    specs = load_specs(tmp_path)
    with pytest.raises(UnknownMessageError, match="'Pnig7' in these specs; did you mean Ping7"):
        specs.message("Pnig7")
    with pytest.raises(UnknownMessageError, match=r"there are Ping0, .* and 10 more"):
        specs.spec("FetchRequest")


def test_a_name_that_two_files_give_is_refused_where_it_stands(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", "Ping")
    second = write(tmp_path / "b.json", "Ping")
    assert refused(tmp_path) == (
        f"{second}:3:10: message Ping is already defined in {first}; rename one"
    )


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "A", "type": "int9", "versions": "0+"}, ":9:12: field A: unknown type 'int9'"),
    ({"name": "A", "type": "Nowhere", "versions": "2+"}, ":7:3: field A: structure Nowhere is"),
    ({"name": "A", "type": "int8", "versions": "0+", "default": "300"}, ":7:3: field A: default"),
    (
        {"name": "A", "type": "int8", "versions": "0+", "tag": 0, "taggedVersions": "0+"},
        ":7:3: field A: tagged in version 0, which is not flexible",
    ),
    ({"name": "A", "type": "[]Ping", "versions": "1"}, ":7:3: field A: structure Ping contains"),
]


@pytest.mark.parametrize(("field", "told"), WRONG, ids=range(len(WRONG)))
def test_what_no_version_can_be_laid_out_with_is_refused_where_it_stands(
    tmp_path: Path, field: dict[str, Any], told: str
) -> None:
    path = write(tmp_path / "Ping.json", "Ping", [field])
    assert refused(tmp_path).startswith(f"{path}{told}")


def test_a_layout_is_checked_wherever_it_changes(tmp_path: Path) -> None:
    # Only version 7 of thousands contains a field whose structure is missing.
    wrong = {"name": "A", "type": "Nowhere", "versions": "7"}
    write(tmp_path / "Ping.json", "Ping", [TEXT, wrong], validVersions="0+")
    assert "structure Nowhere is never defined" in refused(tmp_path)
    # From version 5 on, the elements take no bytes.
    items = {**HOPS, "fields": [{"name": "Host", "type": "string", "versions": "0-4"}]}
    write(tmp_path / "Ping.json", "Ping", [items], validVersions="0-9", flexibleVersions="none")
    assert "the elements take no bytes in version 5" in refused(tmp_path)


def test_what_is_no_spec_is_refused_by_its_path(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(empty) == f"{empty}: no specs here: no *.json files"
    missing = tmp_path / "Missing.json"
    assert refused(missing).startswith(f"{missing}: no such file or directory")
    assert "no such file or directory" in refused("nul\0.json")
    binary = tmp_path / "Binary.json"
    binary.write_bytes(b'{"name": "\xff"}')
    assert refused(binary) == f"{binary}: not UTF-8 at byte 10"
    binary.write_bytes(b"[]")
    assert refused(binary) == f"{binary}:1:1: the spec must be an object, got an array"
    pipe = tmp_path / "loop.json"
    pipe.symlink_to(pipe)
    assert "no such file or directory" in refused(os.fspath(pipe))


def test_the_mode_says_what_counts_as_a_spec(tmp_path: Path) -> None:
    path = write(tmp_path / "Ping.json", "Ping")
    spec = json.loads(path.read_text(encoding="utf-8"))
    del spec["flexibleVersions"]
    path.write_text(json.dumps(spec) + "]}", encoding="utf-8")
    assert refused(path).endswith("after the end of the spec; remove it")
    assert load_specs(path, mode="legacy").names() == ("Ping",)


@pytest.mark.slow
def test_every_bundled_message_of_one_spec_loads_as_one_s_own() -> None:
    bundled = catalog()
    entries = [bundled.entry(name) for name in bundled.names()]
    alone = [one for one in entries if len(one.all_specs()) == 1]
    assert len(alone) > 100
    specs = load_specs([bundled.root / one.module / f"{one.name}.json" for one in alone])
    for one in alone:
        own, known = specs.message(one.name), message(one.name)
        assert own.__struct_fields__ == known.__struct_fields__
        assert own().encode(one.versions.highest) == known().encode(one.versions.highest)
