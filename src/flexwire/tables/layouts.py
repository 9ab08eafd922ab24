"""How the messages of a capture are laid out: as in Kafka's newest release, or as its brokers' own.

A few versions were laid out anew under the same number, mostly while they were a preview. A person
who knows the release of the captured brokers names it, and their bytes are read as it wrote them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flexwire.codec import message
from flexwire.columnar.types import merge, message_type
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve
from flexwire.versions import Versions

if TYPE_CHECKING:
    import pyarrow as pa

    from flexwire.codec import Message


@per_catalog
@cache
def class_of(name: str, version: int, release: str | None) -> type[Message]:
    """The class that reads a version as ``release`` wrote it; None: as the newest with it.

    Where the bytes are the same it is the newest one, with its names.
    """
    newest = message(name)
    entry = catalog().entry(name)
    if release is None or version not in entry.releases.get(release, Versions.NONE):
        return newest
    spec = entry.spec(version, release)
    if same_bytes(resolve(spec, version), newest.definition.schema(version)):
        return newest
    return message(name, release)


@per_catalog
@cache
def body_type(name: str, release: str | None) -> pa.StructType:
    """The type of a message's column: every field of every version, and those of ``release``."""
    newest, own = message_type(name), message(name)
    for version in catalog().entry(name).releases.get(release or "", ()):
        made = class_of(name, version, release)
        if made is not own:
            return merge(name, [newest, message_type(made)])
    return newest
