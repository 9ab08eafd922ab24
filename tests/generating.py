"""A fixture for tests that compare generated code with the reference, even on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.codec import definition

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def generated_at_once() -> Iterator[None]:
    """Generate code as soon as a version is first used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(definition, "PAYS", 0)
        yield
