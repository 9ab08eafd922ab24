"""Read the examples on the rules' pages as specs, with the positions of their findings.

An example is one spec, or several specs that each follow a comment with their file's name. An
example may also consist only of fields, which are then put into a request with versions 0 to 3 that
is flexible from version 1. A "^" marks the flagged position.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.schema.sources import SpecFile
from flexwire.specs.lint.config import Config
from flexwire.specs.lint.lint import lint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.specs.finding import Finding

_BEFORE = (
    '{ "name": "FooRequest", "type": "request", "apiKey": 1, "validVersions": "0-3",'
    ' "flexibleVersions": "1+", "fields": [\n'
)
_MARK = re.compile(r" *\^ *")
_FILE = re.compile(r"// (\w+\.json)")


@dataclass(frozen=True)
class Example:
    """The files by name, and the file, line and column of the flagged position, if there is one."""

    files: dict[str, str]
    flagged: tuple[str, int, int] | None


def example(page: str, title: str) -> Example | None:
    """Read the example under ``title``, if the page contains one."""
    match = re.search(rf"^{title}:\n\n((?: {{4}}.*\n|\n)+)", page, re.MULTILINE)
    if match is None:
        return None
    files: dict[str, str] = {}
    flagged = None
    name, lines = "", list[str]()
    for line in [*textwrap.dedent(match[1]).strip("\n").split("\n"), "// end.json"]:
        if found := _FILE.fullmatch(line):
            if lines:
                text = "\n".join(lines)
                wrapped = '"validVersions"' not in text
                name = name or "FooRequest.json"
                files[name] = f"{_BEFORE}{text}\n] }}" if wrapped else text
                if flagged and not flagged[0]:
                    flagged = (name, flagged[1] + wrapped, flagged[2])
            name, lines = found[1], []
        elif _MARK.fullmatch(line):
            flagged = (name, len(lines), line.index("^") + 1)
        else:
            lines.append(line)
    return Example(files, flagged)


def findings(files: Mapping[str, str | bytes], config: Config | None = None) -> tuple[Finding, ...]:
    """Lint files as one directory; if there are several files, the directory contains no others."""
    sources = [
        SpecFile(name, name, "", text.encode() if isinstance(text, str) else text, len(files) > 1)
        for name, text in files.items()
    ]
    return lint(sources, config or Config()).findings
