"""The words of a run of the framing kernels: what they find where in memory.

All are offsets in bytes from the address of what they belong to. A kernel file takes them as
constants, so a change here is a change of the kernels.
"""

from __future__ import annotations

# What one end of a connection has sent: the sequence number that follows, how many bytes of the
# stream were taken, and the frame that is not whole yet: D_HAVE bytes of it at D_AT, its length
# prefix included, the first seen at D_FIRST and the last at D_LAST. D_INDEX is the index of the
# next frame, D_SIZES the sizes of all whole frames together, D_LENGTH the length of the latest one.
# Bytes may come again: the last D_BEFORE of those from before it was lent, and all since;
# D_REPEATED of them did. D_SEEKS says what is known of its bytes: frames, or one of the numbers
# below.
SIDE = 152
(
    D_NEXT,
    D_TAKEN,
    D_AT,
    D_HAVE,
    D_FIRST,
    D_LAST,
    D_INDEX,
    D_SIZES,
    D_LENGTH,
    # While planning: what is missing of the frame, and of its prefix what has come.
    D_NEED,
    D_PREFIX,
    D_PREFIX_SIZE,
    # What is planned: the sequence number that follows, and how many bytes and frames.
    D_PLANNED_NEXT,
    D_PLANNED_BYTES,
    D_PLANNED_FRAMES,
    # The index of the next frame when it was lent: reading leaves it alone.
    D_FIRST_INDEX,
    D_BEFORE,
    D_REPEATED,
    D_SEEKS,
) = range(0, SIDE, 8)
# Where no frame is known to begin, bytes are passed over that begin none: by what requests begin
# with, or responses; or whatever they are.
FRAMES, SEEKS_REQUEST, SEEKS_RESPONSE, PASSES = range(4)

# A connection: its number, whether the end with the lower name is the client, how many segments
# were taken with how many bytes, when the latest was seen, whether one was marked, and how many
# frames were noted in the ring after the two ends, lower name first.
CONNECTION_HEAD = 56
(P_NUMBER, P_LOW_IS_CLIENT, P_SEGMENTS, P_CAPTURED, P_TIME, P_MARKED, P_NOTED) = range(
    0, CONNECTION_HEAD, 8
)
P_SIDES = CONNECTION_HEAD
P_NOTES = P_SIDES + 2 * SIDE
# A note of a frame: its correlation id, and whether it is a response.
NOTE_SHIFT, NOTE_RESPONSE = 1, 1

# A run: segments of one connection, from R_FROM to R_TO in the order; those before R_STOP can be
# taken.
RUN = 32
R_CONNECTION, R_FROM, R_TO, R_STOP = range(0, RUN, 8)

# A frame: the connection's number, whether it is a response, its index, when its first and last
# bytes were seen, its size, where its payload begins and ends in the output, and the segment that
# it was whole with.
FRAME = 72
(
    W_CONNECTION,
    W_IS_RESPONSE,
    W_INDEX,
    W_FIRST,
    W_TIME,
    W_SIZE,
    W_START,
    W_STOP,
    W_SEGMENT,
) = range(0, FRAME, 8)

# A call: the columns of the segments, their order, the runs, and where output goes. C_NOTES is how
# many notes a connection keeps, C_LIMIT the longest payload of a frame, C_HIGHEST_KEY the highest
# api key that a request may have.
CALL = 168
(
    C_TIMES,
    C_SEQUENCES,
    C_ACKNOWLEDGMENTS,
    C_FLAGS,
    C_PAYLOAD_AT,
    C_PAYLOAD_SIZES,
    C_MISSING,
    C_BEGINS,
    C_IS_HIGH,
    C_DATA,
    C_ORDER,
    C_RUNS,
    C_RUN_COUNT,
    C_OUT,
    C_OUT_SIZE,
    C_FRAMES,
    C_FRAME_COUNT,
    C_LIMIT,
    C_NOTES,
    C_CONNECTION_SIZE,
    C_HIGHEST_KEY,
) = range(0, CALL, 8)
