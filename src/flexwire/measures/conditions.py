"""Which frames count: each condition once, for Arrow batches and for queries.

A frame has one outcome (docs/tables.md). Three questions are asked of it, and each has one answer:

- `OF_KAFKA`: is the frame of a connection that is Kafka? Frames, bytes and clients are of these.
- `READ`: was the message in it read, strictly or leniently? Shares of messages are of these.
- `UNBROKEN`: was it read strictly? What messages would cost in another encoding is of these.

A tag in a header counts in every frame of Kafka whose header was read, whatever became of the body
behind it. It is of the header: its version is ``header_version``, and that of the body is another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import NOT_KAFKA
from flexwire.tables.frames import DECODED, LENIENT
from flexwire.tables.spec_places import CARRYING_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FrameOutcomes:
    """Frames with one of these outcomes; with ``others`` those with any other one.

    A frame without an outcome is not among them.
    """

    values: Sequence[str]
    others: bool = False

    def of(self, frames: pa.RecordBatch) -> pa.BooleanArray:
        """Return of each row whether it is one of them; never null."""
        outcome = frames["outcome"]
        found = pc.is_in(outcome, pa.array(self.values, pa.string()))
        return pc.and_(pc.invert(found), outcome.is_valid()) if self.others else found

    @property
    def sql(self) -> str:
        """The same as a condition of SQL over the table of frames.

        >>> print(OF_KAFKA.sql, READ.sql, sep=" | ")
        outcome not in ('not Kafka') | outcome in ('decoded', 'lenient')
        """
        some = ", ".join(f"'{one}'" for one in self.values)
        return f"outcome {'not ' * self.others}in ({some})"


OF_KAFKA: Final = FrameOutcomes((NOT_KAFKA,), others=True)
READ: Final = FrameOutcomes((DECODED, LENIENT))
UNBROKEN: Final = FrameOutcomes((DECODED,))

CARRYING_APIS: Final = tuple(one.removesuffix("Response") for one in CARRYING_RESPONSES)
"""The APIs whose responses carry records. A broker may wait for records before it responds."""
