"""What stands in the tables in the place of secrets."""

from __future__ import annotations

from typing import Any

from flexwire.protocol import WITHHELD

WITHHELD_BYTES = WITHHELD.encode()


def withheld_tagged_fields(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a value of `RAW_TAGGED_FIELDS` with "withheld" in the place of the fields' bytes."""
    return [{**one, "data": WITHHELD_BYTES} for one in raw]
