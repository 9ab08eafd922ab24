"""Decrypt a TLS connection with known secrets: process both directions, and return the data.

The handshake contains the version, the suite and the randoms. Only the handshake's two Hello
messages are read. In TLS 1.3, the handshake records are skipped: the first record that can be
decrypted with the traffic secret is the first one after the handshake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.tls.keylog import CLIENT, SERVER
from flexwire.capture.tls.keys import (
    APPLICATION,
    CLIENT_HELLO,
    HANDSHAKE,
    MESSAGE_HEAD,
    SERVER_HELLO,
    SUITES,
    TLS_1_2,
    TLS_1_3,
    VERSION_NAMES,
    Hello,
    RecordKeys13,
    derive_keys_12,
    parse_client_hello,
    parse_server_hello,
)
from flexwire.capture.tls.records import ALERT, CHANGE_CIPHER, BrokenError, RecordStream

if TYPE_CHECKING:
    from flexwire.capture.files.packets import Direction
    from flexwire.capture.tls.keylog import KeyLog
    from flexwire.capture.tls.records import OpenedRecord, TlsRecord


_KEY_UPDATE: Final = 24
_HELLO_REQUEST: Final = 0
_MOST_HELLO: Final = 64 * 1024
# The names for the second byte of an alert, which is the alert's description (RFC 8446, section
# 6.1).
_CLOSE_NOTIFY: Final = b"\x00"

NO_SECRET: Final = "the key logs contain no secret for the connection"  # noqa: S105 - this is a reason
NOT_WHOLE: Final = "the handshake is incomplete in the capture"
NOTHING: Final = (
    "the connection ended during the handshake, or the key logs contain another connection's secret"
)
RENEGOTIATED: Final = (
    "the connection was renegotiated (TLS 1.2); data after the renegotiation is not decrypted"
)


class Plaintext(NamedTuple):
    """The content of one record from an endpoint, and the number of ``lost`` bytes before it."""

    end: Direction
    data: bytes
    timestamp_us: int
    lost: int = 0


class TlsClosure(NamedTuple):
    """The alert with which an endpoint stopped sending. ``is_clean`` is true for close_notify."""

    end: Direction
    timestamp_us: int
    is_clean: bool


class _HandshakeMessages:
    """The handshake messages of one direction, read from records. Only Hello messages are kept."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._skips = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        messages: list[tuple[int, bytes]] = []
        skipped = min(self._skips, len(data))
        self._skips -= skipped
        self._held += data[skipped:]
        while len(self._held) >= MESSAGE_HEAD:
            kind, size = self._held[0], MESSAGE_HEAD + int.from_bytes(self._held[1:4])
            is_read = kind in {CLIENT_HELLO, SERVER_HELLO}
            if is_read and size > _MOST_HELLO:
                raise BrokenError(
                    f"a Hello message declares {size:,} bytes, more than the limit of 65,536"
                )
            if is_read and size > len(self._held):
                break
            messages.append((kind, bytes(self._held[MESSAGE_HEAD:size]) if is_read else b""))
            self._skips = max(0, size - len(self._held))
            del self._held[:size]
        return messages


