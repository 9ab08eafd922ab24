"""The JSON form accepts the names that any release uses for a version's fields, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import JsonFormError
from flexwire.schema.catalog import catalog
from flexwire.schema.pairs import former_names, same_bytes
from flexwire.schema.resolve import resolve
from tests.codec.release_vectors import ReleaseVector, class_in, release_vectors
from tests.searching import in_make_long, in_parts

pytestmark = pytest.mark.slow


def plain(vector: ReleaseVector) -> bool:
    return vector.json is not None and not vector.unknown


@pytest.mark.parametrize("asked", [None, *in_make_long("3.9", "4.0", "4.1", "4.4")])
def test_what_any_release_calls_a_field_is_read_by_every_other(asked: str | None) -> None:
    renamed = 0
    for vector in filter(plain, release_vectors()):
        entry, version = catalog().entry(vector.message), vector.version
        release = asked and catalog().release(asked)
        if release and version not in entry.releases.get(release, ()):
            continue
        mine = resolve(entry.spec(version, release), version)
        if not same_bytes(mine, resolve(entry.spec(version, vector.releases[0]), version)):
            continue
        made = message(vector.message, release)
        assert made.from_json(vector.json, version).encode(version) == vector.raw
        # JSON uses the names of the requested release, or else those of the newest one.
        written = made.decode(vector.raw, version).to_json(version)
        theirs = class_in(vector, vector.releases[0]).decode(vector.raw, version).to_json(version)
        renamed += written != theirs
    assert renamed


VOTE = {
    "partitionIndex": 1,
    "replicaEpoch": 2,
    "replicaId": 3,
    "lastOffsetEpoch": 4,
    "lastOffset": 5,
}


def vote(**changes: Any) -> dict[str, Any]:
    partition = {name: value for name, value in (VOTE | changes).items() if value is not None}
    return {"clusterId": None, "topics": [{"topicName": "a", "partitions": [partition]}]}


def test_both_names_of_one_field_are_an_error() -> None:
    made = message("VoteRequest")
    told = "'candidateEpoch' is another release's name for 'replicaEpoch'; use only one"
    with pytest.raises(JsonFormError, match=told):
        made.from_json(vote(candidateEpoch=2), 0)
    assert made.from_json(vote(candidateEpoch=2, replicaEpoch=None), 0) == made.from_json(vote(), 0)


def test_a_name_that_no_release_has_is_an_error_still() -> None:
    made = message("VoteRequest")
    for form in (vote(candidateEpock=2), vote(replicaEpoch=None), vote(CandidateEpoch=2)):
        with pytest.raises(JsonFormError):
            made.from_json(form, 0)
    # No release has used this name in version 2.
    form = vote(candidateEpoch=2, replicaEpoch=None, replicaDirectoryId="A" * 22)
    with pytest.raises(JsonFormError, match="has no field 'candidateEpoch' in any version"):
        made.from_json(form | {"voterId": 1}, 2)


@pytest.mark.parametrize("part", in_parts(3))
def test_a_name_that_a_version_has_itself_keeps_its_meaning(part: int) -> None:
    for name in catalog().names()[part::3]:
        entry = catalog().entry(name)
        for version in entry.versions:
            mine = resolve(entry.spec(version), version)
            others = [
                resolve(entry.spec(version, release), version)
                for release, valid in entry.releases.items()
                if version in valid
            ]
            found = former_names(mine, others)
            for struct, names in found.items():
                assert not names.keys() & set(names.values()), (name, version, struct)
