"""The build backend: setuptools, with zig as the compiler if the machine has no compiler.

Repeated builds produce the same bytes; without ``SOURCE_DATE_EPOCH``, every file has the same fixed
time.
"""

from __future__ import annotations

import gzip
import io
import os
import platform
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from tools.package.extension import has_compiler, place

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

# A zip cannot store a time before 1980; this is the time that hatchling uses.
EPOCH = "1580601600"
# The machines for which `ziglang` has wheels. Elsewhere pip would fail because ziglang is missing.
ZIG = {"aarch64", "amd64", "arm64", "x86_64"}
_Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Return the requirements of a wheel build besides `build-system.requires`."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """Return the requirements of an editable install besides `build-system.requires`."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]


def build_wheel(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel, with kernels if this machine can compile them; return its name."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", EPOCH)
    # setuptools would pack leftovers from an earlier build.
    for left in Path(place()).glob("lib*"):
        shutil.rmtree(left)
    name = str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))
    path = Path(wheel_directory, name)
    path.write_bytes(_normal_wheel(path.read_bytes()))
    return name


def build_editable(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    """Build an editable install, with the kernels beside their sources."""
    return str(build_meta.build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
    """Build a source archive; return its name."""
    name = str(build_meta.build_sdist(sdist_directory, config_settings))
    path = Path(sdist_directory, name)
    path.write_bytes(_normal(path.read_bytes(), int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))))
    return name


def _compiler() -> list[str]:
    wanted = os.environ.get("FLEXWIRE_KERNELS") != "off" and not has_compiler()
    return ["ziglang"] if wanted and platform.machine().lower() in ZIG else []


def _normal_wheel(wheel: bytes) -> bytes:
    """Return the same wheel without the file modes from the machine that packed it."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(wheel)) as given,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as taken,
    ):
        for entry in given.infolist():
            is_program = entry.external_attr >> 16 & 0o100
            entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
            taken.writestr(entry, given.read(entry))
    return packed.getvalue()


def _normal(archive: bytes, time: int) -> bytes:
    """Return the same archive sorted by name, without the times and the packer's identity."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as packed_archive,
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=time) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as taken,
    ):
        for member in sorted(packed_archive.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = time, 0, 0, "", ""
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            member.pax_headers = {}
            taken.addfile(member, packed_archive.extractfile(member) if member.isfile() else None)
    return packed.getvalue()
