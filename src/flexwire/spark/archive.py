"""An archive of Spark's loaded and verified Java classes, with which Spark starts faster.

Java loads about ten thousand classes when Spark starts, which takes half of the CPU time of
starting Spark. A Java process can write its classes to an archive when it ends. A later Java
process maps the archive into memory if it is the same Java with the same jars: their times and
their order in the directory must be the same too. Otherwise Java ignores the archive.
`flexwire warmup` creates the archive, in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyspark

from flexwire.spark.java import cache_directories, candidates
from flexwire.spark.settings import JAVA_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# An archive that does not match is not an error, but Java would report it on the terminal.
_QUIET: Final = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_SUFFIX: Final = ".jsa"
_ROOT, _OTHERS_WRITE = 0, 0o022
# The query uses the operations that answers need. The query only makes Java load the classes of
# these operations. The result of the query is unused.
_QUERY: Final = """
    select *, rank() over (order by bytes desc) from (
      select name, sum(size) as bytes, percentile_approx(size, 0.5), count(one.n), max_by(time, 1)
      from (select *, explode(items) as one from flexwire_rows where size > 0)
      group by name, date_trunc('day', time)
    ) join flexwire_rows using (name) order by bytes
"""
# Writing the archive takes ten seconds. The limit allows for a busy machine, but still ends a
# process that hangs.
_TIMEOUT_S = 300


def with_archive(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a session that starts Java, including the archive if one exists."""
    archive = find_archive()
    if archive is None:
        return dict(settings)
    options = f'-XX:SharedArchiveFile="{archive}" {_QUIET}'
    return {**settings, JAVA_OPTIONS: f"{settings.get(JAVA_OPTIONS, '')} {options}".strip()}


def find_archive() -> Path | None:
    """Return the archive for this machine's Java and Spark, if one exists."""
    directory = next(cache_directories())
    with suppress(OSError):
        for archive in sorted(directory.glob(f"{_name()}-*{_SUFFIX}")):
            # Java maps the file into memory, and a truncated file would crash Java.
            if _is_ours(directory) and _is_ours(archive) and archive == _finished_name(archive):
                return archive
    return None


def make_archive(settings: Mapping[str, str]) -> Path | None:
    """Create an archive unless one exists. Return None if that fails or no directory is safe.

    ``settings`` are those of the sessions that will use the archive. To create an archive, Spark is
    started once. The archive takes 120 MB of disk space.
    """
    archive = find_archive()
    if archive is not None:
        return archive
    directory = next(cache_directories())
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".spark-", dir=directory) as scratch:
            draft = Path(scratch, "draft")
            if _dumped(draft, settings):
                draft.chmod(0o600)
                current = draft.replace(directory / _finished_name(draft).name)
                _forget_others(current)
    return find_archive()


def _forget_others(current: Path) -> None:
    """Remove the archives of older packages in the same place."""
    for other in current.parent.glob(f"spark-{_place()}-*{_SUFFIX}"):
        if other != current and _is_ours(other):
            other.unlink()


def _dumped(draft: Path, settings: Mapping[str, str]) -> bool:
    """Start Spark in a separate Java process, run a task, and let Java write an archive."""
    options = f'{settings.get(JAVA_OPTIONS, "")} -XX:ArchiveClassesAtExit="{draft}" -Xlog:disable'
    command = [sys.executable, "-m", __name__, options.strip()]
    with suppress(subprocess.SubprocessError):
        subprocess.run(  # noqa: S603 - it runs this module itself
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=True
        )
    return draft.is_file()


def _finished_name(draft: Path) -> Path:
    """Return the name of a complete archive."""
    return draft.with_name(f"{_name()}-{draft.stat().st_size}{_SUFFIX}")


def _name() -> str:
    """Return a name that is different for each Java, each Spark and each set of jars."""
    digest = hashlib.sha256(f"{pyspark.__version__} {_QUERY}".encode())
    for _, java in candidates([]):
        digest.update(_release(java))
    # Java reads the jars in the order of the directory listing, and checks the time and size of
    # each.
    with suppress(OSError), os.scandir(_spark() / "jars") as jars:
        for jar in jars:
            status = jar.stat()
            digest.update(f"{jar.name} {status.st_size} {status.st_mtime_ns} ".encode())
    return f"spark-{_place()}-{digest.hexdigest()[:16]}"


def _place() -> str:
    """Return a name for the locations of Spark and Java. An upgrade in place does not change it."""
    digest = hashlib.sha256(f"{_spark()} ".encode())
    for _, java in candidates([]):
        digest.update(f"{java} ".encode())
    return digest.hexdigest()[:8]


def _spark() -> Path:
    """Return the directory of the Spark that PySpark starts."""
    return Path(os.environ.get("SPARK_HOME") or pyspark.__file__.removesuffix("__init__.py"))


def _release(java: Path) -> bytes:
    """Return a Java installation's release file, and the size and time of its base archive file."""
    description = b""
    with suppress(OSError):
        home = java.resolve().parents[1]
        description += (home / "release").read_bytes()
        base = (home / "lib" / "server" / "classes.jsa").stat()
        description += f" {base.st_size} {base.st_mtime_ns} ".encode()
    return description


def _is_ours(path: Path) -> bool:
    """Return whether only this user and root can write to a path.

    Java runs the code in the archive.
    """
    status = path.lstat()
    return status.st_uid in {os.getuid(), _ROOT} and not status.st_mode & _OTHERS_WRITE


def _start_once(options: str) -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - only the archiving process starts Spark

    from flexwire.spark.session import session  # noqa: PLC0415 - only the archiving process starts Spark

    spark = session(conf={JAVA_OPTIONS: options})
    if spark.sparkContext.parallelize(range(1), 1).map(abs).collect() != [0]:
        raise AssertionError("a Spark task did not return its input")
    for is_compiled in ("false", "true"):
        spark.conf.set("spark.sql.codegen.wholeStage", is_compiled)
        spark.conf.set("spark.sql.adaptive.enabled", is_compiled)
        _query(spark)
    spark.stop()
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark offers no other access to Java's process
    gateway.shutdown()
    # Java ends when its connection closes, and writes the archive before it ends.
    gateway.proc.stdin.close()
    gateway.proc.wait(_TIMEOUT_S)


def _query(spark: SparkSession) -> None:
    """Make Java load the classes that a query needs to read Parquet, join, add up and sort."""
    import pyarrow as pa  # noqa: PLC0415 - only the archiving process needs it
    import pyarrow.parquet as pq  # noqa: PLC0415 - only the archiving process needs it

    rows = {"name": ["a", "b"], "size": [1, 2], "time": [datetime.now(UTC)] * 2}
    with tempfile.TemporaryDirectory() as scratch:
        pq.write_table(pa.table(rows | {"items": [[{"n": 1}]] * 2}), Path(scratch, "rows.parquet"))
        spark.read.parquet(scratch).createOrReplaceTempView("flexwire_rows")
        rows_read = spark.sql(_QUERY).toArrow()
    if rows_read.num_rows == 0:
        raise AssertionError("a Spark query returned no rows")


if __name__ == "__main__":
    _start_once(sys.argv[1])
