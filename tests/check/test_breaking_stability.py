"""Ignorable fields, restored versions and unstable versions are judged in Kafka's and a user's
specs.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition, editions_of, released_editions
from flexwire.schema.pairs import SpecVersion, structure_pairs
from flexwire.schema.parse import parse_spec
from flexwire.schema.sources import SpecFile
from flexwire.schema.spec import MessageType
from flexwire.specs.breaking.changes import breaking_rules, without_unstable
from flexwire.specs.breaking.report import compare
from flexwire.specs.lint.config import Config
from flexwire.specs.lint.lint import lint
from tests.check.released import by_directory
from tests.searching import in_make_long

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.specs.finding import Report

RELEASES = catalog().releases
WORDS = frozenset({"IGNORABLE_REMOVED", "VERSION_RESTORED", "VERSION_UNSTABLE_AGAIN"})


@cache
def written(release: str) -> dict[str, Edition]:
    """Return the messages as the release's own files define them."""
    sources = [
        SpecFile(f"{module}/{name}", name, module, text.encode(), whole=True, inside=module)
        for (one, module), files in by_directory().items()
        if one == release
        for name, text in files.items()
    ]
    return editions_of(sources, "legacy")[0]


def compared(
    old: Mapping[str, Edition],
    new: Mapping[str, Edition],
    rules: frozenset[str] = WORDS,
    *,
    unstable: bool = False,
) -> Report:
    return compare(old, new, {}, rules, Config(rules, "legacy"), unstable=unstable)


# Each of these was checked by hand. The broker of 2.7 sets the field for Fetch 11 and later only;
# 4.0.1 brought JoinGroup 0 and 1 back as they were in 3.9 (KAFKA-19444).
KNOWN = {
    ("IGNORABLE_REMOVED", "FetchResponse.json"): ("2.6.3", "2.7.2"),
    ("VERSION_RESTORED", "JoinGroupRequest.json"): ("4.0.0", "4.0.2"),
    ("VERSION_RESTORED", "JoinGroupResponse.json"): ("4.0.0", "4.0.2"),
}


Found = frozenset[tuple[str, str]]
"""Findings: the rule, and the name of the file."""


def found_in(report: Report) -> Found:
    return frozenset((one.rule, Path(one.source).name) for one in report.findings)


@cache
def apis_of(release: str) -> dict[str, dict[str, Edition]]:
    """Return the messages that are compared together: a request with its response, or one message.

    A request states which versions of its response are unstable.
    """
    found: dict[str, dict[str, Edition]] = defaultdict(dict)
    for name, one in written(release).items():
        api = one.spec.api_key if one.spec.type.is_api else None
        found[name if api is None else str(api)][name] = one
    return found


@cache
def text_of(release: str, api: str) -> tuple[tuple[str, str], ...]:
    """Return the module and the text of each file of an API; only these files are compared."""
    files = by_directory()
    sources = [Path(one.spec.source) for one in apis_of(release).get(api, {}).values()]
    return tuple((one.parent.name, files[release, one.parent.name][one.name]) for one in sources)


def found_by_api(before: str, after: str, known: dict[Any, Found]) -> Found:
    """Compare each API of two releases by itself; ``known`` contains earlier results."""
    found: Found = frozenset()
    for api, messages in apis_of(before).items():
        key = api, text_of(before, api), text_of(after, api)
        if key not in known:
            known[key] = found_in(compared(messages, apis_of(after).get(api, {})))
        found |= known[key]
    return found


# `make test` compares neighbors, and the oldest release with the newest one.
NEIGHBORS = [*pairwise(RELEASES), (RELEASES[0], RELEASES[-1])]
PAIRS = {"neighbors": NEIGHBORS, "all": [*combinations(RELEASES, 2)]}


