"""Segments that follow one another, cut into frames.

`plan` looks how many segments of each connection can be taken: those that are the next of their
end or begin with bytes that came before, whole, without a turn of the connection (SYN, FIN, RST),
that acknowledge only what was seen, and whose frames have a length that a frame can have; or that
surely begin no frame, where none is known to begin. Bytes come again where two hosts captured a
connection, and are only counted. `plan` says how many bytes and frames the segments give, so that
room can be made; then `join` takes them. A segment that is not such is the reference's.
"""

from __future__ import annotations

from flexwire.kernels.capture.framing_layout import (
    C_ACKNOWLEDGMENTS,
    C_BEGINS,
    C_CONNECTION_SIZE,
    C_DATA,
    C_FLAGS,
    C_FRAME_COUNT,
    C_FRAMES,
    C_HIGHEST_KEY,
    C_IS_HIGH,
    C_LIMIT,
    C_MISSING,
    C_NOTES,
    C_ORDER,
    C_OUT,
    C_OUT_SIZE,
    C_PAYLOAD_AT,
    C_PAYLOAD_SIZES,
    C_RUN_COUNT,
    C_RUNS,
    C_SEQUENCES,
    C_TIMES,
    D_AT,
    D_BEFORE,
    D_FIRST,
    D_HAVE,
    D_INDEX,
    D_LAST,
    D_LENGTH,
    D_NEED,
    D_NEXT,
    D_PLANNED_BYTES,
    D_PLANNED_FRAMES,
    D_PLANNED_NEXT,
    D_PREFIX,
    D_PREFIX_SIZE,
    D_REPEATED,
    D_SEEKS,
    D_SIZES,
    D_TAKEN,
    FRAME,
    FRAMES,
    NOTE_RESPONSE,
    NOTE_SHIFT,
    P_CAPTURED,
    P_LOW_IS_CLIENT,
    P_MARKED,
    P_NOTED,
    P_NOTES,
    P_NUMBER,
    P_SEGMENTS,
    P_SIDES,
    P_TIME,
    PASSES,
    R_CONNECTION,
    R_FROM,
    R_STOP,
    R_TO,
    RUN,
    SEEKS_REQUEST,
    SEEKS_RESPONSE,
    SIDE,
    W_CONNECTION,
    W_FIRST,
    W_INDEX,
    W_IS_RESPONSE,
    W_SEGMENT,
    W_SIZE,
    W_START,
    W_STOP,
    W_TIME,
)
from flexwire.kernels.machine import (
    copy_memory,
    kernel,
    load_int32,
    load_int32_native,
    load_uint8,
    load_word,
    part,
    store_word,
)
from flexwire.wire.segment_layout import (
    ACK,
    API_KEY_SHIFT,
    CORRELATION_ID_IN_REQUEST,
    FIN,
    HALF_MODULUS,
    MODULUS,
    PREFIX_LENGTH,
    REQUEST_HEAD,
    RESPONSE_HEAD,
    RST,
    SYN,
)

_TURNS = SYN | FIN | RST
_CORRELATION_ID_SIZE = 4


@part
def ahead(sequence: int, position: int) -> int:
    """Give how far a sequence number is after another: less than 2**31, or negative if before."""
    return (sequence - position + HALF_MODULUS) % MODULUS - HALF_MODULUS


@part
def begin_planning(side: int) -> None:
    """Plan from where the end stands."""
    store_word(side + D_PLANNED_NEXT, load_word(side + D_NEXT))
    store_word(side + D_PLANNED_BYTES, 0)
    store_word(side + D_PLANNED_FRAMES, 0)
    at, have = load_word(side + D_AT), load_word(side + D_HAVE)
    need = prefix = 0
    if have >= PREFIX_LENGTH:
        need = load_int32(at) + PREFIX_LENGTH - have
        have = 0
    for index in range(have):
        prefix = prefix << 8 | load_uint8(at + index)
    store_word(side + D_NEED, need)
    store_word(side + D_PREFIX, prefix)
    store_word(side + D_PREFIX_SIZE, have)


