"""The demo's clients: one file each, loaded by name, each run in a separate process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from flexwire.demo.content import require

if TYPE_CHECKING:
    from flexwire.demo.outcome import ClientOutcome

CLIENTS = ("confluent", "aio", "kafka_python", "raw")
# These talk to an old broker instead of the cluster.
OLD_CLIENTS = ("stand_ins",)


class DemoClient(Protocol):
    """A module with a client's part in the demo."""

    def run(self, bootstrap: str) -> ClientOutcome:
        """Talk to the cluster at ``bootstrap`` ("host:port,…") and return the outcome.

        Raises only unexpected errors; a failed check is in the outcome.
        """


def load_client(name: str) -> DemoClient:
    """The client of that name. `FlexwireError` if the package it needs is not installed."""
    return cast("DemoClient", require(f"{__name__}.{name}"))
