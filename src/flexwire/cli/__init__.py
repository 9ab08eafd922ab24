"""The `flexwire` command: one file per command.

A command imports what it needs when it runs, so that `flexwire decode` answers in a blink while
`flexwire analyze` may take its time to load Spark.
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
