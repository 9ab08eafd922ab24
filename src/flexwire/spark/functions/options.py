"""The options of the column functions: a dict of texts, as every function of Spark takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from flexwire.arguments import refuse, to_choice, to_text
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.spark.sources.options import MAX_INFLATED, MAX_RATIO, inflation_of
from flexwire.wire.encoding import Encoding

Mode = Literal["FAILFAST", "PERMISSIVE"]
FunctionOptions: TypeAlias = Mapping[str, str]

#: What may be said, and what is meant where nothing is.
MODE, CORRUPT, ENCODING, ABSENT = "mode", "columnNameOfCorruptRecord", "encoding", "absent"
CONVENTION, PREFIX, FIELDS = "convention", "lengthPrefix", "fields"
_DEFAULTS = {
    MODE: "FAILFAST",
    CORRUPT: "_corrupt_record",
    ENCODING: Encoding.KAFKA.value,
    ABSENT: "null",
    CONVENTION: "kip-82",
    PREFIX: "true",
    FIELDS: "",
}
OF_INFLATION = (MAX_INFLATED, MAX_RATIO)
"""Which say what a record batch may inflate to."""
_CHOICES = {
    MODE: ("FAILFAST", "PERMISSIVE"),
    ENCODING: tuple(one.value for one in Encoding),
    ABSENT: ("null", "default"),
    PREFIX: ("true", "false"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller of a column function has chosen, checked; it travels to the workers."""

    mode: Mode
    corrupt: str
    encoding: Encoding
    absent: Any
    convention: str
    has_prefix: bool
    fields: tuple[str, ...] = ()
    inflation: Inflation = INFLATION

    @property
    def is_permissive(self) -> bool:
        """Whether what does not decode is told in a column, and not raised."""
        return self.mode == "PERMISSIVE"


def read_options(given: FunctionOptions | None, *known: str) -> Options:
    """Give options, of which a function knows some; names are in upper or lower case.

    Raises `ArgumentError` for an option that the function does not have, and for a value that the
    option does not take: one that is misspelt would be one that was never given.

    >>> read_options({"MODE": "permissive"}, MODE).is_permissive
    True
    """
    if given is not None and not isinstance(given, Mapping):
        raise refuse("options", "a dict of texts", given)
    by_name = {name.lower(): name for name in known}
    chosen = dict(_DEFAULTS)
    for key, value in (given or {}).items():
        name = by_name.get(to_text(key, "options").lower())
        if name is None:
            raise refuse("options", f"names of {', '.join(known)}", key)
        chosen[name] = _value(name, to_text(value, name))
    return Options(
        mode="PERMISSIVE" if chosen[MODE] == "PERMISSIVE" else "FAILFAST",
        corrupt=chosen[CORRUPT],
        encoding=Encoding(chosen[ENCODING]),
        absent=chosen[ABSENT],
        convention=chosen[CONVENTION],
        has_prefix=chosen[PREFIX] == "true",
        fields=_names(chosen[FIELDS]),
        inflation=inflation_of(*map(chosen.get, OF_INFLATION)),
    )


def _value(name: str, value: str) -> str:
    choices = _CHOICES.get(name)
    if choices is None:
        return value
    return str(to_choice(value.upper() if name == MODE else value.lower(), name, choices))


def _names(given: str) -> tuple[str, ...]:
    """Give names with commas between them; none of no text."""
    names = tuple(one.strip() for one in given.split(",")) if given else ()
    if "" in names:
        raise refuse(FIELDS, "names with commas between them", given)
    return names
