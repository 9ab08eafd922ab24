"""Record which APIs were seen on real brokers, and why the other APIs were not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.versions import Versions
from tools.maven import ROOT

if TYPE_CHECKING:
    from tests.kafka.reaching import Reached

SEEN: Final = Path(__file__).with_name("seen.json")
# The directory for the observations of a run.
LAST: Final = ROOT / ".build" / "seen"
# These requests are sent at moments that a test cannot cause, so they may be missing.
SOMETIMES: Final = {
    "AssignReplicasToDirs": (
        "nodes send this request after a partition moves to another log directory"
    ),
    "UpdateRaftVoter": "a controller that starts may report its versions",
    "EndQuorumEpoch": "a leader that resigns before another leader is elected sends this request",
    "FetchSnapshot": (
        "a node sends this request if it needs records that the log no longer contains"
    ),
}
_SHARE_39: Final = "share groups are new in 4.0, so no 3.9 client sends this request"
_STREAMS: Final = (
    "only Kafka Streams 4.4 sends this request, and its jar is not published with the others"
)
# The APIs that no client or node sends here, and the reason, by release.
UNSEEN: Final[dict[str, dict[str, str]]] = {
    "3.9.2": {
        "ControlledShutdown": "only brokers of a ZooKeeper cluster send this request",
        "ShareGroupHeartbeat": _SHARE_39,
        "ShareGroupDescribe": _SHARE_39,
        "ShareFetch": _SHARE_39,
        "ShareAcknowledge": _SHARE_39,
        "InitializeShareGroupState": _SHARE_39,
        "ReadShareGroupState": _SHARE_39,
        "WriteShareGroupState": _SHARE_39,
        "DeleteShareGroupState": _SHARE_39,
        "ReadShareGroupStateSummary": _SHARE_39,
    },
    "4.0.2": {
        "InitializeShareGroupState": "4.0 brokers do not send this request yet",
        "DeleteShareGroupState": "4.0 brokers do not send this request yet",
        "ReadShareGroupStateSummary": "4.0 brokers do not send this request yet",
    },
    "4.4.0": {
        "StreamsGroupTopologyDescriptionUpdate": _STREAMS,
    },
}
# The APIs that are not sent in a cluster with one node, and the reason, by release.
_ALONE: Final = "a single node has no other node to which it could send this request"
ONE_NODE: Final = {
    "AlterPartition": _ALONE,
    "BeginQuorumEpoch": _ALONE,
    "Vote": _ALONE,
}


def seen(reached: Reached) -> dict[str, dict[str, str]]:
    """Return the versions that clients and nodes sent, and the versions that `call` got answers to,
    by API.
    """
    return {
        "clients": _ranges(reached.versions),
        "call": _ranges(reached.called),
    }


def _ranges(found: dict[str, set[int]]) -> dict[str, str]:
    return {name: str(Versions.of(versions)) for name, versions in sorted(found.items())}


def last_seen(release: str, reached: Reached) -> Path:
    """Write what was seen in a run with a release to a file, and return the path of the file."""
    LAST.mkdir(parents=True, exist_ok=True)
    path = LAST / f"{release}.json"
    path.write_text(json.dumps(seen(reached)), encoding="utf-8")
    return path


def take_over() -> None:
    """Replace the kept results with those of the last runs."""
    told: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8")) if SEEN.exists() else {}
    for path in sorted(LAST.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        for name in SOMETIMES:
            found["clients"].pop(name, None)
        told[path.stem] = found
    SEEN.write_text(f"{json.dumps(told, indent=1, sort_keys=True)}\n", encoding="utf-8")
