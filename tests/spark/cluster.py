"""A standalone Spark cluster on loopback: a master, and workers outside the driver.

Each worker uses its own working directory and HOME. A worker's Python settings come with the
application. `Cluster.stop` ends everything by process id.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from flexwire.spark.session import _quiet_java

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
# A limit for a test that hangs, high enough for a busy machine.
PATIENCE = 300
LOOPBACK = (
    "--conf=spark.driver.host=127.0.0.1",
    "--conf=spark.driver.bindAddress=127.0.0.1",
    "--conf=spark.ui.enabled=false",
    "--conf=spark.executor.memory=512m",
    "--conf=spark.driver.memory=1g",
)
# One compiler, and a garbage collector without threads of its own, as in `flexwire.spark.analyze`.
_SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
_CONNECT = re.compile(r"Spark Connect server started at: (127\.0\.0\.1:\d+)")
_NO_PAGES = ("--webui-port", "0")
_REGISTERED = re.compile(r"Successfully registered with master")


@dataclass
class Cluster:
    """The processes of a cluster, and their directories."""

    root: Path
    url: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, workers: int = 2) -> None:
        """Start the master, and the given number of workers with one core each."""
        master = self._start(
            "master", "127.0.0.1", "master.Master", *_NO_PAGES, "--host", "127.0.0.1", "--port", "0"
        )
        self.url = _found(self.root / "master" / "log", _MASTER, master)
        for _ in range(workers):
            self.start_worker()

    def start_connect(self) -> str:
        """Start a Spark Connect server that runs its tasks on the workers. Return its address."""
        options = [f"--conf=spark.executorEnv.PYTHONPATH={python_path()}", "--master", self.url]
        bound = ["--conf=spark.connect.grpc.binding.address=127.0.0.1"]
        server = self._start(
            "connect",
            "127.0.0.1",
            "SparkSubmit",
            *LOOPBACK,
            *options,
            *bound,
            "--conf=spark.connect.grpc.binding.port=0",
            "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
            "spark-internal",
            # The planning and commits of a Python data source run next to the server.
            PYSPARK_PYTHON=sys.executable,
            SPARK_DAEMON_MEMORY="1g",
            PYTHONPATH=python_path(),
        )
        return "sc://" + _found(self.root / "connect" / "log", _CONNECT, server)

    def start_worker(self) -> None:
        """Start one more worker."""
        name = f"worker{len(self.workers)}"
        # The hosts are separate, because Spark speculates only on another host.
        host = f"127.0.0.{len(self.workers) + 1}"
        options = [*_NO_PAGES, "--host", host, "-c", "1", "-m", "1g", "-d", str(self.root / name)]
        worker = self._start(name, host, "worker.Worker", *options, self.url)
        self.workers.append(worker)
        _found(self.root / name / "log", _REGISTERED, worker)

    def _start(
        self, name: str, host: str, program: str, *arguments: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        home = self.root / name
        home.mkdir()
        settings = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "JAVA_HOME": str(_quiet_java()),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(home / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _SMALL_JAVA,
            # The master's REST server would listen on a fixed port.
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}"]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=home,
                env=settings | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """Stop everything."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def cluster(root: Path, workers: int = 2) -> Iterator[Cluster]:
    """Yield a cluster with this many workers, and stop it at the end."""
    made = Cluster(root)
    try:
        made.start(workers)
        yield made
    finally:
        made.stop()


def _found(log: Path, line: re.Pattern[str], process: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        match = line.search(log.read_text(errors="replace"))
        if match is not None:
            return match[match.lastindex or 0]
        time.sleep(0.1)
    raise AssertionError(f"{log}: {log.read_text(errors='replace')[-2000:]}")


class Driver:
    """A separate process with a Spark session. The process calls functions by name.

    The tests' own session cannot change its master, and must not be killed.
    """

    def __init__(self, master: str, home: Path, **conf: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self._log = (home / "driver.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.cluster", master, json.dumps(conf)],
            cwd=home,
            env={**os.environ, "PYTHONPATH": python_path(), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    def ask(self, function: str, *arguments: object) -> Any:
        """Return the result of ``module:function(spark, *arguments)``, or its error message."""
        self.tell(function, *arguments)
        return self.answer()

    def tell(self, function: str, *arguments: object) -> None:
        """Start a call without waiting for its result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([function, *arguments]).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return the result of the call."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, Path(self._log.name).read_text(errors="replace")[-3000:]
        return json.loads(line)

    def kill(self) -> None:
        """Kill the process immediately, without any cleanup."""
        self._process.send_signal(signal.SIGKILL)
        self.close()

    def is_gone(self) -> bool:
        """Return whether all child processes have ended: Java, and the workers that it started."""
        return not any(_session(one) == self._process.pid for one in Path("/proc").glob("[0-9]*"))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


def _session(process: Path) -> int | None:
    with suppress(OSError):
        status = (process / "stat").read_text().rpartition(")")[2].split()
        # A process that has ended still exists until its parent asks for its status.
        return None if status[0] == "Z" else int(status[3])
    return None


def run(command: list[str], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose working directory is also its HOME, with few environment variables."""
    home.mkdir(parents=True, exist_ok=True)
    little = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "JAVA_HOME": str(_quiet_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(
        command,
        cwd=home,
        env=little | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def defaults(conf: Path, *more: str) -> str:
    """Return a directory with Spark's settings: those for loopback, and more, as ``--conf``."""
    conf.mkdir(parents=True, exist_ok=True)
    lines = [one.removeprefix("--conf=").replace("=", " ", 1) for one in (*LOOPBACK, *more)]
    (conf / "spark-defaults.conf").write_text("\n".join(lines))
    return str(conf)


def python_path() -> str:
    """Return the path on which another process can find flexwire and its tests."""
    return f"{ROOT / 'src'}{os.pathsep}{ROOT}"


def main(master: str, conf: dict[str, str]) -> None:
    """Answer each line of JSON from standard input, until the input ends."""
    from importlib import import_module  # noqa: PLC0415 - only in the driver's process

    from flexwire.spark.archive import with_archive  # noqa: PLC0415 - see above
    from flexwire.spark.session import session  # noqa: PLC0415 - see above
    from flexwire.spark.settings import SMALL_JAVA  # noqa: PLC0415 - see above

    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    small = {
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": _SMALL_JAVA,
        "spark.executorEnv.PYTHONPATH": python_path(),
    }
    answers, sys.stdout = sys.stdout, sys.stderr
    spark = session(
        "flexwire tests",
        master=master,
        memory="512m",
        worker_memory=conf.pop("worker_memory", None),
        conf=with_archive(SMALL_JAVA) | loopback | small | conf,
    )
    for line in sys.stdin:
        function, *arguments = json.loads(line)
        module, _, name = function.partition(":")
        try:
            told = getattr(import_module(module), name)(spark, *arguments)
        except Exception as error:  # noqa: BLE001 - the caller reads the error
            told = f"{type(error).__name__}: {error}"
        print(json.dumps(told), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
