"""What every target raises where a law does not hold."""

from __future__ import annotations


class LawBrokenError(Exception):
    """Two answers that should be one."""
