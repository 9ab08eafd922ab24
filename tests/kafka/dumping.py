"""Run Kafka's own tool that dumps log segments."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from flexwire.spark.java import find_java
from tools.broker import jars
from tools.maven import Jars

if TYPE_CHECKING:
    from pathlib import Path

MOST_SECONDS = 180
# The tool of 4.4.0 is not published with the other jars; until 4.0 the tool is part of the broker.
_LATER = Jars(
    "kafka-tools-4.3.1",
    (
        "org.apache.kafka:kafka-tools:4.3.1",
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    ("org.slf4j:slf4j-reload4j", "org.rocksdb:rocksdbjni"),
)
# The tool's decoder for a topic's records, by the prefix of the log's directory name.
_DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
_BEGINS = "Dumping "


def decoder(log: Path) -> str | None:
    """Return the tool's option for the records of a log."""
    return next((one for name, one in _DECODERS.items() if log.parent.name.startswith(name)), None)


def dumped(release: str, logs: list[Path]) -> dict[Path, list[str]]:
    """Return the lines that the tool prints for each log; all logs are read with one decoder."""
    later = release >= "4.1"
    own = _LATER.bring() if later else jars(release)
    program = "org.apache.kafka.tools.DumpLogSegments" if later else "kafka.tools.DumpLogSegments"
    command = [str(find_java() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{own}/*", program]
    command += [decoder(logs[0]) or "--print-data-log", "--files", ",".join(map(str, logs))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
    found: dict[Path, list[str]] = {log: [] for log in logs}
    lines: list[str] = []
    for line in ran.stdout.splitlines():
        if line.startswith(_BEGINS):
            lines = found[next(log for log in logs if line == f"{_BEGINS}{log}")]
        else:
            lines.append(line)
    return found
