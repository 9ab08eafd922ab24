"""The descriptions of a message's fields from all its specs, merged for all versions."""

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
    """A field of a structure, with its descriptions from all specs that contain it, newest first.

    ``mentions`` contains the description in each spec, with the versions for which the spec is
    used. ``highest`` is the message's highest version.
    """

    highest: int
    mentions: list[Mention]

    @property
    def newest(self) -> FieldSpec:
        """The description in the newest spec, which determines the name, place and default."""
        return self.mentions[0][0]

    @property
    def attribute(self) -> str:
        """The Python attribute."""
        return self.newest.attribute

    @property
    def types(self) -> tuple[FieldType, ...]:
        """The types of the field. If specs differ, there are several types."""
        return types_of(self.mentions)

    @property
    def tags(self) -> tuple[int, ...]:
        """The tags of the field: several if specs differ, none if the field is never tagged."""
        return tuple(dict.fromkeys(spec.tag for spec, _ in self.mentions if spec.tag is not None))

    @property
    def nullable(self) -> bool:
        """True if the field can be None, in any version or before it is set."""
        return any(
            spec.nullable_versions & served or parse_default(spec) is None
            for spec, served in self.mentions
        )

    def present_in(self) -> str:
        """Return the versions that contain the field, as a string."""
        return self._over(lambda spec: (spec.versions, spec.tagged_versions))

    def nullable_in(self) -> str:
        """Return the versions in which the field can be null, as a string."""
        return self._over(
            lambda spec: (
                spec.nullable_versions & spec.versions,
                spec.nullable_versions & spec.tagged_versions,
            )
        )

    def tagged_in(self) -> str:
        """Return the versions in which the field is tagged, as a string."""
        return self._over(lambda spec: (spec.tagged_versions,))

    def _over(self, say: Callable[[FieldSpec], tuple[Versions, ...]]) -> str:
        """Return the versions from each spec, limited to those that use the spec: "0-3,7+"."""
        versions = Versions.NONE
        for spec, served in self.mentions:
            for stated in say(spec):
                within = stated & served
                versions |= within
                # A range such as "2+" in the newest spec remains "2+", although its versions
                # currently have an end.
                if stated.open_ended and within.highest == self.highest:
                    versions |= Versions(self.highest, HIGHEST)
        return str(versions)


def merge(specs: Sequence[ServedSpec]) -> dict[str, dict[str, MergedField]]:
    """Return the fields of a message and its structures, by structure name and attribute.

    The order is the same as in the result of `union`. ``specs`` are the specs that are used for
    versions, the newest first.
    """
    highest = max(served.highest for _, served in specs)
    return {
        name: {attribute: MergedField(highest, mentions) for attribute, mentions in fields.items()}
        for name, fields in union(specs).items()
    }


def identifying(fields: Mapping[str, list[Mention]]) -> frozenset[str]:
    """Return the fields of a structure that identify it, such as a partition number.

    These fields are in every version of the structure, are never tagged, and have no default in
    their newest spec. ``fields`` contains the descriptions of each field by attribute, the newest
    first.
    """
    present = {
        name: reduce(
            or_, ((spec.versions | spec.tagged_versions) & served for spec, served in mentions)
        )
        for name, mentions in fields.items()
    }
    whole = reduce(or_, present.values(), Versions.NONE)
    return frozenset(
        name
        for name, mentions in fields.items()
        if present[name] == whole
        and not mentions[0][0].default
        and not any(field_spec.tagged_versions for field_spec, _ in mentions)
    )
