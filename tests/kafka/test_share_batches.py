"""Overlapping batches in share groups are combined as in Kafka's own share coordinator."""

from __future__ import annotations

import subprocess

import pytest

from tests.spark.internal_topics.test_coordinators import random_batches, state
from tools.broker import VERSIONS, jars
from tools.maven import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def batch(text: str) -> tuple[int, int, int, int]:
    first, last, fate, count = map(int, text.split(","))
    return first, last, fate, count


# Kafka 3.9 has no released share coordinator.
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_the_reference_is_kafkas_combiner(version: str) -> None:
    drawn = random_batches(2000)
    cases = [([one for one in batches if 0 <= one[0] <= one[1]], at) for batches, at in drawn]
    lines = [" ".join([str(at), *(",".join(map(str, b)) for b in some)]) for some, at in cases]
    ran = subprocess.run(
        ["java", "-cp", f"{jars(version)}/*", str(ROOT / "tools" / "java" / "CombineShares.java")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    told = [[batch(one) for one in line.split()] for line in ran.stdout.splitlines()]
    # 4.0 does not join some neighboring batches with the same state.
    assert [state(one, -1) for one in told] == [state(batches, at) for batches, at in cases]
