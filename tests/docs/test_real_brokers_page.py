"""docs/real-brokers.md says of every API what was seen of it on real brokers by `make kafka`.

``python -m tests.docs.test_real_brokers_page`` takes over what the last run of
tests/kafka/test_every_api.py saw, and writes the page anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flexwire.protocol.apis import api_name
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from tests.kafka.seeing import ONE_NODE, SEEN, SOMETIMES, UNSEEN, take_over
from tools.broker import VERSIONS

PAGE = Path(__file__).parents[2] / "docs" / "real-brokers.md"
HEAD = """# What was seen on real brokers

`make kafka` starts Kafka {releases} from Maven Central, the last as a cluster of three combined
nodes, with a tap before every listener: those for clients, for SASL and of the controllers. Kafka's
own admin client, producers, consumers, share consumers and Streams, and librdkafka, drive every API
that they have; what the nodes send to each other is captured too. Then `flexwire call` asks every
API in every version that the release offers. Held, by `tests/kafka/test_every_api.py`:

- every message decodes, and encodes to the same bytes;
- every record that was sent is in the capture, and as the consumers read it;
- `call` is told what the admin client is told: nodes, partitions, offsets, commits, groups,
  configurations, ACLs, quotas, SCRAM users, features, the quorum, log directories;
- `records dump` shows what Kafka's own tool prints of the same logs, internal topics included;
- an API that nobody sends stands below, with the reason; and this table is what was seen.

## APIs
By release: the versions that clients and nodes sent, then those that `call` asked, all answered.

"""
NOBODY = """
## What nobody sends here
`call` asks these too, where brokers offer them.

| API | release | why not |
|---|---|---|
"""
SOME = """
## What is seen at times
These depend on the moment, and the table leaves out who sent them.

| API | when |
|---|---|
"""


def page() -> str:
    seen: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8"))
    assert {*seen} == {*VERSIONS}
    *others, last = VERSIONS
    text = HEAD.format(releases=f"{', '.join(others)} and {last}")
    text += "| API | " + " | ".join(f"{one} sent | {one} call" for one in VERSIONS) + " |\n"
    text += "|---|" + "---|---|" * len(VERSIONS) + "\n"
    for name in names():
        told = [seen[one][kind].get(name, "") for one in VERSIONS for kind in ("clients", "call")]
        if any(told):
            text += f"| {name} | {' | '.join(told)} |\n"
    text += NOBODY
    for release in VERSIONS:
        reasons = UNSEEN[release] | (ONE_NODE if release != last else {})
        text += "".join(f"| {name} | {release} | {why} |\n" for name, why in reasons.items())
    return text + SOME + "".join(f"| {name} | {when} |\n" for name, when in SOMETIMES.items())


def names() -> list[str]:
    """All APIs, by api key and as they are named now."""
    known = catalog()
    entries = [known.entry(name) for name in known.names()]
    keys = {one.api_key for one in entries if one.type is MessageType.REQUEST}
    return [api_name(key) for key in sorted(key for key in keys if key is not None)]


def test_the_page_is_what_was_seen() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_api_of_a_release_is_seen_or_has_a_reason() -> None:
    seen: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8"))
    for release in VERSIONS:
        reasons = UNSEEN[release] | (ONE_NODE if release != VERSIONS[-1] else {}) | SOMETIMES
        assert not {*reasons} & {*seen[release]["clients"]}


if __name__ == "__main__":
    take_over()
    PAGE.write_text(page(), encoding="utf-8")
