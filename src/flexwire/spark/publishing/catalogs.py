"""The names under which tables are found: a catalog, its properties, and a database in it.

Keys and passwords are never part of these names, so they never appear on a command line or in a
file of an output. The library that opens the catalog reads keys and passwords from its own
configuration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from flexwire.arguments import refuse, to_text
from flexwire.errors import ArgumentError, FlexwireError
from flexwire.schema.spec import snake_case
from flexwire.storage.filesystems import withheld
from flexwire.tables.output import ICEBERG_CATALOG

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET: Final = re.compile(
    r"token|credential|secret|password|access-key|account-key|session-key|connection-string",
    re.IGNORECASE,
)
# These properties specify where tokens come from; they contain no tokens.
_NO_SECRET: Final = frozenset({"oauth2-server-uri", "token-refresh-enabled"})
_FORMAT: Final = 1


class DatabaseName(NamedTuple):
    """A catalog and a database in it, written as "spark_catalog.kafka"."""

    catalog: str
    database: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}"


OWN: Final = DatabaseName("flexwire", "kafka")
"""The catalog and database of Iceberg tables whose catalog is stored in their output."""


def to_database(value: object, name: str) -> DatabaseName:
    """Return a catalog and its database; both names can contain letters, digits and underscores.

    >>> to_database("spark_catalog.kafka", "register")
    DatabaseName(catalog='spark_catalog', database='kafka')
    """
    parts = to_text(value, name).split(".")
    if len(parts) != len(DatabaseName._fields) or not all(map(_NAME.fullmatch, parts)):
        raise refuse(name, "CATALOG.DATABASE with only letters, digits and underscores", value)
    return DatabaseName(*parts)


def catalog_table(name: str) -> str:
    """Return the name of a table in a catalog, in lower case.

    >>> catalog_table("frames"), catalog_table("messages/FetchRequest")
    ('frames', 'messages_fetch_request')
    """
    return "_".join(map(snake_case, name.split("/")))


@dataclass(frozen=True, slots=True)
class IcebergCatalog:
    """The catalog of Iceberg tables: a name in pyiceberg's configuration, and properties.

    ``properties`` contains pyiceberg properties, such as "uri" and "type", which override
    pyiceberg's configuration. The properties are stored in the output, so that readers need only
    the output's path. Raises `ArgumentError` for a key or a password. Without a ``name`` the
    catalog is a SQLite file in the output.

    >>> IcebergCatalog("lake.kafka", {"type": "rest", "uri": "http://127.0.0.1:8181"}).place
    DatabaseName(catalog='lake', database='kafka')
    """

    name: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name is not None:
            to_database(self.name, "iceberg_catalog")
        object.__setattr__(self, "properties", _properties(self.properties))
        if self.name is None and self.properties:
            raise refuse(
                "catalog properties",
                "a catalog name together with properties",
                dict(self.properties),
            )

    @property
    def place(self) -> DatabaseName:
        """The catalog's name and the database of the tables."""
        return OWN if self.name is None else to_database(self.name, "iceberg_catalog")

    def to_json(self) -> bytes:
        """Return the description of the catalog to store in the output."""
        form = {"format": _FORMAT, "catalog": self.name, "properties": dict(self.properties)}
        return json.dumps(form, indent=1).encode() + b"\n"

    @staticmethod
    def from_json(data: bytes) -> IcebergCatalog:
        """Read a string that `to_json` wrote; raise `FlexwireError` for anything else."""
        try:
            form = json.loads(data)
            version, name, properties = (form[key] for key in ("format", "catalog", "properties"))
            known = IcebergCatalog(name, properties)
        except (ValueError, KeyError, TypeError) as error:
            raise _not_ours() from error
        if version != _FORMAT:
            raise _not_ours()
        return known


def _not_ours() -> FlexwireError:
    return FlexwireError(
        f"{ICEBERG_CATALOG} was not written by this version of flexwire; choose another --out"
    )


def to_catalog(catalog: object) -> IcebergCatalog:
    """Return the catalog that a caller describes by its name alone, or with properties."""
    if isinstance(catalog, IcebergCatalog):
        return catalog
    return IcebergCatalog(None if catalog is None else to_text(catalog, "iceberg_catalog"))


def _properties(properties: object) -> dict[str, str]:
    if not isinstance(properties, Mapping):
        raise refuse("catalog properties", "a mapping from names to strings", properties)
    pairs = {
        to_text(key, "catalog properties"): to_text(value, "catalog properties")
        for key, value in properties.items()
    }
    for key, value in pairs.items():
        is_secret = _SECRET.search(key) is not None and key not in _NO_SECRET
        if is_secret or withheld(value) != value:
            raise ArgumentError(
                f"the catalog property {key} holds a key or password, which flexwire does not "
                "accept; set it for pyiceberg, in ~/.pyiceberg.yaml or an environment variable "
                "such as PYICEBERG_CATALOG__NAME__TOKEN"
            )
    return dict(sorted(pairs.items()))
