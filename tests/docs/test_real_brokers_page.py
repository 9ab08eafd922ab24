"""docs/real-brokers.md shows, for every API, what `make kafka` saw of it on real brokers."""

from __future__ import annotations

import json
from typing import Any

from tests.kafka.seeing import ONE_NODE, SEEN, SOMETIMES, UNSEEN
from tools.broker import VERSIONS


def test_every_api_of_a_release_is_seen_or_has_a_reason() -> None:
    seen: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8"))
    for release in VERSIONS:
        reasons = UNSEEN[release] | (ONE_NODE if release != VERSIONS[-1] else {}) | SOMETIMES
        assert not {*reasons} & {*seen[release]["clients"]}