@part
def plan_payload(side: int, data: int, size: int, limit: int) -> bool:
    """Follow the frames through a payload; False, with nothing done, at an impossible length."""
    need = load_word(side + D_NEED)
    prefix, prefix_size = load_word(side + D_PREFIX), load_word(side + D_PREFIX_SIZE)
    frames = position = 0
    while position < size:
        if need == 0:
            if prefix_size == 0 and size - position >= PREFIX_LENGTH:
                prefix = load_int32(data + position)
                position += PREFIX_LENGTH
            else:
                prefix = prefix << 8 | load_uint8(data + position)
                prefix_size += 1
                position += 1
                if prefix_size < PREFIX_LENGTH:
                    continue
            if prefix <= 0 or prefix > limit:
                return False
            need = prefix
            prefix = prefix_size = 0
        taken = min(need, size - position)
        position += taken
        need -= taken
        if need == 0:
            frames += 1
    store_word(side + D_NEED, need)
    store_word(side + D_PREFIX, prefix)
    store_word(side + D_PREFIX_SIZE, prefix_size)
    store_word(side + D_PLANNED_FRAMES, load_word(side + D_PLANNED_FRAMES) + frames)
    store_word(side + D_PLANNED_BYTES, load_word(side + D_PLANNED_BYTES) + size)
    store_word(side + D_PLANNED_NEXT, (load_word(side + D_PLANNED_NEXT) + size) % MODULUS)
    return True


@part
def may_come_again(side: int) -> int:
    """Give how many bytes before where planning stands are repeated if they come now."""
    known = load_word(side + D_BEFORE) + load_word(side + D_TAKEN)
    return known + load_word(side + D_PLANNED_BYTES)


@part
def begins_none(seeks: int, payload: int, size: int, limit: int, highest_key: int) -> bool:
    """Whether a payload surely begins no frame, by the first numbers of one."""
    if size < (REQUEST_HEAD if seeks == SEEKS_REQUEST else RESPONSE_HEAD):
        return False
    if seeks == PASSES:
        return True
    length = load_int32(payload)
    if seeks == SEEKS_RESPONSE:
        least = RESPONSE_HEAD - PREFIX_LENGTH
        return length < least or length > limit or load_int32(payload + PREFIX_LENGTH) < 0
    key = load_int32(payload + PREFIX_LENGTH) >> API_KEY_SHIFT
    least = REQUEST_HEAD - PREFIX_LENGTH
    return (
        length < least
        or length - least > limit
        or key < 0
        or key > highest_key
        or load_int32(payload + PREFIX_LENGTH + CORRELATION_ID_IN_REQUEST) < 0
    )


@part
def plan_segment(call: int, sides: int, row: int) -> bool:
    """Whether a segment brings the next bytes of its end, or none; then it is planned."""
    is_high = load_uint8(load_word(call + C_IS_HIGH) + row)
    side, other = sides + SIDE * is_high, sides + SIDE * (1 - is_high)
    flags = load_uint8(load_word(call + C_FLAGS) + row)
    sequence = load_word(load_word(call + C_SEQUENCES) + 8 * row)
    again = -ahead(sequence, load_word(side + D_PLANNED_NEXT))
    if (
        flags & _TURNS != 0
        or again < 0
        or (again > 0 and again > may_come_again(side))
        or load_int32_native(load_word(call + C_MISSING) + 4 * row) != 0
    ):
        return False
    if flags & ACK:
        acknowledged = load_word(load_word(call + C_ACKNOWLEDGMENTS) + 8 * row)
        if ahead(acknowledged, load_word(other + D_PLANNED_NEXT)) > 0:
            return False
    size = load_int32_native(load_word(call + C_PAYLOAD_SIZES) + 4 * row)
    payload = load_word(call + C_DATA) + load_word(load_word(call + C_PAYLOAD_AT) + 8 * row)
    seeks, limit = load_word(side + D_SEEKS), load_word(call + C_LIMIT)
    begins = load_uint8(load_word(call + C_BEGINS) + row)
    again = min(again, size)
    if seeks == FRAMES or size == 0 or (again == size and begins == 0):
        return plan_payload(side, payload + again, size - again, limit)
    if (
        again > 0
        or begins != 0
        or not begins_none(seeks, payload, size, limit, load_word(call + C_HIGHEST_KEY))
    ):
        return False
    store_word(side + D_PLANNED_NEXT, (load_word(side + D_PLANNED_NEXT) + size) % MODULUS)
    return True


