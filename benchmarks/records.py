"""Compare flexwire with its peers on record batches: ``make bench``, or run this file with options.

All libraries write the same records to equal bytes, except for the partition leader epoch (aiokafka
and flexwire write -1, the others 0; the crc does not cover it). They take turns in one process, and
medians count. Decoding returns a list of all records: "batches" calls `decode_batches` and reads
each batch, and "records" calls `decode_records`; a rival does the equivalent. A fetch is many
consecutive batches. The table has flexwire's speed divided by each rival's: above 1, flexwire is
faster.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import time
from functools import partial

import peers

from flexwire import __version__, load_kernels
from flexwire.records import Record, decode_batches, decode_records, encode_batch
from flexwire.records.batch_executors import PYTHON, kernel_functions, use_functions

# The partition leader epoch in the header of a batch.
EPOCH = slice(12, 16)


def records(count, size, header_count=0):
    return [
        (i, peers.TS0 + i, None, (b"%010d" % i) * (size // 10), headers(i, header_count))
        for i in range(count)
    ]


def headers(i, count):
    return [(f"header-{number}", b"%d" % i) for number in range(count)]


CASES = {
    "record_batch_v2": peers.RECORDS,
    "without_headers": records(10_000, 100),
    "small_values": records(10_000, 10),
    "large_values": records(100, 10_000),
    "many_headers": records(1_000, 100, header_count=10),
    "batch_of_1": peers.RECORDS[:1],
    "batch_of_10": peers.RECORDS[:10],
    "batch_of_100": peers.RECORDS[:100],
    "fetch_of_1": peers.RECORDS[:1],
    "fetch_of_10": peers.RECORDS[:10],
    "fetch_of_100": peers.RECORDS[:100],
}
# The number of times that the decoded data contains the batch.
BATCHES = {"fetch_of_1": 100, "fetch_of_10": 100, "fetch_of_100": 10}


class Flexwire(peers.Adapter):
    """flexwire as most callers use it, in a process with kernels."""

    name = "flexwire"
    version = __version__

    def rb_build(self, given):
        return [
            Record(offset, timestamp, key, value, [(k.encode(), v) for k, v in headers])
            for offset, timestamp, key, value, headers in given
        ]

    def rb_encode(self, built):
        return encode_batch(built)

    def rb_decode(self, data):
        return [r for batch in decode_batches(data) for r in batch.records]

    def rb_decode_unchecked(self, data):
        return [r for batch in decode_batches(data, check_crc=False) for r in batch.records]

    def rb_records(self, data):
        return decode_records(data)

    def rb_records_unchecked(self, data):
        return decode_records(data, check_crc=False)

    def rb_tuple(self, record):
        headers = [(key.decode(), value) for key, value in record.headers]
        return record.offset, record.timestamp, record.key, record.value, headers


class FlexwirePython(Flexwire):
    """flexwire without kernels."""

    name = "flexwire-python"

    def rb_encode(self, built):
        with NoKernels():
            return super().rb_encode(built)

    def rb_decode(self, data):
        with NoKernels():
            return super().rb_decode(data)

    def rb_decode_unchecked(self, data):
        with NoKernels():
            return super().rb_decode_unchecked(data)

    def rb_records(self, data):
        with NoKernels():
            return super().rb_records(data)

    def rb_records_unchecked(self, data):
        with NoKernels():
            return super().rb_records_unchecked(data)


class NoKernels:
    """Run without kernels until the end of the block."""

    def __enter__(self):
        use_functions(PYTHON)

    def __exit__(self, *error):
        use_functions(kernel_functions())


class AioKafka(peers.AioKafka):
    """aiokafka, whose crc check can be left out."""

    def rb_decode_unchecked(self, data):
        return [record for batch in self.batches(data) for record in batch]

    def batches(self, data):
        from aiokafka.record import MemoryRecords  # noqa: PLC0415 - as all rivals' own

        found = MemoryRecords(data)
        while found.has_next():
            yield found.next_batch()


class KafkaPython(peers.KafkaPython):
    """kafka-python, whose crc check can be left out."""

    def rb_decode_unchecked(self, data):
        return [record for batch in self.batches(data) for record in batch]

    def batches(self, data):
        from kafka.record import MemoryRecords  # noqa: PLC0415 - as all rivals' own

        found = MemoryRecords(data)
        while found.has_next():
            yield found.next_batch()


def run(repeats, min_time, only):
    """Time every case; return records per second, and bytes, by case, operation and library."""
    load_kernels()
    libraries = [Flexwire(), FlexwirePython(), peers.Kio(), KafkaPython(), AioKafka()]
    told = ", ".join(f"{one.name} {one.version}" for one in libraries)
    print(f"python {platform.python_version()}, load {os.getloadavg()[0]:.1f}: {told}\n")
    speeds = {}
    for case, given in CASES.items():
        if only and case not in only:
            continue
        built = {one.name: one.rb_build(given) for one in libraries}
        data = bytes(libraries[0].rb_encode(built["flexwire"]))
        for one in libraries:
            compare(one, data, bytes(one.rb_encode(built[one.name])), given)
        batches = BATCHES.get(case, 1)
        calls = calls_of(
            [one for one in libraries if reads(one, data, batches)], data * batches, built
        )
        if batches > 1:
            # No library writes many batches in one call.
            del calls["encode"]
        for operation, functions in calls.items():
            # Objects that the libraries hold should not slow down a rival's garbage collection.
            gc.collect()
            gc.freeze()
            samples = peers.time_interleaved(functions, repeats, min_time, time.process_time)
            speeds[case, operation] = {
                library: (
                    batches * len(given) / peers.summarize(seconds)["median_s"],
                    batches * len(data) / peers.summarize(seconds)["median_s"] / 1e6,
                )
                for library, seconds in samples.items()
            }
    return speeds


def reads(one, data, batches):
    """Return whether a library reads this many batches; kio stops after one without an error."""
    return len(one.rb_decode(data * batches)) == batches * len(one.rb_decode(data))


def calls_of(libraries, data, built):
    """Return the timed functions, by operation and library."""
    readers = {
        "batches": ("rb_decode", "rb_decode"),
        "batches, no crc": ("rb_decode_unchecked", "rb_decode_unchecked"),
        "records": ("rb_records", "rb_decode"),
        "records, no crc": ("rb_records_unchecked", "rb_decode_unchecked"),
    }
    calls = {
        operation: {
            one.name: partial(getattr(one, ours if hasattr(one, ours) else theirs), data)
            for one in libraries
            if hasattr(one, theirs)
        }
        for operation, (ours, theirs) in readers.items()
    }
    return calls | {
        "encode": {one.name: partial(one.rb_encode, built[one.name]) for one in libraries}
    }


def compare(one, data, written, given):
    """Check that a library writes the same bytes as flexwire, and reads its input."""
    same = (
        written[: EPOCH.start] == data[: EPOCH.start]
        and written[EPOCH.stop :] == data[EPOCH.stop :]
    )
    assert same, f"{one.name} writes other bytes"
    found = [one.rb_tuple(record) for record in one.rb_decode(data)]
    if hasattr(one, "rb_records"):
        assert [one.rb_tuple(record) for record in one.rb_records(data)] == found, one.name
    # kio drops the milliseconds of timestamps.
    at = slice(2, None) if one.name == "kio" else slice(None)
    assert [record[at] for record in found] == [record[at] for record in given], one.name


def show(speeds):
    """Print records per second of flexwire, and how many times faster it is than each rival."""
    rivals = ["kio", "kafka-python", "aiokafka"]
    print(f"{'case':16}{'records':>8} {'':16}{'flexwire/s':>12}{'MB/s':>8}", end="")
    print(*(f"{'x ' + one:>16}" for one in rivals), f"{'no kernels/s':>14}")
    for (case, operation), found in speeds.items():
        ours, megabytes = found["flexwire"]
        ratios = [f"{ours / found[one][0]:.2f}" if one in found else "-" for one in rivals]
        count = BATCHES.get(case, 1) * len(CASES[case])
        print(f"{case:16}{count:8,} {operation:16}{ours:12,.0f}{megabytes:8,.0f}", end="")
        print(*(f"{one:>16}" for one in ratios), f"{found['flexwire-python'][0]:14,.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases, by commas")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--min-time", type=float, default=0.1)
    told = parser.parse_args()
    show(run(told.repeats, told.min_time, set(filter(None, told.only.split(",")))))
