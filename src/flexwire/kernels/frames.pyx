"""Cuts consecutive TCP segments into frames.

The input is the columns of a chunk of segments, sorted by connection. `plan` finds how many
segments of each connection the kernel can process, and how many bytes and frames they have. The
caller makes room for these, and `join` then processes the segments. The kernel accepts a segment
that has the next bytes of its end, or that begins with repeated bytes. The segment must be complete
and must not begin or end the connection (SYN, FIN, RST). It may acknowledge only bytes that were
seen, and the lengths of its frames must be possible. If it is unknown where frames begin, the
kernel accepts a segment that surely does not begin a frame. If two hosts have captured a
connection, its bytes come twice. The repeated bytes are only counted. The kernel refuses the first
other segment of a connection, and Python objects continue from there.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from flexwire.kernels.cursor cimport load_int32

cdef enum:
    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    ACK = 0x10
    PREFIX_LENGTH = 4
    CORRELATION_ID_SIZE = 4
    CORRELATION_ID_IN_REQUEST = 4
    REQUEST_HEAD = 12
    RESPONSE_HEAD = 8
    API_KEY_SHIFT = 16
    NOTED_FRAMES = 512     # the latest frames of each connection

# The knowledge about the bytes of an end. If it is unknown where frames begin, bytes that cannot
# begin a frame are skipped: judged by the beginning of requests, by the beginning of responses, or
# without examining them.
cdef enum Seeks:
    FRAMES, SEEKS_REQUEST, SEEKS_RESPONSE, PASSES

# The bytes that one end of a connection has sent.
cdef struct Side:
    int64_t next           # the sequence number of the next byte
    int64_t taken          # the number of bytes that were processed
    const uint8_t *at      # the frame that is not complete yet, including its length prefix
    int64_t have           # the number of its bytes so far
    int64_t first_us       # the time of its first byte
    int64_t last_us
    int64_t index          # the index of the next frame
    int64_t sizes          # the sizes of all complete frames together
    int64_t length         # the length of the latest frame
    # While planning: how many bytes of the frame are missing, and how many bytes of its prefix have
    # arrived.
    int64_t need
    int64_t prefix
    int64_t prefix_size
    int64_t planned_next
    int64_t planned_bytes
    int64_t planned_frames
    int64_t first_index    # the index when the kernels got the connection, which they do not change
    int64_t before         # the number of earlier bytes that may come again
    int64_t repeated
    int64_t seeks

cdef struct Connection:
    int64_t number
    int64_t low_is_client  # whether the end with the lower name is the client
    int64_t segments
    int64_t captured       # the number of captured bytes
    int64_t time_us        # the time of the latest segment
    int64_t is_marked
    int64_t noted          # the number of frames that were put into the ring
    Side sides[2]          # the end with the lower name comes first
    # correlation ids; the lowest bit says whether the frame is a response
    int64_t notes[NOTED_FRAMES]

# The segments of one connection, by their places in the order. The kernel can process those before
# `stop`.
cdef struct Run:
    Connection *connection
    int64_t first
    int64_t last
    int64_t stop

cdef struct Frame:
    int64_t connection
    int64_t is_response
    int64_t index
    int64_t first_us
    int64_t time_us
    int64_t size
    int64_t start          # the start of its payload in the output
    int64_t stop
    int64_t segment        # the segment that completed it

# The columns of a chunk of segments, and the output; see `flexwire.capture.reassembly.flows`.
cdef struct Chunk:
    const int64_t *timestamp_us
    const int64_t *sequence
    const int64_t *acknowledgment
    const uint8_t *flags
    const int64_t *payload_at
    const int32_t *payload_size
    const int32_t *missing
    const int8_t *begins
    const uint8_t *is_high
    const uint8_t *data
    const int64_t *order
    Run *runs
    int64_t run_count
    uint8_t *out
    int64_t out_size
    Frame *frames
    int64_t frame_count
    int64_t limit          # the largest payload of a frame
    int64_t highest_key    # the highest api key that a request may have


cdef inline int64_t ahead(int64_t sequence, int64_t position) noexcept nogil:
    """Return the distance from one sequence number to another: below 2**31, and maybe negative."""
    return <int32_t> (<uint32_t> sequence - <uint32_t> position)


cdef inline int64_t after(int64_t sequence, int64_t size) noexcept nogil:
    """Return the sequence number after this many bytes."""
    return <uint32_t> (sequence + size)


# Functions for planning.

cdef void begin_planning(Side *side) noexcept nogil:
    """Begin planning at the current position of the end."""
    cdef int64_t index
    side.planned_next, side.planned_bytes, side.planned_frames = side.next, 0, 0
    side.need = side.prefix = side.prefix_size = 0
    if side.have >= PREFIX_LENGTH:
        side.need = load_int32(side.at) + PREFIX_LENGTH - side.have
        return
    for index in range(side.have):
        side.prefix = side.prefix << 8 | side.at[index]
    side.prefix_size = side.have


cdef bint plan_payload(
    Side *side, const uint8_t *data, int64_t size, int64_t limit
) noexcept nogil:
    """Follow the frames through a payload; False at an impossible length, with no change."""
    cdef int64_t need = side.need
    cdef int64_t prefix = side.prefix
    cdef int64_t prefix_size = side.prefix_size
    cdef int64_t frames = 0
    cdef int64_t position = 0
    cdef int64_t taken
    while position < size:
        if need == 0:
            if prefix_size == 0 and size - position >= PREFIX_LENGTH:
                prefix = load_int32(data + position)
                position += PREFIX_LENGTH
            else:
                prefix = prefix << 8 | data[position]
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
        frames += need == 0
    side.need, side.prefix, side.prefix_size = need, prefix, prefix_size
    side.planned_frames += frames
    side.planned_bytes += size
    side.planned_next = after(side.planned_next, size)
    return True


cdef bint begins_none(
    int64_t seeks, const uint8_t *payload, int64_t size, const Chunk *chunk
) noexcept nogil:
    """Return whether the first numbers of a payload show that it does not begin a frame."""
    cdef int64_t length, key
    if size < (REQUEST_HEAD if seeks == SEEKS_REQUEST else RESPONSE_HEAD):
        return False
    if seeks == PASSES:
        return True
    length = load_int32(payload)
    if seeks == SEEKS_RESPONSE:
        return (
            length < RESPONSE_HEAD - PREFIX_LENGTH or length > chunk.limit
            or load_int32(payload + PREFIX_LENGTH) < 0
        )
    length -= REQUEST_HEAD - PREFIX_LENGTH
    key = load_int32(payload + PREFIX_LENGTH) >> API_KEY_SHIFT
    return (
        length < 0 or length > chunk.limit
        or key < 0 or key > chunk.highest_key
        or load_int32(payload + PREFIX_LENGTH + CORRELATION_ID_IN_REQUEST) < 0
    )


cdef bint plan_segment(const Chunk *chunk, Side *sides, int64_t row) noexcept nogil:
    """Plan a segment and return True if it has the next bytes of its end, or no bytes."""
    cdef int is_high = chunk.is_high[row]
    cdef Side *side = &sides[is_high]
    cdef int flags = chunk.flags[row]
    cdef int64_t size = chunk.payload_size[row]
    cdef const uint8_t *payload = chunk.data + chunk.payload_at[row]
    cdef int64_t again = -ahead(chunk.sequence[row], side.planned_next)
    if flags & (SYN | FIN | RST) or again < 0 or chunk.missing[row] != 0:
        return False
    # The number of bytes before the planned position. If they come now, they are repeated bytes.
    if again > 0 and again > side.before + side.taken + side.planned_bytes:
        return False
    if flags & ACK and ahead(chunk.acknowledgment[row], sides[1 - is_high].planned_next) > 0:
        return False
    again = min(again, size)
    if side.seeks == FRAMES or size == 0 or (again == size and chunk.begins[row] == 0):
        return plan_payload(side, payload + again, size - again, chunk.limit)
    if again > 0 or chunk.begins[row] != 0 or not begins_none(side.seeks, payload, size, chunk):
        return False
    side.planned_next = after(side.planned_next, size)
    return True


cdef void plan_runs(Chunk *chunk) noexcept nogil:
    """Set which segments of each run can be processed, with the number of their bytes and frames.

    The bytes include those that are held of incomplete frames.
    """
    cdef Run *run
    cdef Side *sides
    cdef int64_t number
    cdef int which
    chunk.out_size = chunk.frame_count = 0
    for number in range(chunk.run_count):
        run = &chunk.runs[number]
        sides = run.connection.sides
        begin_planning(&sides[0])
        begin_planning(&sides[1])
        run.stop = run.first
        while run.stop < run.last and plan_segment(chunk, sides, chunk.order[run.stop]):
            run.stop += 1
        for which in range(2):
            chunk.frame_count += sides[which].planned_frames
            chunk.out_size += sides[which].have + sides[which].planned_bytes


# Functions for joining.

cdef void note_frame(
    Connection *connection, bint is_response, const uint8_t *payload, int64_t length
) noexcept nogil:
    """Put a frame's correlation id into the ring of its connection."""
    cdef int start = 0 if is_response else CORRELATION_ID_IN_REQUEST
    if length < start + CORRELATION_ID_SIZE:
        return
    connection.notes[connection.noted % NOTED_FRAMES] = (
        <int64_t> load_int32(payload + start) * 2 + is_response
    )
    connection.noted += 1


