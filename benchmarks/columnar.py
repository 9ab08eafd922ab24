"""Measure messages as columns: ``python benchmarks/columnar.py``, after ``pip install -e
'.[columnar]'``.

For each case and operation it prints messages and bytes per second on one core. It compares them
with copying the same bytes, and with flexwire's objects (one message at a time, with kernels).
Times are CPU time of the thread, the best of several rounds; results are freed after each call, as
in a pipeline. ``--threads`` also prints the speedup of two threads over one, in elapsed time.
"""

from __future__ import annotations

import argparse
import platform
import threading
import time
import uuid

import numpy as np
import pyarrow as pa

from flexwire import load_kernels
from flexwire.codec import Encoding
from flexwire.columnar import decode_messages, encode_messages, message_sizes
from flexwire.messages import ApiVersionsResponse, MetadataResponse, RequestHeader


def metadata(topics, partitions):
    made = MetadataResponse
    return made(
        brokers=[
            made.MetadataResponseBroker(
                node_id=number, host=f"broker-{number}.example.com", port=9092, rack=f"r{number}"
            )
            for number in range(3)
        ],
        cluster_id="abcdefghijklmnopqrstuv",
        topics=[
            made.MetadataResponseTopic(
                name=f"topic-name-{topic}",
                topic_id=uuid.UUID(int=topic + 1),
                partitions=[
                    made.MetadataResponsePartition(
                        partition_index=number,
                        leader_id=number % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for number in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def api_versions():
    made = ApiVersionsResponse
    return made(
        api_keys=[made.ApiVersion(api_key=key, max_version=9) for key in range(60)],
        supported_features=[made.SupportedFeatureKey(name="metadata.version", max_version=20)],
        finalized_features_epoch=5,
    )


CASES = [
    ("MetadataResponse", 12, metadata(100, 10), 500),
    ("MetadataResponse", 12, metadata(3, 4), 20_000),
    ("ApiVersionsResponse", 3, api_versions(), 10_000),
    ("RequestHeader", 2, RequestHeader(correlation_id=7, client_id="rdkafka-123"), 1_000_000),
]


def best(run, rounds):
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        run()
        times.append(time.thread_time() - began)
    return min(times)


def copying(data, rounds):
    source = np.frombuffer(data.buffers()[2], np.uint8)
    target = np.ones_like(source)
    return best(lambda: np.copyto(target, source), rounds)


def objects(value, version, raw, count):
    """Return the seconds to decode, and to encode, as many messages one at a time."""
    few = max(3, min(count, 20_000_000 // (200 * len(raw))))
    decode, encode = type(value).decoder(version), type(value).encoder(version)
    seconds = [best(lambda: [decode(raw) for _ in range(few)], 3)]
    seconds.append(best(lambda: [encode(value) for _ in range(few)], 3))
    return [one * count / few for one in seconds]


def show(label, count, size, seconds, copy, other=None):
    ratio = f"{other / seconds:10.1f}" if other else ""
    print(
        f"{label:34}{count / seconds:14,.0f}{count * size / seconds / 1e6:10,.0f}"
        f"{seconds / copy:10.1f}{ratio}"
    )


def measure(name, version, value, count, rounds):
    raw = value.encode(version)
    data = pa.array([raw] * count)
    structs = decode_messages(name, data, version)
    assert encode_messages(name, structs, version).equals(data)
    copy = copying(data, rounds)
    one_decode, one_encode = objects(value, version, raw, count)
    print(f"{name} v{version}, {len(raw)} bytes, {count} at once")
    seconds = best(lambda: decode_messages(name, data, version), rounds)
    show("  decode", count, len(raw), seconds, copy, one_decode)
    seconds = best(lambda: encode_messages(name, structs, version), rounds)
    show("  encode", count, len(raw), seconds, copy, one_encode)
    for encoding in Encoding:
        if encoding is Encoding.FIXED and name == "ApiVersionsResponse":
            continue  # this message has tagged fields, which FIXED cannot write
        seconds = best(
            lambda encoding=encoding: message_sizes(name, structs, version, encoding=encoding),
            rounds,
        )
        show(f"  sizes, {encoding.value}", count, len(raw), seconds, copy)


def threads(name, version, value, count, rounds):
    data = pa.array([value.encode(version)] * count)

    def rate(number):
        def work():
            for _ in range(rounds):
                decode_messages(name, data, version)

        team = [threading.Thread(target=work) for _ in range(number)]
        began = time.monotonic()
        for one in team:
            one.start()
        for one in team:
            one.join()
        return number * rounds * count / (time.monotonic() - began)

    ratios = sorted(rate(2) / rate(1) for _ in range(5))
    print(
        f"{name} v{version}: two threads over one, worst, median, best: "
        f"{ratios[0]:.2f} {ratios[2]:.2f} {ratios[-1]:.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", action="store_true", help="two threads over one")
    asked = parser.parse_args()
    assert load_kernels(), "this flexwire was built without kernels"
    print(f"Python {platform.python_version()}, pyarrow {pa.__version__}, {platform.machine()}")
    print(f"{'':34}{'messages/s':>14}{'MB/s':>10}{'x copy':>10}{'x objects':>10}")
    for name, version, value, count in CASES:
        measure(name, version, value, count, asked.rounds)
    if asked.threads:
        for name, version, value, count in CASES:
            threads(name, version, value, count, asked.rounds)


if __name__ == "__main__":
    main()
