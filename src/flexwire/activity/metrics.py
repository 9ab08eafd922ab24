"""Connection activity as OpenMetrics, with a limit on the number of series.

A series belongs to a client id and its software. Addresses are not labels, because a client uses a
different port for each connection. A counter never decreases, so it still includes the traffic of a
connection after that connection is forgotten.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.activity.connections import ActivityTable, ConnectionActivity

MOST_SERIES: Final = 1000
"""The maximum number of clients that have their own series. All other clients share the series of
`OTHERS`.
"""

_PREFIX: Final = "flexwire_who_"
_COUNTERS: Final = ("requests", "responses", "request_bytes", "response_bytes", "errors")
_SIZES: Final = ("request_bytes", "response_bytes")
_GAUGES: Final = ("connections", "waiting")


class ClientLabels(NamedTuple):
    """The labels of a series. An unknown label is empty."""

    client_id: str
    software: str
    software_version: str


OTHERS: Final = ClientLabels("(others)", "", "")
"""The labels of the series that all clients beyond `MOST_SERIES` share."""


class ActivityMetrics:
    """Add up the traffic of a table's connections by client, for up to ``most`` clients."""

    def __init__(self, table: ActivityTable, most: int = MOST_SERIES) -> None:
        self._table = table
        self._most = most
        self._counts: dict[ClientLabels, Counter[str]] = {}
        # The part of each connection's traffic that the counters already include.
        self._taken: dict[str, tuple[int, ...]] = {}
        table.leaving = self._leave

    def update(self) -> None:
        """Add the traffic since the last call."""
        for row in self._table:
            self._take(row)

    def render(self) -> bytes:
        """Return the metrics as text that a monitoring system can read."""
        self.update()
        gauges: dict[ClientLabels, Counter[str]] = {labels: Counter() for labels in self._counts}
        for row in self._table:
            if row.is_open is not False:
                gauge = gauges[self._labels(row)]
                gauge["connections"] += 1
                gauge["waiting"] += row.waiting
        lines: list[str] = []
        has_sizes = any(count[name] for count in self._counts.values() for name in _SIZES)
        for name in _COUNTERS:
            if name not in _SIZES or has_sizes:
                lines += _family(name, self._counts, is_counter=True)
        for name in _GAUGES:
            lines += _family(name, gauges, is_counter=False)
        family = f"{_PREFIX}left_out_connections"
        lines += [f"# TYPE {family} counter", f"{family}_total {self._table.left_out}"]
        return "\n".join([*lines, "# EOF", ""]).encode()

    def _labels(self, row: ConnectionActivity) -> ClientLabels:
        labels = ClientLabels(
            row.client_id or "", row.software_name or "", row.software_version or ""
        )
        if labels in self._counts or len(self._counts) < self._most:
            return labels
        return OTHERS

    def _take(self, row: ConnectionActivity) -> None:
        now = tuple(getattr(row, name) or 0 for name in _COUNTERS)
        before = self._taken.get(row.connection, (0,) * len(now))
        self._taken[row.connection] = now
        counts = self._counts.setdefault(self._labels(row), Counter())
        for name, count, taken in zip(_COUNTERS, now, before, strict=True):
            counts[name] += count - taken

    def _leave(self, row: ConnectionActivity) -> None:
        if row.is_kafka:
            self._take(row)
        self._taken.pop(row.connection, None)


def _family(
    name: str, series: dict[ClientLabels, Counter[str]], *, is_counter: bool
) -> Iterator[str]:
    family = _PREFIX + name
    yield f"# TYPE {family} {'counter' if is_counter else 'gauge'}"
    if name in _SIZES:
        yield f"# UNIT {family} bytes"
    for labels, counts in series.items():
        texts = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels._asdict().items())
        yield f"{family}{'_total' if is_counter else ''}{{{texts}}} {counts[name]}"


def _escaped(text: str) -> str:
    """Return a label's value without surrogates, which UTF-8 cannot encode."""
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