@pytest.mark.slow
@pytest.mark.parametrize("pairs", ["neighbors", *in_make_long("all")])
def test_kafka_s_own_history_has_the_findings_seen_by_hand_and_no_others(pairs: str) -> None:
    seen = defaultdict(set)
    known: dict[Any, Found] = {}
    # The patch releases of 4.0 brought versions back.
    whole = NEIGHBORS if pairs == "all" else [("4.0.0", "4.0.2"), NEIGHBORS[-1]]
    for before, after in PAIRS[pairs]:
        found = found_by_api(before, after, known)
        for one in found:
            seen[one].add((before, after))
        if (before, after) in whole:
            # A comparison of whole releases reports exactly the findings about their messages.
            assert found_in(compared(written(before), written(after))) == found
    order = RELEASES.index
    assert seen == {
        what: {
            (before, after)
            for before, after in PAIRS[pairs]
            if order(before) <= order(last) and order(after) >= order(first)
            # Versions that 4.0.0 lacked count as restored only in a comparison with 4.0.0.
            if what[0] == "IGNORABLE_REMOVED" or before == last
        }
        for what, (last, first) in KNOWN.items()
    }


@pytest.mark.long
@pytest.mark.slow
def test_a_release_and_its_edition_in_the_catalog_do_not_differ_by_these_rules() -> None:
    seen = set()
    for release in RELEASES:
        of_catalog = released_editions(release)
        for api, of_files in apis_of(release).items():
            text = api, text_of(release, api)
            if text in seen:
                # An older release contains the same files.
                continue
            seen.add(text)
            same = {name: of_catalog[name] for name in of_files if name in of_catalog}
            assert compared(same, of_files).findings == (), (release, api)
            assert compared(of_files, same).findings == (), (release, api)
    of_files, of_catalog = written(RELEASES[-1]), released_editions(RELEASES[-1])
    assert compared(of_catalog, of_files).findings == ()
    assert compared(of_files, of_catalog).findings == ()


@pytest.mark.slow
def test_restored_versions_of_kafka_are_those_that_were_removed() -> None:
    for name in ("JoinGroupRequest", "JoinGroupResponse"):
        old, new = written("3.9.2")[name], written("4.0.2")[name]
        assert compared({name: old}, {name: new}, frozenset(breaking_rules())).findings == ()


WHOLE = [*pairwise(RELEASES)][-2:]
"""The releases whose messages are all compared."""


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), list(pairwise(RELEASES)))
def test_what_is_left_out_is_counted_and_is_of_an_unstable_version(before: str, after: str) -> None:
    old, new, rules = written(before), written(after), frozenset(breaking_rules())
    if (before, after) not in WHOLE:
        # For other APIs, no version is left out.
        apis = {one.spec.api_key for one in old.values() if one.spec.latest_version_unstable}
        old, new = (
            {name: one for name, one in side.items() if one.spec.api_key in apis}
            for side in (old, new)
        )
    left, everything = compared(old, new, rules), compared(old, new, rules, unstable=True)
    assert len(left.findings) + left.unstable == len(everything.findings)
    unstable = {one.spec.api_key for one in old.values() if one.spec.latest_version_unstable}
    files = {f"{one.spec.name}.json" for one in new.values() if one.spec.api_key in unstable}
    gone = {(one.source, one.rule) for one in everything.findings} - {
        (one.source, one.rule) for one in left.findings
    }
    assert {Path(source).name for source, _ in gone} <= files


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_an_unstable_version_is_the_highest_of_a_release_and_its_response_s(release: str) -> None:
    for editions in (written(release), released_editions(release)):
        for name, one in without_unstable(editions).items():
            was = editions[name].spec
            if one.spec != was:
                assert not one.spec.latest_version_unstable
                gone = [each for each in was.valid_versions if each not in one.spec.valid_versions]
                assert gone == [was.valid_versions.highest]
        for one in editions.values():
            partner = one.spec.name.removesuffix("Request") + "Response"
            if one.spec.latest_version_unstable and one.spec.valid_versions:
                assert one.spec.valid_versions == editions[partner].spec.valid_versions


REQUEST = """{
  "apiKey": 500, "type": "request", "name": "PingRequest", "latestVersionUnstable": true,
  "validVersions": "0-3", "flexibleVersions": "0+", "fields": [
    { "name": "Old", "type": "int8", "versions": "0+" },
    { "name": "New", "type": "int8", "versions": "3+" }
  ]
}"""
RESPONSE = REQUEST.replace("equest", "esponse").replace(' "latestVersionUnstable": true,', "")


