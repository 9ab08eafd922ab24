"""Options as the column functions read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.spark.functions import options

if TYPE_CHECKING:
    from flexwire.spark.functions.options import Options

ALL = (
    options.MODE,
    options.CORRUPT,
    options.ENCODING,
    options.ABSENT,
    options.CONVENTION,
    options.PREFIX,
    options.FIELDS,
)


def chosen(**given: str) -> Options:
    return options.read_options(given, *ALL)


FAILFAST = chosen()
PERMISSIVE = chosen(mode="PERMISSIVE")
