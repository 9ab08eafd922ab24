"""Find the APIs and versions in captures, and check that messages encode to the same bytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.client import Broker
from flexwire.client.broker import usable_versions
from flexwire.codec import message
from flexwire.errors import CallError
from flexwire.protocol import api_name
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flexwire.versions import Versions

MOST_SECONDS = 20
# The body to send from the given version on, for APIs whose empty body gets no answer or crashes
# brokers. A 3.9 controller crashes on a FetchSnapshot without topics.
_SNAPSHOT = {"partition": 0, "snapshotId": {"endOffset": 1, "epoch": 1}}
BODIES: dict[str, tuple[int, dict[str, Any]]] = {
    "OffsetFetch": (8, {"groups": [{"groupId": "nobody's", "topics": []}]}),
    "AddPartitionsToTxn": (4, {"transactions": [{"transactionalId": "nobody's"}]}),
    # After such a ControllerRegistration, controller 0 exists. The tool that dumps logs does not
    # know the record that removes this controller.
    "UnregisterController": (0, {"controllerId": 99}),
    "FetchSnapshot": (0, {"topics": [{"name": "__cluster_metadata", "partitions": [_SNAPSHOT]}]}),
}
# The client id of `flexwire call` in these tests, which does not count as a client.
CALL = "flexwire call"


@dataclass
class Reached:
    """The content of captures: the versions and the number of messages, by API and direction."""

    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    called: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    messages: Counter[str] = field(default_factory=Counter)
    unlike: list[str] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)
    bytes: int = 0


def reach(paths: Iterable[Path]) -> Reached:
    """Decode all messages in captures, and encode them again."""
    found = Reached()
    for one in read_messages(sorted(paths)):
        if not isinstance(one, CapturedMessage):
            found.unused[f"{one.kind}: {one.reason}"] += 1
            continue
        name = api_name(one.api_key)
        found.messages[one.name] += 1
        found.bytes += len(one.body)
        if one.type is MessageType.REQUEST:
            header: Any = one.header
            # ControlledShutdown 0 has no client id, and only `call` sends it.
            is_call = one.header_version == 0 or header.client_id == CALL
            seen = found.called if is_call else found.versions
            seen[name].add(one.version)
        again = message(one.name).decode(one.body, one.version).encode(one.version)
        if bytes(again) != bytes(one.body):
            found.unlike.append(f"{one.name} v{one.version}: {bytes(one.body).hex()}")
    return found


def ask_every_version(address: str) -> dict[tuple[str, int], str]:
    """Send every version of every API with an empty body; return unanswered requests, with the
    reason.
    """
    with Broker.connect(address, client_id=CALL) as broker:
        offered = broker.offered
    silent = {}
    for api_key in sorted(offered):
        name = api_name(api_key)
        for version in usable_versions(api_key, offered):
            first, body = BODIES.get(name, (0, {}))
            with Broker.connect(address, client_id=CALL, timeout=MOST_SECONDS) as broker:
                try:
                    broker.call(name, body if version >= first else {}, version)
                except CallError as error:
                    silent[name, version] = str(error).removeprefix(f"{address}: ")
    return silent


def valid_versions(release: str, listener: str) -> dict[str, Versions]:
    """Return the versions that a release has on broker or controller listeners, by API."""
    known = catalog()
    found = {}
    for name in known.names():
        entry = known.entry(name)
        if (
            entry.api_key is not None
            and entry.type is MessageType.REQUEST
            and release in entry.releases
        ):
            valid = entry.releases[release]
            if listener in entry.spec(valid.highest, release=release).listeners:
                # APIs have their current names, whatever the release calls them.
                found[api_name(entry.api_key)] = valid
    return found
