"""The bench: everything that a reviewer of a spec change needs, on one page.

The bench computes nothing itself. It shows the results of `lint`, `breaking`, `cost` and `guide`
next to the reference executor's explanation of the bytes.

The law of this package: the comparison of equal specs is empty, and the comparison of different
specs lists every message that differs (`tests/check/test_bench.py`).
"""

from __future__ import annotations

from flexwire.specs.bench.comparison import SpecComparison, compare_specs

__all__ = ["SpecComparison", "compare_specs"]
