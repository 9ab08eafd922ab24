"""Old import paths of moved modules return the same module objects."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

import flexwire  # noqa: F401 - it lets Python find old paths
from flexwire.moved import MOVED, RENAMED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_path_gives_the_module_at_its_new_path(old: str, new: str) -> None:
    # Other code may have imported the module already, and the warning is issued only once.
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match="has moved to"):
        found = import_module(old)
    assert found is import_module(new)
    spec = sys.modules[new].__spec__
    assert spec is not None
    assert spec.name == new


@pytest.mark.parametrize("module", RENAMED)
def test_an_old_name_gives_the_object_with_the_new_name(module: str) -> None:
    room = import_module(module)
    for old, new in RENAMED[module].items():
        assert old not in vars(room)
        with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
            found = getattr(room, old)
        assert found is getattr(room, new)
    with pytest.raises(AttributeError, match="no attribute 'NoSuchName'"):
        _ = room.NoSuchName


def test_old_names_are_in_order() -> None:
    assert list(RENAMED) == sorted(RENAMED)
    assert all(list(names) == sorted(names) for names in RENAMED.values())


def test_a_new_path_is_no_old_one() -> None:
    assert not MOVED.keys() & set(MOVED.values())


def test_what_else_stood_in_a_room_that_moved_names_the_new_room() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"net\.relay has moved.* is now flexwire\.tap"):
        import_module("flexwire.net.relay")
    with pytest.raises(ModuleNotFoundError, match=r"No module named .flexwire\.nets"):
        import_module("flexwire.nets")


@pytest.mark.slow
def test_names_of_an_old_path_can_be_imported_by_a_new_process() -> None:
    code = (
        "from flexwire.net.calling import Broker\n"
        "from flexwire.net import Tap\n"
        "print(Broker.__module__, Tap.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "flexwire.client.broker flexwire.tap.tap\n"
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == [
        f"DeprecationWarning: {old} has moved to {new}; the old path will be "
        "removed in the next release"
        for old, new in (
            ("flexwire.net", "flexwire.tap"),
            ("flexwire.net.calling", "flexwire.client"),
        )
    ]


def test_a_function_of_an_answer_is_not_hidden_by_the_old_path_of_its_file() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = import_module("flexwire.spark.answers.latency")
    room = import_module("flexwire.spark.answers")
    assert room.latency is old.latency
    assert room.slowest is old.slowest
    assert room.ANSWERS == import_module("flexwire.answers").ANSWERS
    with pytest.raises(AttributeError, match=r"no attribute 'reset'"):
        _ = room.reset
