"""``python -m flexwire.demo.clients NAME BOOTSTRAP`` runs one client and prints its outcome."""

from __future__ import annotations

import sys

import msgspec

from flexwire.demo.clients import load_client
from flexwire.errors import FlexwireError


def main(name: str, bootstrap: str) -> int:
    """Run the client; return 1, with the reason on standard error, if it cannot run at all."""
    try:
        outcome = load_client(name).run(bootstrap)
    except FlexwireError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
    return 0


if __name__ == "__main__":
    # Flush and exit at once, because threads of a client that are still running must not delay the
    # end of the process.
    sys.exit(main(*sys.argv[1:]))
