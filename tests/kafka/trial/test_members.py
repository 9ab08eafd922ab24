"""Members that a client's program runs start, report failures, and leave."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tools.clients.installing import Program
from tools.clients.members import Members
from tools.environment import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from tools.clients.members import say

print("noise", flush=True)
print("noise", file=sys.stderr, flush=True)
for line in sys.stdin:
    word, name, *given = line.rstrip("\\n").split("\\t")
    if word == "start":
        say(name, "started" if "x=1" in given else "failed", " ".join(given))
    else:
        say(name, "left")
"""


@pytest.mark.slow
def test_members_start_fail_and_leave(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    program = Program((sys.executable, str(path)), (("PYTHONPATH", str(ROOT)),))
    log = tmp_path / "members.log"
    with Members(program, log) as members:
        members.start("good", "127.0.0.1:9", "g", "t", ["x=1"])
        members.start("bad", "127.0.0.1:9", "g", "^t", ["x=2", "y=a b"])
        members.leave("good")
        members.leave("bad")
        assert members.failure("good") == ""
        assert members.failure("bad") == "127.0.0.1:9 g ^t x=2 y=a b"
        assert members.failure("nobody") == ""
    assert log.read_text(encoding="utf-8") == "noise\n"
