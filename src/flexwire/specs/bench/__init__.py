"""The bench: everything that a reviewer of a spec change asks, on one page.

It computes nothing itself. `lint`, `breaking`, `cost` and `guide` say what they say elsewhere, the
reference executor explains the bytes, and this room puts the answers beside each other.

The law of this room: a comparison of equal specs is empty, and one of different specs names every
message that differs (`tests/check/test_bench.py`).
"""

from __future__ import annotations

from flexwire.specs.bench.comparison import SpecComparison, compare_specs

__all__ = ["SpecComparison", "compare_specs"]