cdef int64_t count_segment(
    const Chunk *chunk, Connection *connection, Side *side, int64_t row
) noexcept nogil:
    """Count a segment of an end; return how many of its bytes are repeated."""
    cdef int64_t size = chunk.payload_size[row]
    cdef int64_t again = min(-ahead(chunk.sequence[row], side.next), size)
    connection.time_us = chunk.timestamp_us[row]
    connection.segments += 1
    connection.captured += size
    if chunk.begins[row]:
        connection.is_marked = 1
    side.next = after(side.next, size - again)
    side.taken += size - again
    side.repeated += again
    return again


cdef Frame *join_segment(
    const Chunk *chunk, Connection *connection, int64_t row, Frame *frame
) noexcept nogil:
    """Process a planned segment, and write its frames at ``frame``; return the place after them."""
    cdef int is_high = chunk.is_high[row]
    cdef Side *side = &connection.sides[is_high]
    cdef int64_t again = count_segment(chunk, connection, side, row)
    cdef int64_t size = chunk.payload_size[row] - again
    cdef int64_t time = connection.time_us
    cdef int64_t first = time
    cdef int64_t last = time
    cdef int64_t length
    cdef bint is_response = is_high if connection.low_is_client else 1 - is_high
    if size == 0:
        return frame
    if side.seeks != FRAMES:
        # Record the time of bytes that are in no frame.
        side.first_us, side.last_us = min(side.first_us, time), max(side.last_us, time)
        return frame
    # The output has the bytes of one end in order, starting at the beginning of its frame.
    memcpy(<uint8_t *> side.at + side.have, chunk.data + chunk.payload_at[row] + again, size)
    if side.have:
        first, last = min(side.first_us, time), max(side.last_us, time)
    side.have += size
    while side.have >= PREFIX_LENGTH:
        length = load_int32(side.at)
        if side.have < PREFIX_LENGTH + length:
            break
        frame.connection, frame.is_response = connection.number, is_response
        frame.index, frame.first_us, frame.time_us = side.index, first, last
        frame.size, frame.segment = PREFIX_LENGTH + length, row
        frame.start = side.at + PREFIX_LENGTH - chunk.out
        frame.stop = frame.start + length
        note_frame(connection, is_response, side.at + PREFIX_LENGTH, length)
        side.index += 1
        side.sizes += frame.size
        side.length = length
        side.at += frame.size
        side.have -= frame.size
        frame += 1
        first = last = time
    side.first_us, side.last_us = first, last
    return frame


