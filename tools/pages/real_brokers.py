"""docs/real-brokers.md: the versions of every API that `make kafka` saw on real brokers.

`python -m tools.pages.real_brokers` first copies the observations of the last run of
`tests/kafka/test_every_api.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from flexwire.protocol.apis import api_name
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from tests.kafka.seeing import ONE_NODE, SEEN, SOMETIMES, UNSEEN, take_over
from tools.broker import VERSIONS
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "real-brokers.md"
_HEAD = """# What was seen on real brokers

`make kafka` starts Kafka {releases} from Maven Central, the last as a cluster of three combined
nodes. A tap runs in front of every listener: for clients, for SASL and for the controllers.
Kafka's own admin client, producers, consumers, share consumers and Streams, and librdkafka, use
every API that they support. The traffic between the nodes is captured too. Then `flexwire call`
sends requests of every API in every version that the release offers.
`tests/kafka/test_every_api.py` checks that:

- every message decodes, and encodes to the same bytes;
- the capture contains every record that was sent, as the consumers read it;
- `call` gets the same answers as the admin client: nodes, partitions, offsets, commits, groups,
  configurations, ACLs, quotas, SCRAM users, features, the quorum, log directories;
- `records dump` shows the same content as Kafka's own tool for the same logs, including internal
  topics;
- every API is in the tables below: either as an API that was seen, or with the reason why no client
  or node sent its requests.

## APIs
For each release, the table shows the versions that clients and nodes sent, and then the versions
that `call` sent. The brokers answered all of these requests. `python -m tools.pages.real_brokers`
writes this page.

"""
_NOBODY = """
## What nobody sends here
`call` sends these requests too, if brokers offer the APIs.

| API | release | why not |
|---|---|---|
"""
_SOME = """
## What is seen at times
These requests are sent only at certain moments, so the first table does not show which versions
clients or nodes sent.

| API | when |
|---|---|
"""


def files() -> dict[Path, str]:
    """Return the page."""
    seen: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8"))
    if {*seen} != {*VERSIONS}:
        raise ValueError(f"expected releases {VERSIONS}, got {sorted(seen)}")
    *others, last = VERSIONS
    text = _HEAD.format(releases=f"{', '.join(others)} and {last}")
    text += (
        "| API | " + " | ".join(f"{release} sent | {release} call" for release in VERSIONS) + " |\n"
    )
    text += "|---|" + "---|---|" * len(VERSIONS) + "\n"
    for name in _api_names():
        cells = [
            seen[release][kind].get(name, "")
            for release in VERSIONS
            for kind in ("clients", "call")
        ]
        if any(cells):
            text += f"| {name} | {' | '.join(cells)} |\n"
    text += _NOBODY
    for release in VERSIONS:
        reasons = UNSEEN[release] | (ONE_NODE if release != last else {})
        text += "".join(f"| {name} | {release} | {why} |\n" for name, why in reasons.items())
    text += _SOME + "".join(f"| {name} | {when} |\n" for name, when in SOMETIMES.items())
    return {PAGE: text}


def _api_names() -> list[str]:
    """Return the current names of all APIs, in the order of their api keys."""
    bundled = catalog()
    entries = [bundled.entry(name) for name in bundled.names()]
    keys = {entry.api_key for entry in entries if entry.type is MessageType.REQUEST}
    return [api_name(key) for key in sorted(key for key in keys if key is not None)]


if __name__ == "__main__":
    take_over()
    write_files(files())
