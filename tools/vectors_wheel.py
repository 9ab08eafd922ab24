"""Make a wheel of data files with reproducible bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

from flexwire.vectors.package import INSTALLED

if TYPE_CHECKING:
    from collections.abc import Mapping

DISTRIBUTION = "flexwire-vectors"
SUMMARY = "Test vectors of Apache Kafka's wire protocol, made and confirmed by Kafka's own classes."
_INIT = '''"""Test vectors of Apache Kafka's wire protocol; `DIRECTORY` holds them."""

from pathlib import Path

DIRECTORY = Path(__file__).parent
'''
# The earliest time that a zip file can store.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


def wheel_name(version: str) -> str:
    """Return the file name of a version's wheel.

    >>> wheel_name("4.4.0.1")
    'flexwire_vectors-4.4.0.1-py3-none-any.whl'
    """
    return f"{INSTALLED}-{version}-py3-none-any.whl"


def wheel(files: Mapping[str, bytes], version: str) -> bytes:
    """Return the bytes of a wheel that installs files as the Python package `INSTALLED`."""
    about = f"{INSTALLED}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: {DISTRIBUTION}\nVersion: {version}\nSummary: {SUMMARY}\n"
        "License-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: NOTICE\n"
        "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n"
    )
    tags = "Wheel-Version: 1.0\nGenerator: flexwire\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    held = {
        f"{INSTALLED}/__init__.py": _INIT.encode(),
        **{f"{INSTALLED}/{name}": data for name, data in files.items()},
        **{f"{about}/licenses/{name}": files[name] for name in ("LICENSE", "NOTICE")},
        f"{about}/METADATA": metadata.encode() + files["README.md"],
        f"{about}/WHEEL": tags.encode(),
    }
    record = f"{about}/RECORD"
    lines = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in held.items()]
    held[record] = "".join([*lines, f"{record},,\n"]).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in held.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = _MODE
            # Compressed data is stored as it is.
            packed = zipfile.ZIP_STORED if name.endswith(".gz") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, packed)
    return made.getvalue()


def _digest(data: bytes) -> str:
    digest = hashlib.sha256(data).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
