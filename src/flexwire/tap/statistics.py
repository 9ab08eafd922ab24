"""What a tap counts while it runs."""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.kept_files import KeptFiles


@dataclass(slots=True)
class TapStatistics:
    """Counts of one run of the tap, over all connections. Bytes include the frames' lengths."""

    connections: int = 0
    """Clients that connected."""
    open_connections: int = 0
    """Connections that are open now."""
    unreachable: int = 0
    """Connections closed at once, because their broker could not be reached."""
    tls: int = 0
    """Connections that began with a TLS ClientHello: passed on and captured, not readable."""
    not_tls: int = 0
    """Clients that spoke something else than TLS to a listener with TLS; closed."""
    handshakes_failed: int = 0
    """Clients whose TLS handshake failed or took too long; the log says why."""
    handshakes_left: int = 0
    """Clients that left before their TLS handshake was over, as health checks do."""
    broker_handshakes_failed: int = 0
    """Connections closed at once, because TLS with their broker could not be begun."""
    reset: int = 0
    """Connections that ended with a reset, from either side."""
    left_early: int = 0
    """Clients that ended their connection, as they may, while a response was on its way."""
    broken_off: int = 0
    """Frames of either direction that ended before their length was reached."""
    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    not_requests: int = 0
    """Frames of clients that are not requests of a known api key; passed on."""
    not_frames: int = 0
    """Times that one direction of a connection stopped being frames; passed on as it came."""
    unpaired: int = 0
    """Responses without their request, or too short to be one; passed on."""
    gssapi: int = 0
    """Beginnings of GSSAPI, which holds only where the tap has the broker's own name."""
    withheld: int = 0
    """Frames that hold credentials, which are not in the capture."""
    rewritten: int = 0
    """Responses in which an advertised address was replaced."""
    undecodable: int = 0
    """Responses that may advertise addresses but did not decode; passed on unchanged."""
    too_long_to_rewrite: int = 0
    """The same that were passed on before they were whole, because too much was held."""
    not_rerouted: int = 0
    """Advertised addresses that stayed as they are, because no listener could be opened."""
    stamped: int = 0
    """Requests that went on with header tags of the tap's."""
    unstamped_not_flexible: int = 0
    """Requests that went on as they came, where the tap stamps: of a version whose header has no
    tags, or that no release has."""
    unstamped_tag_taken: int = 0
    """The same: the client sent such a tag itself."""
    unstamped_too_large: int = 0
    """The same: a broker would not take that many bytes."""
    unstamped_sasl: int = 0
    """The same: requests of SASL; tokens and what is not understood, and all after these."""
    capture_failures: int = 0
    """Frames that were passed on but are not in the capture: it could not be written, or a file of
    it was deleted while it was written."""
    shortened_frames: int = 0
    """Frames that were passed on and of which the capture has only the beginning, because more was
    held than may be: see `flexwire.tap.limits`."""
    shortened_bytes: int = 0
    """The bytes of them that are not in the capture."""
    not_captured: int = 0
    """Connections closed at once, because their capture could not be begun."""
    unended: int = 0
    """Connections whose end is not in the capture, because it could not be written."""
    removed_files: int = 0
    """Capture files that made room for later ones, as asked for."""
    removed_frames: int = 0
    """Frames that were in them."""
    removed_bytes: int = 0
    """How large they were."""
    unsampled_connections: int = 0
    """Connections that were passed on and not captured, as asked for."""
    unsampled_frames: int = 0
    """Frames that passed over them; of what is not frames, pieces."""
    unsampled_bytes: int = 0
    """The bytes of both."""
    filtered_frames: int = 0
    """Frames that were passed on and not captured, as a filter asks for."""
    filtered_bytes: int = 0
    """Their bytes."""
    failures: int = 0
    """Connections closed by a defect in the tap; the log has the traceback."""

    def count_stamped(self, reasons: Iterable[str | None]) -> None:
        """Count requests where the tap stamps, by what kept each from being stamped; or nothing."""
        for reason in reasons:
            name = reason or "stamped"
            setattr(self, name, getattr(self, name) + 1)

    def count_removed(self, kept: KeptFiles) -> None:
        """Count capture files that made room for later ones."""
        for file in kept.removed:
            self.removed_files += 1
            self.removed_frames += file.frames
            self.removed_bytes += file.size
        kept.removed.clear()

    def __add__(self, other: TapStatistics) -> TapStatistics:
        """Both counts together."""
        return TapStatistics(*map(operator.add, astuple(self), astuple(other)))

    @property
    def is_captured(self) -> bool:
        """Whether all that passed is in the capture."""
        return not (
            self.capture_failures or self.not_captured or self.unended or self.shortened_frames
        )
