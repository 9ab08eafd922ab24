"""``python -m flexwire`` is the `flexwire` command."""

from flexwire.cli import main

main()
