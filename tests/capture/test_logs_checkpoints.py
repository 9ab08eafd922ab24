"""A broker's checkpoint files are read: the offsets of each log, and the broker's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.logs.checkpoints import broker_of, high_watermarks, parse_offsets
from flexwire.logs.files import Partition

if TYPE_CHECKING:
    from pathlib import Path


def test_high_watermarks_are_exact_after_a_clean_stop(tmp_path: Path) -> None:
    assert high_watermarks(str(tmp_path)) == ({}, False)
    text = "0\n2\norders 0 4\n__consumer_offsets 11 0\n"
    (tmp_path / "replication-offset-checkpoint").write_text(text)
    offsets = {Partition("orders", 0): 4, Partition("__consumer_offsets", 11): 0}
    assert high_watermarks(str(tmp_path)) == (offsets, False)
    (tmp_path / ".kafka_cleanshutdown").write_text("")
    assert high_watermarks(str(tmp_path)) == (offsets, True)


@pytest.mark.parametrize(
    ("text", "broker"),
    [
        ("#\n#Mon Nov 23\nnode.id=3\ndirectory.id=x\nversion=1\ncluster.id=y\n", 3),
        ("version=0\nbroker.id=12\r\ncluster.id=y\n", 12),
        ("version=1\ncluster.id=node.id=4\n", None),
        ("", None),
    ],
)
def test_a_broker_says_its_id(text: str, broker: int | None, tmp_path: Path) -> None:
    assert broker_of(str(tmp_path)) is None
    (tmp_path / "meta.properties").write_bytes(text.encode())
    assert broker_of(str(tmp_path)) == broker


@pytest.mark.parametrize("name", ["a", "a.b_c-d", "__share_group_state"])
def test_offsets_of_any_topic(name: str) -> None:
    assert parse_offsets(f"0\n1\n{name} 3 17\n") == {Partition(name, 3): 17}
