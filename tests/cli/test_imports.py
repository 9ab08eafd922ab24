"""The command line loads few modules before it knows which command to run."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import flexwire.cli.app
print(*sorted(one for one in sys.modules if one.partition(".")[0] not in sys.stdlib_module_names))
"""
GROUND = {"arguments", "cli", "errors", "extras", "moved", "printable", "versions", "wire"}
# This module declares the options of a command.
DECLARES = {"flexwire.tap", "flexwire.tap.config", "flexwire.tap.limits"}


def test_it_loads_its_own_room_and_what_every_room_stands_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300
    )
    loaded = set(done.stdout.split())
    foreign = {one.partition(".")[0] for one in loaded if not one.startswith(("_", "sitecustom"))}
    assert foreign <= {"click", "flexwire"}
    ours = {one for one in loaded if one.startswith("flexwire.")} - DECLARES
    assert {one.split(".")[1] for one in ours} <= GROUND
