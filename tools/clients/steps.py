"""Parse the input of a Python client's program, and report each step."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = "seed-"
"""The prefix of the values that the topic contains before the client starts."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The program's task: ``count`` records in each direction, and ``seconds`` for each step."""

    address: str
    client_id: str
    topic: str
    group: str
    count: int
    seconds: int
    setting: str = ""

    @classmethod
    def parse(cls) -> Asked:
        """Return the parsed command line."""
        address, client_id, topic, group, count, seconds, *setting = sys.argv[1:]
        return cls(address, client_id, topic, group, int(count), int(seconds), *setting)


class LeftOutError(Exception):
    """The error for a step that the client does not have."""


def step(
    name: str, body: Callable[[], object], seconds: int, heard: Callable[[], str] = str
) -> bool:
    """Return whether a step succeeded; a step that takes too long is abandoned.

    ``heard`` returns the client's last message, for a step that does not end in time.
    """
    said: list[tuple[str | None, str | None]] = []

    def run() -> None:
        try:
            body()
        except LeftOutError as why:
            said.append((None, str(why)))
        except Exception as error:  # noqa: BLE001 - the answer is whatever the client says
            said.append((f"{type(error).__name__}: {error}", None))
        else:
            said.append((None, None))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    late = "; ".join(one for one in (f"nothing in {seconds} s", heard()) if one)
    error, left = said[0] if said else (late, None)
    sys.stdout.write(json.dumps({"step": name, "error": error, "left": left}) + "\n")
    sys.stdout.flush()
    return error is None
