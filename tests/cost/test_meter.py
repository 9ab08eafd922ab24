from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import EncodeError
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.meter import (
    DIFFERENT_REASONS,
    ComparisonSide,
    CostMeter,
    SentMessage,
    VersionChoice,
)
from flexwire.specs.cost.sides import SideSpecs, bundled_specs
from flexwire.specs.cost.vectors import read_vectors
from flexwire.wire.encoding import Encoding
from tests.codec.vectors import has_changed, load
from tests.cost.made import body, compare, sent, spec, totals
from tests.searching import in_make_long

VECTORS = Path(__file__).parents[1] / "vectors" / "messages.jsonl.gz"


@cache
def vectors() -> list[SentMessage]:
    changed = {
        (name, one["version"]) for name, made in load().items() for one in made if has_changed(one)
    }
    return [one for one in read_vectors(VECTORS) if (one.name, one.version) not in changed]


def measured(old: Encoding, new: Encoding, times: int = 1, *, every: int = 1) -> CostMeter:
    specs = bundled_specs()
    meter = CostMeter(ComparisonSide(specs, old), ComparisonSide(specs, new))
    for _ in range(times):
        for one in vectors()[::every]:
            meter.add(one)
    return meter


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, *in_make_long(1)])
@pytest.mark.parametrize("encoding", Encoding)
def test_totals_are_what_the_codec_writes_and_fields_add_up_to_them(
    encoding: Encoding, every: int
) -> None:
    meter = measured(Encoding.KAFKA, encoding, every=every)
    old: dict[tuple[str, int], int] = {}
    new: dict[tuple[str, int], int] = {}
    refused = 0
    for one in vectors()[::every]:
        decoded = message(one.name).decode(one.body, one.version)
        try:
            written = decoded.encode(one.version, encoding=encoding)
        except EncodeError:
            refused += 1
            continue
        key = one.name, one.version
        old[key] = old.get(key, 0) + len(one.body)
        new[key] = new.get(key, 0) + len(written)
    rows = {key: row for key, row in meter.rows.items() if row.messages}
    assert {key: row.whole.old.total for key, row in rows.items()} == old
    assert {key: row.whole.new.total for key, row in rows.items()} == new
    assert sum(one.times for one in meter.uncompared.values()) == refused
    for row in rows.values():
        assert sum(pair.old.total for pair in row.fields.values()) == row.body.old.total
        assert sum(pair.new.total for pair in row.fields.values()) == row.body.new.total
        assert row.saved.total == row.whole.saved
        assert not row.lost


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, *in_make_long(1)])
@pytest.mark.parametrize("encoding", Encoding)
def test_a_side_against_itself_saves_nothing_anywhere(encoding: Encoding, every: int) -> None:
    for row in measured(encoding, encoding, every=every).rows.values():
        assert row.saved.least == row.saved.most == 0
        for pair in (row.whole, row.header, row.body, *row.fields.values()):
            assert pair.saved == 0


@pytest.mark.long
@pytest.mark.slow
def test_the_sides_the_other_way_about_save_the_opposite() -> None:
    there = measured(Encoding.FIXED, Encoding.KAFKA, every=3)
    back = measured(Encoding.KAFKA, Encoding.FIXED, every=3)
    assert totals(there) == totals(back)[::-1]
    for key, row in there.rows.items():
        assert row.saved.total == -back.rows[key].saved.total


@pytest.mark.slow
def test_traffic_that_is_sent_twice_costs_twice() -> None:
    once, twice = (measured(Encoding.FIXED, Encoding.FLEXIBLE, times, every=5) for times in (1, 2))
    assert totals(twice) == tuple(2 * one for one in totals(once))
    for key, row in once.rows.items():
        again = twice.rows[key]
        assert again.messages == 2 * row.messages
        assert again.saved.median == row.saved.median
        for path, pair in row.fields.items():
            assert again.fields[path].old.total == 2 * pair.old.total
    for place, one in once.uncompared.items():
        assert twice.uncompared[place].times == 2 * one.times


