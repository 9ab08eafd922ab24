"""Connections to brokers: which cannot be reached is said once, until it is reached again."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING, Any, Final

from flexwire.client.tls import HANDSHAKE_SECONDS, why
from flexwire.tap.ends import FLUSH_SECONDS, End

if TYPE_CHECKING:
    from flexwire.client.notation import HostPort
    from flexwire.tap.statistics import TapStatistics

log = logging.getLogger("flexwire.tap")

CONNECT_SECONDS: Final = 10.0


class Brokers:
    """Connects to brokers, with TLS where `tls` is set, each by its own name.

    `names` are those of addresses that are not a broker's
    advertised ones, for its certificate.
    """

    def __init__(self, statistics: TapStatistics) -> None:
        self.tls: ssl.SSLContext | None = None
        self.names: dict[HostPort, str] = {}
        self._statistics = statistics
        # Addresses that could not be reached when last tried, and how often since they could.
        self._unreachable: dict[HostPort, int] = {}

    async def connect(self, address: HostPort) -> End | None:
        """The end at a broker, or None where it cannot be reached, which is counted and logged."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS + (HANDSHAKE_SECONDS if self.tls else 0)):
                loop = asyncio.get_running_loop()
                _, broker = await loop.create_connection(
                    lambda: End(over_tls=self.tls is not None), *address, **self._secured(address)
                )
        except (OSError, ValueError) as error:  # an impossible host is a ValueError
            self._failed(address, error)
            return None
        if failed := self._unreachable.pop(address, 0):
            log.info("%s is reached again; %d connections were closed", address, failed)
        return broker

    def close(self) -> None:
        """Say which were not reached again."""
        for address, failed in self._unreachable.items():
            log.info("%s was not reached again; %d connections were closed", address, failed)
        self._unreachable.clear()

    def _secured(self, address: HostPort) -> dict[str, Any]:
        if self.tls is None:
            return {}
        return {
            "ssl": self.tls,
            "server_hostname": self.names.get(address, address.host),
            "ssl_handshake_timeout": HANDSHAKE_SECONDS,
            "ssl_shutdown_timeout": FLUSH_SECONDS,
        }

    def _failed(self, address: HostPort, error: Exception) -> None:
        told: str | Exception = error or type(error).__name__
        shaking = ssl.SSLError | ConnectionAbortedError | ConnectionResetError
        if self.tls is not None and isinstance(error, shaking):
            self._statistics.broker_handshakes_failed += 1
            told = why(error)
        else:
            self._statistics.unreachable += 1
        failed = self._unreachable[address] = self._unreachable.get(address, 0) + 1
        # Clients try again many times a second; how often it failed is logged when it ends.
        level = logging.WARNING if failed == 1 else logging.DEBUG
        log.log(level, "cannot reach %s: %s", address, told)
