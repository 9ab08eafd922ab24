"""Short-lived certificates for tests, as files: an authority's, and those that it signs."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from flexwire.tap import authority

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOOPBACK = ("127.0.0.1", "::1", "localhost")
DAY = timedelta(days=1)


class Authority:
    """Sign certificates for brokers and clients; programs that trust `path` accept them.

    All files are PEM files below ``directory``. Keys are P-256 keys in PKCS #8, which Java also
    reads.
    """

    def __init__(self, directory: Path, name: str = "tests") -> None:
        self.directory = directory
        self.name = name
        self._authority = authority.Authority(name, DAY)
        self._count = 0

    @cached_property
    def path(self) -> Path:
        """Return the file of the authority's own certificate: a client's or a broker's `ca`."""
        return self._write("ca.pem", self._authority.pem)

    def certificate(
        self,
        hosts: Iterable[str] = LOOPBACK,
        *,
        name: str = "broker",
        password: str | None = None,
        expired: bool = False,
    ) -> tuple[Path, Path]:
        """Sign a certificate for ``hosts``, for brokers or clients; return its chain and its key.

        ``name`` is the common name: a client's principal is ``User:CN=name``. The key is in PKCS
        #8, and is encrypted if ``password`` is given.
        """
        ends = self._authority.ends - (2 * DAY if expired else 0 * DAY)
        chain, key = self._authority.certificate(name, hosts, password=password, ends=ends)
        self._count += 1
        stem = f"{name}-{self._count}"
        return self._write(f"{stem}.pem", chain), self._write(f"{stem}.key", key)

    def _write(self, name: str, data: bytes) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{self.name}-{name}"
        path.write_bytes(data)
        return path
