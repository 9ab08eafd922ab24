"""What a run found, as the formats take it, whichever command ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum

    from flexwire.specs.finding import Finding

Level = Literal["error", "warning", "note"]


class Told(Protocol):
    """What a format shows of a rule besides its id."""

    @property
    def category(self) -> Enum:
        """The category, which has a name."""

    @property
    def level(self) -> Level:
        """How grave a finding is."""

    @property
    def summary(self) -> str:
        """The first sentence of the page."""

    @property
    def page(self) -> str:
        """The whole page."""


@dataclass(frozen=True, slots=True)
class Report:
    """What ``command`` found, in order, the files that it read, and its rules by their ids.

    ``unstable`` counts the findings that are left out because the old version was unstable.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    rules: Mapping[str, Told]
    command: str
    unstable: int = 0
