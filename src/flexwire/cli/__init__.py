"""The `flexwire` command, with one file per command.

A command reads its arguments, calls other packages, and prints their results. Those other packages
determine the meaning of bytes and specs. A command imports modules only when it runs. Therefore,
`flexwire decode` starts immediately, although `flexwire analyze` needs time to load Spark.

`app` defines the command tree, the exit codes and the format of errors. `options` defines the
arguments that commands share. `terminal` escapes the control characters in the output of all
commands.

The laws of this package (tests below `tests/`):

- A command imports modules only when it runs. Otherwise `flexwire decode` would take a second
  (`cli/test_imports.py`, `cli/test_messages.py`).
- Foreign text never sends a control character to a terminal, and a pipe receives data unchanged
  (`cli/test_terminal.py`, `cli/test_formats.py`).
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line.

    Ctrl-C ends the command without a traceback, even while modules are loading.
    """
    try:
        from flexwire.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
