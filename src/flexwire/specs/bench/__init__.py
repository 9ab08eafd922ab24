"""The bench: everything that a reviewer of a spec change asks, on one page.

It computes nothing itself. It shows the results of `lint`, `breaking`, `cost` and `guide`, with the
reference executor's explanation of the bytes, side by side.

The law of this room: a comparison of equal specs is empty, and one of different specs names every
message that differs (`tests/check/test_bench.py`).
"""

from __future__ import annotations

from flexwire.specs.bench.comparison import SpecComparison, compare_specs

__all__ = ["SpecComparison", "compare_specs"]
