"""Members of groups: each client's program runs as many members as requested.

A program reads lines of tab-separated words until its standard input ends:

- ``start NAME ADDRESS GROUP TOPIC SETTING=VALUE …`` starts a member. A topic that begins with ``^``
  is a pattern.
- ``leave NAME`` makes a member leave its group and close.

The program writes a line of JSON for each event: ``member`` is the name, and ``event`` is
"started", "failed" or "left". In the event "failed", ``text`` is the client's own message. "left"
is the last event of every member.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from typing import IO, TYPE_CHECKING, Self

from tools.environment import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tools.clients.installing import Program

MOST_SECONDS = 20
_SAYING = threading.Lock()


def say(member: str, event: str, text: str = "") -> None:
    """Write an event in the form that a program uses."""
    with _SAYING:
        sys.stdout.write(json.dumps({"member": member, "event": event, "text": text}) + "\n")
        sys.stdout.flush()


class Members:
    """The members that a program runs, until the ``with`` block ends.

    ``log`` is the file to which the program writes its other output.
    """

    def __init__(self, program: Program, log: Path) -> None:
        own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                program.command,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
                cwd=ROOT, env={**own, **dict(program.environment)}, text=True,
            )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018 - pipes
        self._asks: IO[str] = self._process.stdin
        self._tells: IO[str] = self._process.stdout
        self._events: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._changed = threading.Condition()
        self._hears = threading.Thread(target=self._hear, args=(self._tells,))
        self._hears.start()

    def __enter__(self) -> Self:
        """Return these members, without running them."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the program and all of its members."""
        self._asks.close()
        try:
            self._process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hears.join()
        self._tells.close()

    def start(
        self, name: str, address: str, group: str, topic: str, settings: Sequence[str]
    ) -> None:
        """Start a member."""
        self._ask("start", name, address, group, topic, *settings)

    def leave(self, name: str) -> None:
        """Make a member leave, and wait until it has left."""
        self._ask("leave", name)
        with self._changed:
            self._changed.wait_for(lambda: ("left", "") in self._events[name], MOST_SECONDS)

    def failure(self, name: str) -> str:
        """Return the last message of a failed member, or an empty string if nothing failed."""
        with self._changed:
            said = [text for event, text in self._events[name] if event == "failed"]
        return said[-1] if said else ""

    def _ask(self, *words: str) -> None:
        with self._changed:
            self._asks.write("\t".join(words) + "\n")
            self._asks.flush()

    def _hear(self, said: IO[str]) -> None:
        for line in said:
            if line.startswith("{"):
                event = json.loads(line)
                with self._changed:
                    self._events[event["member"]].append((event["event"], event["text"]))
                    self._changed.notify_all()
