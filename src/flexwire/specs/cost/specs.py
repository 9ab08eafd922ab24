"""The message specs of one side of a comparison: Kafka's bundled ones, a user's own, or both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.encoding import Encoding
    from flexwire.wire.schema import Schema

# Which message is meant: a name, and for what was renamed the api key and the type.
Named = tuple[str, int | None, MessageType | None]


class Specs:
    """Message specs by name; ``bundled`` adds all that Kafka's releases ever had."""

    def __init__(self, editions: Mapping[str, Edition], *, bundled: bool = False) -> None:
        self._editions = dict(editions)
        self._by_key = {
            (one.spec.api_key, one.spec.type): one
            for one in editions.values()
            if one.spec.type.is_api
        }
        self._bundled = bundled
        self._schemas: dict[tuple[MessageSpec, int, Encoding], Schema] = {}

    def find(self, named: Named) -> Edition | None:
        """Give a message by its name, else the request or response of its api key."""
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
        """Give the schema of one version. Raises `SpecError` for what cannot be laid out."""
        spec = edition.at(version)
        key = (spec, version, encoding)
        if key not in self._schemas:
            self._schemas[key] = resolve(spec, version, (), encoding)
        return self._schemas[key]

    def target(
        self, named: Named, old: Edition, version: int, *, newest: bool
    ) -> tuple[Edition, int] | str:
        """Give the message that takes the place of an old one, and its version; or why none does.

        It is of the same version, but of the newest one where the old version was its specs'
        newest, or where ``newest`` says so.
        """
        new = self.find(named)
        if new is None:
            return "the new specs have no such message"
        highest = new.spec.valid_versions.highest
        if newest or (version == old.spec.valid_versions.highest and highest > version):
            return new, highest
        if version not in new.spec.valid_versions:
            return "the new specs have no such version"
        return new, version


def bundled_specs() -> Specs:
    """Give every message of every release, in its newest layout."""
    return Specs({}, bundled=True)
