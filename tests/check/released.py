"""Kafka's released spec files, without prose, comments and spaces.

Rewrite them from a directory of releases (``<release>/<module>/*.json``) with ``python -m
tests.check.released DIRECTORY``.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = Path(__file__).parents[1] / "vectors" / "spec-files.jsonl.gz"
_SPACE_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|\s+|//[^\n]*|/\*.*?\*/', re.DOTALL)
_ABOUT = re.compile(r',"about":"(?:[^"\\]|\\.)*"|"about":"(?:[^"\\]|\\.)*",')


@dataclass(frozen=True)
class Released:
    """One version of a spec file's text, and the file's module in each release."""

    name: str
    text: str
    releases: dict[str, str]


def released() -> list[Released]:
    """Read every distinct file of every release."""
    lines = gzip.decompress(PATH.read_bytes()).decode("utf-8").splitlines()
    return [Released(**json.loads(line)) for line in lines]


@cache
def by_directory() -> dict[tuple[str, str], dict[str, str]]:
    """Return the files by release and module.

    All callers share the same files and only read them.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    for one in released():
        for release, module in one.releases.items():
            found.setdefault((release, module), {})[one.name] = one.text
    return found


def facts(text: str) -> str:
    """Remove descriptions from a spec.

    >>> facts('// No.\\n{ "name": "a // b", "about": "The \\\\"x\\\\".", "tag": 1 }')
    '{"name":"a // b","tag":1}'
    """
    return _ABOUT.sub("", _SPACE_OR_COMMENT.sub(lambda match: match[1] or "", text))


def _write(root: Path) -> None:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted(root.glob("*/*/*.json")):
        key = (path.name, facts(path.read_text(encoding="utf-8")))
        found.setdefault(key, {})[path.parent.parent.name] = path.parent.name
    lines = [
        json.dumps({"name": name, "text": text, "releases": releases})
        for (name, text), releases in sorted(found.items())
    ]
    PATH.write_bytes(gzip.compress("\n".join(lines).encode("utf-8"), mtime=0))


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
