"""Options in the form that the column functions read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.spark.functions import messages

if TYPE_CHECKING:
    from flexwire.spark.functions.messages import FunctionSettings

ALL = (
    messages.MODE,
    messages.CORRUPT,
    messages.ENCODING,
    messages.ABSENT,
    messages.CONVENTION,
    messages.PREFIX,
    messages.FIELDS,
)


def chosen(**given: str) -> FunctionSettings:
    return messages.read_options(given, *ALL)


FAILFAST = chosen()
PERMISSIVE = chosen(mode="PERMISSIVE")
