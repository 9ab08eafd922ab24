"""Compare generated Python with an older checkout of flexwire, and with a floor, without kernels.

    python benchmarks/without_kernels.py --before ../before

Each checkout has its own process, and they take turns; times are CPU time, the lowest of the
rounds. The floor of a decoder is straight-line Python that makes the same objects from the same
bytes at known positions: it reads no length and checks nothing. `once` is `Message.decode` and
`encode`; finding the generated code is part of a small message's time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any
from uuid import UUID

_HERE = Path(__file__).parent
# A case is timed for this many seconds at a time.
_WINDOW = 0.01


class _Floor:
    """Source that makes an object anew, with a function for each structure."""

    def __init__(self, value: Any, data: bytes) -> None:
        self.namespace: dict[str, Any] = {}
        self.data = data
        exec(f"def floor(data):\n    return {self._made(value)}", self.namespace)  # noqa: S102
        assert self.namespace["floor"](data) == value

    def _made(self, value: Any) -> str:
        if isinstance(value, bytes | str) and value:
            raw = value if isinstance(value, bytes) else value.encode()
            at = self.data.index(raw)
            cut = f"data[{at}:{at + len(raw)}]"
            return cut if isinstance(value, bytes) else f"{cut}.decode()"
        if isinstance(value, list):
            return f"[{', '.join(map(self._made, value))}]"
        if isinstance(value, UUID):
            # Default values are shared, and others are few.
            self.namespace[name := f"uuid_{value.int}"] = value
            return name
        if hasattr(value, "__struct_fields__"):
            self.namespace[type(value).__name__] = type(value)
            names = value.__struct_fields__
            held = ", ".join(self._made(getattr(value, name)) for name in names)
            return f"{type(value).__name__}({held})"
        return repr(value)


def _message_calls() -> dict[str, Any]:
    import peers  # noqa: PLC0415 - only where cases are run
    from messages import made  # noqa: PLC0415 - only where cases are run

    from flexwire import message  # noqa: PLC0415 - of the checkout that is measured

    calls: dict[str, Any] = {}
    for case, (name, version, neutral) in peers.CASES.items():
        kind = message(name)
        value = made(kind.definition.schema(version), neutral(version), kind.definition.classes)
        data = kind.definition.encode_generated(value, version)
        decode, encode = kind.decoder(version), kind.encoder(version)
        again, _ = kind.definition._decoder(version, _kafka())(data, 0, len(data))  # noqa: SLF001
        assert again == value
        assert encode(again) == data
        calls[f"{case} decode"] = lambda decode=decode, data=data: decode(data)
        calls[f"{case} encode"] = lambda encode=encode, value=value: encode(value)
        calls[f"{case} decode once"] = lambda k=kind, data=data, v=version: k.decode(data, v)
        calls[f"{case} encode once"] = lambda value=value, v=version: value.encode(v)
        floor = _Floor(again, data).namespace["floor"]
        calls[f"{case} decode floor"] = lambda floor=floor, data=data: floor(data)
    return calls


def _kafka() -> Any:
    from flexwire.codec import Encoding  # noqa: PLC0415 - of the checkout that is measured

    return Encoding.KAFKA


def _record_calls() -> dict[str, Any]:
    from flexwire.records import Record, decode_batches, encode_batch  # noqa: PLC0415 - as above

    def read(data: bytes) -> list[Any]:
        return [record for batch in decode_batches(data) for record in batch.records]

    calls: dict[str, Any] = {}
    for count in (1, 10, 100):
        for headers in (0, 2, 10):
            case = f"{count} records, {headers} headers"
            pairs = [(b"trace-%d" % at, b"%016x" % at) for at in range(headers)]
            records = [
                Record(at, 1_700_000_000_000 + at, b"key-%d" % at, bytes(100), list(pairs))
                for at in range(count)
            ]
            data = encode_batch(records)
            assert read(data) == records
            calls[f"{case} decode"] = lambda data=data: read(data)
            calls[f"{case} encode"] = lambda records=records: encode_batch(records)
            floor = _records_floor(records, data)
            calls[f"{case} decode floor"] = lambda floor=floor, data=data: floor(data)
    return calls


def _records_floor(records: list[Any], data: bytes) -> Any:
    """Make records one after the other from the places of their bytes in ``data``."""
    kind = type(records[0])
    zeros = data.index(bytes(100))

    def cut(raw: bytes) -> str:
        at = data.find(raw)
        at = zeros if at < 0 else at
        return f"data[{at}:{at + len(raw)}]"

    made = [
        f"Record({one.offset}, {one.timestamp}, {cut(one.key)}, {cut(one.value)}, "
        f"[{', '.join(f'({cut(key)}, {cut(value)})' for key, value in one.headers)}])"
        for one in records
    ]
    namespace: dict[str, Any] = {"Record": kind}
    exec(f"def floor(data):\n    return [{', '.join(made)}]", namespace)  # noqa: S102 - our own
    assert namespace["floor"](data) == records
    return namespace["floor"]


def work() -> None:
    """Time the cases that standard input names, in a process of one checkout."""
    calls = {**_message_calls(), **_record_calls()}
    for _ in range(200):
        for name, call in calls.items():
            if " once" in name:
                call()
    times = {name: _times(call) for name, call in calls.items()}
    print(json.dumps(list(calls)), flush=True)
    for line in sys.stdin:
        call, again = calls[name := line.strip()], range(times[name])
        begun = time.process_time()
        for _ in again:
            call()
        print((time.process_time() - begun) / len(again), flush=True)


def _times(call: Any) -> int:
    """Return how often a call runs within a time window."""
    call()
    begun, count = time.process_time(), 0
    while time.process_time() - begun < _WINDOW:
        call()
        count += 1
    return count


def _started(place: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(place / "src"), str(_HERE)])
    environment = {**os.environ, "PYTHONPATH": path, "FLEXWIRE_KERNELS": "off"}
    command = [sys.executable, str(Path(__file__).resolve()), "--work"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)  # noqa: S603


def compare(before: Path, rounds: int, only: str) -> None:
    """Time every case in both checkouts, and print the comparison."""
    workers = {"before": _started(before), "now": _started(_HERE.parent)}
    names = [json.loads(one.stdout.readline()) for one in workers.values() if one.stdout][1]
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    wanted = [name for name in names if only in name]
    for _ in range(rounds):
        for name in wanted:
            for which, one in workers.items():
                assert one.stdin
                assert one.stdout
                print(name, file=one.stdin, flush=True)
                seconds[which, name].append(float(one.stdout.readline()))
    for one in workers.values():
        one.communicate()
    print(f"load {os.getloadavg()[0]:.1f}; µs, the least of {rounds} rounds\n")
    print(f"{'case':44}{'before':>10}{'now':>10}{'times':>8}{'floor':>10}{'floor/now':>11}")
    for name in wanted:
        if name.endswith("floor"):
            continue
        old, new = (min(seconds[which, name]) * 1e6 for which in workers)
        told = f"{name:44}{old:10.2f}{new:10.2f}{old / new:8.2f}"
        floor = seconds.get(("now", f"{name} floor"))
        print(told + (f"{min(floor) * 1e6:10.2f}{min(floor) * 1e6 / new:11.2f}" if floor else ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the root of an older checkout")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work()
    else:
        compare(given.before, given.rounds, given.only)
