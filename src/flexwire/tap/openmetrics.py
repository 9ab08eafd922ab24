"""What a tap counts, as OpenMetrics text."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from flexwire.tap.statistics import TapStatistics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PREFIX: Final = "flexwire_tap_"
_BYTES: Final = "bytes"
# All else only ever grows.
GAUGES: Final = frozenset({"open_connections"})


def openmetrics(counts: TapStatistics, gauges: Mapping[str, int], version: str) -> bytes:
    """Render counts, further ``gauges`` and the version of flexwire, which starts no new series.

    >>> text = openmetrics(TapStatistics(), {"clients": 7}, "1").decode()
    >>> print(text[text.index("# TYPE flexwire_tap_clients") :])
    # TYPE flexwire_tap_clients gauge
    flexwire_tap_clients 7
    # TYPE flexwire_tap info
    flexwire_tap_info{version="1"} 1
    # EOF
    <BLANKLINE>
    """
    lines: list[str] = []
    for one in dataclasses.fields(TapStatistics):
        kind = "gauge" if one.name in GAUGES else "counter"
        lines += _family(one.name, kind, getattr(counts, one.name))
    for name, value in gauges.items():
        lines += _family(name, "gauge", value)
    family = _PREFIX.removesuffix("_")
    lines += [f"# TYPE {family} info", f'{family}_info{{version="{version}"}} 1', "# EOF", ""]
    return "\n".join(lines).encode()


def _family(name: str, kind: str, value: int) -> Iterator[str]:
    family = _PREFIX + name
    yield f"# TYPE {family} {kind}"
    if name.endswith(f"_{_BYTES}"):
        yield f"# UNIT {family} {_BYTES}"
    yield f"{family}{'_total' if kind == 'counter' else ''} {value}"
