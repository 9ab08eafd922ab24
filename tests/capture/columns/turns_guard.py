"""Read headers of payloads that end at a protected page.

``python -m tests.capture.columns.turns_guard ROUNDS [--lie]``: with ``--lie`` each payload is
declared one byte too long. The crash proves that the protected page works.
"""

from __future__ import annotations

import argparse
import ctypes
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import numpy as np

from flexwire.capture.pairing.pairing import Hindsight, Pairing, build_paired
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.kernels import load_kernel
from flexwire.schema.catalog import use_catalog
from tests.capture.columns.conversing import FETCH, HEARTBEAT, heartbeat, produce
from tests.kernels.guard import Guarded
from tests.protocol.payloads import make, request_payload, response_payload
from tests.schema.trunk import OFFSET_DELETE, trunk_catalog

_BYTES = [0, 1, 2, 127, 128, 255]


def main(rounds: int, *, lie: bool) -> None:
    """Read damaged payloads one after the other. The kernel accepts most of them."""
    source, memory = random.Random(rounds), Guarded()
    assert load_kernel("pairing") is not None
    sound = [heartbeat(), produce(9, 1), produce(3, -1), produce(0, 1), produce(12, 0)]
    sound += [request_payload(FETCH, 13, bytes(30)), response_payload(HEARTBEAT, 4)]
    sound += [with_instance(b""), with_instance(b"\2g\1\0")]
    pairing, plain = Pairing(), 0
    for number in range(rounds):
        raw = bytearray(source.choice(sound))
        for _ in range(source.choice([0, 0, 1, 2])):
            raw[source.randrange(len(raw))] = source.choice(_BYTES)
        cut = len(raw) if source.random() < 0.7 else source.randrange(1, len(raw))
        begin = memory.put(bytes(raw[:cut]))
        frames = frame_at(begin, cut + lie, number, is_response=source.random() < 0.2)
        headers = pairing.read_headers(frames)
        build_paired(frames, headers, Hindsight(), show_credentials=True)
        plain += not headers.odd
        if number % 20 == 0:
            pairing = Pairing()
    print(f"{rounds} rounds, {plain} plain frames")  # noqa: T201 - a test reads this output


def with_instance(body: bytes) -> bytes:
    """Return a request whose header ends in a client instance id, which may end at its
    last byte.
    """
    fields = {"request_api_key": OFFSET_DELETE, "request_api_version": 1, "client_id": "a"}
    header = make("RequestHeader", **fields, client_instance_id=UUID(int=2**127))
    encoded: bytes = header.encode(3) + body
    return encoded


def frame_at(begin: int, size: int, number: int, *, is_response: bool) -> FrameColumns:
    """Return a frame whose payload is the memory at this address, without a copy."""
    memory: Any = (ctypes.c_uint8 * size).from_address(begin)
    same, start = np.array([number], np.int64), np.zeros(1, np.int64)
    return FrameColumns(
        connection=np.zeros(1, np.int32),
        is_response=np.array([is_response]),
        index=same,
        time_us=same,
        first_us=same,
        size=start + size + 4,
        start=start,
        stop=start + size,
        connections=["a>b"],
        data=np.frombuffer(memory, np.uint8),
        file="a.pcapng",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--lie", action="store_true")
    given_ = parser.parse_args()
    with TemporaryDirectory() as place:
        use_catalog(trunk_catalog(Path(place)))
        main(given_.rounds, lie=given_.lie)
