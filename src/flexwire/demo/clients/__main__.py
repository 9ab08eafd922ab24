"""``python -m flexwire.demo.clients NAME BOOTSTRAP`` runs one client and prints its outcome."""

from __future__ import annotations

import sys

import msgspec

from flexwire.demo.clients import load_client
from flexwire.errors import FlexwireError


def main(name: str, bootstrap: str) -> int:
    """Run the client.

    If the client cannot run, print the reason to standard error and return 1.
    """
    try:
        outcome = load_client(name).run(bootstrap)
    except FlexwireError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
    return 0


if __name__ == "__main__":
    # The process flushes its output and exits immediately, because client threads that are still
    # running must not delay the exit.
    sys.exit(main(*sys.argv[1:]))
