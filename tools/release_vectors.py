"""Write `tests/vectors/releases.jsonl.gz`: every version of every message of Kafka's releases.

    python tools/release_vectors.py 4.3.1=DIR 4.4.0=DIR ...

A directory contains the jars of that release and their dependencies, from
`mvn dependency:copy-dependencies`: `kafka_2.13`, and `kafka-streams` if there is one. Java 17 or
newer runs `tools/java/ReleaseVectors.java` on them, so every line was written by the classes of
every release that it names.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "java" / "ReleaseVectors.java"
OUT = ROOT / "tests" / "vectors" / "releases.jsonl.gz"
# A version's first vector has every field; others lack some and have unknown tagged fields.
COUNT = 4
_JAR = re.compile(r"(?:kafka-)?(.+)-[0-9.]+\.jar")
_SHOWN = ("module", "message", "type", "version", "json", "unknown_tagged_fields", "hex")


def written(jars: Path) -> list[dict[str, Any]]:
    """Return what the classes in a directory of jars wrote, with the module instead of the jar."""
    names = sorted(str(one) for one in jars.glob("kafka*.jar"))
    command = ["java", "-cp", f"{jars}/*", str(PROGRAM), str(COUNT), *names]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    vectors = [json.loads(line) for line in ran.stdout.splitlines()]
    for vector in vectors:
        match = _JAR.fullmatch(vector.pop("jar"))
        vector["module"] = match[1] if match else None
    return vectors


def merged(releases: dict[str, Path]) -> list[dict[str, Any]]:
    """Return the vectors of all releases; equal vectors are one, with the releases' names."""
    found: dict[str, dict[str, Any]] = {}
    for release, jars in releases.items():
        for vector in written(jars):
            shown = {name: vector[name] for name in _SHOWN}
            kept = found.setdefault(json.dumps(shown), {"releases": [], **shown})
            if release not in kept["releases"]:
                kept["releases"].append(release)
    return sorted(found.values(), key=lambda one: (one["message"], one["version"], one["hex"]))


def main(arguments: list[str]) -> None:
    """Write the file; its bytes are reproducible."""
    pairs = [one.partition("=") for one in arguments]
    releases = {release: Path(jars) for release, _, jars in pairs}
    if not releases or not all(one.is_dir() for one in releases.values()):
        sys.exit("usage: python tools/release_vectors.py RELEASE=DIRECTORY_OF_JARS ...")
    vectors = merged(releases)
    lines = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in vectors)
    OUT.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
    sys.stdout.write(
        f"{len(vectors)} vectors of {len(releases)} releases, {OUT.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
