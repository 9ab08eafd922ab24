"""``python -m flexwire`` is the `flexwire` command, and so is this file to ``spark-submit``."""

import sys

if not __package__:
    # Run by its path, it has Python look for all modules in flexwire's own folder first.
    del sys.path[0]

from flexwire.cli import main

main()
