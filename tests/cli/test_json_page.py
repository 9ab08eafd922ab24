"""Every command prints JSON, and docs/json.md describes its shape
(`tools/pages/json_output.py`)."""

from __future__ import annotations

import click

from flexwire.cli.app import app
from tools.pages.json_output import shape, tap_output


def test_a_tap_says_where_it_listens_and_then_what_it_counted() -> None:
    listening, stopped = tap_output()
    assert listening["type"] == "listening"
    assert listening["address"] == "127.0.0.1:19092"
    assert stopped["type"] == "stopped"
    # Unlike the text, the JSON also includes counts of 0.
    assert (stopped["requests"], stopped["notCaptured"]) == (3, 0)
    assert "openConnections" not in stopped


# Why a command prints no JSON, or no text of its own.
WITHOUT = {
    "completion": "prints the script that a shell reads",
    "mcp": "speaks JSON to a program, in messages of a protocol",
    "view": "shows a screen",
    "schema docs": "writes pages, whose format it is",
}


def test_every_command_prints_text_and_json() -> None:
    for name, command in _leaves(app):
        formats = [one.type for one in command.params if "--format" in one.opts]
        takes = set()
        for one in formats:
            assert isinstance(one, click.Choice)
            takes = {str(getattr(choice, "value", choice)) for choice in one.choices}
        assert (takes >= {"text", "json"}) != (name in WITHOUT), name


def _leaves(group: click.Group, path: str = "") -> list[tuple[str, click.Command]]:
    found = []
    for name, one in group.commands.items():
        full = f"{path}{name}"
        found += _leaves(one, f"{full} ") if isinstance(one, click.Group) else [(full, one)]
    return found


def test_a_shape_says_what_is_not_always_there() -> None:
    assert shape([{"a": 1}, {"a": None, "b": ["x"]}]) == (
        '[{\n  "a": int | null,\n  "b"?: [text]\n}]'
    )
