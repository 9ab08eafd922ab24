"""Clients are installed completely or not at all, and the error names the missing part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.clients import installing
from tools.clients.installing import Go, Node, Way

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine without tools; return the directory for its tools."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setattr(installing, "KEPT", tmp_path / "clients")
    monkeypatch.setenv("PATH", str(tools))
    return tools


def kept() -> list[str]:
    return sorted(one.name for one in installing.KEPT.iterdir() if not one.name.endswith(".making"))


def tool(place: Path, name: str, script: str) -> None:
    place.joinpath(name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    place.joinpath(name).chmod(0o755)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("way", "name"), [(Go("sarama"), "go"), (Node("kafkajs"), "npm")])
def test_without_its_tool_the_error_says_which(way: Way, name: str) -> None:
    with pytest.raises(SystemExit, match=f"cannot be brought: there is no {name} on the path"):
        way.bring()
    assert kept() == ["lock"]


def test_what_a_tool_says_is_passed_on_and_nothing_half_is_kept(alone: Path) -> None:
    tool(alone, "npm", "echo half > half; echo no such host; exit 1")
    with pytest.raises(SystemExit, match=r"npm ci .* said:\nno such host\n"):
        Node("kafkajs").bring()
    assert kept() == ["lock"]
    tool(alone, "npm", "test ! -e half && echo whole > whole")
    tool(alone, "node", "exit 0")
    command = Node("kafkajs").bring().command
    (place,) = (one for one in kept() if one != "lock")
    assert (installing.KEPT / place / "whole").exists()
    assert command == (str(alone / "node"), str(installing.KEPT / place / "main.js"))


def test_what_is_there_is_not_brought_again_unless_what_decides_it_changed(
    alone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool(alone, "npm", "exit 0")
    tool(alone, "node", "exit 0")
    first = Node("kafkajs").bring()
    tool(alone, "npm", "exit 1")
    assert Node("kafkajs").bring() == first
    changed = tmp_path / "kafkajs"
    changed.mkdir()
    for name in ("main.js", "package.json", "package-lock.json"):
        changed.joinpath(name).write_bytes((installing.HERE / "kafkajs" / name).read_bytes() + b" ")
    monkeypatch.setattr(installing, "HERE", tmp_path)
    with pytest.raises(SystemExit):
        Node("kafkajs").bring()
