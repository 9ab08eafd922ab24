"""The demo's clients: one module per client, loaded by name and run in its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from flexwire.demo.content import require

if TYPE_CHECKING:
    from flexwire.demo.outcome import ClientOutcome

CLIENTS = ("confluent", "aio", "kafka_python", "raw")
# These clients connect to an old broker instead of the cluster.
OLD_CLIENTS = ("stand_ins",)


class DemoClient(Protocol):
    """A module that contains one client of the demo."""

    def run(self, bootstrap: str) -> ClientOutcome:
        """Use the cluster at ``bootstrap`` ("host:port,…") and return the outcome.

        Raises only unexpected errors; failed checks are part of the outcome.
        """


def load_client(name: str) -> DemoClient:
    """Return the client with that name.

    Raises `FlexwireError` if a package that the client requires is not installed.
    """
    return cast("DemoClient", require(f"{__name__}.{name}"))
