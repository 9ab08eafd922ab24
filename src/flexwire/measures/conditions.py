"""The conditions under which a frame counts, defined both for Arrow batches and for SQL.

A frame has one outcome (docs/tables.md). There are three conditions for outcomes:

- `OF_KAFKA`: the connection is Kafka. The numbers of frames, bytes and clients use this condition.
- `READ`: the message was read, strictly or leniently. Shares of messages use this condition.
- `UNBROKEN`: the message was read strictly. The sizes in other encodings use this condition.

A header tag counts in every Kafka frame whose header was read, even if the body was not read. The
version for such a tag is ``header_version``, which differs from the version of the body.
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
    """Frames with one of these outcomes or, if ``others`` is true, with any other outcome.

    A frame without an outcome never matches.
    """

    values: Sequence[str]
    others: bool = False

    def of(self, frames: pa.RecordBatch) -> pa.BooleanArray:
        """Return whether each row matches, without nulls."""
        outcome = frames["outcome"]
        is_listed = pc.is_in(outcome, pa.array(self.values, pa.string()))
        return pc.and_(pc.invert(is_listed), outcome.is_valid()) if self.others else is_listed

    @property
    def sql(self) -> str:
        """Return the condition in SQL, for the table of frames.

        >>> print(OF_KAFKA.sql, READ.sql, sep=" | ")
        outcome not in ('not Kafka') | outcome in ('decoded', 'lenient')
        """
        some = ", ".join(f"'{value}'" for value in self.values)
        return f"outcome {'not ' * self.others}in ({some})"


OF_KAFKA: Final = FrameOutcomes((NOT_KAFKA,), others=True)
READ: Final = FrameOutcomes((DECODED, LENIENT))
UNBROKEN: Final = FrameOutcomes((DECODED,))

CARRYING_APIS: Final = tuple(name.removesuffix("Response") for name in CARRYING_RESPONSES)
"""The APIs whose responses contain records. A broker may wait for records before it responds."""
