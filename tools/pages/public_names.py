"""tests/house/public-names.txt: every public name with its signature, for reviews of a change.

A name is public if the site's API reference shows it (`tools/site/contents.py`). Each class is
listed with its constructor, and below it its own public methods and properties.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tools.pages.files import ROOT, write_files
from tools.site.contents import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ROOT / "tests" / "house" / "public-names.txt"
_HEAD = """\
# Every public name and its signature. `python -m tools.pages.public_names` writes this file.
# A name that goes, or a signature that no longer takes what it took, breaks somebody's program:
# keep the old form for one release (src/flexwire/moved.py), and say so in CHANGELOG.md.
"""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class _Annotation:
    """An annotation as written, without the quotes of a string."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def files() -> dict[Path, str]:
    """Return the list."""
    return {PAGE: _HEAD + "".join(f"\n{module}\n{_names(module)}" for module in MODULES)}


def _names(module: str) -> str:
    room = import_module(module)
    lines: list[str] = []
    own = [name for name, value in vars(room).items() if _is_defined_in(value, module)]
    for name in sorted(getattr(room, "__all__", own)):
        lines += _described(name, getattr(room, name))
    return "".join(f"    {line}\n" for line in lines)


def _is_defined_in(value: Any, module: str) -> bool:
    name = getattr(value, "__name__", "_")
    return getattr(value, "__module__", None) == module and not name.startswith("_")


def _described(name: str, value: Any) -> Iterator[str]:
    """Yield the lines about one public name."""
    if inspect.isclass(value):
        yield f"class {name}{_signature(value)}"
        yield from (f"    {line}" for line in _members(value))
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _members(kind: type) -> Iterator[str]:
    """Yield the public methods, properties and members that a class itself defines."""
    if issubclass(kind, enum.Enum):
        yield from kind.__members__
        return
    fields = (
        {one.name for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else ()
    )
    for name, member in sorted(vars(kind).items()):
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, classmethod | staticmethod):
            yield f"{name}{_signature(member.__func__)}"
        elif inspect.isfunction(member):
            yield f"{name}{_signature(member)}"
        elif isinstance(member, property):
            yield name


def _signature(value: Any) -> str:
    """Return the signature of an object, or an empty string if Python does not know it."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        one.replace(annotation=_annotation(one.annotation)) for one in signature.parameters.values()
    ]
    text = str(
        signature.replace(
            parameters=parameters, return_annotation=_annotation(signature.return_annotation)
        )
    )
    return _ADDRESS.sub("", text)


def _annotation(annotation: Any) -> Any:
    if isinstance(annotation, str):
        return _Annotation(annotation)
    return annotation


if __name__ == "__main__":
    write_files(files())
