"""The result of a client in the demo: its steps, and whether it could read its own records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.demo.content import SampleRecord


class ClientOutcome(msgspec.Struct, kw_only=True, frozen=True):
    """A client's report on its run. If there are no failures, every check was successful.

    ``part`` is a phrase that describes the client's purpose in the demo. ``produced`` and
    ``consumed`` count records. ``did`` lists the steps in order.
    """

    client: str
    version: str
    part: str = ""
    client_ids: tuple[str, ...] = ()
    produced: int = 0
    consumed: int = 0
    did: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class OutcomeRecorder:
    """Collect a client's outcome: its steps, the records that it wrote and read, and failed checks.

    >>> from flexwire.demo.content import SampleRecord
    >>> ledger = OutcomeRecorder("a-client", "1.0", part="an example")
    >>> ledger.produced([SampleRecord("orders", b"k", b"v")])
    >>> ledger.outcome().failures
    ('orders: 1 of 1 records were not consumed',)
    """

    def __init__(self, client: str, version: str, *, part: str) -> None:
        self._client = client
        self._version = version
        self._part = part
        self._client_ids: list[str] = []
        self._did: list[str] = []
        self._failures: list[str] = []
        self._written: Counter[SampleRecord] = Counter()
        self._read: Counter[SampleRecord] = Counter()

    def client_id(self, name: str) -> str:
        """Record a client id that the client will use."""
        if name not in self._client_ids:
            self._client_ids.append(name)
        return name

    def step(self, what: str) -> None:
        """Record a completed step."""
        self._did.append(what)

    def expect(self, truth: bool, failure: str) -> None:  # noqa: FBT001 - `truth` is the condition to check
        """Record a failure unless the condition is true."""
        if not truth:
            self._failures.append(failure)

    def produced(self, samples: Iterable[SampleRecord]) -> None:
        """Record the records that the cluster acknowledged."""
        self._written.update(samples)

    def consumed(self, samples: Iterable[SampleRecord]) -> None:
        """Record the records that a consumer read."""
        self._read.update(samples)

    def outcome(self, *, error: str | None = None) -> ClientOutcome:
        """Return the outcome so far. If the run ended early, ``error`` is the reason."""
        failures = [*self._failures, *self._differences()]
        if error is not None:
            failures.insert(0, error)
        return ClientOutcome(
            client=self._client,
            version=self._version,
            part=self._part,
            client_ids=tuple(self._client_ids),
            produced=self._written.total(),
            consumed=self._read.total(),
            did=tuple(self._did),
            failures=tuple(failures),
        )

    def _differences(self) -> list[str]:
        written = _by_topic(self._written)
        missing = _by_topic(self._written - self._read)
        strange = _by_topic(self._read - self._written)
        return [
            f"{topic}: {count} of {written[topic]} records were not consumed"
            for topic, count in sorted(missing.items())
        ] + [
            f"{topic}: {count} consumed records were never produced"
            for topic, count in sorted(strange.items())
        ]


def _by_topic(records: Counter[SampleRecord]) -> Counter[str]:
    topics = Counter[str]()
    for sample, count in records.items():
        topics[sample.topic] += count
    return topics
