"""Fixtures that the report's tests share. Each picture is drawn once."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import pytest
import vl_convert

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package", autouse=True)
def _pictures_once() -> Iterator[None]:
    """Draw each picture only once, because most tests change sentences and no pictures."""
    draw, drawn = vl_convert.vegalite_to_svg, dict[str, str]()

    @functools.wraps(draw)
    def once(spec: dict[str, Any], **more: Any) -> str:
        key = json.dumps([spec, more])
        if key not in drawn:
            drawn[key] = draw(spec, **more)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", once)
        yield
