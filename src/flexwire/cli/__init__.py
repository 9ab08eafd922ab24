"""The `flexwire` command: one file per command.

A command reads its arguments, calls other rooms, and prints what they return; what bytes and specs
mean is decided there. It imports what it needs when it runs, so that `flexwire decode` answers in a
blink while `flexwire analyze` may take its time to load Spark. `app` has the command tree, the exit
codes and the form of an error, `options` the arguments that commands share, and `terminal` escapes
what a terminal would obey, for all of them.

The laws of this room (tests below `tests/`):

- A command imports what it needs when it runs, or `flexwire decode` takes a second
  (`cli/test_imports.py`, `cli/test_messages.py`).
- A terminal never gets a character that it would obey, and a pipe gets data as it is
  (`cli/test_terminal.py`, `cli/test_formats.py`).
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, even while it loads."""
    try:
        from flexwire.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
