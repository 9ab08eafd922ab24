"""The report shows the versions in use as a matrix."""

from __future__ import annotations

import dataclasses

from flexwire.facts.facts import VersionUse
from flexwire.parties import Client
from flexwire.report.matrix import build_matrix
from tests.report.sample import BILLING, EMPTY, LEGACY, SAMPLE, SHIPPING

ONE = VersionUse(BILLING, 3, "Metadata", 12, 5, "read")


def test_the_matrix_holds_every_use_once_and_the_gravest_first() -> None:
    matrix = build_matrix(SAMPLE)
    cells = [use for row in matrix.rows for cell in row.cells for use in cell.uses]
    assert sorted(cells, key=repr) == sorted(SAMPLE.version_uses, key=repr)
    assert [row.client for row in matrix.rows[:2]] == [LEGACY, SHIPPING]
    assert [name for _, name in matrix.apis[:3]] == ["Produce", "Fetch", "api key 4001"]
    assert matrix.rest == ()
    for row in matrix.rows:
        for (key, _), cell in zip(matrix.apis, row.cells, strict=True):
            uses = cell.uses
            assert all(use.api_key == key and use.client == row.client for use in uses)
            assert [use.version for use in uses] == sorted(use.version for use in uses)


def test_same_client_id_with_other_software_is_another_client() -> None:
    other = dataclasses.replace(ONE, client=Client(BILLING.client_id, "other", "1"))
    matrix = build_matrix(dataclasses.replace(EMPTY, version_uses=(ONE, other)))
    assert len(matrix.rows) == 2
