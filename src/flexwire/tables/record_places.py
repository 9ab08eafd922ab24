"""Where messages carry the records of topics, and where the topics' names stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.wire.varint import uuid_text


@dataclass(frozen=True, slots=True)
class RecordsField:
    """Where a message has the records of partitions: its names, outer before inner.

    ``topic_name`` and ``topic_id`` are beside the array of partitions, either may be missing.
    """

    message: str
    source: str
    topics: str
    topic_name: str | None
    topic_id: str | None
    partitions: str
    partition: str
    records: str

    @property
    def path(self) -> tuple[str, ...]:
        """The way to the records: through the topics, then their partitions."""
        return self.topics, self.partitions, self.records


# The messages that carry records of topics. A snapshot (FetchSnapshotResponse) is a part of a file
# at any byte, so its "unaligned records" are no record batches and stay in its message table.
RECORDS_FIELDS = (
    RecordsField(
        "ProduceRequest", "produce", "topic_data", "name", "topic_id", "partition_data", "index",
        "records",
    ),
    RecordsField(
        "FetchResponse", "fetch", "responses", "topic", "topic_id", "partitions",
        "partition_index", "records",
    ),
    RecordsField(
        "ShareFetchResponse", "share_fetch", "responses", None, "topic_id", "partitions",
        "partition_index", "records",
    ),
)  # fmt: skip

CARRYING_RESPONSES: Final = tuple(
    one.message for one in RECORDS_FIELDS if one.message.endswith("Response")
)
"""The responses that carry records. A broker may wait for these before it responds."""

# Where the names of topics stand beside their ids.
TOPIC_NAMES_MESSAGE = "MetadataResponse"

KNOWN_TOPICS: Final = {uuid_text(METADATA_TOPIC_ID): METADATA_TOPIC}
"""By id, as text, the name of each topic that always has this id: Metadata does not tell it."""
