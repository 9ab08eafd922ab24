"""Certificates for a try: an authority that nobody has to make, and that soon holds no more."""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import closing
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.client.notation import is_address, is_unspecified
from flexwire.errors import TlsError
from flexwire.extras import needed_by
from flexwire.storage.local import create_private_file

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIFETIME: Final = timedelta(days=7)
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_NAME: Final = "flexwire throwaway"


class Throwaway(NamedTuple):
    """What was made: the authority's certificate for clients, and the tap's own with its key."""

    ca: Path
    certificate: Path
    key: Path


def names_of(host: str) -> tuple[str, ...]:
    """The names by which clients may come to a tap that listens at a host."""
    if is_unspecified(host):
        machine = dict.fromkeys((socket.gethostname(), socket.getfqdn()))
        return (*machine, *_LOOPBACK)
    if host == "localhost" or (is_address(host) and ip_address(host).is_loopback):
        return tuple(dict.fromkeys((host, *_LOOPBACK)))
    return (host,)


def make_throwaway(directory: Path, hosts: Iterable[str]) -> Throwaway:
    """Make ``ca.pem``, ``tap.pem`` and ``tap.key`` in a directory, for a week.

    The authority's own key is not kept. Files of an earlier run are taken as they are, if they
    hold for these hosts: then clients need not be told anew. Only their owner may read them. All
    three are made, or none; nothing is written over, and no link is followed. Raises `TlsError`,
    and `MissingExtraError` without the package cryptography.
    """
    with needed_by("a throwaway CA", "tls"):
        from flexwire.tap.authority import Authority, holds_for  # noqa: PLC0415 - may be missing
    hosts = tuple(hosts)
    made = Throwaway(*(Path(directory) / name for name in ("ca.pem", "tap.pem", "tap.key")))
    try:
        if made.certificate.exists():
            if not holds_for(made.certificate.read_bytes(), hosts):
                raise TlsError(
                    f"{made.certificate}: it has expired, or is not for {', '.join(hosts)}: "
                    "remove the directory, and clients' copies of its ca.pem"
                )
            return made
        made.ca.parent.mkdir(parents=True, exist_ok=True)
        authority = Authority(_NAME, _LIFETIME)
        chain, key = authority.certificate("flexwire tap", hosts)
        _write_all({made.key: key, made.ca: authority.pem, made.certificate: chain})
    except OSError as error:
        # Until all are written they have names that nobody else knows.
        named, why = error.filename2 or directory, error.strerror or error
        raise TlsError(f"{named}: no throwaway CA: {why}") from error
    except ValueError as error:
        raise TlsError(f"{directory}: no throwaway CA: {error}") from error
    return made


def _write_all(contents: dict[Path, bytes]) -> None:
    """Write new files, all or none; `FileExistsError` where one is there, or a link of its name."""
    written: list[Path] = []
    directory = next(iter(contents)).parent
    with tempfile.TemporaryDirectory(prefix=".making-", dir=directory) as drafts:
        try:
            for path, content in contents.items():
                draft = Path(drafts, path.name)
                with closing(create_private_file(draft)) as file:
                    file.write(content)
                # Unlike a rename, it takes no other file's place and follows no link.
                os.link(draft, path)
                written.append(path)
        except BaseException:
            for path in written:
                path.unlink(missing_ok=True)
            raise
