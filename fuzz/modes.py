"""The first byte for a target of specs chooses the mode in which specs are read."""

from __future__ import annotations

from typing import get_args

from flexwire.schema.parse import Mode

MODES: tuple[Mode, ...] = get_args(Mode)


def mode_of(data: bytes) -> Mode:
    """Return the mode that the first byte chooses; without a byte, the first mode."""
    return MODES[sum(data[:1]) % len(MODES)]
