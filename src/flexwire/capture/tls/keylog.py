"""Key logs: the secrets of TLS connections, in NSS format, as clients and brokers log them.

Secrets are looked up by the random of a connection's ClientHello and never shown.
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
# The possible secret sizes of each label: TLS 1.2's master secret, or a hash.
_SIZES: Final = {MASTER: (48,), CLIENT: (32, 48), SERVER: (32, 48)}
# Other labels that logs contain but that are not needed: records show by themselves which key fits.
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
# The line of Java's agent for TLS 1.2: a master secret by the id of the session.
_BY_SESSION: Final = "RSA"
_SESSION, _KEY = "Session-ID:", "Master-Key:"
# A decryption secrets block of pcapng: the type "TLS key log", and the size of the log.
_SECRETS_BLOCK_HEAD: Final = 8
_TLS_KEY_LOG: Final = 0x544C534B
_PARTS: Final = 3


@dataclass(slots=True)
class KeyLog:
    """The secrets of connections, by the random of their ClientHello, or by their session's id.

    ``connections`` is the number of connections with secrets. ``strange_lines`` counts lines that
    do not belong in a key log.
    """

    strange_lines: int = 0
    _secrets: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False)
    _masters: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    @property
    def connections(self) -> int:
        """The number of connections with secrets."""
        return len(self._secrets) + len(self._masters)

    def may_open(self, random: bytes) -> bool:
        """Return whether there are secrets of a connection, or of its possible sessions."""
        return bool(self._masters) or random in self._secrets

    def master(self, random: bytes, session: bytes) -> bytes | None:
        """Return the master secret of a TLS 1.2 connection."""
        own = self.secrets_of(random).get(MASTER)
        return self._masters.get(session) if own is None else own

    def secrets_of(self, random: bytes) -> dict[str, bytes]:
        """Return the secrets of a connection by their label; none if the logs have none."""
        return self._secrets.get(random, {})

    def add_file(self, path: Path) -> None:
        """Add a key log; `CaptureError` for one that cannot be read, or holds no secret."""
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
                "it has no line of a key log, such as CLIENT_RANDOM or CLIENT_TRAFFIC_SECRET_0",
                source=str(path),
            )

    def add(self, text: bytes) -> None:
        """Take in the text of a key log."""
        for line in text.splitlines():
            self._add_line(line)

    def add_block(self, body: bytes, order: str) -> None:
        """Take in the body of a pcapng's decryption secrets block; other kinds are ignored."""
        if len(body) < _SECRETS_BLOCK_HEAD:
            return
        kind, size = struct.unpack_from(f"{order}II", body)
        if kind == _TLS_KEY_LOG:
            self.add(body[_SECRETS_BLOCK_HEAD : _SECRETS_BLOCK_HEAD + size])

    def _add_line(self, line: bytes) -> bool:
        """Add a line; return whether it belongs to a key log and is not a comment."""
        words = line.split()
        if not words or words[0].startswith(b"#"):
            return False
        label = words[0].decode("ascii", "replace")
        if label in _OTHERS:
            return True
        if label == _BY_SESSION:
            # NSS's lines by an encrypted secret are not used.
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
