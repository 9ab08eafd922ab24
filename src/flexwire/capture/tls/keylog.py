"""Key logs: the secrets of TLS connections, in the NSS format that clients and brokers write.

Secrets are looked up by the random in a connection's ClientHello, and are never shown.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

RANDOM_BYTES: Final = 32
MASTER: Final = "CLIENT_RANDOM"
CLIENT: Final = "CLIENT_TRAFFIC_SECRET_0"
SERVER: Final = "SERVER_TRAFFIC_SECRET_0"
# The possible sizes of each label's secret: the size of a TLS 1.2 master secret, or of a hash.
_SIZES: Final = {MASTER: (48,), CLIENT: (32, 48), SERVER: (32, 48)}
# Other labels that occur in key logs. These secrets are not needed, because the records themselves
# reveal which key is correct.
_OTHERS: Final = frozenset(
    {
        "CLIENT_EARLY_TRAFFIC_SECRET",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "EARLY_EXPORTER_SECRET",
        "ECH_CONFIG",
        "ECH_SECRET",
        "EXPORTER_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    }
)
# The format that a Java agent writes for TLS 1.2: a master secret, and the id of its session.
_BY_SESSION: Final = "RSA"
_SESSION, _KEY = "Session-ID:", "Master-Key:"
# The start of a decryption secrets block in pcapng: the type "TLS key log", and the size of the
# log.
_SECRETS_BLOCK_HEAD: Final = 8
_TLS_KEY_LOG: Final = 0x544C534B
_PARTS: Final = 3


@dataclass(slots=True)
class KeyLog:
    """The secrets of connections, looked up by the ClientHello's random or by the session id.

    ``connections`` is the number of connections with secrets. ``strange_lines`` is the number of
    lines that do not belong in a key log.
    """

    strange_lines: int = 0
    _secrets: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False)
    _masters: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    @property
    def connections(self) -> int:
        """The number of connections with secrets."""
        return len(self._secrets) + len(self._masters)

    def may_open(self, random: bytes) -> bool:
        """Return whether there are secrets for a connection, or for a session that it may use."""
        return bool(self._masters) or random in self._secrets

    def master(self, random: bytes, session: bytes) -> bytes | None:
        """Return the master secret of a TLS 1.2 connection."""
        own = self.secrets_of(random).get(MASTER)
        return self._masters.get(session) if own is None else own

    def secrets_of(self, random: bytes) -> dict[str, bytes]:
        """Return a connection's secrets by label.

        If the logs contain none, the result is empty.
        """
        return self._secrets.get(random, {})

    def add_file(self, path: Path) -> None:
        """Add a key log. Raises `CaptureError` if the log cannot be read or contains no secrets."""
        before, added = self.strange_lines, 0
        try:
            with path.open("rb") as file:
                for line in file:
                    added += self._add_line(line)
        except OSError as error:
            reason = f"cannot read the key log: {error.strerror or error}"
            raise CaptureError(reason, source=str(path)) from error
        if not added and self.strange_lines > before:
            raise CaptureError(
                "expected key log lines, such as CLIENT_RANDOM or CLIENT_TRAFFIC_SECRET_0",
                source=str(path),
            )

    def add(self, text: bytes) -> None:
        """Add the secrets in a key log's text."""
        for line in text.splitlines():
            self._add_line(line)

    def add_block(self, body: bytes, order: str) -> None:
        """Add the secrets in the body of a decryption secrets block.

        Other kinds of secrets are ignored.
        """
        if len(body) < _SECRETS_BLOCK_HEAD:
            return
        kind, size = struct.unpack_from(f"{order}II", body)
        if kind == _TLS_KEY_LOG:
            self.add(body[_SECRETS_BLOCK_HEAD : _SECRETS_BLOCK_HEAD + size])

    def _add_line(self, line: bytes) -> bool:
        """Add a line. Return whether the line belongs in a key log and is not a comment."""
        words = line.split()
        if not words or words[0].startswith(b"#"):
            return False
        label = words[0].decode("ascii", "replace")
        if label in _OTHERS:
            return True
        if label == _BY_SESSION:
            # NSS also defines lines that are identified by an encrypted secret. Such lines are
            # ignored.
            is_ours = words[1:] and words[1].startswith(_SESSION.encode())
            return self._add_session(words) if is_ours else True
        try:
            random, secret = bytes.fromhex(words[1].decode()), bytes.fromhex(words[2].decode())
        except (IndexError, ValueError):
            self.strange_lines += 1
            return False
        is_right = len(words) == _PARTS and len(random) == RANDOM_BYTES
        if not is_right or len(secret) not in _SIZES.get(label, ()):
            self.strange_lines += 1
            return False
        self._secrets.setdefault(random, {})[label] = secret
        return True

    def _add_session(self, words: list[bytes]) -> bool:
        try:
            session, master = (
                bytes.fromhex(word.decode().removeprefix(name))
                for word, name in zip(words[1:], (_SESSION, _KEY), strict=True)
            )
        except ValueError:
            session = master = b""
        if not session or len(master) not in _SIZES[MASTER]:
            self.strange_lines += 1
            return False
        self._masters[session] = master
        return True
