"""Compare flexwire with its peers on the message cases: ``make bench``, or run this file.

All libraries encode the same content to equal bytes, take turns in one process, and are compared by
medians. The table at the end has flexwire's speed divided by each rival's: above 1, flexwire is
faster.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import time
from typing import Any

import peers

from flexwire import __version__, load_kernels, message
from flexwire.codec.definition import python_functions
from flexwire.wire.schema import struct_of
from flexwire.wire.types import ArrayType


class Flexwire(peers.Adapter):
    """flexwire through its methods, as most callers use it, in a process with kernels."""

    name = "flexwire"
    version = __version__

    def supports(self, msg: str, ver: int) -> bool:
        return message(msg).entry.spec(ver) is not None

    def build(self, msg: str, ver: int, d: dict[str, Any]) -> Any:
        definition = message(msg).definition
        return made(definition.schema(ver), d, definition.classes)

    def encoder(self, msg: str, ver: int) -> Any:
        del msg
        return lambda value: value.encode(ver)

    def decoder(self, msg: str, ver: int) -> Any:
        decode = message(msg).decode
        return lambda data: decode(data, ver)


class FlexwireFunctions(Flexwire):
    """flexwire through its functions for one version, which need not look up the version."""

    name = "flexwire-functions"

    def encoder(self, msg: str, ver: int) -> Any:
        return message(msg).encoder(ver)

    def decoder(self, msg: str, ver: int) -> Any:
        return message(msg).decoder(ver)


class FlexwirePython(Flexwire):
    """flexwire without kernels: generated Python."""

    name = "flexwire-python"

    def encoder(self, msg: str, ver: int) -> Any:
        return python_functions(message(msg).definition, ver)[1]

    def decoder(self, msg: str, ver: int) -> Any:
        return python_functions(message(msg).definition, ver)[0]


def made(schema: Any, content: dict[str, Any], classes: dict[str, Any]) -> Any:
    """Build the objects of a neutral description, without fields that the version lacks."""
    values = {}
    for one in schema.fields:
        if one.attribute not in content or one.presence.value == "absent":
            continue
        value, inner = content[one.attribute], struct_of(one.type)
        if inner is not None and isinstance(one.type, ArrayType):
            value = [made(inner, item, classes) for item in value]
        elif inner is not None:
            value = made(inner, value, classes)
        values[one.attribute] = value
    return classes[schema.name](**values)


def run(repeats: int, min_time: float, only: set[str]) -> dict[tuple[str, str], dict[str, float]]:
    """Time every case; return calls per second by (case, operation) and library."""
    assert load_kernels(), "this flexwire was built without kernels"
    ours = [Flexwire(), FlexwireFunctions(), FlexwirePython()]
    libraries = [*ours, peers.Kio(), peers.KafkaPython(), peers.AioKafka()]
    told = ", ".join(f"{one.name} {one.version}" for one in libraries)
    print(f"python {platform.python_version()}, load {os.getloadavg()[0]:.1f}: {told}\n")
    speeds: dict[tuple[str, str], dict[str, float]] = {}
    for case, (name, version, neutral) in peers.CASES.items():
        if only and case not in only:
            continue
        content = neutral(version)
        able = [one for one in libraries if one.supports(name, version)]
        objects = {one.name: one.build(name, version, content) for one in able}
        encoders = {one.name: one.encoder(name, version) for one in able}
        reference = bytes(encoders["flexwire"](objects["flexwire"]))
        calls: dict[str, dict[str, Any]] = {"decode": {}, "encode": {}}
        for one in able:
            encode, value = encoders[one.name], objects[one.name]
            assert bytes(encode(value)) == reference, f"{case}: {one.name} writes other bytes"
            calls["encode"][one.name] = lambda encode=encode, value=value: encode(value)
            decode = one.decoder(name, version)
            if decode is None:
                continue
            again = bytes(encode(decode(reference)))
            assert again == reference, f"{case}: {one.name} does not read what it wrote"
            calls["decode"][one.name] = lambda decode=decode, data=reference: decode(data)
        for operation, functions in calls.items():
            gc.collect()
            samples = peers.time_interleaved(functions, repeats, min_time, time.process_time)
            speeds[case, operation] = {
                library: 1 / peers.summarize(seconds)["median_s"]
                for library, seconds in samples.items()
            }
    return speeds


def show(speeds: dict[tuple[str, str], dict[str, float]]) -> None:
    """Print messages per second of flexwire, and how many times faster it is than each rival."""
    rivals = ["kio", "kafka-python", "aiokafka"]
    print(f"{'case':34}{'':8}{'flexwire/s':>12}", *(f"{'x ' + one:>16}" for one in rivals), end="")
    print(f"{'functions/s':>13}{'no kernels/s':>14}")
    for (case, operation), found in speeds.items():
        ours = found["flexwire"]
        ratios = [f"{ours / found[one]:.2f}" if one in found else "-" for one in rivals]
        print(f"{case:34}{operation:8}{ours:12,.0f}", *(f"{one:>16}" for one in ratios), end="")
        print(f"{found['flexwire-functions']:13,.0f}{found['flexwire-python']:14,.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases, by commas")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--min-time", type=float, default=0.1)
    given = parser.parse_args()
    show(run(given.repeats, given.min_time, set(filter(None, given.only.split(",")))))
