"""One direction of a TLS connection: convert bytes to records, even after bytes were lost.

Records are numbered, but the numbers are not transmitted. After a gap, the next record is found by
trying the possible places and numbers. A record is authenticated, so a record that can be decrypted
is the right one. The record's number shows how many records, and thus how much content, were lost.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.tls.keys import APPLICATION, HANDSHAKE, HEADER_BYTES, TAG_BYTES

if TYPE_CHECKING:
    from flexwire.capture.tls.keys import RecordKeys

CHANGE_CIPHER: Final = 20
ALERT: Final = 21
_TYPES: Final = (CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION)
MOST_FRAGMENT: Final = 16384 + 2048  # The limit in TLS 1.2, which is higher than in TLS 1.3.
MOST_HELD: Final = 4 * 1024 * 1024
"""The largest number of bytes that wait until the other direction reveals which keys to use."""
MOST_TRIES: Final = 20_000
"""The largest number of combinations that are tried in order to find a record after a gap."""
_MOST_NUMBERS: Final = 1024  # For each place at which a record may begin.
_MOST_OTHERS: Final = 64
"""The largest number of handshake records that are skipped before the first record that can be
decrypted.
"""

DOES_NOT_FIT: Final = "the secret in the key logs does not decrypt any record of the connection"


class BrokenError(Exception):
    """The reason why the rest of a direction cannot be read."""


class TlsRecord(NamedTuple):
    """A record as it was sent, and the time at which its last byte was captured."""

    header: bytes
    fragment: bytes
    timestamp_us: int

    @property
    def size(self) -> int:
        """The number of bytes on the wire."""
        return HEADER_BYTES + len(self.fragment)


class OpenedRecord(NamedTuple):
    """A record's content, and the number of ``lost`` content bytes before it."""

    kind: int
    content: bytes
    timestamp_us: int
    lost: int = 0