cdef int64_t join_runs(Chunk *chunk) noexcept nogil:
    """Process the planned segments, and write their bytes and frames to the output."""
    cdef uint8_t *out = chunk.out
    cdef Frame *frame = chunk.frames
    cdef const Run *run
    cdef Side *side
    cdef int64_t number, place
    cdef int which
    for number in range(chunk.run_count):
        run = &chunk.runs[number]
        for which in range(2):
            side = &run.connection.sides[which]
            if side.have:
                memcpy(out, side.at, side.have)
            side.at = out
            out += side.have + side.planned_bytes
        for place in range(run.first, run.stop):
            frame = join_segment(chunk, run.connection, chunk.order[place], frame)
    return out - chunk.out


cdef int64_t carry_all(Connection *connections, int64_t count, uint8_t *out) noexcept nogil:
    """Copy the held bytes of connections' incomplete frames; return the number of bytes.

    Without an output, nothing is copied.
    """
    cdef int64_t total = 0
    cdef int64_t number
    cdef int which
    cdef Side *side
    for number in range(count):
        for which in range(2):
            side = &connections[number].sides[which]
            if out != NULL and side.have:
                memcpy(out + total, side.at, side.have)
                side.at = out + total
            total += side.have
    return total


# All of these are called with addresses of arrays in `flexwire.capture.reassembly.flows`, and run
# without the GIL.

def plan(size_t chunk):
    """Set which segments of a chunk can be processed, and how many bytes and frames they have."""
    with nogil:
        plan_runs(<Chunk *> chunk)


def join(size_t chunk):
    """Process the planned segments; return the number of bytes written to the output."""
    cdef int64_t size
    with nogil:
        size = join_runs(<Chunk *> chunk)
    return size


def carry(size_t connections, int64_t count, size_t out):
    """Copy the held bytes of connections to an output, if there is one; return their number."""
    cdef int64_t size
    with nogil:
        size = carry_all(<Connection *> connections, count, <uint8_t *> out)
    return size


def gather(
    const uint8_t[::1] data, const int64_t[::1] starts, const int32_t[::1] offsets, uint8_t[::1] out
):
    """Copy bytes from each start to its offset, as many as fit before the next offset."""
    cdef Py_ssize_t row
    with nogil:
        for row in range(starts.shape[0]):
            if offsets[row + 1] > offsets[row]:
                memcpy(
                    &out[offsets[row]], &data[starts[row]], offsets[row + 1] - offsets[row]
                )
