"""Test other projects' brokers with `flexwire conform`, and compare them with Apache Kafka.

    python -m tools.other_brokers [NAME...]

The program starts each broker on loopback with a node of Apache Kafka, sends all cases to both,
including cases that write and hostile cases, and records the results in
`tests/conformance/others.json`. docs/conformance.md contains the same figures. If names are given,
only these brokers are tested.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.conformance import Asking, SecondBroker, conform
from flexwire.conformance.formats import grouped_findings, to_text
from flexwire.conformance.writing import own_name
from tools.broker import VERSIONS, broker
from tools.maven import ROOT
from tools.vectors_codecs import build_go

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.conformance import ConformanceRun

    Started = Callable[[], contextlib.AbstractContextManager[str]]

EXAMPLES: Final = ROOT / "examples" / "brokers"
BUILT: Final = ROOT / ".build" / "brokers"
KEPT: Final = ROOT / "tests" / "conformance" / "others.json"
RELEASE: Final = VERSIONS[-1]
SECONDS: Final = 5.0


@contextlib.contextmanager
def _mock() -> Iterator[str]:
    from flexwire.demo.cluster import MockBrokers  # noqa: PLC0415 - only on request

    with contextlib.closing(MockBrokers(1)) as brokers:
        [(host, port)] = brokers.addresses
        yield f"{host}:{port}"


@contextlib.contextmanager
def _kfake() -> Iterator[str]:
    """Yield a Go program, which ends when its standard input ends."""
    program = BUILT / "kfake"
    build_go(EXAMPLES / "kfake", program)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process: Any = subprocess.Popen([str(program)], **pipes, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


BROKERS: Final[dict[str, tuple[str, Started]]] = {
    "mock": ("librdkafka's mock", _mock),
    "kfake": ("kfake (franz-go)", _kfake),
}
"""The brokers by their command-line names: a full name, and how to start the broker."""


def found(run: ConformanceRun) -> dict[str, Any]:
    """Return the numbers from a run, and the first case of each kind of deviation."""
    return {
        "kafka": run.release,
        "cases": len(run.results),
        "judged": run.judged,
        "asKafka": run.as_kafka,
        "deviations": [
            [first.case.name, first.deviation.rule.name, 1 + len(others)]
            for first, others in grouped_findings(run)
            if first.deviation is not None
        ],
    }


def main(names: list[str]) -> None:
    """Test the brokers, print the results, and save the figures."""
    unknown = [name for name in names if name not in BROKERS]
    if unknown:
        sys.exit(f"error: no broker {unknown[0]}; there are {', '.join(BROKERS)}")
    BUILT.mkdir(parents=True, exist_ok=True)
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    with tempfile.TemporaryDirectory() as directory, broker(RELEASE, Path(directory)) as kafka:
        for name in names or BROKERS:
            words, started = BROKERS[name]
            asking = Asking(RELEASE, hostile=True, own=own_name())
            with started() as address:
                run = conform(address, asking, timeout=SECONDS, against=SecondBroker(kafka))
            sys.stdout.write(f"{words}\n{to_text(run)}\n")
            kept[name] = {"name": words, **found(run)}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
