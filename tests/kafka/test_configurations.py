"""flexwire's configuration names equal those of Kafka's own classes in each release."""

from __future__ import annotations

import pytest

from flexwire.protocol.configurations import CONFIGURED_KINDS, known_names
from tools.broker import VERSIONS
from tools.config_names import names

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.parametrize("version", VERSIONS)
def test_names_are_those_of_the_brokers_jars(version: str) -> None:
    ours = {(kind, name) for kind in CONFIGURED_KINDS for name in known_names(kind, version)}
    assert ours == names(version)
    assert len(ours) > 300
