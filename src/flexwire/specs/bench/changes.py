"""The differences between two editions of a message, version by version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.specs.guide.rows import steps
from flexwire.specs.guide.site import changed_facts, describe_steps
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.specs.guide.messages import GuideMessage
    from flexwire.specs.guide.site import FieldChange


@dataclass(frozen=True, slots=True)
class VersionChange:
    """The changes in one version.

    A version that both editions contain is compared with itself, because programs already use that
    version. ``beside`` is then None. A new version is compared with ``beside``, the version before
    it. Each fact in ``facts`` consists of a name, an old value and a new value.
    """

    version: int
    beside: int | None
    facts: tuple[tuple[str, str, str], ...]
    fields: tuple[FieldChange, ...]


def version_changes(old: GuideMessage | None, new: GuideMessage) -> Iterator[VersionChange]:
    """Yield the versions of ``new`` that differ from the version with which they are compared.

    A new version without differences is yielded too. A new version without a preceding version is
    left out.
    """
    by_number = {} if old is None else old.by_number
    for number in new.numbers:
        here = new.by_number[number]
        earlier = by_number.get(number)
        before = earlier or new.by_number.get(number - 1)
        if before is None:
            continue
        facts = tuple(changed_facts(before, here, new))
        fields = tuple(describe_steps(before.rows, here.rows, steps(before.rows, here.rows)))
        if facts or fields or (old is not None and earlier is None):
            beside = None if earlier else number - 1
            yield VersionChange(number, beside, facts, fields)


def added_versions(old: GuideMessage, new: GuideMessage) -> Versions:
    """Return the versions that only ``new`` contains."""
    return Versions.of(set(new.numbers) - set(old.numbers))


def field_detail(change: FieldChange) -> str:
    """Return the change to a field: old and new values, or the properties of the field.

    The result is empty for a field that has neither a type nor properties.
    """
    if change.values:
        return "; ".join(f"{name} {was} → {now}" for name, was, now in change.values)
    return ", ".join(filter(None, (change.row.type, ", ".join(change.row.properties))))
