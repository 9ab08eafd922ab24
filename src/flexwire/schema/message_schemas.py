"""Find the spec and schema of a message by version, encoding and release.

A caller specifies a message by its name in the catalog, by its own spec, or by its class.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

from flexwire.arguments import refuse, to_version
from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.header_versions import spec_header_versions
from flexwire.schema.pairs import former_names
from flexwire.schema.resolve import effective, resolve, union
from flexwire.schema.spec import MessageSpec
from flexwire.versions import Versions
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.schema.resolve import Fields, ServedSpec
    from flexwire.schema.spec import HeaderVersions, MessageType
    from flexwire.wire.schema import Schema

# The name of a message in the catalog, your own spec, or the class of either.
MessageLike = str | MessageSpec | type
# Hashing an enum member is slow, and nearly all callers use Kafka's encoding.
Key = int | tuple[int, Encoding]
_KAFKA = Encoding.KAFKA


class SpecSource(Protocol):
    """The source of a message's specs: an entry of a catalog, or a single spec."""

    @property
    def name(self) -> str:
        """The name of the message."""

    @property
    def type(self) -> MessageType:
        """The type of the message."""

    @property
    def versions(self) -> Versions:
        """Every version that has a layout."""

    @property
    def header_versions(self) -> HeaderVersions:
        """The header version of each version of a request or response."""

    @property
    def releases(self) -> Mapping[str, Versions]:
        """The valid versions in each release that contains the message."""

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        """Return the spec for the version."""

    def specs(self) -> tuple[ServedSpec, ...]:
        """Return every spec that is used for a version, the newest first."""


class SingleSpec:
    """Your own spec as a source of specs, without releases."""

    def __init__(self, spec: MessageSpec) -> None:
        self.name = spec.name
        self.type = spec.type
        self.api_key = spec.api_key
        self.versions = self.current_versions = spec.valid_versions
        self.flexible_versions = spec.flexible_versions
        self.header_versions = spec_header_versions(spec)
        self.releases: Mapping[str, Versions] = {}
        self._spec = spec

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        """Return the spec. Raises `UnknownMessageError` for a version that the spec lacks."""
        if release is not None:
            raise UnknownMessageError(f"{self.name} is not a bundled message; it has no releases")
        valid = self._spec.valid_versions
        if version not in valid:
            raise UnknownMessageError(f"{self.name} has no version {version}; it has {valid}")
        return self._spec

    def all_specs(self) -> tuple[MessageSpec, ...]:
        """Return the spec, which is the only one of its message."""
        return (self._spec,)

    def specs(self) -> tuple[ServedSpec, ...]:
        """Return the spec with its valid versions."""
        return ((self._spec, self._spec.valid_versions),)


def check_message(message: object) -> None:
    """Raise an error for a value that is not a message's name, spec or class."""
    is_class = isinstance(message, type) and hasattr(message, "definition")
    if not is_class and not isinstance(message, str | MessageSpec):
        raise refuse("message", "a message's name, its spec or its class", message)


def schemas_of(message: MessageLike, release: str | None = None) -> MessageSchemas:
    """Return the specs and schemas of a message. Each call returns the same object.

    A ``release`` may be given only for a name in the catalog. Raises `UnknownMessageError` if the
    name is not in the catalog.
    """
    check_message(message)
    if not isinstance(message, type):
        return _served(message, release)
    # Message classes are defined in a package that depends on this package, so a class itself
    # provides its schemas.
    definition: Any = message.definition  # type: ignore[attr-defined] # checked above
    served: MessageSchemas = definition.served
    return served


@per_catalog
@cache
def _served(message: str | MessageSpec, release: str | None) -> MessageSchemas:
    entry = SingleSpec(message) if isinstance(message, MessageSpec) else catalog().entry(message)
    return MessageSchemas(entry, release)


def key_of(version: int, encoding: Encoding) -> Key:
    """Return the key that caches use for a version and an encoding."""
    return version if encoding is _KAFKA else (version, encoding)


class MessageSchemas:
    """The specs and schemas of one message, from its newest specs or from one release's specs."""

    def __init__(self, entry: SpecSource, release: str | None = None) -> None:
        self.entry = entry
        self.name = entry.name
        self.release = release
        self._schemas: dict[Key, Schema] = {}
        self._former_names: dict[int, dict[str, dict[str, str]]] = {}

    @cached_property
    def specs(self) -> tuple[ServedSpec, ...]:
        """The specs that are used for versions, each with its versions, the newest first.

        Raises `UnknownMessageError` if the release does not contain the message.
        """
        if self.release is None:
            return self.entry.specs()
        versions_by_spec: dict[MessageSpec, list[int]] = {}
        for version in reversed([*self.entry.releases.get(self.release, Versions.NONE)]):
            versions_by_spec.setdefault(self.entry.spec(version, self.release), []).append(version)
        if not versions_by_spec:
            self.entry.spec(0, self.release)
        return tuple((spec, Versions.of(versions)) for spec, versions in versions_by_spec.items())

    @cached_property
    def fields(self) -> Fields:
        """The fields of all versions."""
        return union(self.specs)

    def schema(self, version: int, encoding: Encoding = Encoding.KAFKA) -> Schema:
        """Return the resolved schema. Raises `UnknownMessageError` for a version in no release.

        Encodings that write the version in the same way share a schema object.
        """
        key = key_of(version, encoding)
        schema = self._schemas.get(key)
        if schema is None:
            version = to_version(version)
            spec = self.entry.spec(version, self.release)
            if encoding is not effective(spec, version, encoding):
                schema = self.schema(version)
            else:
                others = [served for served in self.specs if served[0] is not spec]
                schema = resolve(spec, version, others, encoding)
            self._schemas[key] = schema
        return schema

    def former_names(self, version: int) -> dict[str, dict[str, str]]:
        """Return the names of the version's fields in other releases: see `pairs.former_names`."""
        names = self._former_names.get(version)
        if names is None:
            schema = self.schema(version)
            specs = [
                self.entry.spec(version, release)
                for release, valid in self.entry.releases.items()
                if version in valid
            ]
            others = {id(spec): resolve(spec, version) for spec in specs}
            names = self._former_names[version] = former_names(schema, others.values())
        return names
