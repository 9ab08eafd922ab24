"""The schemas of one message by version, whoever brings it: the catalog, a spec, or a class."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

from flexwire.arguments import refuse
from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.resolve import effective, resolve
from flexwire.schema.spec import MessageSpec
from flexwire.versions import Versions
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.wire.schema import Schema


class _Entry(Protocol):
    """What a catalog's entry can tell of a message."""

    @property
    def name(self) -> str:
        """The message's name."""

    @property
    def releases(self) -> Mapping[str, Versions]:
        """The valid versions in each release that has the message."""

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        """Give the spec whose layout holds for the version."""

    def specs(self) -> tuple[tuple[MessageSpec, Versions], ...]:
        """Give every spec that serves a version, the newest first."""


# A bundled message's name, a spec of one's own, or a message class of either.
MessageLike = str | MessageSpec | type


def check_message(message: object) -> None:
    """Refuse what names no message."""
    is_class = isinstance(message, type) and hasattr(message, "definition")
    if not is_class and not isinstance(message, str | MessageSpec):
        raise refuse("message", "a message's name, its spec or its class", message)


@per_catalog
@cache
def schemas_of(message: MessageLike) -> Schemas:
    """Give the schemas of a message; raises `UnknownMessageError` for a name that is none."""
    if isinstance(message, str):
        return Schemas(catalog().entry(message))
    if isinstance(message, MessageSpec):
        return Schemas(_OneSpec(message))
    definition: Any = getattr(message, "definition", None)
    if definition is None:
        raise TypeError(f"{message!r} is neither a message's name, nor a spec, nor its class")
    return Schemas(definition.entry, definition.release)


class _OneSpec:
    """The entry of a spec of one's own."""

    def __init__(self, spec: MessageSpec) -> None:
        self.name = spec.name
        self.releases: Mapping[str, Versions] = {}
        self._spec = spec

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        del release
        valid = self._spec.valid_versions
        if version not in valid:
            raise UnknownMessageError(f"{self.name} has no version {version}; it has {valid}")
        return self._spec

    def specs(self) -> tuple[tuple[MessageSpec, Versions], ...]:
        return ((self._spec, self._spec.valid_versions),)


class Schemas:
    """One message's schemas: of the newest specs, or as one release had them."""

    def __init__(self, entry: _Entry, release: str | None = None) -> None:
        self.entry = entry
        self.name = entry.name
        self.release = release
        self._made: dict[tuple[int, Encoding], Schema] = {}

    @cached_property
    def _serving(self) -> list[tuple[MessageSpec, int]]:
        """The specs that serve a version, each with one such version."""
        if self.release is None:
            return [(spec, versions.highest) for spec, versions in self.entry.specs()]
        valid = self.entry.releases.get(self.release, Versions.NONE)
        return [(self.entry.spec(version, self.release), version) for version in reversed([*valid])]

    def schema(self, version: int, encoding: Encoding = Encoding.KAFKA) -> Schema:
        """Give the resolved schema; raises `UnknownMessageError` for an unreleased version."""
        spec = self.entry.spec(version, self.release)
        encoding = effective(spec, version, encoding)
        key = (version, encoding)
        if key not in self._made:
            others = [one for one, _ in self._serving if one is not spec]
            self._made[key] = resolve(spec, version, others, encoding)
        return self._made[key]

    def every_field(self) -> list[Schema]:
        """Give schemas that together have all fields: each lists its absent ones too."""
        return [resolve(spec, version) for spec, version in self._serving]
