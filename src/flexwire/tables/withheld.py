"""Which messages bring the secrets of the cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from flexwire.protocol.credentials import METADATA_CARRIER, METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of_metadata(message_name: str, column: pa.StructArray) -> np.ndarray[Any, Any]:
    """Whether each message of a column brings records of the cluster's metadata."""
    found = np.zeros(len(column), bool)
    carrier, topics, name, topic_id = METADATA_CARRIER
    if message_name == carrier:
        lists = column.field(topics)
        offsets = np.asarray(lists.offsets)
        each = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
        by_name = pc.equal(each.field(name), METADATA_TOPIC)
        by_id = pc.equal(each.field(topic_id), uuid_text(METADATA_TOPIC_ID))
        is_metadata = pc.or_kleene(by_name, by_id)
        if is_metadata.true_count:
            rows = np.repeat(np.arange(len(column)), np.diff(offsets))
            found[rows[np.asarray(is_metadata.fill_null(False))]] = True
    return found