@kernel
def plan(call: int, _unused: int, _also_unused: int) -> int:
    """Say of each run which segments can be taken, and in all how many bytes and frames they are.

    The bytes are with those that are held of frames that are not whole yet. Gives 0.
    """
    runs, order = load_word(call + C_RUNS), load_word(call + C_ORDER)
    frames = size = 0
    for number in range(load_word(call + C_RUN_COUNT)):
        run = runs + RUN * number
        sides = load_word(run + R_CONNECTION) + P_SIDES
        for side in (sides, sides + SIDE):
            begin_planning(side)
            size += load_word(side + D_HAVE)
        place, stop = load_word(run + R_FROM), load_word(run + R_TO)
        while place < stop and plan_segment(call, sides, load_word(order + 8 * place)):
            place += 1
        store_word(run + R_STOP, place)
        for side in (sides, sides + SIDE):
            frames += load_word(side + D_PLANNED_FRAMES)
            size += load_word(side + D_PLANNED_BYTES)
    store_word(call + C_OUT_SIZE, size)
    store_word(call + C_FRAME_COUNT, frames)
    return 0


@part
def note_frame(call: int, connection: int, is_response: int, payload: int, length: int) -> None:
    """Put a frame's correlation id into the ring of its connection."""
    start = 0 if is_response else CORRELATION_ID_IN_REQUEST
    if length < start + _CORRELATION_ID_SIZE:
        return
    noted = load_word(connection + P_NOTED)
    note = load_int32(payload + start) << NOTE_SHIFT | is_response * NOTE_RESPONSE
    store_word(connection + P_NOTES + 8 * (noted % load_word(call + C_NOTES)), note)
    store_word(connection + P_NOTED, noted + 1)


@part
def count_segment(call: int, connection: int, side: int, row: int) -> int:
    """Count a segment of the end ``side``; gives how many of its bytes came before."""
    size = load_int32_native(load_word(call + C_PAYLOAD_SIZES) + 4 * row)
    store_word(connection + P_TIME, load_word(load_word(call + C_TIMES) + 8 * row))
    store_word(connection + P_SEGMENTS, load_word(connection + P_SEGMENTS) + 1)
    store_word(connection + P_CAPTURED, load_word(connection + P_CAPTURED) + size)
    if load_uint8(load_word(call + C_BEGINS) + row):
        store_word(connection + P_MARKED, 1)
    sequence = load_word(load_word(call + C_SEQUENCES) + 8 * row)
    again = min(-ahead(sequence, load_word(side + D_NEXT)), size)
    store_word(side + D_NEXT, (load_word(side + D_NEXT) + size - again) % MODULUS)
    store_word(side + D_TAKEN, load_word(side + D_TAKEN) + size - again)
    store_word(side + D_REPEATED, load_word(side + D_REPEATED) + again)
    return again


@part
def pass_over(side: int, time: int) -> None:
    """Note when bytes were seen that are in no frame."""
    store_word(side + D_FIRST, min(load_word(side + D_FIRST), time))
    store_word(side + D_LAST, max(load_word(side + D_LAST), time))


