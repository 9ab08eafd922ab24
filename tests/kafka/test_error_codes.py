"""flexwire's error codes equal those of Kafka's own clients in each release."""

from __future__ import annotations

import subprocess

import pytest

from flexwire.protocol.error_codes import RETRIABLE, error_codes
from flexwire.schema.catalog import release_order
from tools.broker import VERSIONS, jars
from tools.maven import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.parametrize("version", VERSIONS)
def test_error_codes(version: str) -> None:
    program = ROOT / "tools" / "java" / "ErrorCodes.java"
    ran = subprocess.run(
        ["java", "-cp", f"{jars(version)}/*", str(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = map(str.split, ran.stdout.splitlines())
    told = {int(code): (name, again) for code, name, again in lines}
    ours = {
        one.code: one for one in error_codes() if release_order(one.since) <= release_order(version)
    }
    assert {code: name for code, (name, _) in told.items()} == {
        code: one.name for code, one in ours.items()
    }
    assert {code for code, (_, again) in told.items() if again == "true"} == RETRIABLE & told.keys()
