"""What all the specs of a message together say of each of its fields, over all its versions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from flexwire.schema.resolve import parse_default, types_of, union
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flexwire.schema.resolve import Mention, ServedSpec
    from flexwire.schema.spec import FieldSpec, FieldType


@dataclass(slots=True)
class MergedField:
    """A field of a structure, as every spec that has it says, newest first.

    ``mentions`` pair what a spec says of the field with the versions that this spec serves;
    ``highest`` is the message's highest version.
    """

    highest: int
    mentions: list[Mention]

    @property
    def newest(self) -> FieldSpec:
        """The newest spec's word, which gives the name, the place and the default."""
        return self.mentions[0][0]

    @property
    def attribute(self) -> str:
        """The Python attribute."""
        return self.newest.attribute

    @property
    def types(self) -> tuple[FieldType, ...]:
        """The field's type; several where specs differ."""
        return types_of(self.mentions)

    @property
    def tags(self) -> tuple[int, ...]:
        """The field's tags; several where specs differ, none where it is never tagged."""
        return tuple(dict.fromkeys(one.tag for one, _ in self.mentions if one.tag is not None))

    @property
    def nullable(self) -> bool:
        """Whether the field can be None, in some version or before it is set."""
        return any(
            one.nullable_versions & served or parse_default(one) is None
            for one, served in self.mentions
        )

    def present_in(self) -> str:
        """The versions that have the field."""
        return self._over(lambda one: (one.versions, one.tagged_versions))

    def nullable_in(self) -> str:
        """The versions in which it can be null."""
        return self._over(
            lambda one: (
                one.nullable_versions & one.versions,
                one.nullable_versions & one.tagged_versions,
            )
        )

    def tagged_in(self) -> str:
        """The versions in which it is tagged."""
        return self._over(lambda one: (one.tagged_versions,))

    def _over(self, say: Callable[[FieldSpec], tuple[Versions, ...]]) -> str:
        """Write the versions that the specs say, each for those it serves: "0-3,7+" or "none"."""
        found = Versions.NONE
        for one, served in self.mentions:
            for said in say(one):
                within = said & served
                found |= within
                # The newest spec's "2+" stays "2+", though versions end somewhere today.
                if said.open_ended and within.highest == self.highest:
                    found |= Versions(self.highest, HIGHEST)
        return str(found)


def merge(specs: Sequence[ServedSpec]) -> dict[str, dict[str, MergedField]]:
    """Give the fields of the message and of its structures, by structure name and attribute.

    The order is that of `union`; ``specs`` are those that serve versions, the newest first.
    """
    highest = max(served.highest for _, served in specs)
    return {
        name: {attribute: MergedField(highest, mentions) for attribute, mentions in fields.items()}
        for name, fields in union(specs).items()
    }


def identifying(fields: Mapping[str, list[Mention]]) -> frozenset[str]:
    """Give the fields of a structure that tell one from another: partition 0 is one of many.

    They are present in every version that the structure has, never tagged, and their newest spec
    gives no default. ``fields`` are what the specs say of each, by attribute, the newest first.
    """
    present = {
        name: reduce(or_, ((one.versions | one.tagged_versions) & served for one, served in said))
        for name, said in fields.items()
    }
    whole = reduce(or_, present.values(), Versions.NONE)
    return frozenset(
        name
        for name, said in fields.items()
        if present[name] == whole
        and not said[0][0].default
        and not any(one.tagged_versions for one, _ in said)
    )
