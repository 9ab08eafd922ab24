"""Numbers the flows of packets, from 0 in the order in which they appear.

A table of slots leads from the hash of addresses and ports to a flow. Its seed is secret, so that
no capture can be made whose flows all meet in one slot.
"""

from __future__ import annotations

from flexwire.kernels.capture.packets_layout import (
    FLOW,
    S_FLOW_CAPACITY,
    S_FLOW_COUNT,
    S_FLOWS,
    S_SEED,
    S_SLOT_MASK,
    S_SLOTS,
    S_SLOTTED,
    W_FIRST,
    W_FOURTH,
    W_HASH,
    W_PORTS,
    W_SECOND,
    W_THIRD,
)
from flexwire.kernels.machine import load_int32_native, load_word, part, store_word
from flexwire.kernels.memory import inlined, store_int32_native
from flexwire.wire.limits import UINT32_MAX

# Odd, with as many ones as zeros and no pattern.
_FACTOR, _LAST_FACTOR = 0x2545F4914F6CDD1D, 0x369DEA0F31A53F85
NO_ROOM = -1


@inlined
def _mixed(number: int, word: int, factor: int) -> int:
    number = (number ^ word) * factor
    return number ^ ((number >> 32) & UINT32_MAX)


@inlined
def _slot(call: int, number: int) -> int:
    """Give the slot where a hash belongs: what differs anywhere in it differs in the low bits."""
    number = _mixed(_mixed(number, 0, _LAST_FACTOR), 0, _FACTOR)
    return number & load_word(call + S_SLOT_MASK)


@part
def put_into_slots(call: int) -> None:
    """Put the flows that stand in no slot yet into a table that is new."""
    slots, flows = load_word(call + S_SLOTS), load_word(call + S_FLOWS)
    mask = load_word(call + S_SLOT_MASK)
    flow = load_word(call + S_SLOTTED)
    while flow < load_word(call + S_FLOW_COUNT):
        slot = _slot(call, load_word(flows + FLOW * flow + W_HASH))
        while load_int32_native(slots + 4 * slot) != 0:
            slot = (slot + 1) & mask
        flow += 1
        store_int32_native(slots + 4 * slot, flow)
    store_word(call + S_SLOTTED, flow)


@inlined
def find_flow(call: int, first: int, second: int, third: int, fourth: int, ports: int) -> int:
    """Give the number of a flow, a new one if it has none; NO_ROOM where that does not fit."""
    number = _mixed(load_word(call + S_SEED), first, _FACTOR)
    if (second | third | fourth) != 0:
        number = _mixed(number, second, _FACTOR)
        number = _mixed(number, third, _FACTOR)
        number = _mixed(number, fourth, _FACTOR)
    number = _mixed(number, ports, _FACTOR)
    slots, flows = load_word(call + S_SLOTS), load_word(call + S_FLOWS)
    mask = load_word(call + S_SLOT_MASK)
    slot = _slot(call, number)
    while True:
        flow = load_int32_native(slots + 4 * slot)
        if flow == 0:
            break
        row = flows + FLOW * (flow - 1)
        if (
            load_word(row + W_HASH) == number
            and load_word(row + W_FIRST) == first
            and load_word(row + W_PORTS) == ports
            and load_word(row + W_SECOND) == second
            and load_word(row + W_THIRD) == third
            and load_word(row + W_FOURTH) == fourth
        ):
            return flow - 1
        slot = (slot + 1) & mask
    flow = load_word(call + S_FLOW_COUNT)
    if flow == load_word(call + S_FLOW_CAPACITY):
        return NO_ROOM
    row = flows + FLOW * flow
    store_word(row + W_FIRST, first)
    store_word(row + W_SECOND, second)
    store_word(row + W_THIRD, third)
    store_word(row + W_FOURTH, fourth)
    store_word(row + W_PORTS, ports)
    store_word(row + W_HASH, number)
    store_int32_native(slots + 4 * slot, flow + 1)
    store_word(call + S_FLOW_COUNT, flow + 1)
    store_word(call + S_SLOTTED, flow + 1)
    return flow
