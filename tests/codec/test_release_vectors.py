"""Every executor reads and writes every message version as the release's own Java wrote it."""

from __future__ import annotations

import pytest

from flexwire.schema.catalog import catalog, release_order
from tests.codec.release_counts import table
from tests.codec.release_vectors import EXECUTORS, faults, of_release, releases
from tests.searching import in_make_long

pytestmark = pytest.mark.slow


ENDS = releases()[0], releases()[-1]


@pytest.mark.parametrize("release", [*ENDS, *in_make_long(*releases()[1:-1])])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_executor_reads_and_writes_what_a_release_wrote(executor: str, release: str) -> None:
    found = faults(executor, release)
    told = [f"{one.message} v{one.version}: {fault}" for one, fault in found.items()]
    assert not told, f"{len(told)} of {len(of_release(release))}:\n" + "\n".join(told[:10])


@pytest.mark.parametrize("release", releases())
def test_a_release_has_a_vector_of_every_version_in_the_catalog(release: str) -> None:
    expected = {
        (name, version)
        for name in catalog().names()
        for version in catalog().entry(name).releases.get(release, ())
    }
    assert {(one.message, one.version) for one in of_release(release)} == expected


def test_every_final_release_since_3_9_is_here() -> None:
    first = release_order("3.9.0")
    assert releases() == [one for one in catalog().releases if release_order(one) >= first]


def test_the_counts_are_told_by_release_and_executor() -> None:
    head, *lines = table().splitlines()
    assert head.split() == ["release", "versions", "vectors", *EXECUTORS]
    assert [line.split()[0] for line in lines] == releases()
    for line in lines:
        release, *counts = line.split()
        versions, vectors, *held = map(int, counts)
        assert vectors == len(of_release(release)) >= versions > 0
        assert held == [len(of_release(release, executor)) for executor in EXECUTORS]