def test_headers_are_counted_apart_and_follow_flexibility() -> None:
    specs = bundled_specs()
    header = message("RequestHeader")(request_api_key=3, client_id="ab")
    reply = message("ResponseHeader")(correlation_id=1)
    cases = [
        # The client id is fixed; flexibility costs one count of tagged fields.
        ("MetadataRequest", 3, MessageType.REQUEST, header, (12, 13)),
        ("MetadataResponse", 3, MessageType.RESPONSE, reply, (4, 5)),
        # These are two headers that never change.
        ("ApiVersionsResponse", 18, MessageType.RESPONSE, reply, (4, 4)),
        ("ControlledShutdownRequest", 7, MessageType.REQUEST, header, (8, 8)),
    ]
    for name, api_key, kind, head, expected in cases:
        meter = CostMeter(
            ComparisonSide(specs, Encoding.FIXED), ComparisonSide(specs, Encoding.FLEXIBLE)
        )
        raw = message(name)().encode(0)
        meter.add(SentMessage(name, api_key, kind, 0, raw, head))
        (row,) = meter.rows.values()
        assert (row.header.old.total, row.header.new.total) == expected, name
        assert row.whole.old.total == row.header.old.total + row.body.old.total
        assert row.whole.new.total == row.header.new.total + row.body.new.total


def test_a_draft_writes_the_header_too() -> None:
    header = message("RequestHeader")(client_id="ab", unknown_tagged_fields={5: b"data"})
    specs = bundled_specs()
    sizes = {}
    for encoding in (Encoding.KAFKA, Encoding.INTERLEAVED, Encoding.OPTIONAL_BUFFERS):
        meter = CostMeter(ComparisonSide(specs), ComparisonSide(specs, encoding))
        raw = message("MetadataRequest")(topics=[]).encode(9)
        meter.add(SentMessage("MetadataRequest", 3, MessageType.REQUEST, 9, raw, header))
        (row,) = meter.rows.values()
        sizes[encoding] = row.header.new.total
    assert list(sizes.values()) == [19, 18, 20]


def test_a_field_that_is_gone_saves_its_bytes_and_its_values_are_counted() -> None:
    old = spec({"name": "Kept", "type": "int32"}, {"name": "Gone", "type": "int64"})
    new = spec({"name": "Kept", "type": "int32"})
    meter = compare(old, new, body(old, kept=1), body(old, kept=1, gone=2))
    (row,) = meter.rows.values()
    assert (row.body.old.total, row.body.new.total) == (26, 10)
    assert (row.lost, row.losing) == ({"gone": 1}, 1)
    assert row.fields["gone"].old.total == 16
    assert row.fields["gone"].new.count == 0


def test_a_field_that_is_new_costs_its_default() -> None:
    old = spec({"name": "Kept", "type": "int32"})
    new = spec({"name": "Kept", "type": "int32"}, {"name": "Added", "type": "int64"})
    assert totals(compare(old, new, body(old))) == (5, 13)


def test_a_field_that_is_renamed_is_the_same_field() -> None:
    def made(outer: str, inner: str) -> dict[str, object]:
        fields = [{"name": inner, "type": "string", "versions": "0+"}]
        return {"name": outer, "type": "[]Item", "fields": fields}

    old, new = spec(made("Old", "Before")), spec(made("New", "After"))
    meter = compare(old, new, body(old, old=[{"before": "abc"}]))
    (row,) = meter.rows.values()
    assert totals(meter) == (7, 7)
    assert not row.lost
    assert set(row.fields) == {"new", "new[].after", "new[]._taggedFields", "_taggedFields"}
    assert all(pair.saved == 0 for pair in row.fields.values())


def test_a_value_that_does_not_fit_is_left_out_and_counted() -> None:
    old, new = spec({"name": "Size", "type": "int64"}), spec({"name": "Size", "type": "int8"})
    meter = compare(old, new, body(old, size=7), body(old, size=1000), body(old, size=2000))
    assert totals(meter) == (9, 2)
    ((place, told),) = meter.uncompared.items()
    assert place == ("Ping 0", "cannot be written with the new specs: size")
    assert (told.times, told.bytes) == (2, 18)
    assert "1000 is not in INT8's range" in told.example


def test_a_credential_is_not_shown_in_an_example() -> None:
    specs = bundled_specs()
    meter = CostMeter(ComparisonSide(specs), ComparisonSide(specs, Encoding.FIXED))
    made = message("SaslAuthenticateRequest")(
        auth_bytes=b"secret", unknown_tagged_fields={1: b"secret"}
    )
    meter.add(SentMessage("SaslAuthenticateRequest", 36, MessageType.REQUEST, 2, made.encode(2)))
    ((_, told),) = meter.uncompared.items()
    assert (told.times, told.example) == (1, "")


