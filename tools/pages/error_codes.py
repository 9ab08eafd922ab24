"""docs/error-codes.md: a line for every error code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.protocol.error_codes import error_codes
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol.error_codes import ErrorCode

PAGE = DOCS / "error-codes.md"
_HEAD = """# Error codes

This page lists every error code that Kafka's brokers return, and its meaning in our words. The
column *again* says "yes" if Kafka's own clients may send the same request again, because a second
attempt may succeed. For many of the other codes, clients have another remedy, which the last column
describes. `flexwire schema errors 16` prints one code. *Since* is the release that added the code;
every code that 2.4 already had is listed with "2.4". `python -m tools.pages.error_codes` writes
this page from `flexwire.protocol.error_codes`.

A large number in an error, such as "Invalid receive (size = 369295616 larger than 104857600)", is
not an error code: see [sizes](sizes.md).

| code | name | since | again | what it means |
|---|---|---|---|---|
"""


def files() -> dict[Path, str]:
    """Return the page."""
    return {PAGE: _HEAD + "".join(map(_row, error_codes()))}


def _row(error: ErrorCode) -> str:
    former = f"; {error.former_name} before {error.renamed}" if error.former_name else ""
    again = "yes" if error.is_retriable else ""
    return f"| {error.code} | {error.name}{former} | {error.since} | {again} | {error.meaning} |\n"


if __name__ == "__main__":
    write_files(files())
