"""The error that every target raises if a law is broken."""

from __future__ import annotations


class LawBrokenError(Exception):
    """Two results that should be equal differ."""
