"""Make directories that even root cannot write to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# The capabilities that let root ignore file modes, by their numbers in capability.h.
_PASSES_MODES = (1 << 1) | (1 << 2)
_VERSION_3 = 0x20080522
_HEAD, _DATA = struct.Struct("=Ii"), struct.Struct("=6I")


@contextlib.contextmanager
def obeying_modes() -> Iterator[None]:
    """Make this thread respect the modes of files, even as root.

    Tests that use this need the marker ``own_process``.
    """
    if os.geteuid() != 0:
        yield
        return
    head = ctypes.create_string_buffer(_HEAD.pack(_VERSION_3, 0))
    data = ctypes.create_string_buffer(_DATA.size)
    system = ctypes.CDLL(None, use_errno=True)
    assert system.capget(head, data) == 0, os.strerror(ctypes.get_errno())
    before = data.raw[: _DATA.size]
    effective, *others = _DATA.unpack(before)
    less = _DATA.pack(effective & ~_PASSES_MODES, *others)
    assert system.capset(head, ctypes.create_string_buffer(less)) == 0
    try:
        yield
    finally:
        assert system.capset(head, ctypes.create_string_buffer(before)) == 0
