"""Each rule of `schema breaking` flags a breaking change and passes its corrected form."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition, released_editions
from flexwire.schema.parse import parse_spec
from flexwire.schema.resolve import resolve
from flexwire.specs.breaking.changes import (
    BreakingChange,
    breaking_rules,
    find_changes,
    match_messages,
)
from flexwire.specs.breaking.rule import Breaks, continued

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD = """{
  "apiKey": 500, "type": "response", "name": "PingResponse",
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    { "name": "ErrorCode", "type": "int16", "versions": "0+" },
    { "name": "Text", "type": "string", "versions": "0+" },
    { "name": "Groups", "type": "[]Group", "versions": "1+", "fields": [
      { "name": "Id", "type": "int32", "versions": "1+" },
      { "name": "Leader", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0 },
      { "name": "Rack", "type": "string", "versions": "2+", "taggedVersions": "2+", "tag": 1,
        "nullableVersions": "2+", "default": "null", "ignorable": true },
      { "name": "Size", "type": "int8", "versions": "1+" }
    ]}
  ]
}"""
ERROR_CODE = '{ "name": "ErrorCode", "type": "int16", "versions": "0+" },'
TEXT = '{ "name": "Text", "type": "string", "versions": "0+" },'
ID = '{ "name": "Id", "type": "int32", "versions": "1+" },'
ID_LINE = 8
LEADER = '"int32", "versions": "2+", "taggedVersions": "2+", "tag": 0'
RACK = """,
      { "name": "Rack", "type": "string", "versions": "2+", "taggedVersions": "2+", "tag": 1,
        "nullableVersions": "2+", "default": "null", "ignorable": true }"""
VALID = '"validVersions": "0-3"'
NEXT = '"validVersions": "0-4"'


def edition(text: str) -> Edition:
    return Edition(parse_spec(text, mode="kip"))


def found(old: str, new: str) -> list[BreakingChange]:
    return find_changes(edition(old), edition(new), breaking_rules().values())


# By rule: the replaced text and its replacement, the position, the versions, and the fix.
CASES: dict[str, tuple[tuple[str, str], tuple[int, int], str, list[tuple[str, str]]]] = {
    "FIELD_REMOVED": (
        (ID, ""),
        (7, 5),
        "Groups.Id (int32) was removed, in versions 1-3",
        [(VALID, NEXT), (ID, ID.replace("1+", "1-3"))],
    ),
    "FIELD_ADDED": (
        (ID, ID + '{ "name": "Epoch", "type": "int32", "versions": "3+" },'),
        (8, 59),
        "Groups.Epoch (int32) is new in an existing version, in version 3",
        [(VALID, NEXT), (ID, ID + '{ "name": "Epoch", "type": "int32", "versions": "4+" },')],
    ),
    "FIELD_ORDER_CHANGED": (
        (f"{ERROR_CODE}\n    {TEXT}", f"{TEXT}\n    {ERROR_CODE}"),
        (5, 5),
        "Text is now in the position of ErrorCode, in versions 0-3",
        [(VALID, NEXT)],
    ),
    "FIELD_TYPE_CHANGED": (
        (ID, ID.replace("int32", "uint32")),
        (ID_LINE, 7),
        "Groups.Id was int32 and is now uint32, in versions 1-3",
        [
            (VALID, NEXT),
            (ID, ID.replace("1+", "1-3") + ID.replace("1+", "4+").replace("Id", "WideId")),
        ],
    ),
    "FIELD_NULLABILITY_CHANGED": (
        ('"[]Group", "versions": "1+"', '"[]Group", "versions": "1+", "nullableVersions": "2+"'),
        (7, 5),
        "Groups could not be null and now can be null, in versions 2-3",
        [
            (VALID, NEXT),
            (
                '"[]Group", "versions": "1+"',
                '"[]Group", "versions": "1+", "nullableVersions": "4+"',
            ),
        ],
    ),
    "FIELD_FLEXIBILITY_CHANGED": (
        (
            '"Text", "type": "string", "versions": "0+"',
            '"Text", "type": "string", "versions": "0+", "flexibleVersions": "none"',
        ),
        (6, 5),
        "Text was compact and now is not, in versions 2-3",
        [
            (VALID, NEXT),
            (
                '"Text", "type": "string", "versions": "0+"',
                '"Text", "type": "string", "versions": "0+", "flexibleVersions": "2+"',
            ),
        ],
    ),
    "FIELD_TAGGING_CHANGED": (
        (ID, ID.replace('"1+"', '"1+", "taggedVersions": "3+", "tag": 2')),
        (ID_LINE, 7),
        "Groups.Id was mandatory and is now tagged, in version 3",
        [(VALID, NEXT), (ID, ID.replace('"1+"', '"1+", "taggedVersions": "4+", "tag": 2'))],
    ),
    "TAG_REUSED": (
        (
            ID,
            ID + '{ "name": "Host", "type": "string", "versions": "2+", "taggedVersions": "2+", '
            '"tag": 1 },',
        ),
        (8, 59),
        "tag 1 identified Groups.Rack and now identifies Host",
        [
            (
                ID,
                ID + '{ "name": "Host", "type": "string", "versions": "2+", '
                '"taggedVersions": "2+", "tag": 2 },',
            )
        ],
    ),
    "TAG_CHANGED": (
        (LEADER, LEADER.replace('"tag": 0', '"tag": 2')),
        (9, 7),
        "Groups.Leader had tag 0 and now has tag 2",
        [(LEADER, LEADER.replace('"tag": 0', '"tag":  0'))],
    ),
    "TAGGED_FIELD_REMOVED": (
        (RACK, ""),
        (7, 5),
        "Groups.Rack (tag 1) was removed, in versions 1-3; keep the field",
        [(RACK, RACK.replace('"tag": 1', '"tag": 1, "about": "Not used any more."'))],
    ),
    "TAGGED_DEFAULT_CHANGED": (
        (LEADER, LEADER + ', "default": "-1"'),
        (9, 7),
        "a missing Groups.Leader meant 0 and now means -1, in versions 2-3",
        [(LEADER, LEADER + ', "default": "0"')],
    ),
    "DEFAULT_CHANGED": (
        (ID, ID.replace('"1+"', '"1+", "default": "-1"')),
        (ID_LINE, 7),
        "Groups.Id had the default 0 and now has -1, in versions 1-3",
        [(ID, ID.replace('"1+"', '"1+", "default": "0x0"'))],
    ),
    "IGNORABLE_REMOVED": (
        (', "ignorable": true', ""),
        (10, 7),
        "Groups.Rack is no longer ignorable, so writing fails if the field is set, in version 1",
        [(LEADER, LEADER + ', "ignorable": true')],
    ),
    "FIELD_RENAMED": (
        (ID, ID.replace("Id", "GroupId")),
        (ID_LINE, 7),
        "Groups.Id is now GroupId, in versions 1-3",
        [("[]Group", "[]Member")],
    ),
    "VERSION_FLEXIBILITY_CHANGED": (
        ('"flexibleVersions": "2+"', '"flexibleVersions": "1+"'),
        (1, 1),
        "PingResponse was not flexible and now is, in version 1",
        [(VALID, NEXT)],
    ),
    "VERSION_REMOVED": (
        (VALID, '"validVersions": "2-3"'),
        (1, 1),
        "versions 0-1 are no longer valid in PingResponse",
        [(VALID, '"validVersions": "0-3", "deprecatedVersions": "0-1"')],
    ),
    "MESSAGE_RENAMED": (
        ("PingResponse", "PongResponse"),
        (1, 1),
        "PingResponse is now PongResponse",
        [("response", "response")],
    ),
    "API_KEY_CHANGED": (
        ("500", "501"),
        (1, 1),
        "PingResponse had api key 500 and now has 501",
        [("500", "500")],
    ),
    "MESSAGE_TYPE_CHANGED": (
        ('"response"', '"request"'),
        (1, 1),
        "PingResponse was a response and is now a request",
        [('"response"', '"response", "listeners": ["broker"]')],
    ),
}

REQUEST = """{
  "apiKey": 500, "type": "request", "name": "PingRequest", "latestVersionUnstable": false,
  "validVersions": "2-4", "flexibleVersions": "2+", "fields": []
}"""
# By rule about a message's versions: the replaced text, its replacement, the finding, the fix.
OF_VERSIONS = {
    "VERSION_RESTORED": (
        ('"2-4"', '"0-4"'),
        "versions 0-1 are valid again in PingRequest, whose lowest version was 2",
        ('"2-4"', '"2-5"'),
    ),
    "VERSION_UNSTABLE_AGAIN": (
        ("false", "true"),
        "version 4 of PingRequest was stable and is now unstable",
        ('false,\n  "validVersions": "2-4"', 'true,\n  "validVersions": "2-5"'),
    ),
}


HEADER = """{
  "type": "header", "name": "RequestHeader", "validVersions": "1-2", "flexibleVersions": "2+",
  "fields": [
    { "name": "RequestApiKey", "type": "int16", "versions": "0+" },
    { "name": "CorrelationId", "type": "int32", "versions": "0+" }
  ]
}"""
TO_3 = ('"validVersions": "1-2"', '"validVersions": "1-3"')
NEW_FIELD = (
    '"int32", "versions": "0+" }',
    '"int32", "versions": "0+" },\n    { "name": "InstanceId", "type": "uuid", "versions": "3+" }',
)
TAGGED_FIELD = (NEW_FIELD[0], NEW_FIELD[1][:-2] + ', "taggedVersions": "3+", "tag": 0 }')
SAID = REQUEST.replace('"fields"', '"headerVersions": {"0-3": "2", "4+": "3"}, "fields"')
# By rule about headers: the old spec, the replaced text, the finding, the fix.
OF_HEADERS: dict[str, tuple[str, list[tuple[str, str]], str, list[tuple[str, str]]]] = {
    "HEADER_VERSION_CHANGED": (
        SAID,
        [('{"0-3": "2", "4+": "3"}', '{"0-2": "2", "3+": "3"}')],
        "PingRequest 3 used request header version 2 and now uses 3",
        [('"2-4"', '"2-5"')],
    ),
    "HEADER_VERSION_REMOVED": (
        HEADER,
        [('"1-2"', '"2"')],
        "version 1 of RequestHeader, which every broker reads, was removed",
        [TO_3],
    ),
    "HEADER_BEGINNING_CHANGED": (
        HEADER,
        [TO_3, NEW_FIELD],
        "version 3 of RequestHeader has different inline fields from version 2",
        [TO_3, TAGGED_FIELD],
    ),
}


def edited(text: str, edits: list[tuple[str, str]]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("rule", OF_HEADERS)
def test_a_change_of_headers_is_told_and_its_mended_twin_is_not(rule: str) -> None:
    old, broken, text, mended = OF_HEADERS[rule]
    told = [one for one in found(old, edited(old, broken)) if one.rule.id.startswith("HEADER_")]
    assert [(one.rule.id, one.text.partition(";")[0]) for one in told] == [(rule, text)]
    assert found(old, edited(old, mended)) == []


def test_headers_are_compared_as_numbers_whether_the_spec_names_them_or_not() -> None:
    said = REQUEST.replace('"fields"', '"headerVersions": {"0+": "2"}, "fields"')
    assert found(REQUEST, said) == []
    assert found(said, REQUEST) == []
    [told] = found(REQUEST, SAID)
    assert told.text.startswith("PingRequest 4 used request header version 2 and now uses 3")


def test_a_version_that_becomes_flexible_is_told_once() -> None:
    plain = REQUEST.replace('"2+"', '"none"')
    told = [one.rule.id for one in found(plain, REQUEST)]
    assert told == ["VERSION_FLEXIBILITY_CHANGED"]


@pytest.mark.parametrize("rule", OF_VERSIONS)
def test_a_change_of_versions_is_told_and_its_mended_twin_is_not(rule: str) -> None:
    broken, text, mended = OF_VERSIONS[rule]
    [told] = found(REQUEST, REQUEST.replace(*broken))
    assert (told.rule.id, told.text.partition(";")[0]) == (rule, text)
    assert REQUEST.replace(*mended) != REQUEST
    assert found(REQUEST, REQUEST.replace(*mended)) == []


@pytest.mark.parametrize("rule", CASES)
def test_a_change_that_breaks_is_told_where_it_stands(rule: str) -> None:
    (old, new), place, text, _ = CASES[rule]
    assert old in OLD
    changed = OLD.replace(old, new, 1)
    if rule == "TAG_REUSED":
        # The field that had the tag must lose the tag; otherwise the spec would not be valid.
        changed = changed.replace('"tag": 1,\n', '"tag": 2,\n')
    told = [one for one in found(OLD, changed) if one.rule.id == rule]
    assert [(one.position.line, one.position.column) for one in told] == [place]
    assert told[0].text.startswith(text)


@pytest.mark.parametrize("rule", CASES)
def test_its_mended_twin_breaks_nothing(rule: str) -> None:
    changed = OLD
    for old, new in CASES[rule][3]:
        assert old in changed
        changed = changed.replace(old, new, 1)
    assert found(OLD, changed) == []


def test_a_message_that_is_gone_is_told_and_one_that_never_was_is_not() -> None:
    old = edition(OLD)
    [told] = find_changes(old, None, breaking_rules().values())
    assert (told.rule.id, told.text) == (
        "MESSAGE_REMOVED",
        "PingResponse was removed; keep its spec, with no valid versions",
    )
    none = edition(OLD.replace(VALID, '"validVersions": "none"'))
    assert find_changes(none, None, breaking_rules().values()) == []


def test_a_message_that_only_changed_its_name_is_known_by_its_key() -> None:
    old, new = edition(OLD), edition(OLD.replace("PingResponse", "PongResponse"))
    assert list(match_messages({"PingResponse": old}, {"PongResponse": new})) == [(old, new)]
    both = {"PingResponse": old, "PongResponse": new}
    assert list(match_messages({"PingResponse": old}, both)) == [(old, old)]
    assert list(match_messages({"PingResponse": old}, {})) == [(old, None)]


def test_every_rule_has_a_page_a_category_and_a_case() -> None:
    rules = breaking_rules()
    assert (
        CASES.keys() | OF_VERSIONS.keys() | OF_HEADERS.keys() | {"MESSAGE_REMOVED"} == rules.keys()
    )
    for rule in rules.values():
        assert rule.page.split("\n\n")[0].endswith(".")
        for part in ("\nFlagged: ", "\nInstead: ", "\nSource: "):
            assert part in rule.page, rule.id
        assert (rule.structure is None) != (rule.message is None)


released = cache(released_editions)


@pytest.mark.long
@pytest.mark.slow
def test_every_released_message_is_compatible_with_itself() -> None:
    rules = breaking_rules().values()
    seen = {
        repr((one.spec, one.by_version)): one
        for release in catalog().releases
        for one in released(release).values()
    }
    for one in seen.values():
        assert find_changes(one, one, rules) == []


# Versions whose layout changed silently from one release to the next, checked by hand against the
# specs of both releases. QuotaRecord also changed its name.
SILENT = """
ConfigRecord ConsumerGroupCurrentMemberAssignmentValue ConsumerGroupDescribeResponse
ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse ConsumerGroupMemberMetadataValue
ConsumerGroupPartitionMetadataValue ConsumerGroupTargetAssignmentMemberValue DelegationTokenRecord
EndQuorumEpochRequest FeatureLevelRecord FenceBrokerRecord LeaderChangeMessage PartitionRecord
QuotaRecord ReadShareGroupStateSummaryResponse RegisterBrokerRecord RemoteLogSegmentMetadataRecord
RemoteLogSegmentMetadataSnapshotRecord RemoteLogSegmentMetadataUpdateRecord RemoveTopicRecord
ShareGroupMetadataValue ShareGroupPartitionMetadataValue ShareGroupStatePartitionMetadataValue
ShareSnapshotValue ShareUpdateValue TopicRecord UnfenceBrokerRecord UnregisterBrokerRecord
UserScramCredentialRecord
"""
WIRE = [one for one in breaking_rules().values() if one.category is Breaks.WIRE]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), list(pairwise(catalog().releases)))
def test_wire_is_told_of_the_versions_whose_bytes_changed_and_of_no_others(
    before: str, after: str
) -> None:
    for one, other in changed(before, after):
        told = find_changes(one, other, WIRE)
        # No rule about whole messages finds a break between releases.
        assert all(change.versions for change in told)
        versions = {version for change in told for version in change.versions}
        assert versions == {new for old, new in both(one, other) if differ(one, old, other, new)}


def changed(before: str, after: str) -> Iterator[tuple[Edition, Edition]]:
    """Yield the messages that exist in both releases, but with different specs."""
    for one, other in match_messages(released(before), released(after)):
        if other and (one.spec, one.by_version) != (other.spec, other.by_version):
            yield one, other


def both(one: Edition, other: Edition) -> list[tuple[int, int]]:
    """Return the versions of both specs (a coordinator key with an api key has version 0)."""
    if (same := continued(one.spec, other.spec)) is not None:
        return [same]
    return [(version, version) for version in one.spec.valid_versions & other.spec.valid_versions]


def differ(one: Edition, old: int, other: Edition, new: int) -> bool:
    return not is_read_alike(layout(one, old), layout(other, new))


def layout(one: Edition, version: int) -> Any:
    return resolve(one.at(version), version).layout()


def is_read_alike(old: Any, new: Any) -> bool:
    """Return whether both layouts produce the same bytes, whatever the field names."""
    if not isinstance(old, tuple) or not isinstance(new, tuple) or len(old) != len(new):
        # Records are bytes, and some record fields were declared as bytes.
        return str(old).replace("RECORDS", "BYTES") == str(new).replace("RECORDS", "BYTES")
    if not isinstance(old[0], tuple):
        return all(map(is_read_alike, old, new))
    (inline, form, tagged), (new_inline, new_form, new_tagged) = old, new
    tags = {tag: (name.casefold(), kind) for tag, name, kind in new_tagged}
    return (
        form == new_form
        and len(inline) == len(new_inline)
        and all(
            is_read_alike(kind, new_kind)
            for (_, kind), (_, new_kind) in zip(inline, new_inline, strict=True)
        )
        # Tagged fields may be added, but never removed.
        and all(
            tag in tags and tags[tag][0] == name.casefold() and is_read_alike(kind, tags[tag][1])
            for tag, name, kind in tagged
        )
    )


@pytest.mark.long
@pytest.mark.slow
def test_the_silent_layout_changes_of_kafka_are_those_seen_by_hand() -> None:
    silent: dict[str, set[int]] = {}
    for before, after in pairwise(catalog().releases):
        for one, other in changed(before, after):
            for told in find_changes(one, other, WIRE):
                silent.setdefault(told.message, set()).update(told.versions)
    assert silent == {name: {0} for name in SILENT.split()}


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ((ID, ID.replace("Id", "GroupId")), True),
        ((ID, ID.replace("int32", "uint32")), False),
        ((f"{ERROR_CODE}\n    {TEXT}", f"{TEXT}\n    {ERROR_CODE}"), False),
        ((RACK, ""), False),
        ((LEADER, LEADER.replace('"tag": 0', '"tag": 2')), False),
        (('"flexibleVersions": "2+"', '"flexibleVersions": "none"'), False),
        ((ID, ID.replace('"1+"', '"0-1"')), False),
    ],
)
def test_the_bytes_of_a_layout_are_told_apart(change: tuple[str, str], *, alike: bool) -> None:
    text = OLD.replace(*change, 1)
    if "none" in change[1]:
        text = text.replace(LEADER, '"int32", "versions": "2+"').replace(RACK, "")
    assert text != OLD
    assert is_read_alike(layout(edition(OLD), 3), layout(edition(text), 3)) is alike
