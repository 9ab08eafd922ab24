"""What one task leaves for another is compressed, quickly.

It is written and read once. Of small messages, whose tables have nine bytes a frame, the files
between the tasks of an analysis were larger than the tables.
"""

from __future__ import annotations

from typing import Final

from cramjam import zstd

_QUICKLY: Final = 1  # a level of zstd


def squeezed(data: bytes) -> bytes:
    """Compress what is left for another task."""
    return bytes(zstd.compress(data, _QUICKLY))


def unsqueezed(data: bytes) -> bytes:
    """Give it as it was."""
    return bytes(zstd.decompress(data))
