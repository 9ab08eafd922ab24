"""Tests here compare generated code with the reference from the first message on."""

from __future__ import annotations

from tests.generating import generated_at_once

__all__ = ["generated_at_once"]
