"""Unknown tagged fields, written from the dict that a structure keeps them in.

They stand there in the order of their tags, as they were read, and so are written without being
sorted. In any other order, and where one is not a tag that may stand there or its bytes, they are
left to the fallback.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    TYPE,
    bytes_address,
    bytes_size,
    dict_next,
    load_int32_native,
    load_word,
    long_as,
    part,
    store_word,
)
from flexwire.kernels.objects.layout import (
    C_GLOBALS,
    C_KEY,
    C_PLACE,
    C_SCRATCH,
    C_VALUE,
    G_BYTES,
    G_INT,
    O_TAG,
    OPERATION,
    S_REFUSED,
    S_REFUSEDS,
    S_TAGGED,
    S_TAGGEDS,
)
from flexwire.kernels.objects.output import reserve, write_bytes
from flexwire.kernels.wire.operations import SECTION
from flexwire.kernels.wire.tags import is_among, write_header
from flexwire.wire.limits import HIGHEST_TAG, LONGEST, VARINT_BYTES

ENDED, UNSURE = HIGHEST_TAG + 1, -1
"""In place of a tag: there are no more, or it is not one to be written."""


@part
def next_tag(call: int, structure: int, unknown: int, place: int, previous: int) -> int:
    """Give the tag at a place of the dict, above the one before it; its bytes stay in the call.

    What follows is at the place that the call has then.
    """
    store_word(call + C_PLACE, place)
    if not dict_next(unknown, call + C_PLACE, call + C_KEY, call + C_VALUE):
        return ENDED
    shared = load_word(call + C_GLOBALS)
    key, value = load_word(call + C_KEY), load_word(call + C_VALUE)
    if load_word(key + TYPE) != load_word(shared + G_INT):
        return UNSURE
    if load_word(value + TYPE) != load_word(shared + G_BYTES) or bytes_size(value) > LONGEST:
        return UNSURE
    tag = long_as(key, call + C_SCRATCH)
    if load_int32_native(call + C_SCRATCH) or tag <= previous or tag > HIGHEST_TAG:
        return UNSURE
    # It may be that of a field, of this version or another.
    if is_among(tag, load_word(structure + S_REFUSEDS), load_word(structure + S_REFUSED)):
        return UNSURE
    operation = load_word(structure + S_TAGGEDS)
    for _ in range(load_word(structure + S_TAGGED)):
        if load_word(operation + O_TAG) == tag:
            return UNSURE
        operation += OPERATION
    return tag


@part
def write_unknown(call: int, tag: int) -> bool:
    """Write the tagged field that `next_tag` gave."""
    value = load_word(call + C_VALUE)
    size = bytes_size(value)
    position = reserve(call, 2 * VARINT_BYTES)
    if position == 0:
        return False
    store_word(call, write_header(position, SECTION, tag, size))
    return write_bytes(call, bytes_address(value), size)
