"""The guide as files: every page, the style sheet, the scripts and the search index."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import flexwire
from flexwire.extras import needed_by
from flexwire.guide.pages import Page, came, comparisons, facts, make_pages, spoken, tell
from flexwire.guide.search import place_of, write_index
from flexwire.printable import printable
from flexwire.report.render import breakable
from flexwire.report.units import TEXT_LIMIT, plural, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Environment

    from flexwire.guide.messages import Message
    from flexwire.guide.traffic import Traffic

MARK = "Written by `flexwire schema docs`; do not edit."
"""What stands at the beginning of every file, so that a later run knows it for its own."""


def render(
    messages: Iterable[Message],
    title: str,
    releases: Sequence[str],
    traffic: Traffic | None = None,
) -> dict[str, str]:
    """Give every file of the guide by its path.

    ``title`` says where the messages are from, ``releases`` are those whose support is shown, one
    at least, and ``traffic`` says who sends what. The same messages give the same files. Every text
    is taken for hostile: it is escaped, and characters that do not print are shown. Raises
    `FlexwireError` if Jinja2 is not installed.
    """
    pages = make_pages(messages)
    releases = [printable(one) for one in releases]
    environment = _environment()
    shared = {
        "mark": MARK,
        "title": printable(title),
        "releases": releases,
        "flexwire_version": flexwire.__version__,
        "paths": {page.path for page in pages},
        "traffic": traffic,
    }
    made = {"index.html": _write(environment, "index.html.j2", shared | _index(pages, releases))}
    for page in pages:
        view = {
            "page": page,
            "root": "../",
            "data": _data(page),
            "namesakes": _namesakes(pages, page),
        }
        made[page.path] = _write(environment, "page.html.j2", shared | view)
    made["search.js"] = write_index(pages, MARK)
    made["guide.js"] = f"/* {MARK} */\n{_file('flexwire.guide', 'guide.js')}"
    # The look is the report's.
    style = _file("flexwire.report", "report.css") + "\n" + _file("flexwire.guide", "guide.css")
    made["guide.css"] = f"/* {MARK} */\n{style}"
    return made


@cache
def _environment() -> Environment:
    with needed_by("the guide", "docs"):
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  optional
    environment = Environment(
        loader=PackageLoader("flexwire.guide", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(plural=plural, spoken=spoken, run=_run, shown=_shown)
    environment.filters["breakable"] = breakable
    environment.globals.update(facts=facts, tell=tell, place_of=place_of, came=came)
    return environment


def _write(environment: Environment, template: str, view: dict[str, Any]) -> str:
    return environment.get_template(template).render(view).strip() + "\n"


def _file(package: str, name: str) -> str:
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


def _shown(name: str) -> str:
    """Return a foreign name that may be long: a page has it in every row of a client's fields."""
    text: str = safe(name, TEXT_LIMIT)
    return text


def _run(releases: Sequence[str]) -> str:
    """Releases in a row: the first and the last."""
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _index(pages: Sequence[Page], releases: Sequence[str]) -> dict[str, Any]:
    def key(page: Page) -> tuple[int, str]:
        return (-1 if page.first.api_key is None else page.first.api_key, page.title)

    apis = sorted((page for page in pages if page.first.is_api), key=key)
    groups: dict[str, list[Page]] = {}
    for page in pages:
        if not page.first.is_api:
            groups.setdefault(page.first.group, []).append(page)
    return {
        "root": "",
        "apis": [page for page in apis if not page.is_removed],
        "removed": [page for page in apis if page.is_removed],
        "groups": sorted(groups.items()),
        "pages": pages,
        "releases": releases,
        "layouts": sum(len(one.versions) for page in pages for one in page.messages),
    }


def _data(page: Page) -> str:
    """The data of a page's script; "<" could end the element that it stands in."""
    text = json.dumps([comparisons(one) for one in page.messages], separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _namesakes(pages: Sequence[Page], page: Page) -> list[Page]:
    """Other pages with the API's key: an api key outlives names."""
    if page.first.api_key is None or not page.first.is_api:
        return []
    key = page.first.api_key
    return [
        one for one in pages if one is not page and one.first.is_api and one.first.api_key == key
    ]
