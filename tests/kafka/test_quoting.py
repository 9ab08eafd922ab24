"""If a real broker quotes a secret configuration in an error, a tap's capture lacks the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.tap import TapSecurity, parse_host_port
from tests.kafka.asking import ask
from tests.kafka.secured import tapping
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
SECRET = "opensesame"  # noqa: S105 - planted, and must not be found anywhere
# No value is a valid number. Two values are secret because of their content.
TOPIC = ("retention.ms", f"password={SECRET}")
BROKER = ("log.retention.ms", f"password={SECRET}")
OPEN = ("retention.ms", "soon")


def create(address: str, version: str, config: tuple[str, str]) -> str:
    """Create a topic that the broker refuses, and return its message."""
    topic: dict[str, Any] = {"name": "refused", "numPartitions": 1, "replicationFactor": 1}
    topic |= {"assignments": [], "configs": [{"name": config[0], "value": config[1]}]}
    form: dict[str, Any] = {"topics": [topic], "timeoutMs": 30_000, "validateOnly": False}
    said = ask(address, "CreateTopics", version, **form)
    return str(said["topics"][0]["errorMessage"])


def alter(address: str, version: str, config: tuple[str, str]) -> str:
    """Set a value that the broker refuses, and return its message."""
    value = {"name": config[0], "configOperation": 0, "value": config[1]}
    resource = {"resourceType": 4, "resourceName": "1", "configs": [value]}
    form: dict[str, Any] = {"resources": [resource], "validateOnly": False}
    said = ask(address, "IncrementalAlterConfigs", version, **form)
    return str(said["responses"][0]["errorMessage"])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_broker_quotes_of_a_secret_is_in_no_capture(version: str, tmp_path: Path) -> None:
    security = TapSecurity(with_credentials=False)
    with broker(version, tmp_path / "broker") as address:
        upstream = parse_host_port(address)
        with tapping(upstream, tmp_path / "out", security) as tap:
            at = str(tap.listen_address)
            said = [create(at, version, TOPIC), alter(at, version, BROKER)]
            told = create(at, version, OPEN)
    captured = b"".join(path.read_bytes() for path in tap.capture_paths)
    assert all(SECRET in text for text in said), said
    assert SECRET.encode() not in captured
    assert told.encode() in captured
    # The capture contains two requests and their responses.
    assert tap.stats.withheld == 4
