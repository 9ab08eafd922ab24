"""``python -m flexwire`` is the `flexwire` command, and so is this file to ``spark-submit``."""

import sys

if not __package__:
    # If this file is run by its path, Python would search flexwire's own folder first for all
    # modules.
    del sys.path[0]

from flexwire.cli import main

main()
