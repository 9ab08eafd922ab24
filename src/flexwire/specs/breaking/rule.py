"""A rule about breaking changes: an id, a category, a page, and a function that finds changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType
from flexwire.specs.finding import RulePage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.schema.pairs import StructureMember, StructurePair
    from flexwire.schema.parse import Mode
    from flexwire.schema.spec import MessageSpec, Position
    from flexwire.specs.finding import Level

    Differences = Iterator[tuple[Position, str]]


_COORDINATORS = {MessageType.COORDINATOR_KEY, MessageType.COORDINATOR_VALUE}


class Breaks(Enum):
    """The kind of damage that a change causes."""

    WIRE = "a reader misinterprets the bytes of an existing version"
    JSON = "the meaning of JSON and of code that uses field names changes"
    SUPPORT = "a peer that uses an old version is no longer supported"


@dataclass(frozen=True, slots=True)
class BreakingRule(RulePage):
    """One rule.

    ``structure`` compares the two editions of a structure in a version. ``message`` compares the
    specs of a message. The new spec is None if the message was removed. Both functions yield places
    in the new spec, each with the change at this place. ``compatible_in`` contains the modes whose
    source considers such a change compatible. The rule is not used in these modes.
    ``needs_own_text`` marks rules about properties that the catalog stores only for the newest
    release of a message (`Edition.own_text`).
    """

    category: Breaks
    structure: Callable[[StructurePair], Differences] | None = None
    message: Callable[[MessageSpec, MessageSpec | None], Differences] | None = None
    compatible_in: frozenset[Mode] = frozenset()
    needs_own_text: bool = False

    @property
    def level(self) -> Level:
        """The severity of a finding. Misread bytes are an error. All other changes are warnings."""
        return "error" if self.category is Breaks.WIRE else "warning"


def became_a_record(old: MessageSpec, new: MessageSpec) -> bool:
    """Return whether data became the key or value of a coordinator's record, or vice versa.

    The writer of data decides which bytes precede the data, and coordinators wrote the same bytes
    before and after this change. Source: the specs of Kafka 4.0 and 4.1.
    """
    kinds = {old.type, new.type}
    return len(kinds & _COORDINATORS) == 1 and kinds - _COORDINATORS == {MessageType.DATA}


def continued(old: MessageSpec, new: MessageSpec) -> tuple[int, int] | None:
    """Return the old and the new version of the same record, if a number identifies it.

    A coordinator writes a record's type before its key. While keys had the type data, this number
    was the version. Now that keys have their own message type, this number is the API key, and the
    version is 0.
    """
    if became_a_record(old, new) and MessageType.COORDINATOR_KEY in {old.type, new.type}:
        key = old.api_key if new.api_key is None else new.api_key
        if key is not None:
            return (key, 0) if old.type is MessageType.DATA else (0, key)
    return None


def has_other_default(old: StructureMember, new: StructureMember) -> bool:
    """Return whether the defaults differ as values. Defaults of different types never differ."""
    # Comparing the defaults as text makes NaN equal to itself, and 0 different from false.
    return old.kind == new.kind and repr(old.field.default) != repr(new.field.default)


def default_text(member: StructureMember) -> str:
    """Return a default in words, for use in a sentence."""
    default = member.field.default
    if isinstance(default, bool):
        return str(default).lower()
    named = {(): "empty", "": "empty", b"": "empty", None: "null"}
    if isinstance(default, dict):
        return "all defaults"
    return named.get(default) or repr(default)
