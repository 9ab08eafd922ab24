"""What a capture says of itself where only some frames are in it: by API, client id or topic.

It stands in a comment on the section header of each file, as the share of connections does
(`flexwire.capture.files.sampling`), so that nobody takes a part for the whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.arguments import refuse
from flexwire.capture.files.sampling import comments_in, share_in
from flexwire.errors import ArgumentError

if TYPE_CHECKING:
    from io import BufferedReader

_PREFIX: Final = b"flexwire: captured of all frames: "
_ANY: Final = "*"
MOST_FILTER_BYTES: Final = 3000
"""The comment is to stand in the first bytes of a file, where it is looked for."""


@dataclass(frozen=True)
class CaptureFilter:
    """Which requests are captured, and with each its response: those that fit all that is given.

    ``apis`` are names as "Produce"; in ``client_ids`` and ``topics`` a ``*`` stands for any text,
    and a request without client id has the empty one. Raises `ArgumentError`.

    >>> print(CaptureFilter(apis=("Fetch", "Produce"), topics=("orders-*",)))
    APIs Fetch, Produce; topics orders-*
    """

    apis: tuple[str, ...] = ()
    client_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for one in fields(self):
            given = getattr(self, one.name)
            if not isinstance(given, tuple) or not all(isinstance(text, str) for text in given):
                raise refuse(one.name, "texts in a tuple", given)
            if "".join(given).encode(errors="ignore").decode() != "".join(given):
                raise refuse(one.name, "texts that have UTF-8", given)
        if len(filter_comment(self)) > MOST_FILTER_BYTES:
            raise ArgumentError(f"expected a filter of at most {MOST_FILTER_BYTES} bytes as JSON")

    def __bool__(self) -> bool:
        """Whether anything is left out at all."""
        return bool(self.apis or self.client_ids or self.topics)

    def __str__(self) -> str:
        """What is captured, in words."""
        named = ("APIs", self.apis), ("client ids", self.client_ids), ("topics", self.topics)
        return "; ".join(f"{name} {', '.join(given)}" for name, given in named if given)

    def takes_api(self, name: str) -> bool:
        """Whether requests of the API are captured, as far as that goes."""
        return not self.apis or name in self.apis

    def takes_client(self, client_id: str | None) -> bool:
        """Whether requests with the client id are."""
        return not self.client_ids or _fits(client_id or "", self._client_parts)

    def takes_topic(self, topic: str) -> bool:
        """Whether requests about the topic are."""
        return not self.topics or _fits(topic, self._topic_parts)

    @cached_property
    def _client_parts(self) -> list[list[str]]:
        return [text.split(_ANY) for text in self.client_ids]

    @cached_property
    def _topic_parts(self) -> list[list[str]]:
        return [text.split(_ANY) for text in self.topics]


class Part(NamedTuple):
    """What a capture file holds where that is not all: a share of connections, some frames.

    ``only`` is empty where all frames of these connections are there.
    """

    share: float = 1.0
    only: str = ""


def filter_comment(only: CaptureFilter) -> bytes:
    """The comment that says which frames are captured.

    >>> filter_comment(CaptureFilter(topics=("orders",)))
    b'flexwire: captured of all frames: {"topics": ["orders"]}'
    """
    said = {one.name: getattr(only, one.name) for one in fields(only)}
    return _PREFIX + json.dumps({name: given for name, given in said.items() if given}).encode()


ALL_FRAMES: Final = CaptureFilter()
"""Nothing is left out."""


def part_in(file: BufferedReader[Any]) -> Part | None:
    """What an open file says that it holds, without reading on; None where it says nothing.

    What is damaged says nothing, and whatever reads it next finds the damage.
    """
    share = share_in(file)
    only = next((one for comment in comments_in(file) if (one := _parsed(comment))), None)
    if share is None and only is None:
        return None
    return Part(1.0 if share is None else share, str(only or ""))


def _parsed(comment: bytes) -> CaptureFilter | None:
    """What a comment says of frames; None where anybody else wrote it."""
    if not comment.startswith(_PREFIX):
        return None
    try:
        said = json.loads(comment[len(_PREFIX) :])
        return CaptureFilter(**{name: tuple(given) for name, given in said.items()})
    except (ValueError, TypeError, AttributeError, RecursionError, ArgumentError):
        return None


def _fits(text: str, patterns: list[list[str]]) -> bool:
    """Whether a text is one of these patterns, each given by its parts between what is any text."""
    return any(_is_one(text, *parts) for parts in patterns)


def _is_one(text: str, first: str, *others: str) -> bool:
    # Not a regular expression: one with several stars tries a client's text in all its ways.
    if not others:
        return text == first
    *between, last = others
    start, end = len(first), len(text) - len(last)
    if start > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in between:
        found = text.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True
