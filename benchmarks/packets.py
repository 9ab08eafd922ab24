"""Kernels of `benchmarks/captures.py`: write segments of many connections as packets of a capture.

The state of a connection is a row of numbers, and so is that of the capture. Each step picks a
connection at random and writes its next packet.
"""

try:
    from numba import njit
except ImportError:
    # The tests run this as plain Python, which writes the same bytes but is slow.
    def njit(**_):
        return lambda function: function


HEAD_BYTES = 28  # of a packet block
IP_BYTES = TCP_BYTES = 20
BLOCK_BYTES = HEAD_BYTES + IP_BYTES + TCP_BYTES + 4
FIN, SYN, PSH, ACK = 1, 2, 8, 16
# The packet that a connection sends next.
SYN_NEXT, SYN_ANSWER_NEXT, ACK_NEXT, TALKING, FIN_NEXT, LAST_ACK_NEXT, GONE = range(7)
# The state of a connection; sequence numbers and unacknowledged bytes are those of both ends.
PHASE, COUNT, WAY, POSITION, SEQUENCES, UNACKNOWLEDGED = 0, 1, 2, 3, 4, 6
STATE = 8
ACKNOWLEDGED_BYTES = 65536
# The state of the capture.
CLOCK, CHANCE, PACKETS, SENT, CARRIED, ALIVE, MADE = COUNTS = range(7)
CLIENT_IDS = 50
# In a frame with its length: the place of a request's correlation id, and of the client id's
# number.
ID_AT = 8
CLIENT_NUMBER_AT = 4 + 8 + 2 + len("client-")
OFFSETS_OF_EXCHANGE, OFFSETS_OF_BATCH = 1000, 100


@njit(nogil=True, cache=True)
def put(out, at, value, width):
    for index in range(width):
        out[at + index] = (value >> (8 * (width - 1 - index))) & 255


@njit(nogil=True, cache=True)
def put_little(out, at, value):
    for index in range(4):
        out[at + index] = (value >> (8 * index)) & 255


@njit(nogil=True, cache=True)
def patch(out, payload, window, at, value, width):
    """Write a number at a place of a frame, as far as this segment contains that place."""
    first, size = window
    if at + width <= first or at >= first + size:
        return
    for index in range(width):
        place = at + index - first
        if 0 <= place < size:
            out[payload + place] = (value >> (8 * (width - 1 - index))) & 255


@njit(nogil=True, cache=True)
def headers(run, used, connection, way, flags, size):
    """Write the headers of a payload; return the payload's place, and count the packet."""
    out, counts, state = run
    counts[CHANCE] = (counts[CHANCE] * 6364136223846793005 + 1442695040888963407) & (2**62 - 1)
    counts[CLOCK] += 1 + ((counts[CHANCE] >> 40) & 31)
    counts[PACKETS] += 1
    length = IP_BYTES + TCP_BYTES + size
    block = BLOCK_BYTES + size + (-size) % 4
    put_little(out, used, 6)
    put_little(out, used + 4, block)
    put_little(out, used + 8, 0)
    put_little(out, used + 12, counts[CLOCK] >> 32)
    put_little(out, used + 16, counts[CLOCK] & 0xFFFFFFFF)
    put_little(out, used + 20, length)
    put_little(out, used + 24, length)
    put_little(out, used + block - 4, block)
    for index in range((-size) % 4):
        out[used + block - 5 - index] = 0
    ip = used + 28
    client, broker = (10 << 24) + connection, (10 << 24) + (255 << 16) + 1 + connection % 3
    put(out, ip, 0x45000000 + length, 4)
    put(out, ip + 4, 0x4000, 4)
    put(out, ip + 8, 0x40060000, 4)
    put(out, ip + 12, broker if way else client, 4)
    put(out, ip + 16, client if way else broker, 4)
    tcp, port = ip + IP_BYTES, 40000 + connection % 20000
    put(out, tcp, 9092 if way else port, 2)
    put(out, tcp + 2, port if way else 9092, 2)
    put(out, tcp + 4, state[connection, SEQUENCES + way] & 0xFFFFFFFF, 4)
    back = state[connection, SEQUENCES + 1 - way] if flags & ACK else 0
    put(out, tcp + 8, back & 0xFFFFFFFF, 4)
    put(out, tcp + 12, 0x5000 + flags, 2)
    put(out, tcp + 14, 0xFFFF0000, 4)
    put(out, tcp + 18, 0, 2)
    return tcp + TCP_BYTES, used + block


