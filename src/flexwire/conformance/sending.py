"""Send cases to one broker, over a connection that is used until an error occurs.

A case gets its own connection if the broker must refuse it, if it is hostile, or if it changes how
later bytes on the connection are read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flexwire.client.broker import Broker
from flexwire.closeable import Closeable
from flexwire.conformance.judging import CaseOutcome, Ending
from flexwire.errors import ConnectionEndedError, NoAnswerError, UnreadableFrameError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.client.security import Security
    from flexwire.conformance.cases import Case
    from flexwire.versions import Versions


class CaseSender(Closeable):
    """Connect to one broker and send cases.

    ``timeout`` is the time limit for one answer, in seconds.
    """

    def __init__(self, address: str, security: Security, *, client_id: str, timeout: float) -> None:
        self.address = address
        self.to = partial(CaseSender, security=security, client_id=client_id, timeout=timeout)
        """Return a sender for another broker, with the same settings."""
        self.connect = partial(
            Broker.connect, address, security, client_id=client_id, timeout=timeout
        )
        self._broker: Broker | None = None

    def offered(self) -> Mapping[int, Versions]:
        """Return the versions that the broker offers, keyed by API key."""
        return self.connected().offered

    def send(self, case: Case) -> CaseOutcome:
        """Send a case and return its outcome.

        Raises `CallError` if the broker cannot be reached.
        """
        if case.is_alone:
            self.close()
        broker = self.connected()
        try:
            payload = broker.exchange_bytes(case.data)
            return CaseOutcome(payload, unread=broker.unread_length)
        except ConnectionEndedError as error:
            held = f"after {error.held} bytes of an answer" if error.held else ""
            return CaseOutcome(ending=Ending.CLOSED, detail=held)
        except NoAnswerError:
            return CaseOutcome(ending=Ending.SILENT)
        except UnreadableFrameError as error:
            reason = str(error).removeprefix(f"{broker.address}: ")
            return CaseOutcome(ending=Ending.NO_FRAME, detail=reason)
        finally:
            if case.is_alone:
                self.close()

    def close(self) -> None:
        """End the connection. A second call has no effect."""
        if self._broker is not None:
            self._broker.close()
            self._broker = None

    def connected(self) -> Broker:
        """Return the broker. If there is no connection, connect and log in first."""
        if self._broker is None or not self._broker.is_open:
            self._broker = self.connect()
        return self._broker