class RecordStream:
    """The records that one endpoint sent.

    `feed` and `miss` add bytes, and `plain` and `open` return records.
    """

    def __init__(self) -> None:
        self.opener: RecordKeys | None = None
        self.is_seeking = False  # True after a gap.
        self.has_opened = False
        self.unread = 0  # The number of bytes after the last decrypted record.
        self._held = bytearray()
        # The last byte that was processed, and its time.
        self._times: deque[tuple[int, int]] = deque()
        self._position = 0  # The position of the first held byte.
        self._sequence = 0
        self._tries = self._others = 0

    def feed(self, data: bytes, timestamp_us: int) -> None:
        """Add the next bytes."""
        self._held += data
        self.unread += len(data)
        self._times.append((self._position + len(self._held), timestamp_us))
        if len(self._held) > MOST_HELD:
            raise BrokenError(f"the keys are still unknown after {MOST_HELD >> 20} MiB of data")

    def miss(self, size: int) -> None:
        """Record how many bytes are missing here."""
        self.is_seeking = True
        self.unread += size
        # The held bytes are the beginning of a record whose end is lost.
        self._drop(len(self._held))
        self._position += size

    def plain(self) -> TlsRecord | None:
        """Return the next record without decrypting it, or None if it is incomplete."""
        record = self._peek(0)
        if record is not None:
            self._drop(record.size)
            self.unread -= record.size
        return record

    def next_kind(self) -> int | None:
        """Return the type of the record that begins here, or None if none does."""
        return self._held[0] if self._held else None

    def open(self, *, skips: bool) -> OpenedRecord | None:
        """Return the next record, decrypted, or None if it is incomplete.

        If ``skips`` is true, records encrypted with other keys may precede the first record that
        can be decrypted.
        """
        while True:
            opened = self._seek() if self.is_seeking else self._open_next(skips=skips)
            if opened is not None or self.is_seeking or self._peek(0) is None:
                return opened

    def change_keys(self) -> None:
        """Use the next keys for all later records."""
        assert self.opener is not None  # noqa: S101 - the data that led to this call was decrypted
        self.opener = self.opener.next()
        self._sequence = 0

    def _open_next(self, *, skips: bool) -> OpenedRecord | None:
        assert self.opener is not None  # noqa: S101 - the keys exist by now
        record = self._peek(0)
        if record is None:
            return None
        opened = self.opener.open(self._sequence, record.header, record.fragment)
        self._drop(record.size)
        if opened is not None:
            self.unread = len(self._held)
            return self._found(opened, record, 0)
        if record.header[0] == CHANGE_CIPHER and skips:
            return None
        if self.has_opened:
            raise BrokenError("a record could not be decrypted, although earlier ones could")
        self._others += 1
        if not skips or self._others > _MOST_OTHERS:
            raise BrokenError(DOES_NOT_FIT)
        return None

    def _seek(self) -> OpenedRecord | None:
        """Return the first record after a gap, wherever it begins."""
        place = 0
        while place + HEADER_BYTES <= len(self._held):
            kind, major, minor = self._held[place], self._held[place + 1], self._held[place + 2]
            size = int.from_bytes(self._held[place + 3 : place + HEADER_BYTES])
            may_begin = kind in _TYPES and (major, minor) == (3, 3)
            if not may_begin or not TAG_BYTES < size <= MOST_FRAGMENT:
                place += 1
                continue
            if place + HEADER_BYTES + size > len(self._held):
                break
            record = self._record(place, size)
            guess = self._guess(record, place)
            if guess is not None:
                self.is_seeking = False
                self._drop(place + record.size)
                self.unread = len(self._held)
                return guess
            place += 1
        self._drop(place)
        return None

    def _guess(self, record: TlsRecord, place: int) -> OpenedRecord | None:
        """Return the record if it can be decrypted with one of its possible numbers."""
        assert self.opener is not None  # noqa: S101 - the keys exist by now
        gone = self.unread - len(self._held) + place
        after = self.opener.next()
        before = self._sequence
        for opener, first in ((self.opener, before), (after, 0)):
            if opener is None:
                continue
            # The shortest record is an empty one.
            most = min(gone // opener.overhead + 1, _MOST_NUMBERS)
            for sequence in range(first, first + most):
                self._try()
                opened = opener.open(sequence, record.header, record.fragment)
                if opened is not None:
                    # It is not known how many records use other keys.
                    count = sequence - before if opener is self.opener else sequence + 1
                    none = 0 if self.has_opened else opener.finished
                    lost = max(gone - count * opener.overhead, 0) if count > none else 0
                    self.opener, self._sequence = opener, sequence
                    return self._found(opened, record, lost)
        return None

    def _found(self, opened: tuple[int, bytes], record: TlsRecord, lost: int) -> OpenedRecord:
        self.has_opened = True
        self._sequence += 1
        self._tries = 0
        return OpenedRecord(*opened, record.timestamp_us, lost)

    def _try(self) -> None:
        self._tries += 1
        if self._tries > MOST_TRIES:
            raise BrokenError("no TLS record was found after a gap in the capture")

    def _peek(self, place: int) -> TlsRecord | None:
        if len(self._held) < place + HEADER_BYTES:
            return None
        kind, major = self._held[place], self._held[place + 1]
        size = int.from_bytes(self._held[place + 3 : place + HEADER_BYTES])
        if kind not in _TYPES or major != 3 or size > MOST_FRAGMENT:  # noqa: PLR2004 - all versions
            raise BrokenError("expected the start of a TLS record, got other bytes")
        if len(self._held) < place + HEADER_BYTES + size:
            return None
        return self._record(place, size)

    def _record(self, place: int, size: int) -> TlsRecord:
        start = place + HEADER_BYTES
        last = self._position + start + size
        time = next((time for end, time in self._times if end >= last), 0)
        return TlsRecord(
            bytes(self._held[place:start]), bytes(self._held[start : start + size]), time
        )

    def _drop(self, size: int) -> None:
        del self._held[:size]
        self._position += size
        while self._times and self._times[0][0] <= self._position:
            self._times.popleft()
