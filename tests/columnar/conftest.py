"""A test fails if a row takes the slow path without permission: that would hide a
kernel's fault.
"""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.columnar import reference


@pytest.fixture(autouse=True)
def kernels_only(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the reference executor reads or writes a row that a kernel refused."""

    def fail(values: Any, slow: dict[int, Any]) -> Any:
        assert not slow, f"refused without a reason: rows {sorted(slow)}"
        return values

    if "slow_path" not in request.fixturenames:
        monkeypatch.setattr(reference, "_put", fail)


@pytest.fixture
def slow_path() -> None:
    """Make rows take the slow path."""
