"""A vector package: a directory with a manifest and files of JSON lines.

The classes here define the format: `json_schema` derives the schema of the package from these
classes.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import zlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from flexwire.arguments import refuse
from flexwire.errors import VectorsError

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT: Final = 1
"""The version of the format. A reader refuses any other version. Adding optional keys does not
change the version.
"""
MANIFEST: Final = "manifest.json"
INSTALLED: Final = "flexwire_vectors"
"""The Python package that the wheel installs."""
LONGEST_LINE: Final = 16 * 1024 * 1024
"""The maximum length of a line in a file, in bytes."""
_HEX: Final = "^([0-9a-f]{2})*$"


class Expected(StrEnum):
    """The required behavior of a codec for the bytes of a vector."""

    TAKE = "take"
    """The codec must read the bytes, which are a valid message."""
    REFUSE = "refuse"
    """The codec must refuse the bytes, as Apache Kafka does."""
    EITHER = "either"
    """The codec may read or refuse the bytes. Apache Kafka accepts these bytes, although it would
    not write them."""


class Vector(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """The bytes of a message, a header or record batches, with Apache Kafka's result."""

    case: Annotated[
        str, Meta(description="The name of the case, which does not change between packages.")
    ]
    expected: Annotated[
        Expected,
        Meta(
            description="take: a valid message, which a codec must read. refuse: Apache Kafka "
            "refuses the bytes, and a codec must refuse them too. either: Kafka accepts the bytes, "
            "but would not write them."
        ),
    ]
    message: Annotated[
        str | None,
        Meta(description="The message's name in Kafka's spec. Absent for record batches."),
    ] = None
    type: Annotated[str | None, Meta(description="The type of the message in Kafka's spec.")] = None
    api_key: Annotated[int | None, Meta(description="The api key of a request or response.")] = None
    version: Annotated[int | None, Meta(description="The version of the message.")] = None
    header_version: Annotated[
        int | None, Meta(description="The version of the header that precedes the message.")
    ] = None
    hex: Annotated[
        str, Meta(pattern=_HEX, description="The encoded bytes, without a length prefix.")
    ]
    damage: Annotated[
        str | None, Meta(description="How the bytes were damaged. Absent for undamaged bytes.")
    ] = None
    json: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The message that Apache Kafka reads, in the JSON form of Kafka's "
            "converters. Records are base64, and a structure may contain _unknownTaggedFields. "
            "Absent if Kafka refuses the bytes."
        ),
    ] = None
    read: Annotated[
        int | None,
        Meta(
            description="The number of bytes that Apache Kafka reads. Absent if Kafka reads all "
            "bytes."
        ),
    ] = None
    written: Annotated[
        str | UnsetType | None,
        Meta(
            description="The bytes that Apache Kafka writes for the message, if they differ from "
            "the input. Null if Kafka refuses to write the message. Never present for record "
            "batches."
        ),
    ] = UNSET
    known: Annotated[
        str | None,
        Meta(
            description="The bytes that Apache Kafka writes if the unknown tagged fields are left "
            "out. Absent if the message contains no unknown tagged fields."
        ),
    ] = None
    decode_only: Annotated[
        bool,
        Meta(
            description="True if Apache Kafka's JSON converter cannot read its own output for this "
            "case. A codec is then not asked to encode the message."
        ),
    ] = False
    refused: Annotated[
        str | None,
        Meta(description="The class of the exception that Kafka throws when it refuses the bytes."),
    ] = None

    @property
    def is_hostile(self) -> bool:
        """True if the bytes were damaged. A damaged message may still be valid."""
        return self.damage is not None

    @property
    def can_be_encoded(self) -> bool:
        """True if a codec can be asked to encode the message, because Kafka writes these bytes."""
        is_plain = self.message is not None and not self.is_hostile and not self.decode_only
        return is_plain and self.written is UNSET


class PackageFile(msgspec.Struct, frozen=True):
    """A file of JSON lines. The size and the SHA-256 refer to the uncompressed file."""

    name: str
    cases: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a package, and the programs that created it."""

    format: int
    version: str
    """The package's version: the Kafka release, and a number that starts at 1."""
    kafka: str
    """The release of Apache Kafka whose classes created or confirmed every case."""
    jars: dict[str, str]
    """The SHA-256 of each Kafka jar that was used, keyed by the name of the jar."""
    expected: dict[Expected, int]
    """The number of cases by expected result."""
    files: list[PackageFile]


@dataclass(frozen=True, slots=True)
class VectorPackage:
    """A directory of vectors."""

    directory: Path
    manifest: Manifest

    def vectors(self) -> Iterator[Vector]:
        """Yield the vectors of all files, in the order of the manifest.

        Raises `VectorsError` for a file that is missing, damaged or different from the file in the
        manifest. The digest of a file is compared only after its last line has been read.
        """
        for file in self.manifest.files:
            yield from self._of_file(file)

    def _of_file(self, file: PackageFile) -> Iterator[Vector]:
        path = self.directory / Path(file.name).name
        digest, cases = hashlib.sha256(), 0
        try:
            with gzip.open(path, "rb") as lines:
                while line := lines.readline(LONGEST_LINE + 1):
                    if len(line) > LONGEST_LINE:
                        raise VectorsError(
                            f"{path}: line {cases + 1} is longer than {LONGEST_LINE} bytes"
                        )
                    digest.update(line)
                    cases += 1
                    yield _DECODER.decode(line)
        except msgspec.DecodeError as error:
            raise VectorsError(f"{path}: line {cases}: {error}") from None
        except (OSError, EOFError, zlib.error) as error:
            raise VectorsError(f"{path}: cannot read: {error}") from None
        if digest.hexdigest() != file.sha256:
            raise VectorsError(
                f"{path}: the SHA-256 differs from the manifest; rebuild the package"
            )


_DECODER: Final = msgspec.json.Decoder(Vector)


def read_package(directory: Path | str | None = None) -> VectorPackage:
    """Return the package in a directory, or by default the package that pip installed.

    Raises `VectorsError` if no package is found, or if its format is not supported.
    """
    if directory is not None and not isinstance(directory, Path | str):
        raise refuse("directory", "a path", directory)
    place = installed() if directory is None else Path(directory)
    path = place / MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise VectorsError(
            f"{path}: cannot read: {reason}; specify a directory of vectors"
        ) from None
    try:
        found = msgspec.json.decode(raw)
        number = found.get("format") if isinstance(found, dict) else None
        if number != FORMAT:
            raise VectorsError(f"{path}: expected format {FORMAT}, got {number!r}")
        manifest = msgspec.convert(found, Manifest)
    except msgspec.DecodeError as error:
        raise VectorsError(f"{path}: {error}") from None
    return VectorPackage(place, manifest)


def installed() -> Path:
    """Return the directory of the installed package, or raise `VectorsError` if there is none."""
    spec = importlib.util.find_spec(INSTALLED)
    if spec is None or spec.origin is None:
        raise VectorsError(
            "no vector package is installed; install flexwire-vectors or specify a directory"
        )
    return Path(spec.origin).parent


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a line."""
    schema = msgspec.json.schema(Vector)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