@njit(nogil=True, cache=True)
def turn(state, connection):
    """Return a connection's next packet without data, its direction and flags, and advance the
    state.
    """
    phase = state[connection, PHASE]
    state[connection, PHASE] = phase + 1
    if phase == SYN_NEXT:
        return 0, SYN
    if phase == SYN_ANSWER_NEXT:
        return 1, SYN | ACK
    if phase == ACK_NEXT:
        return 0, ACK
    if phase == TALKING:
        return 0, FIN | ACK
    return (1, FIN | ACK) if phase == FIN_NEXT else (0, ACK)


@njit(nogil=True, cache=True)
def number_of(cycles, connection, count, way):
    """Return the frame of a connection, by the frame's number in the pool."""
    if count == 0:
        return way
    kind = (connection if cycles.shape[0] > 1 else 0) % cycles.shape[0]
    return 2 * cycles[kind, (count + connection * 7) % cycles.shape[1]] + way


@njit(nogil=True, cache=True)
def segment(run, used, connection, frames, most):
    """Write the next segment of a connection's frame."""
    out, counts, state = run
    data, starts, sizes, offsets_from, offsets, records, cycles = frames
    count, way = state[connection, COUNT], state[connection, WAY]
    number = number_of(cycles, connection, count, way)
    first, whole = state[connection, POSITION], sizes[number]
    size = min(most, whole - first)
    window = (first, size)
    is_last = first + size == whole
    flags = ACK | PSH if is_last else ACK
    at, end = headers(run, used, connection, way, flags, size)
    begin = starts[number] + first
    out[at : at + size] = data[begin : begin + size]
    patch(out, at, window, ID_AT - 4 * way, count, 4)
    if way == 0:
        client = connection % CLIENT_IDS
        digits = ((48 + client // 10) << 8) + 48 + client % 10
        patch(out, at, window, CLIENT_NUMBER_AT, digits, 2)
    for index in range(offsets_from[number], offsets_from[number + 1]):
        offset = count * OFFSETS_OF_EXCHANGE
        offset += (index - offsets_from[number]) * OFFSETS_OF_BATCH
        patch(out, at, window, offsets[index], offset, 8)
    state[connection, SEQUENCES + way] += size
    state[connection, UNACKNOWLEDGED + way] += size
    state[connection, UNACKNOWLEDGED + 1 - way] = 0
    state[connection, POSITION] = 0 if is_last else first + size
    if is_last:
        counts[SENT] += 1
        state[connection, WAY] = 1 - way
        if way:
            counts[CARRIED] += records[number // 2]
            state[connection, COUNT] = count + 1
    return end


@njit(nogil=True, cache=True)
def fill(run, limit, target, alive, frames, most):
    """Write packets until one more may not fit, or the capture has ``target`` bytes and all are
    closed.

    Return the number of written bytes.
    """
    _, counts, state = run
    used = 0
    while counts[ALIVE] and used + BLOCK_BYTES + most + 4 <= limit:
        pick = (counts[CHANCE] >> 20) % counts[ALIVE]
        connection = alive[pick]
        talks = state[connection, PHASE] == TALKING
        is_over = counts[MADE] + used >= target
        is_between = state[connection, POSITION] == 0 and state[connection, WAY] == 0
        if talks and not (is_over and is_between):
            way = state[connection, WAY]
            if state[connection, UNACKNOWLEDGED + way] > ACKNOWLEDGED_BYTES:
                state[connection, UNACKNOWLEDGED + way] = 0
                _, used = headers(run, used, connection, 1 - way, ACK, 0)
            else:
                used = segment(run, used, connection, frames, most)
            continue
        way, flags = turn(state, connection)
        _, used = headers(run, used, connection, way, flags, 0)
        if flags & (SYN | FIN):
            state[connection, SEQUENCES + way] += 1
        if state[connection, PHASE] == GONE:
            counts[ALIVE] -= 1
            alive[pick] = alive[counts[ALIVE]]
    counts[MADE] += used
    return used
