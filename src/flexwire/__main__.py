"""The command `flexwire`, for ``python -m flexwire`` and for ``spark-submit`` with this file."""

import sys

if not __package__:
    # If this file is run by its path, Python would search flexwire's own directory first for all
    # modules.
    del sys.path[0]

from flexwire.cli import main

main()
