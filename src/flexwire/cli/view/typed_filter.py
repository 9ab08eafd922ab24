"""Parse a tap filter from one line of text, which a user types while viewing a capture."""

from __future__ import annotations

import shlex
from typing import Final

from flexwire.capture.files.comments import CaptureFilter
from flexwire.errors import ArgumentError, short
from flexwire.tap.frame_filter import parse_api

# The list in `CaptureFilter` for each word that a user may type. The words are those of the
# --only-… options.
_LISTS: Final = {"api": "apis", "client-id": "client_ids", "topic": "topics"}
EXAMPLE: Final = "api=Fetch api=Produce client-id=billing-* topic=orders"
"""A filter with every possible word."""


def parse_filter(text: str) -> CaptureFilter:
    """Return the filter for a string such as `EXAMPLE`. An empty string leaves nothing out.

    Words are separated and quoted as in a shell. Raises `ArgumentError` for invalid text.

    >>> print(parse_filter("api=fetch client-id='the billing'"))
    APIs Fetch; client ids the billing
    """
    lists: dict[str, list[str]] = {name: [] for name in _LISTS.values()}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentError(f"{short(text)}: {error}") from None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in _LISTS:
            known = ", ".join(f"{known}=" for known in _LISTS)
            raise ArgumentError(f"{short(word)} does not begin with one of {known}")
        lists[_LISTS[name]].append(parse_api(value) if name == "api" else value)
    return CaptureFilter(**{name: tuple(given) for name, given in lists.items()})


def typed(only: CaptureFilter) -> str:
    """Return the string for a filter, in a form that `parse_filter` can read.

    >>> typed(CaptureFilter(("Fetch",), topics=("a b", "c")))
    "api=Fetch 'topic=a b' topic=c"
    """
    return shlex.join(
        f"{name}={value}" for name, place in _LISTS.items() for value in getattr(only, place)
    )
