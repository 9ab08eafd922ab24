"""Rewrite captures that contain TLS: decrypted connections become plain TCP, all else is copied.

A decrypted connection keeps its endpoints and the time of each record's last byte, but contains no
TLS bytes. Bytes that are missing from the capture are also missing from the result, if the TLS
records show how many there are.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.merged_packets import read_merged_packets
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.files.pcapng import PcapngWriter, block, option
from flexwire.capture.reassembly.assembly import WHOLE, ConnectionShare, connection_key
from flexwire.capture.tls.connections import EndPair, TlsCounts
from flexwire.capture.tls.keylog import KeyLog
from flexwire.capture.tls.keys import load_primitives
from flexwire.closeable import Closeable
from flexwire.errors import CaptureError
from flexwire.storage.local import create_private_file, make_private_directory
from flexwire.wire.packet_layout import (
    ENHANCED_PACKET,
    INTERFACE,
    OPTION_COMMENT,
    SECTION,
)

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Sequence
    from io import FileIO

    from flexwire.capture.files.packets import CapturedPacket
    from flexwire.capture.files.pcapng import TappedConnection
    from flexwire.capture.files.reading import Opener
    from flexwire.storage.input_file import InputFile


_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_UNKNOWN_LENGTH: Final = 0xFFFFFFFFFFFFFFFF
_SEQUENCES: Final = struct.Struct(">II")
_WRITTEN_AT_ONCE: Final = 1024 * 1024


class PacketCopier(Closeable):
    """A pcapng file with packets of any link type.

    The file is created when its first packet is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packets = 0
        self._file: FileIO | None = None
        self._links: dict[int, int] = {}
        self._waiting = bytearray()

    def copy(self, packet: CapturedPacket) -> None:
        """Write a packet with its time, its length on the network and its comments."""
        if not self.packets:
            fields = struct.pack("<IHHQ", _BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
            self._waiting += block(SECTION, fields)
        number = self._links.get(packet.linktype)
        if number is None:
            number = self._links[packet.linktype] = len(self._links)
            # Unless an option says otherwise, times are in microseconds.
            self._waiting += block(INTERFACE, struct.pack("<HHI", packet.linktype, 0, 0))
        time, data = packet.timestamp_us, packet.data
        head = struct.pack(
            "<5I", number, time >> 32, time & 0xFFFFFFFF, len(data), packet.original_length
        )
        said = b"".join(option(OPTION_COMMENT, comment) for comment in packet.comments)
        if said:
            said += option(0, b"")
        self._waiting += block(ENHANCED_PACKET, head + data + bytes(-len(data) % 4) + said)
        self.packets += 1
        if len(self._waiting) >= _WRITTEN_AT_ONCE:
            self._write()

    def close(self) -> None:
        """Write the waiting packets, and close the file."""
        if self._waiting:
            self._write()
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        try:
            if self._file is None:
                self._file = create_private_file(self.path)
            view = memoryview(bytes(self._waiting))
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            reason = f"cannot write: {error.strerror or error}"
            raise CaptureError(reason, source=str(self.path)) from error
        self._waiting.clear()


MOST_ENDS: Final = 16 * 1024
"""The largest number of endpoint pairs that may have open connections.

Beyond this number, the pair that has been idle the longest is closed.
"""
FILE_BYTES: Final = 1024 * 1024 * 1024
OTHERS: Final = "others.pcapng"
OPENED: Final = "opened"


@dataclass(frozen=True, slots=True)
class OpenedCaptures:
    """The files that were written, and the results for the connections."""

    paths: tuple[Path, ...]
    counts: TlsCounts


def open_captures(
    names: Iterable[str], directory: Path, keys: KeyLog, opener: Opener | None = None
) -> OpenedCaptures:
    """Rewrite captures into a ``directory`` that only its owner can read.

    The directory must be empty or missing. Files that overlap in time are merged by their clocks,
    because two hosts may have captured the same connection. The secrets in pcapng files are added
    to ``keys``. Raises `CaptureError` for a file that is not a capture, for a directory that is not
    empty, and if writing fails. Raises `TlsError` if the extra is not installed.
    """
    return _open_share(names, directory, keys, opener, WHOLE)


def _open_share(
    names: Iterable[str],
    directory: Path,
    keys: KeyLog,
    opener: Opener | None,
    share: ConnectionShare,
) -> OpenedCaptures:
    load_primitives()
    try:
        make_private_directory(directory)
        is_empty = next(directory.iterdir(), None) is None
    except OSError as error:
        reason = f"cannot create: {error.strerror or error}"
        raise CaptureError(reason, source=str(directory)) from error
    if not is_empty:
        raise CaptureError("expected a new or empty directory", source=str(directory))
    with _CaptureRewriter(directory, keys, share) as rewriting:
        for packet in read_merged_packets(names, opener, keys.add_block):
            rewriting.take(packet)
        rewriting.finish()
    return OpenedCaptures(rewriting.paths(), rewriting.counts)


class _CaptureRewriter(ExitStack):
    """Pass packets to their connections, and act as these connections' `PacketSink`."""

    def __init__(self, directory: Path, keys: KeyLog, share: ConnectionShare) -> None:
        super().__init__()
        self.counts = TlsCounts()
        self._share = share
        self._directory, self._keys = directory, keys
        self._ends: OrderedDict[str, EndPair] = OrderedDict()
        self._copier = self.enter_context(PacketCopier(directory / OTHERS))
        self._writer: PcapngWriter | None = None

    def take(self, packet: CapturedPacket | UnreadableBytes) -> None:
        """Process the next packet of a file."""
        if isinstance(packet, UnreadableBytes):
            if self._share.has_others:
                self.counts.damaged.append(packet)
            return
        self.counts.packets += self._share.has_others
        try:
            segment = read_segment(packet)
        except (Skipped, UnreadablePacketError):
            if self._share.has_others:
                self._copier.copy(packet)
            return
        key = connection_key(segment)
        if not self._share.has(key):
            return
        ends = self._ends.get(key)
        if ends is None:
            if len(self._ends) >= MOST_ENDS:
                self._ends.popitem(last=False)[1].finish()
            ends = self._ends[key] = EndPair(self._keys, self)
        else:
            self._ends.move_to_end(key)
        ends.take(packet, segment)

    def finish(self) -> None:
        """End all connections at the end of the captures."""
        for ends in self._ends.values():
            ends.finish()
        self._ends.clear()

    def paths(self) -> tuple[Path, ...]:
        """Return the files, which must already be closed."""
        copied = (self._copier.path,) if self._copier.packets else ()
        return (*(() if self._writer is None else self._writer.paths), *copied)

    def copy(self, packet: CapturedPacket) -> None:
        """Write a packet as it was captured, as `PacketSink` describes."""
        self._copier.copy(packet)

    def begin(self, client: str, server: str, timestamp_us: int) -> TappedConnection:
        """Begin a connection that is decrypted, as `PacketSink` describes."""
        if self._writer is None:
            writer = PcapngWriter(self._directory, prefix=OPENED, max_bytes=FILE_BYTES)
            self._writer = self.enter_context(writer)
        # The same captures always produce the same bytes, because Spark may run a task twice.
        digest = sha256(f"{client}>{server} {timestamp_us}".encode()).digest()
        return self._writer.open_connection(
            _end(client),
            _end(server),
            initial_sequences=_SEQUENCES.unpack_from(digest),
            timestamp_us=timestamp_us,
            has_frames=False,
        )


def _end(name: str) -> tuple[str, int]:
    host, _, port = name.rpartition(":")
    return host.strip("[]"), int(port)


EMBEDDED: Final = "embedded"
"""If this is given as a key log, no secrets other than those in pcapng files are used.

The secrets in pcapng files are always used.
"""


def read_key_logs(paths: Sequence[str]) -> KeyLog:
    """Return the secrets in key logs. Raises `CaptureError` for a file that is not a key log."""
    keys = KeyLog()
    for path in paths:
        if path != EMBEDDED:
            keys.add_file(Path(path))
    return keys


def open_sources(
    files: Sequence[InputFile], directory: Path, keys: KeyLog, share: ConnectionShare = WHOLE
) -> OpenedCaptures:
    """Rewrite captures into a ``directory``, as `flexwire.capture.tls.open_captures` does.

    Only the packets in a ``share`` are written and counted.
    """
    by_name = {file.name: file for file in files}

    def opener(name: str, start: int) -> io.BufferedReader:
        return by_name[name].open(start)

    return _open_share(list(by_name), directory, keys, opener, share)
