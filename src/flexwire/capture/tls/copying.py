"""Packets of a capture written as they are, beside those that are opened."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Self

from flexwire.capture.files.pcapng import block, option
from flexwire.errors import CaptureError
from flexwire.kernels.capture.packets_layout import (
    ENHANCED_PACKET,
    INTERFACE,
    OPTION_COMMENT,
    SECTION,
)
from flexwire.storage.local import create_private_file

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path
    from types import TracebackType

    from flexwire.capture.files.model import CapturedPacket

_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_UNKNOWN_LENGTH: Final = 0xFFFFFFFFFFFFFFFF
_WRITTEN_AT_ONCE: Final = 1024 * 1024


class PacketCopier:
    """A pcapng file with packets of any links; it is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packets = 0
        self._file: FileIO | None = None
        self._links: dict[int, int] = {}
        self._waiting = bytearray()

    def copy(self, packet: CapturedPacket) -> None:
        """Write a packet, with its time, its length on the network and its comments."""
        if not self.packets:
            fields = struct.pack("<IHHQ", _BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
            self._waiting += block(SECTION, fields)
        number = self._links.get(packet.linktype)
        if number is None:
            number = self._links[packet.linktype] = len(self._links)
            # Times are in microseconds where nothing else is said.
            self._waiting += block(INTERFACE, struct.pack("<HHI", packet.linktype, 0, 0))
        time, data = packet.timestamp_us, packet.data
        head = struct.pack(
            "<5I", number, time >> 32, time & 0xFFFFFFFF, len(data), packet.original_length
        )
        said = b"".join(option(OPTION_COMMENT, one) for one in packet.comments)
        if said:
            said += option(0, b"")
        self._waiting += block(ENHANCED_PACKET, head + data + bytes(-len(data) % 4) + said)
        self.packets += 1
        if len(self._waiting) >= _WRITTEN_AT_ONCE:
            self._write()

    def close(self) -> None:
        """Write what waits, and close the file."""
        if self._waiting:
            self._write()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
