"""The blocks on the page about `call` run against a cluster, and its table matches the code."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flexwire.client.cluster import COORDINATORS
from flexwire.client.config import _PROTOCOLS, _USED
from flexwire.client.security import MECHANISMS
from flexwire.client.write_requests import CONDITIONS, DANGERS, READING, REMARKS
from flexwire.demo.cluster import MockCluster
from tests.house.test_readme import blocks, check

PAGE = (Path(__file__).parents[2] / "docs" / "call.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.slow
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    with MockCluster() as cluster:
        cluster.create_topic("orders", partitions=2)
        host, port = cluster.addresses[0]
        for block in blocks(PAGE):
            text = block.text.replace("localhost:9092", f"{host}:{port}")
            try:
                check(replace(block, text=text), tmp_path)
            except Exception as error:
                error.add_note(f"docs/call.md:{block.line}")
                raise


def rows(first: str) -> dict[str, str]:
    table = PAGE.split(f"| {first} |")[1].split("\n\n")[0]
    found = re.findall(r"^\| (.+?) \| ?(.*?) ?\|$", table, re.MULTILINE)
    return {name: told for name, told in found if not name.startswith("---")}


def test_it_lists_what_only_reads() -> None:
    assert rows("these only read") == {name: CONDITIONS.get(name, "") for name in sorted(READING)}


def test_it_lists_what_reading_leaves_behind_and_what_is_overlooked() -> None:
    assert rows("after reading") == REMARKS
    assert rows("API") == {name: one.effect for name, one in DANGERS.items()}


def test_it_has_every_route_and_every_key() -> None:
    told = {name.strip("`").partition(":")[0] for name in rows("`--to`")}
    assert told == {"any", "2", "leader", "controller", *COORDINATORS}
    keys = " ".join(rows("key"))
    for name in _USED - {"bootstrap.servers", "bootstrap.controllers"}:
        prefix = ".".join(name.split(".")[:2])
        assert f"`{name}`" in keys or f"`{prefix}.*`" in keys, name
    for word in (*_PROTOCOLS, *MECHANISMS):
        assert word in " ".join(rows("key").values())