@part
def join_segment(call: int, connection: int, row: int, frame: int) -> int:
    """Take a planned segment, and put its frames from ``frame`` on; give where the next goes."""
    is_high = load_uint8(load_word(call + C_IS_HIGH) + row)
    side = connection + P_SIDES + SIDE * is_high
    again = count_segment(call, connection, side, row)
    size = load_int32_native(load_word(call + C_PAYLOAD_SIZES) + 4 * row) - again
    if size == 0:
        return frame
    if load_word(side + D_SEEKS) != FRAMES:
        pass_over(side, load_word(connection + P_TIME))
        return frame
    # The side's bytes stand one after the other; D_AT is where its frame begins.
    start, have = load_word(side + D_AT), load_word(side + D_HAVE)
    at = load_word(load_word(call + C_PAYLOAD_AT) + 8 * row) + again
    copy_memory(start + have, load_word(call + C_DATA) + at, size)
    time = load_word(connection + P_TIME)
    first = last = time
    if have:
        first, last = min(load_word(side + D_FIRST), time), max(load_word(side + D_LAST), time)
    have += size
    is_response = is_high if load_word(connection + P_LOW_IS_CLIENT) else 1 - is_high
    out = load_word(call + C_OUT)
    while have >= PREFIX_LENGTH:
        length = load_int32(start)
        whole = PREFIX_LENGTH + length
        if have < whole:
            break
        payload = start + PREFIX_LENGTH
        store_word(frame + W_CONNECTION, load_word(connection + P_NUMBER))
        store_word(frame + W_IS_RESPONSE, is_response)
        store_word(frame + W_INDEX, load_word(side + D_INDEX))
        store_word(frame + W_FIRST, first)
        store_word(frame + W_TIME, last)
        store_word(frame + W_SIZE, whole)
        store_word(frame + W_START, payload - out)
        store_word(frame + W_STOP, payload - out + length)
        store_word(frame + W_SEGMENT, row)
        note_frame(call, connection, is_response, payload, length)
        store_word(side + D_INDEX, load_word(side + D_INDEX) + 1)
        store_word(side + D_SIZES, load_word(side + D_SIZES) + whole)
        store_word(side + D_LENGTH, length)
        frame += FRAME
        start += whole
        have -= whole
        first = last = time
    store_word(side + D_AT, start)
    store_word(side + D_HAVE, have)
    store_word(side + D_FIRST, first)
    store_word(side + D_LAST, last)
    return frame


@kernel
def join(call: int, _unused: int, _also_unused: int) -> int:
    """Take the segments that were planned, and put their bytes and frames where there is room.

    Gives how many bytes were put, which is C_OUT_SIZE.
    """
    runs, order = load_word(call + C_RUNS), load_word(call + C_ORDER)
    out = load_word(call + C_OUT)
    frame = load_word(call + C_FRAMES)
    for number in range(load_word(call + C_RUN_COUNT)):
        run = runs + RUN * number
        connection = load_word(run + R_CONNECTION)
        sides = connection + P_SIDES
        for side in (sides, sides + SIDE):
            have = load_word(side + D_HAVE)
            copy_memory(out, load_word(side + D_AT), have)
            store_word(side + D_AT, out)
            out += have + load_word(side + D_PLANNED_BYTES)
        for place in range(load_word(run + R_FROM), load_word(run + R_STOP)):
            row = load_word(order + 8 * place)
            frame = join_segment(call, connection, row, frame)
    return out - load_word(call + C_OUT)


@kernel
def carry(call: int, _unused: int, _also_unused: int) -> int:
    """Copy what connections hold of frames that are not whole to the output; gives how many bytes.

    C_RUNS are the connections themselves, C_RUN_COUNT of them. With C_OUT of 0 nothing is copied.
    """
    connection, total = load_word(call + C_RUNS), 0
    out = load_word(call + C_OUT)
    for _ in range(load_word(call + C_RUN_COUNT)):
        sides = connection + P_SIDES
        for side in (sides, sides + SIDE):
            have = load_word(side + D_HAVE)
            if out != 0 and have:
                copy_memory(out + total, load_word(side + D_AT), have)
                store_word(side + D_AT, out + total)
            total += have
        connection += load_word(call + C_CONNECTION_SIZE)
    return total