class TlsConnection:
    """Decrypt one connection, piece by piece, from the streams of both endpoints.

    ``reason`` explains why the connection, or the rest of it, is not decrypted. Once it is set, no
    more data is returned. ``has_opened`` is true if at least one record was decrypted. ``ending``
    is the first alert that was decrypted.
    """

    def __init__(self, keys: KeyLog) -> None:
        self.reason: str | None = None
        self._keys = keys
        self._ends: dict[Direction, RecordStream] = {
            "request": RecordStream(),
            "response": RecordStream(),
        }
        self._messages: dict[Direction, _HandshakeMessages] = {
            "request": _HandshakeMessages(),
            "response": _HandshakeMessages(),
        }
        self.ending: TlsClosure | None = None
        self._ended: set[Direction] = set()
        # In TLS 1.2, the endpoints that have switched to encryption.
        self._ciphered: set[Direction] = set()
        self._client: Hello | None = None
        self._server: Hello | None = None

    @property
    def has_opened(self) -> bool:
        """True if at least one record was decrypted."""
        return any(end.has_opened for end in self._ends.values())

    @property
    def unread(self) -> int:
        """The number of TLS bytes after the last decrypted record, whether captured or lost."""
        return sum(end.unread for end in self._ends.values() if end.has_opened)

    def feed(self, end: Direction, data: bytes, timestamp_us: int) -> list[Plaintext]:
        """Process the next bytes from an endpoint.

        Return the data from either endpoint that can now be decrypted.
        """
        if self.reason is not None or end in self._ended:
            return []
        plaintexts: list[Plaintext] = []
        try:
            self._ends[end].feed(data, timestamp_us)
            self._read_all(end, plaintexts)
        except BrokenError as broken:
            self.reason = str(broken)
        return plaintexts

    def miss(self, end: Direction, size: int) -> None:
        """Record how many bytes from an endpoint are missing from the capture."""
        if self.reason is not None or end in self._ended:
            return
        if self._hello_of(end) is None:
            self.reason = NOT_WHOLE
            return
        self._ends[end].miss(size)

    def why_not(self) -> str:
        """Return why no record was decrypted on a connection that has ended."""
        if self.reason is not None:
            return self.reason
        return NOT_WHOLE if self._server is None else NOTHING

    @property
    def _version(self) -> int | None:
        return None if self._server is None else self._server.version

    def _hello_of(self, end: Direction) -> Hello | None:
        return self._client if end == "request" else self._server

    def _read_all(self, first: Direction, plaintexts: list[Plaintext]) -> None:
        others: list[Direction] = ["response" if first == "request" else "request"]
        self._read(first, plaintexts)
        # The ServerHello may be needed to decrypt client data that was captured before it.
        for other in others:
            self._read(other, plaintexts)

    def _read(self, end: Direction, plaintexts: list[Plaintext]) -> None:
        side = self._ends[end]
        while end not in self._ended:
            if not self._is_sealed(end):
                if self._waits(end) or (record := side.plain()) is None:
                    return
                self._take_plain(end, record)
                continue
            if side.opener is None:
                return
            opened = side.open(skips=self._version == TLS_1_3)
            if opened is None:
                return
            if self._version == TLS_1_2:
                # The record that announces these keys may have been lost.
                self._ciphered.add(end)
            self._take_opened(end, opened, plaintexts)

    def _is_sealed(self, end: Direction) -> bool:
        side = self._ends[end]
        if side.is_seeking or end in self._ciphered:
            return True
        return self._version != TLS_1_2 and side.next_kind() == APPLICATION

    def _waits(self, end: Direction) -> bool:
        """Return whether the type of the next record depends on the ServerHello."""
        is_change = self._ends[end].next_kind() == CHANGE_CIPHER
        return is_change and self._server is None and end == "request"

    def _take_plain(self, end: Direction, record: TlsRecord) -> None:
        kind = record.header[0]
        if kind == CHANGE_CIPHER and self._version == TLS_1_2:
            self._ciphered.add(end)
        elif kind == ALERT and self._version == TLS_1_2:
            raise BrokenError("the connection ended during the handshake")
        elif kind == HANDSHAKE:
            for number, body in self._messages[end].feed(record.fragment):
                self._take_hello(end, number, body)
        elif kind == APPLICATION:
            raise BrokenError("the connection's data is not encrypted")

    def _take_hello(self, end: Direction, number: int, body: bytes) -> None:
        if number == CLIENT_HELLO and end == "request":
            self._client = parse_client_hello(body)
            if self._client is None:
                raise BrokenError("the ClientHello cannot be read")
        elif number == SERVER_HELLO and end == "response" and self._server is None:
            hello = parse_server_hello(body)
            if hello is None:
                raise BrokenError("the ServerHello cannot be read")
            # The version and the suite are final, even if this message requests another
            # ClientHello.
            self._server = hello
            self._begin(hello)

    def _begin(self, server: Hello) -> None:
        """Derive the keys of both endpoints."""
        client = self._client
        if client is None:
            raise BrokenError(NOT_WHOLE)
        suites = SUITES.get(server.version)
        if suites is None:
            name = VERSION_NAMES.get(server.version, f"version {server.version:#06x}")
            raise BrokenError(f"{name} is not supported; only TLS 1.2 and 1.3 are decrypted")
        suite = suites.get(server.suite)
        if suite is None:
            raise BrokenError(f"the cipher suite {server.suite:#06x} is not supported")
        if client.has_early_data:
            raise BrokenError(
                "the connection begins with early data (0-RTT), which is not decrypted"
            )
        near, far = self._ends["request"], self._ends["response"]
        if server.version == TLS_1_2:
            master = self._keys.master(client.random, server.session)
            if master is None:
                raise BrokenError(NO_SECRET)
            near.opener, far.opener = derive_keys_12(suite, master, client.random, server.random)
            return
        secrets = self._keys.secrets_of(client.random)
        if CLIENT not in secrets or SERVER not in secrets:
            raise BrokenError(NO_SECRET)
        near.opener = RecordKeys13(suite, secrets[CLIENT])
        far.opener = RecordKeys13(suite, secrets[SERVER])

    def _take_alert(self, end: Direction, opened: OpenedRecord) -> None:
        """Process an alert. The endpoint is closing or has failed, and sends nothing more."""
        self._ended.add(end)
        ending = TlsClosure(end, opened.timestamp_us, opened.content[1:] == _CLOSE_NOTIFY)
        if self.ending is None or ending.timestamp_us < self.ending.timestamp_us:
            self.ending = ending

    def _take_opened(
        self, end: Direction, opened: OpenedRecord, plaintexts: list[Plaintext]
    ) -> None:
        if opened.lost:
            self._messages[end] = _HandshakeMessages()
        if opened.kind == APPLICATION:
            if opened.content or opened.lost:
                plaintexts.append(Plaintext(end, opened.content, opened.timestamp_us, opened.lost))
            return
        if opened.lost:
            plaintexts.append(Plaintext(end, b"", opened.timestamp_us, opened.lost))
        if opened.kind == ALERT:
            self._take_alert(end, opened)
        elif opened.kind == HANDSHAKE:
            for number, _ in self._messages[end].feed(opened.content):
                if number == _KEY_UPDATE and self._version == TLS_1_3:
                    self._ends[end].change_keys()
                elif number in {CLIENT_HELLO, _HELLO_REQUEST}:
                    raise BrokenError(RENEGOTIATED)
