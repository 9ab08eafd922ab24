"""Facts with the same text in every place where their types allow a string."""

from __future__ import annotations

import dataclasses
import re
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from flexwire.facts.answers import AnswerFacts, AnswerPicture, ShownColumn
from flexwire.report import Facts

# Two columns of text, and one of numbers for the picture.
_COLUMNS = (
    ShownColumn("who", "Who", "text", is_about=True),
    ShownColumn("what", "What", "text"),
    ShownColumn("times", "Times", "count"),
)


def filled(text: str) -> Facts:
    """Return facts with ``text`` in every text field, and one element in each list.

    A field with a choice of words contains the first word. Answers contain the text in every cell.
    """
    facts: Facts = _made(Facts, text)
    answer = AnswerFacts(
        "hostile", text, text, text, _COLUMNS, AnswerPicture(text, "times"), 2,
        ((text, [text, text], 1), (text, [], 2)), as_of=text,
    )  # fmt: skip
    return dataclasses.replace(facts, answers=(answer,))


HOSTILE = (
    "javascript:alert(1)//"
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}"
    "</title></style></textarea><svg/onload=alert(1)>"
    '" autofocus onfocus=alert(1) x="'
    "' onmouseover='alert(1)"
    "--><!-- ]]></bdi></td></table><b>"
    "{% raw %}&lt;b&gt;&#60;b>${alert(1)}`"
)
"""Text that would become a link, an element, an attribute, a style, a script or a template."""

CALM = re.sub(r"[^\w ./:()]", "y", HOSTILE)
"""A text with the same length and the same words, but without any special meaning."""


def _made(kind: Any, text: str) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(
            **{
                one.name: _made(hints[one.name], text)
                for one in dataclasses.fields(kind)
                if one.init and one.name != "answers"
            }
        )
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inner[0]
    if origin in {types.UnionType, Union}:
        return _made(next(one for one in inner if one is not type(None)), text)
    if origin is tuple:
        elements = inner[:1] if inner[-1] is Ellipsis else inner
        return tuple(_made(one, text) for one in elements)
    if origin is dict:
        return {_made(inner[0], text): _made(inner[1], text)}
    return text if kind is str else kind(1)
