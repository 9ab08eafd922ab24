"""Convert docstrings from Markdown to the generator's markup."""

from __future__ import annotations


def as_restructured_text(
    _app: object, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Turn fenced blocks into literal blocks, in place."""
    lines[:] = literal(lines)


def literal(lines: list[str]) -> list[str]:
    """Return ``lines`` with each fenced block indented below "::", between empty lines."""
    found: list[str] = []
    indent: str | None = None
    for line in lines:
        text = line.strip()
        if text.startswith("```"):
            if indent is None:
                indent = line[: len(line) - len(line.lstrip())]
                found += ["", f"{indent}::", ""]
            else:
                indent = None
                found.append("")
        else:
            found.append(line if indent is None else f"    {line}")
    return found
