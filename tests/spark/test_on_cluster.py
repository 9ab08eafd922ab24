"""The changes that `make cluster` makes to an analysis take effect; no other test checks this."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.on_cluster import HIDDEN, changed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("fault", ["", "task_killed", HIDDEN])
def test_what_an_analysis_is_changed_by_is_there(fault: str, tmp_path: Path) -> None:
    # The module is patched, because it imports some of the names for its own use.
    analyze: Any = import_module("flexwire.spark.analyze")
    captures = [tmp_path / name for name in ("a.pcap", "b.pcap")]
    for one in captures:
        one.write_bytes(b"")
    with changed(fault, ""):
        found = analyze.input_sources([tmp_path]).captures
        assert analyze.range_bytes_for(1 << 40, 4) == 20_000
    assert [one.url for one in found] == [str(one) for one in captures]
    assert [one.exists() for one in captures] == [True, fault != HIDDEN]
