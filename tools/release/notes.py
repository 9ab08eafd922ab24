"""The notes for a release: the part of CHANGELOG.md about its version.

``python -m tools.release.notes v0.1.0`` prints them, and fails if there are none.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:rc\d+)?")


def version_of_tag(tag: str) -> str:
    """Return the version that a tag names; raise `ValueError` if it does not name one.

    >>> version_of_tag("v1.0.0rc1")
    '1.0.0rc1'
    """
    if not tag.startswith("v") or not _VERSION.fullmatch(tag[1:]):
        raise ValueError(f"expected a tag such as v1.0.0 or v1.0.0rc1, got {tag!r}")
    return tag[1:]


def declared_version(root: Path = ROOT) -> str:
    """Return the version that pyproject.toml declares."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def notes(changelog: str, version: str) -> str:
    """Return a changelog's text about a version; raise `ValueError` if there is none.

    A version that is not released yet has the heading "[Unreleased] (version)".
    """
    named = re.escape(version)
    heading = re.compile(rf"^## (?:\[{named}\].*|\[Unreleased\] \({named}\))$", re.MULTILINE)
    found = heading.search(changelog)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no heading for {version}")
    text = changelog[found.end() :].partition("\n## ")[0].strip()
    if not text:
        raise ValueError(f"CHANGELOG.md says nothing of {version}")
    return f"{text}\n"


def notes_of_tag(tag: str, root: Path = ROOT) -> str:
    """Return the notes for a tag; raise `ValueError` unless it names the declared version."""
    version, declared = version_of_tag(tag), declared_version(root)
    if version != declared:
        raise ValueError(f"the tag names {version}, and pyproject.toml {declared}")
    return notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)


def main() -> int:
    """Print the notes for the given tag, which must name the declared version."""
    if len(sys.argv) != len(("notes", "TAG")):
        sys.exit("usage: python -m tools.release.notes TAG")
    try:
        text = notes_of_tag(sys.argv[1])
    except ValueError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
