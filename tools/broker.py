"""A real Kafka broker on loopback: a single combined KRaft node that stops when its caller ends.

``python -m tools.broker 4.4.0 DIRECTORY`` prints the address when the broker has started. The
program stops the broker at the end of standard input, which is also reached if the process at the
other end is killed. The log directory is ``DIRECTORY/data``, and the broker's output is written to
``DIRECTORY/broker.log``.
"""

from __future__ import annotations

import base64
import contextlib
import shlex
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.companions import MOST_SECONDS, accompany, companion
from tools.maven import Jars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Kafka's release lines that tests use, each with its latest release.
VERSIONS = ("3.9.2", "4.0.2", "4.4.0")
STARTED, TAKEN = "Kafka Server started", "Address already in use"
# Kafka's own test tier, a directory, is published with these test jars; those of 4.4.0 are not.
TIERED = "3.9.2"
MOST_TRIES = 4
# Without these settings, the internal topics need more than one node.
_ALONE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
CLUSTER_ID, CLASS_PATH, JAVA_OPTIONS = "cluster.id", "class.path", "java.options"
REQUEST_LOG = (
    "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug "
    "-Dorg.slf4j.simpleLogger.showDateTime=true "
    '"-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSSZ"'
)
"""Java options that make a broker log its requests, in the form that slf4j-simple needs."""
# If this setting is empty, the voters are stored in the log and may change (KIP-853).
_VOTERS = "controller.quorum.voters"
_STORAGE = "org.apache.kafka.server.log.remote.storage"
_JAVA = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # The line shows that the broker has started.
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)


@contextlib.contextmanager
def broker(
    version: str, directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the address of a broker that runs during the block; raise `RuntimeError` if it fails.

    ``settings`` contains the broker's own settings, as in ``server.properties``, and three others:
    `CLUSTER_ID` is the id of the cluster to which a node belongs, `CLASS_PATH` is for plug-ins, and
    `JAVA_OPTIONS` are separated by spaces, with quotes around options that contain spaces.
    """
    jars(version)
    given = [
        version,
        str(directory),
        *(f"{key}={value}" for key, value in (settings or {}).items()),
    ]
    with companion("tools.broker", given, directory / "broker.log") as address:
        yield address


def jars(version: str) -> Path:
    """Return the directory with a broker's jars."""
    wanted = (f"org.apache.kafka:kafka_2.13:{version}", "org.slf4j:slf4j-simple:1.7.36")
    # One logging library is enough, and 3.9 includes its own.
    return Jars(f"kafka-{version}", wanted, ("org.slf4j:slf4j-reload4j",)).bring()


def tiered(directory: Path) -> dict[str, str]:
    """Return the settings for a `TIERED` broker whose tier is below a directory."""
    asked = (f"org.apache.kafka:kafka-storage:{TIERED}:test",)
    # The broker's own jars include everything that the tier needs.
    storage = Jars(f"kafka-tier-{TIERED}", asked, ("*:*",)).bring()
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": f"{_STORAGE}.LocalTieredStorage",
        "remote.log.storage.manager.class.path": f"{storage}/*",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": "500",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
        "rsm.config.dir": str(directory),
    }


def main(version: str, where: str, *settings: str) -> None:
    """Run a broker until standard input ends."""
    directory = Path(where).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    own = dict(one.split("=", 1) for one in settings)
    process, address = _started(version, directory, own)
    accompany(process, address)


def _started(
    version: str, directory: Path, own: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], str]:
    from flexwire.spark.java import find_java  # noqa: PLC0415 - this module is also imported without Spark

    java = str(find_java() / "bin" / "java")
    own = dict(own)
    plug_ins, cluster = own.pop(CLASS_PATH, ""), own.pop(CLUSTER_ID, None) or new_id()
    options = shlex.split(own.pop(JAVA_OPTIONS, ""))
    run = [java, *_JAVA, *options, "-cp", f"{jars(version)}/*:{plug_ins}".removesuffix(":")]
    log = directory / "broker.log"
    # Another process may permanently occupy a port from the settings.
    for _ in range(MOST_TRIES):
        port, controller = _free_ports()
        properties = directory / "server.properties"
        properties.write_text(_properties(directory, port, controller, own), encoding="utf-8")
        with log.open("wb") as said:
            out: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said}
            if not (directory / "data").exists():
                formatting = [*run, "kafka.tools.StorageTool", "format", "-t", cluster, "-c"]
                alone = ["--standalone"] if own.get(_VOTERS) == "" else []
                subprocess.run([*formatting, str(properties), *alone], **out, check=True)
            process = subprocess.Popen([*run, "kafka.Kafka", str(properties)], **out)
        if _waited(process, log):
            return process, f"127.0.0.1:{port}"
    sys.exit(f"error: the broker's ports were taken {MOST_TRIES} times: see {log}")


def new_id() -> str:
    """Return an id in the form that Kafka's own tool uses: never one that begins like an option."""
    while True:
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not found.startswith("-"):
            return found


def _waited(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Return whether the broker has started; it has not if another process took a port first."""
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        ended = process.poll() is not None
        text = log.read_text(encoding="utf-8", errors="replace")
        if STARTED in text:
            return True
        if ended and TAKEN in text:
            return False
        if ended:
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    sys.exit(f"error: the broker did not start; it said:\n{text[-4000:]}")


def _free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return one.getsockname()[1], two.getsockname()[1]


def _properties(directory: Path, port: int, controller: int, own: Mapping[str, str]) -> str:
    node = {
        "process.roles": "broker,controller",
        "node.id": "1",
        _VOTERS: f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(directory / "data"),
    }
    settings = {**node, **_ALONE, **own}
    if not settings[_VOTERS]:
        del settings[_VOTERS]
        settings.setdefault("controller.quorum.bootstrap.servers", f"127.0.0.1:{controller}")
    return "".join(f"{key}={value}\n" for key, value in settings.items())


if __name__ == "__main__":
    main(*sys.argv[1:])
