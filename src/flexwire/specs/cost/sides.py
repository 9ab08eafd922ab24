"""The message specs of one side of a comparison, including those of KIP-636."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition
from flexwire.schema.error_tags import tag_errors
from flexwire.schema.parse import parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.schema.text import SpecText
from flexwire.schema.write import write_spec
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.schema.parse import Mode
    from flexwire.schema.spec import FieldSpec, MessageSpec
    from flexwire.wire.encoding import Encoding
    from flexwire.wire.schema import Schema


# The identity of a message: its name, and its API key and type in case it was renamed.
MessageKey = tuple[str, int | None, MessageType | None]


class SideSpecs:
    """Message specs by name. ``bundled`` adds all messages in Kafka's releases."""

    def __init__(self, editions: Mapping[str, Edition], *, bundled: bool = False) -> None:
        self._editions = dict(editions)
        self._by_key = {
            (edition.spec.api_key, edition.spec.type): edition
            for edition in editions.values()
            if edition.spec.type.is_api
        }
        self._bundled = bundled
        self._schemas: dict[tuple[MessageSpec, int, Encoding], Schema] = {}

    def find(self, named: MessageKey) -> Edition | None:
        """Return a message by its name, or the request or response that has its api key."""
        name, api_key, kind = named
        if name in self._editions:
            return self._editions[name]
        if kind is not None and kind.is_api and (api_key, kind) in self._by_key:
            return self._by_key[api_key, kind]
        if not self._bundled:
            return None
        try:
            entry = catalog().entry(name)
        except UnknownMessageError:
            return None
        released = [*entry.versions]
        by_version = {version: entry.spec(version) for version in released}
        newest = replace(by_version[released[-1]], valid_versions=entry.versions)
        self._editions[name] = Edition(newest, by_version)
        return self._editions[name]

    def schema(self, edition: Edition, version: int, encoding: Encoding) -> Schema:
        """Return the schema of a version. Raises `SpecError` if the version cannot be laid out."""
        spec = edition.at(version)
        key = (spec, version, encoding)
        if key not in self._schemas:
            self._schemas[key] = resolve(spec, version, (), encoding)
        return self._schemas[key]

    def target(
        self, named: MessageKey, old: Edition, version: int, *, newest: bool
    ) -> tuple[Edition, int] | str:
        """Return an old message's replacement and its version, or the reason why there is none.

        The version remains the same, unless the old version was the newest version in its specs or
        ``newest`` is true. In these cases, it becomes the newest version.
        """
        new = self.find(named)
        if new is None:
            return "the new specs do not contain this message"
        highest = new.spec.valid_versions.highest
        if newest or (version == old.spec.valid_versions.highest and highest > version):
            return new, highest
        if version not in new.spec.valid_versions:
            return "the new specs do not contain this version"
        return new, version


def bundled_specs() -> SideSpecs:
    """Return every message of every release, in its newest layout."""
    return SideSpecs({}, bundled=True)


class ErrorTaggedSpecs(SideSpecs):
    """The old specs, with an added version in which the errors of an RPC are tagged.

    The KIP adds one new version to each RPC, after the RPC's newest version. Traffic contains many
    versions. Here, each version is therefore followed by a version with the same fields, in which
    only the errors differ: they are tagged.
    """

    def __init__(self, old: SideSpecs, mode: Mode = "strict") -> None:
        super().__init__({})
        self._old = old
        self._mode = mode

    def target(
        self, named: MessageKey, old: Edition, version: int, *, newest: bool
    ) -> tuple[Edition, int]:
        """Return the message with tagged errors and its version.

        If the message has no errors, return the old message.
        """
        if newest:
            version = old.spec.valid_versions.highest
        changed = self._changed(named, old, version)
        return (old, version) if changed is None else (changed, version + 1)

    def _changed(self, named: MessageKey, old: Edition, version: int) -> Edition | None:
        spec = old.at(version)
        if not spec.type.is_api or version == HIGHEST:
            return None
        # The request and the response together show whether the KIP changes an RPC.
        specs = [single_version(spec, version)]
        partner = self._old.find(_partner(named, spec))
        if partner is not None and version in partner.spec.valid_versions:
            specs.append(single_version(partner.at(version), version))
        texts = [SpecText(write_spec(each), each.name) for each in specs]
        for result in tag_errors(texts, mode=self._mode):
            if result.spec.name == spec.name and result.version is not None:
                return Edition(parse_spec(result.text, result.source, mode=self._mode))
        return None


def single_version(spec: MessageSpec, version: int) -> MessageSpec:
    """Return a spec that contains only one version, with the fields of the given version.

    >>> from flexwire.schema.catalog import catalog
    >>> fetch = single_version(catalog().entry("FetchRequest").spec(12), 12)
    >>> [one.name for one in fetch.fields][:3]
    ['ClusterId', 'ReplicaId', 'MaxWaitMs']
    """
    return replace(
        spec,
        valid_versions=Versions(version, version),
        flexible_versions=_open(spec.flexible_versions, version),
        header_versions=spec.header_versions and spec.header_versions.up_to(version),
        deprecated_versions=Versions.NONE,
        fields=_fields(spec.fields, version),
        common_structs=tuple(
            replace(
                struct,
                versions=_open(struct.versions, version),
                fields=_fields(struct.fields, version),
            )
            for struct in spec.common_structs
            if version in struct.versions
        ),
    )


def _open(versions: Versions, version: int) -> Versions:
    # A field that can be null only in some versions would be treated differently.
    return Versions(versions.lowest, HIGHEST) if version in versions else Versions.NONE


def _fields(fields: tuple[FieldSpec, ...], version: int) -> tuple[FieldSpec, ...]:
    return tuple(
        replace(
            field,
            versions=_open(field.versions, version),
            nullable_versions=_open(field.nullable_versions, version),
            tag=field.tag if version in field.tagged_versions else None,
            tagged_versions=_open(field.tagged_versions, version),
            flexible_versions=None
            if field.flexible_versions is None
            else _open(field.flexible_versions, version),
            fields=_fields(field.fields, version),
        )
        for field in fields
        if version in field.versions or version in field.tagged_versions
    )


def _partner(named: MessageKey, spec: MessageSpec) -> MessageKey:
    mine, other = "Request", "Response"
    kind = MessageType.RESPONSE
    if spec.type is MessageType.RESPONSE:
        mine, other, kind = other, mine, MessageType.REQUEST
    return named[0].removesuffix(mine) + other, spec.api_key, kind
