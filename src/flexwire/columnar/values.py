"""How values stand in columns, where a column says it otherwise than a message does.

All that makes columns of values goes by these: the reference executor of rows, the columns of
objects, and the defaults that kernels fill in.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from flexwire.wire.uuid_text import uuid_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def in_column(value: Any) -> Any:
    """Give the value of a field that is neither an array nor a structure; None is null.

    >>> in_column(uuid.UUID(int=1)), in_column(7), in_column(None)
    ('AAAAAAAAAAAAAAAAAAAAAQ', 7, None)
    """
    return uuid_text(value) if isinstance(value, uuid.UUID) else value


def raw_tagged_fields(unknown: Mapping[int, bytes]) -> list[dict[str, Any]]:
    """Give unknown tagged fields as a value of `RAW_TAGGED_FIELDS`, by ascending tag.

    >>> raw_tagged_fields({7: b"b", 2: b"a"})
    [{'tag': 2, 'data': b'a'}, {'tag': 7, 'data': b'b'}]
    """
    return [{"tag": tag, "data": unknown[tag]} for tag in sorted(unknown)]
