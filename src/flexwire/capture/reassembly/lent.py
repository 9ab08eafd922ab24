"""A connection that goes on as it should, lent to whoever takes its segments faster.

While nothing is missing or out of order, all that an assembler does with a segment is to count it,
and to cut its bytes into frames but for those that came before. `FrameAssembler.lend` then says
where both ends stand. Who takes segments from there on may take only such as bring the next bytes
of their end, or none, and says with `Taken` what became of them before the assembler is given
another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flexwire.kernels.capture.framing_layout import FRAMES
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence


class Standing(NamedTuple):
    """Where one end of a connection stands.

    ``sequence`` is the number of its next byte, beyond which nothing was acknowledged. ``held`` are
    the bytes of a frame that is not whole yet, its length before them, seen from ``first_us`` to
    ``last_us``. ``next_index`` is that of its next frame. So many bytes ``before`` the next one are
    repeated if they come again; of earlier ones the assembler has to say what they are.

    Where no frame is known to begin, nothing is held, and ``seeks`` says which payloads surely
    begin none (`flexwire.kernels.capture.framing_layout`); these alone may be taken.

    At most ``room`` bytes may be taken: those that follow could be of an earlier connection on the
    same ports.
    """

    sequence: int
    held: bytes
    first_us: int
    last_us: int
    next_index: int
    before: int = 0
    seeks: int = FRAMES
    room: int = INT64_MAX


@dataclass(frozen=True, slots=True)
class Lent:
    """A connection, and where the ends stand that send requests and responses."""

    connection: str
    client: str
    request: Standing
    response: Standing


class Went(NamedTuple):
    """How far one end has come since it was lent.

    ``size`` bytes were taken. Of these the ``frames`` have ``sizes`` in all, the latest a
    ``length``; what remains is ``held``, as in `Standing`. So many bytes were ``repeated``. Of an
    end that seeks a frame ``first_us`` and ``last_us`` are when any of these bytes were seen.
    """

    size: int
    held: bytes
    first_us: int
    last_us: int
    frames: int
    sizes: int
    length: int
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a connection since it was lent.

    ``segments`` with ``captured`` bytes were taken, the last at ``time_us``; ``is_marked``: the
    capture said of one that a frame begins with it. ``noted`` are the last frames, each whether it
    is a request and its correlation id.
    """

    segments: int
    captured: int
    time_us: int
    is_marked: bool
    noted: Sequence[tuple[bool, int]]
    request: Went
    response: Went