def test_a_change_of_an_unstable_version_is_counted_and_one_below_it_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for side in ("old", "new"):
        Path(side).mkdir()
        for name, text in (("PingRequest", REQUEST), ("PingResponse", RESPONSE)):
            wider = ('"New", "type": "int8"', '"New", "type": "int16"')
            written_text = text.replace(*wider) if side == "new" else text
            Path(side, f"{name}.json").write_text(written_text, encoding="utf-8")

    def run(*more: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["schema", "breaking", "new", "--against", "old", *more])
        return done.exit_code, done.output

    assert run() == (
        0,
        "2 files, no findings\nnot shown: 2 findings in unstable versions; --unstable shows them\n",
    )
    status, text = run("--unstable")
    assert (status, text.count("FIELD_TYPE_CHANGED"), "left out" in text) == (100, 2, False)
    # The old spec decides what is unstable: a flag that the change adds has no effect.
    Path("old", "PingRequest.json").write_text(REQUEST.replace("true", "false"), encoding="utf-8")
    status, text = run()
    assert status == 100
    assert [line.split()[1] for line in text.splitlines() if ".json:" in line] == [
        "VERSION_UNSTABLE_AGAIN",
        "FIELD_TYPE_CHANGED",
        "FIELD_TYPE_CHANGED",
    ]
    # A stable version below the unstable one is released.
    stable_one = REQUEST.replace('"Old", "type": "int8"', '"Old", "type": "int16"')
    Path("old", "PingRequest.json").write_text(REQUEST, encoding="utf-8")
    Path("new", "PingRequest.json").write_text(stable_one, encoding="utf-8")
    status, text = run()
    assert (status, "Old was int8 and is now int16, in versions 0-2" in text) == (100, True)


def test_an_older_release_of_the_catalog_has_no_unstable_version_that_it_lacked() -> None:
    # Version 6 came with 4.1, which declared it unstable.
    for release, unstable in (("4.0.2", False), ("4.1.2", True)):
        spec = released_editions(release)["InitProducerIdRequest"].spec
        assert (spec.valid_versions.highest, spec.latest_version_unstable) == (
            5 + unstable,
            unstable,
        )


def test_an_unstable_version_may_go() -> None:
    def edition(text: str) -> Edition:
        return Edition(parse_spec(text))

    old = {"PingRequest": edition(REQUEST), "PingResponse": edition(RESPONSE)}
    new = {
        name: edition(text.replace('"0-3"', '"0-2"').replace("true", "false"))
        for name, text in (("PingRequest", REQUEST), ("PingResponse", RESPONSE))
    }
    report = compared(old, new, frozenset({"VERSION_REMOVED"}))
    assert (report.findings, report.unstable) == ((), 2)


RULE = "RESPONSE_FIELD_NOT_IGNORABLE"


@pytest.mark.slow
def test_what_lint_flags_in_responses_is_what_their_lowest_version_cannot_hold() -> None:
    files = by_directory()[RELEASES[-1], "clients"]
    sources = [SpecFile(name, name, "", text.encode(), whole=True) for name, text in files.items()]
    report = lint(sources, Config(frozenset({RULE})))
    flagged = {
        (one.source.removesuffix(".json"), one.message.split(" lacks ")[1].split(",")[0])
        for one in report.findings
    }
    assert (len(report.findings), len({name for name, _ in flagged})) == (35, 22)
    expected = set()
    for name, one in written(RELEASES[-1]).items():
        if one.spec.type is not MessageType.RESPONSE or not one.spec.valid_versions:
            continue
        common = {struct.name for struct in one.spec.common_structs}
        lowest, highest = one.spec.valid_versions.lowest, one.spec.valid_versions.highest
        versions = SpecVersion(one.spec, lowest), SpecVersion(one.spec, highest)
        for pair in structure_pairs(*versions):
            if pair.old.name in common:
                continue
            expected |= {
                (name, low.name)
                for low, high in zip(pair.old_members, pair.new_members, strict=True)
                if not low.is_there and high.is_there and not low.field.ignorable
            }
    # Fields that existed only in some versions in the middle.
    assert expected <= flagged
    assert flagged - expected == {("MetadataResponse", "ClusterAuthorizedOperations")}