def test_what_does_not_decode_or_is_unknown_is_counted_by_its_reason() -> None:
    old = spec({"name": "Size", "type": "int32"})
    meter = compare(old, old, b"\0", b"\0\0", body(old))
    for version, name in ((3, "Ping"), (0, "Pong")):
        meter.add(sent(body(old), version, name))
    told = {place: (one.times, one.bytes) for place, one in meter.uncompared.items()}
    assert told == {
        ("Ping 0", "does not decode: size"): (2, 3),
        ("Ping 3", "the old specs do not contain this version"): (1, 5),
        ("Pong 0", "the old specs do not contain this message"): (1, 5),
    }
    assert totals(meter) == (5, 5)


def test_the_new_specs_may_lack_a_message_or_a_version() -> None:
    old = spec({"name": "Size", "type": "int32"}, valid="0-2")
    meter = compare(old, spec(valid="1-2"), body(old))
    assert list(meter.uncompared) == [("Ping 0", "the new specs do not contain this version")]
    meter = CostMeter(ComparisonSide(SideSpecs({"Ping": old})), ComparisonSide(SideSpecs({})))
    meter.add(sent(body(old)))
    assert list(meter.uncompared) == [("Ping 0", "the new specs do not contain this message")]


def test_reasons_that_hostile_traffic_invents_are_bounded() -> None:
    old = spec()
    meter = compare(old, old)
    for number in range(DIFFERENT_REASONS + 50):
        meter.add(sent(b"", 0, f"Name{number}"))
        meter.leave_out("frame", f"reason {number}", 1)
    assert len(meter.uncompared) == DIFFERENT_REASONS + 1
    assert sum(one.times for one in meter.uncompared.values()) == 2 * (DIFFERENT_REASONS + 50)
    assert len(meter._plans) == DIFFERENT_REASONS


def test_a_message_of_another_name_is_found_by_its_api_key() -> None:
    fields = ({"name": "Size", "type": "int32"},)
    about: dict[str, Any] = {"apiKey": 2, "type": "request"}
    old, new = spec(*fields, name="OldRequest", **about), spec(*fields, name="NewRequest", **about)
    meter = CostMeter(
        ComparisonSide(SideSpecs({"OldRequest": old})),
        ComparisonSide(SideSpecs({"NewRequest": new})),
    )
    meter.add(SentMessage("OldRequest", 2, MessageType.REQUEST, 0, body(old)))
    assert totals(meter) == (5, 5)
    meter.add(SentMessage("OtherRequest", 2, MessageType.REQUEST, 0, body(old)))
    assert totals(meter) == (10, 10)
    meter.add(SentMessage("OtherResponse", 2, MessageType.RESPONSE, 0, body(old)))
    assert [place[0] for place in meter.uncompared] == ["OtherResponse 0"]


GROWING = (
    {"name": "Id", "type": "int32"},
    {"name": "Name", "type": "string", "versions": "0-1"},
    {"name": "Note", "type": "string", "versions": "2+"},
)


@pytest.mark.parametrize(
    ("at", "version", "expected"),
    [
        # Versions 0, 1 and 2 without tags: id 4 bytes, name 2 + 1; 2: note 2; 3: id and note as 8.
        (VersionChoice.SENT, 0, (7, 7)),
        (VersionChoice.SENT, 2, (6, 8)),
        (VersionChoice.UPGRADE, 2, (6, 8)),
        (VersionChoice.NEWEST, 2, (6, 8)),
        (VersionChoice.UPGRADE, 0, None),
        (VersionChoice.NEWEST, 0, None),
    ],
)
def test_messages_are_compared_at_the_versions_asked_for(
    at: VersionChoice, version: int, expected: tuple[int, int] | None
) -> None:
    old = spec(*GROWING, valid="0-2", flexible="none")
    new = spec(
        *GROWING,
        {"name": "More", "type": "int16", "versions": "3+"},
        valid="0-3",
        flexible="none",
    )
    raw = body(old, version, **({"name": "n"} if version < 2 else {}))
    meter = compare(old, new, raw, version=version, at=at)
    if expected is None:
        assert list(meter.uncompared) == [(f"Ping {version}", "version 2 has no field for name")]
    else:
        assert totals(meter) == expected


def test_an_upgrade_is_measured_from_what_was_sent() -> None:
    old = spec({"name": "A", "type": "int32"}, {"name": "B", "type": "int32", "versions": "1+"},
               valid="0-1", flexible="none")  # fmt: skip
    found = {
        at: totals(compare(old, old, body(old, 0, a=1), version=0, at=at))
        for at in (VersionChoice.SENT, VersionChoice.UPGRADE, VersionChoice.NEWEST)
    }
    assert found == {
        VersionChoice.SENT: (4, 4),
        VersionChoice.UPGRADE: (4, 8),
        VersionChoice.NEWEST: (8, 8),
    }
