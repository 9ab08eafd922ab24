"""The catalog of an output's Iceberg tables, as opened by pyiceberg, and each table's location.

pyiceberg uses its own file systems. It is given the credentials of flexwire's S3 store, so that
only one set of credentials is used. The credentials are never stored, in particular not in a
table's properties.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from sqlalchemy.exc import SQLAlchemyError

from flexwire.errors import FlexwireError, StorageError
from flexwire.spark.delta.layout import storage_options, table_url
from flexwire.spark.publishing.catalogs import catalog_table
from flexwire.storage.filesystems import reason_of
from flexwire.storage.local import make_private_directory
from flexwire.tables.output import ICEBERG_CATALOG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from flexwire.spark.publishing.catalogs import IcebergCatalog
    from flexwire.storage.output_directory import OutputDirectory


CATALOG_FILE: Final = "catalog/catalog.db"

CONFLICTS: Final = (CommitFailedException, ValidationException, CommitStateUnknownException)
"""Errors that mean that another commit came first, or that the reply to this commit was lost."""

_S3: Final = {
    "AWS_REGION": "s3.region",
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token",
}


def open_catalog(out: OutputDirectory, catalog: IcebergCatalog) -> Catalog | None:
    """Return the catalog, or None if it is a file in the output that does not exist yet."""
    name, given = catalog.place.catalog, dict(catalog.properties)
    if catalog.name is None:
        path = _catalog_file(out)
        if not path.is_file():
            return None
        given = {"type": "sql", "uri": f"sqlite:///{path}"}
    with iceberg_failures(out, "open the catalog of"):
        return load_catalog(name, **_storage(out), **given)


def make_catalog(out: OutputDirectory, catalog: IcebergCatalog) -> Catalog:
    """Return the catalog with its database. Create both if they are missing."""
    if catalog.name is None:
        path = _catalog_file(out)
        make_private_directory(path.parent)
        path.touch(mode=0o600)
    opened = open_catalog(out, catalog)
    assert opened is not None  # noqa: S101 - for mypy: the file exists
    database = (catalog.place.database,)
    with iceberg_failures(out, "create a database for"), suppress(NamespaceAlreadyExistsError):
        # A user who may write tables may not be allowed to create a database.
        if not opened.namespace_exists(database):
            opened.create_namespace(database)
    # Readers of the output find the catalog through this file.
    if not out.exists(ICEBERG_CATALOG):
        out.write(ICEBERG_CATALOG, catalog.to_json())
    return opened


def _catalog_file(out: OutputDirectory) -> Path:
    if out.path is None:
        raise FlexwireError(
            f"{out} is in an object store, where a catalog cannot be a file; specify a catalog "
            "with --iceberg-catalog CATALOG.DATABASE (see docs/iceberg.md)"
        )
    return out.path / CATALOG_FILE


def _storage(out: OutputDirectory) -> dict[str, str]:
    options = storage_options(out)
    return {_S3[name]: value for name, value in options.items() if name in _S3}


def load(catalog: Catalog | None, database: str, name: str) -> Table | None:
    """Return one of flexwire's tables in its current state, if the table exists."""
    if catalog is None:
        return None
    try:
        return catalog.load_table((database, catalog_table(name)))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


@contextmanager
def iceberg_failures(out: OutputDirectory, tried: str) -> Iterator[None]:
    """Convert errors of a catalog or of pyiceberg to a `StorageError` with one line of text."""
    try:
        yield
    except (FlexwireError, *CONFLICTS, TableAlreadyExistsError):
        raise
    except (OSError, SQLAlchemyError) as error:
        raise StorageError(reason_of(error), url=str(out), tried=tried) from None
    except Exception as error:
        # pyiceberg's catalogs raise their own errors, those of their libraries, and Python's
        # errors.
        if not type(error).__module__.startswith(("pyiceberg.", "requests.", "botocore.")):
            raise
        raise StorageError(reason_of(error), url=str(out), tried=tried) from None


def location(directory: OutputDirectory) -> str:
    """Return the URL of a directory, in the form used in the metadata of tables."""
    if directory.path is None:
        return table_url(directory)
    path = str(directory.path)
    if any(letter in path for letter in "?#%"):
        raise FlexwireError(
            f"{path} contains ?, # or %, which the URLs in Iceberg's metadata cannot contain; "
            "choose another --out"
        )
    return f"file://{path}"


def name_below(out: OutputDirectory, path: str) -> str:
    """Return the name, relative to the output, of a file that one of its tables lists.

    Another engine may have written the path. Raises `FlexwireError` for a file outside the output.
    """
    root = location(out)
    if path.startswith(f"{root}/"):
        return path[len(root) + 1 :]
    # Spark writes file:/path and s3a://bucket.
    parsed = urlparse(path)
    if out.path is not None and parsed.scheme in {"", "file"}:
        local = unquote(parsed.path)
        if local.startswith(f"{out.path}/"):
            return local[len(str(out.path)) + 1 :]
    ours = urlparse(root)
    if (parsed.netloc, parsed.path[: len(ours.path) + 1]) == (ours.netloc, f"{ours.path}/"):
        return parsed.path[len(ours.path) + 1 :]
    raise FlexwireError(f"a table of {out} refers to {path}, which is outside this output")
