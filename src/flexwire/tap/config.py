"""The configuration of a tap, from the command line to its processes.

Each option is declared only here.

A field declares its type and its default, and an `Option` if one command-line option sets the
field. If several options set a field together, as for ``security``, `flexwire.cli.tap` declares
these options.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import refuse, to_int
from flexwire.errors import ArgumentError
from flexwire.tap.limits import MOST_HELD

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.capture.files.retention import KeepLimit
    from flexwire.client.notation import HostPort
    from flexwire.tap.fault_rules import FaultPlan
    from flexwire.tap.header_stamps import StampConfig
    from flexwire.tap.listeners import PortRange
    from flexwire.tap.rehearsal import RehearsalPlan
    from flexwire.tap.security import TapSecurity

MIB: Final = 1024 * 1024
DEFAULT_FILE_BYTES: Final = 64 * MIB
MOST_PROCESSES: Final = 64


@dataclass(frozen=True, slots=True)
class Option:
    """How a field appears on the command line.

    ``least`` and ``most`` are the limits of a number. If ``open`` is true, ``least`` itself is
    excluded. The value of the field is the number multiplied by ``unit``. The option has the same
    default as the field. The help text shows the default if it is a number.
    """

    flag: str
    help: str
    least: int | None = None
    most: int | None = None
    is_open: bool = False
    unit: int = 1


def _told(default: Any, flag: str, help: str, **how: Any) -> Any:  # noqa: A002 - click uses this name
    """Return a field that a command-line option sets."""
    return field(default=default, metadata={"option": Option(flag, help, **how)})


def check_share(share: float) -> float:
    """Return a share of connections. Raises `ArgumentError` unless it is above 0 and at most 1."""
    if not 0 < share <= 1:
        raise ArgumentError(f"expected a share above 0 and at most 1, got {share}")
    return share


# The command line reads this file to show its help. The file therefore loads no other part of the
# tap.
def _everything_kept() -> KeepLimit:
    from flexwire.capture.files.retention import NO_LIMIT  # noqa: PLC0415 - loaded only if needed

    return NO_LIMIT


def _all_frames() -> CaptureFilter:
    from flexwire.capture.files.comments import ALL_FRAMES  # noqa: PLC0415 - loaded only if needed

    return ALL_FRAMES


def _sent_frame_limit() -> int:
    from flexwire.protocol import SENT_FRAME_LIMIT  # noqa: PLC0415 - loaded only if needed

    return SENT_FRAME_LIMIT


def _no_tls() -> TapSecurity:
    from flexwire.tap.security import PLAIN  # noqa: PLC0415 - loaded only if needed

    return PLAIN


@dataclass(frozen=True, slots=True)
class TapConfig:
    """The configuration of `flexwire.tap.Tap`. `Tap` explains each option.

    Raises `ArgumentError` for a number that is out of range.
    """

    listen: HostPort
    upstream: HostPort
    out: Path
    _: KW_ONLY
    advertised_host: str | None = _told(
        None,
        "--advertised-host",
        "The host name that clients use to reach the tap.  "
        "[default: the name or address that the client used, or the host of --listen]",
    )
    keep_addresses: bool = _told(
        False,
        "--keep-addresses",
        "Do not rewrite the addresses that brokers advertise. Use this option if each broker has "
        "its own tap with the broker's name and port.",
    )
    max_bytes: int = _told(
        DEFAULT_FILE_BYTES,
        "--rotate",
        "Start a new file after this many MiB. SIGHUP starts a new file at once.",
        least=1,
        unit=MIB,
    )
    keep: KeepLimit = field(default_factory=_everything_kept)
    sample: float = _told(
        1.0,
        "--sample",
        "Capture this share of the connections. A connection is captured completely or not at "
        "all. The tap forwards all connections. The capture and its reports state the share.",
        least=0,
        most=1,
        is_open=True,
    )
    processes: int = _told(
        1,
        "--processes",
        "Spread the connections over this many processes, to use that many cores. --keep-mib, "
        "--keep-files and --metrics count all processes together.",
        least=1,
        most=MOST_PROCESSES,
    )
    live: str | None = _told(
        None,
        "--live",
        "Send the growing capture to readers of this Unix socket, for example flexwire who. Only "
        "this user on this machine can read from the socket.",
    )
    most_held: int = _told(
        MOST_HELD,
        "--hold-mib",
        "Hold at most this many MiB of unfinished frames, across all connections. Beyond this "
        "limit, frames still pass, but the capture contains only their beginnings. The tap counts "
        "these frames.",
        least=1,
        unit=MIB,
    )
    only: CaptureFilter = field(default_factory=_all_frames)
    ports: PortRange | None = None
    security: TapSecurity = field(default_factory=_no_tls)
    stamping: StampConfig | None = None
    rehearsal: RehearsalPlan | None = None
    faults: FaultPlan | None = None
    prefix: str = "tap"
    frame_limit: int = field(default_factory=_sent_frame_limit)

    def __post_init__(self) -> None:
        to_int(self.most_held, "most_held", least=1)
        to_int(self.processes, "processes", least=1)
        check_share(self.sample)
        if self.live is not None and self.processes > 1:
            raise refuse(
                "processes",
                "1, because --live sends the capture of a single process",
                self.processes,
            )
        if self.rehearsal is not None and self.stamping is not None:
            raise ArgumentError("expected either a rehearsal or header tags, got both")
        if self.faults is None:
            return
        if self.faults.faults and (self.stamping is not None or self.rehearsal is not None):
            raise ArgumentError("faults cannot be combined with a rehearsal or header tags")
        if self.processes > 1:
            raise refuse(
                "processes", "1, because faults are counted in one process", self.processes
            )
