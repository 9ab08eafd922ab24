"""Download jars from Maven Central once with ``mvn``, and keep them below ``.build/jars``.

The request is a list of coordinates; Maven also downloads their dependencies. If Maven fails, the
error states this, and incomplete jars are never used.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".build" / "jars"
# The goal names the version: without one, Maven uses the newest plug-in, which can change.
GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# Even a slow connection can download a broker's 60 MB in this time.
MOST_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Jars:
    """A set of jars: its name, its contents, and its exclusions."""

    name: str
    # Each coordinate is "group:artifact:version", followed by ":classifier" if it has one.
    wanted: tuple[str, ...]
    # Each is "group:artifact"; neither this artifact nor its own dependencies are downloaded.
    left_out: tuple[str, ...] = ()

    def bring(self) -> Path:
        """Return the directory with the jars; raise `SystemExit` with the reason if this fails."""
        pom = self.pom()
        place = KEPT / f"{self.name}-{hashlib.sha256(pom.encode()).hexdigest()[:12]}"
        KEPT.mkdir(parents=True, exist_ok=True)
        with KEPT.joinpath("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.is_dir():
                self._bring(pom, place)
        return place

    def pom(self) -> str:
        """Return the project whose dependencies Maven resolves.

        >>> print(Jars("one", ("g:a:1",), ("g:b",)).pom().split("<dependency>")[1].strip())
        <groupId>g</groupId><artifactId>a</artifactId><version>1</version> <exclusions>
        <exclusion><groupId>g</groupId><artifactId>b</artifactId></exclusion>
        </exclusions></dependency> </dependencies></project>
        """
        kept_out = "\n".join(f"<exclusion>{_tags(one)}</exclusion>" for one in self.left_out)
        asked = "".join(
            f"<dependency>\n{_tags(one)}\n<exclusions>\n{kept_out}\n</exclusions></dependency>\n"
            for one in self.wanted
        )
        model = "<modelVersion>4.0.0</modelVersion>"
        own = _tags(f"flexwire:{self.name}:1")
        return f"<project>{model}{own}\n<dependencies>\n{asked}</dependencies></project>\n"

    def _bring(self, pom: str, place: Path) -> None:
        maven = shutil.which("mvn")
        if maven is None:
            self._give_up("there is no mvn on the path; install Maven (Debian's package: maven)")
        making = place.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        project = making / "pom.xml"
        project.write_text(pom, encoding="utf-8")
        sys.stderr.write(f"flexwire: bringing the jars of {self.name} from Maven Central\n")
        # -U: Maven remembers failed downloads for a day.
        command = [maven, "-B", "-q", "-U", "-f", str(project), GOAL]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={making / 'jars'}"]
        try:
            answer = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
            )
        except subprocess.TimeoutExpired:
            self._give_up(f"Maven took more than {MOST_SECONDS} s")
        if answer.returncode:
            shutil.rmtree(making)
            # The first line names the error; the others explain how to get more information from
            # Maven.
            said = answer.stdout.partition("[ERROR] ")[2].partition("\n")[0]
            self._give_up(said or f"mvn ended with {answer.returncode}")
        (making / "jars").rename(place)
        shutil.rmtree(making)

    def _give_up(self, why: str) -> NoReturn:
        sys.exit(
            f"error: {', '.join(self.wanted)} cannot be brought from Maven Central: {why}\n"
            "This needs Maven Central once; afterwards the jars are kept in .build/jars."
        )


def _tags(coordinates: str) -> str:
    """Return the elements that name an artifact.

    >>> _tags("g:a") '<groupId>g</groupId><artifactId>a</artifactId>'
    """
    names = ("groupId", "artifactId", "version", "classifier")
    parts = zip(names, coordinates.split(":"), strict=False)
    return "".join(f"<{name}>{escape(part)}</{name}>" for name, part in parts)
