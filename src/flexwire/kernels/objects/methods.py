"""A class's method for all its versions as one C function: it finds the version's program itself.

Python's own method takes longer to find it than a small message takes to be decoded.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

from flexwire.kernels.objects import layout as L  # noqa: N812 - a word in front of some few
from flexwire.kernels.objects.functions import c_function, in_order

if TYPE_CHECKING:
    from collections.abc import Callable

# Messages have some twenty; of more, the fallback knows.
_VERSIONS = 64
# As Python shows the signature of what is written in C.
_DOC = """decode(data, version, *, lenient=False, encoding=...)
--

{}"""


class VersionMethod:
    """The C function that decodes any version that it was given, and its table of versions."""

    def __init__(self, kernel: int, fallback: Callable[..., Any]) -> None:
        self._versions = (ctypes.c_int64 * _VERSIONS)()
        self._kept: list[object] = [fallback, sys.intern("version")]
        words = {
            L.V_VERSIONS: ctypes.addressof(self._versions),
            L.V_COUNT: _VERSIONS,
            L.V_NAME: id(self._kept[1]),
            L.V_FALLBACK: id(fallback),
            L.V_INT: id(int),
            L.V_EXCEPTION: id(Exception),
        }
        self._words = (ctypes.c_int64 * (L.METHOD // 8))(*in_order(words, L.METHOD))
        shared = ctypes.addressof(self._words)
        doc = _DOC.format(fallback.__doc__)
        self.function = c_function(kernel, "decode", shared, self, doc)

    def add(self, version: int, shared: int, keeps: object) -> None:
        """Have it decode a version, whose calls share the words at an address."""
        self._kept.append(keeps)
        if version < _VERSIONS:
            self._versions[version] = shared
