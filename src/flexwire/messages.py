"""Every bundled message by name, as in ``from flexwire.messages import MetadataResponse``.

A class is created when its name is first used, so that importing this module takes no time. ``from
flexwire.messages import *`` creates all classes, which takes a second. `messages.pyi` declares the
classes for editors and type checkers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.codec import message
from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import catalog, on_change

if TYPE_CHECKING:
    from flexwire.codec import Message


def __getattr__(name: str) -> type[Message] | list[str]:
    if name == "__all__":
        return sorted(catalog().names())
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        message_class = message(name)
    except UnknownMessageError as error:
        raise AttributeError(str(error)) from None
    globals()[name] = message_class
    _MADE.append(name)
    return message_class


_MADE: list[str] = []


def _forget() -> None:
    while _MADE:
        globals().pop(_MADE.pop(), None)


on_change(_forget)


def __dir__() -> list[str]:
    return sorted(catalog().names())
