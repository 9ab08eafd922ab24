"""The template engine and the style sheet for all pages that flexwire creates."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from flexwire.extras import needed_by

if TYPE_CHECKING:
    from jinja2 import Environment


def page_environment(package: str, subject: str, extra: str) -> Environment:
    """Return an engine for the templates in a package, without any additional filters.

    Raises `MissingExtraError` for ``subject`` and ``extra`` if jinja2 is not installed. Callers
    keep the engine, so that a process compiles the templates only once.
    """
    with needed_by(subject, extra):
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  optional
    return Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_template_file(package: str, name: str) -> str:
    """Return the text of a file, such as the style sheet, that is next to a package's templates."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")
