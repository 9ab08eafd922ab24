"""Convert TCP segments to the activity of connections."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from flexwire.activity.connections import MOST_CONNECTIONS, ActivityTable
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.wire.segment_layout import FIN, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.activity.connections import ConnectionActivity
    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.connections import CapturedFrame


class _KeyedConnections:
    """The connections between two endpoints: their names, and the assembler of their frames."""

    def __init__(self) -> None:
        self.assembler = FrameAssembler(endless=True)
        self.names: dict[str, None] = {}
        self.last = ""


class ActivityReader:
    """The activity of connections, collected in ``table`` from the segments of captures.

    The segments of each connection must arrive in the order of the capture. At most ``most``
    endpoint pairs are kept. When this limit is exceeded, a closed pair is forgotten or, if all
    pairs are open, the pair with the oldest traffic.
    """

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self.table = ActivityTable(most)
        self._most = most
        # The pair with the latest segment comes last.
        self._keyed: OrderedDict[str, _KeyedConnections] = OrderedDict()
        self._over: dict[str, None] = {}

    def __iter__(self) -> Iterator[ConnectionActivity]:
        """Yield the connections that are known to be Kafka."""
        return iter(self.table)

    def read(self, segments: Iterable[Segment]) -> int:
        """Process segments and return their number."""
        count = 0
        for segment in segments:
            self.push(segment)
            count += 1
        return count

    def push(self, segment: Segment) -> None:
        """Process a segment."""
        key = connection_key(segment)
        keyed = self._keyed.get(key)
        if keyed is None:
            if not (segment.payload or segment.missing or segment.flags & SYN):
                # This may be the last segment of a connection that is already forgotten.
                return
            keyed = self._keyed[key] = _KeyedConnections()
            self._make_room()
        self._keyed.move_to_end(key)
        if segment.flags & SYN:
            self._over.pop(key, None)
        self._take(keyed, keyed.assembler.push(segment), is_over=True)
        if segment.flags & (FIN | RST):
            self._end(key, keyed, segment)

    def finish(self) -> None:
        """Process the incomplete frames. No further segments may be passed afterwards."""
        for keyed in self._keyed.values():
            self._take(keyed, keyed.assembler.finish(), is_over=False)

    def _take(
        self, keyed: _KeyedConnections, frames: Iterable[CapturedFrame], *, is_over: bool
    ) -> None:
        for frame in frames:
            row = self.table.see(frame)
            if frame.connection != keyed.last:
                keyed.last = frame.connection
                keyed.names[frame.connection] = None
            if not row.is_kafka:
                row.is_kafka = keyed.assembler.reads_as_kafka(frame.connection)
        for ended in keyed.assembler.ended():
            self.table.end(ended, is_over=is_over)
            keyed.names.pop(ended.connection, None)

    def _end(self, key: str, keyed: _KeyedConnections, segment: Segment) -> None:
        row = self.table.find(keyed.last)
        if row is not None:
            is_client = segment.source == row.client
            row.end("client" if is_client else "broker", is_reset=bool(segment.flags & RST))
        if keyed.assembler.activity().is_over:
            for name in keyed.names:
                self.table.close(name)
            self._over[key] = None

    def _make_room(self) -> None:
        while len(self._keyed) > self._most:
            key = next(iter(self._over), next(iter(self._keyed)))
            self._over.pop(key, None)
            for name in self._keyed.pop(key).names:
                self.table.drop(name)
