"""Here generated code is meant where it is compared with the reference, also the first time."""

from __future__ import annotations

from tests.generating import generated_at_once

__all__ = ["generated_at_once"]
