"""The command `flexwire`, for ``python -m flexwire`` and for ``spark-submit`` with this file."""

import sys

if not __package__:
    # When this file is run by its path, Python searches flexwire's own directory first for every
    # module.
    del sys.path[0]

from flexwire.cli import main

main()
