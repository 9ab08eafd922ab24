"""A capture that grows while it is read yields the same list as the finished capture."""

from __future__ import annotations

import gzip
import os
import random
import shutil
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.activity.growing import GrowingCaptures
from flexwire.activity.listing import to_form
from flexwire.activity.reading import ActivityReader
from flexwire.capture.files.blocks import read_file_head
from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.errors import CaptureError, StorageError
from flexwire.schema.spec import MessageType
from tests.activity.made import CAPTURES, capture_files, listed
from tests.each import each
from tests.net.broker import LOOPBACK, Broker, connected, run, serving, settled, tapped
from tests.net.test_relay import asking, echo

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# The body of a request without fields: an empty tag section.
NOTHING = b"\0"


def forms(reader: ActivityReader) -> dict[str, dict[str, Any]]:
    return {row.connection: to_form(row) for row in reader}


def first_us(path: Path) -> int:
    head = read_file_head(str(path))
    assert head is not None
    return head.first_us


@each("name", CAPTURES)
def test_growth_in_any_parts_gives_the_same_list(name: str, tmp_path: Path) -> None:
    files = sorted(capture_files(name), key=first_us)
    expected = forms(listed(files))
    chance = random.Random(name)
    for attempt in range(8):
        place = tmp_path / f"{name}-{attempt}"
        place.mkdir()
        reader, captures = ActivityReader(), GrowingCaptures([place])
        # A tap starts a new file when the previous file is full.
        for file in files:
            raw = file.read_bytes()
            cuts = sorted(chance.randrange(len(raw) + 1) for _ in range(chance.randrange(8)))
            with (place / file.name).open("wb", buffering=0) as growing:
                for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
                    growing.write(raw[begin:end])
                    reader.read(captures.poll())
        reader.finish()
        assert forms(reader) == expected
        assert reader.read(captures.poll()) == 0


def test_what_a_tap_writes_is_listed_while_it_writes(tmp_path: Path) -> None:
    reader, captures = ActivityReader(), GrowingCaptures([tmp_path])

    def seen() -> list[tuple[bool | None, int, int]]:
        reader.read(captures.poll())
        return [(row.is_open, row.requests, row.responses) for row in reader]

    async def job() -> None:
        async with serving(Broker(echo)) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.ask(asking(NOTHING))
                await settled(lambda: seen() == [(True, 1, 1)])
                tap.rotate()
                await client.ask(asking(NOTHING))
                await settled(lambda: seen() == [(True, 2, 2)])
                [row] = reader
                assert row.client == f"{LOOPBACK}:{client.port}"
            await settled(lambda: seen() == [(False, 2, 2)])
        assert len(tap.capture_paths) == 2

    run(job())
    reader.table.forget_closed()
    assert seen() == []
    files = sorted(tmp_path.iterdir())
    messages = [one for one in read_messages(files) if isinstance(one, CapturedMessage)]
    [row] = listed(files)
    assert row.requests == sum(one.type is MessageType.REQUEST for one in messages)
    assert row.responses == sum(one.type is MessageType.RESPONSE for one in messages)
    assert captures.notes == []


def poll(captures: GrowingCaptures, times: int = 3) -> int:
    return sum(ActivityReader().read(captures.poll()) for _ in range(times))


def test_a_damaged_file_is_named_once_and_the_others_are_read(tmp_path: Path) -> None:
    [whole, *_] = capture_files("hosts")
    last = capture_files("hosts")[4]
    (tmp_path / "a.pcapng").write_bytes(b"this is no capture at all")
    (tmp_path / "b.pcapng").write_bytes(last.read_bytes() + b"\x06\0\0\x06\x05\0\0\x05damaged.")
    (tmp_path / "c.pcap").write_bytes(whole.read_bytes())
    (tmp_path / "d.pcap.gz").write_bytes(gzip.compress(whole.read_bytes())[:-20])
    captures = GrowingCaptures([tmp_path])
    assert poll(captures)
    for name in (
        "a.pcapng: stopped reading: neither",
        "b.pcapng: stopped reading: invalid block length",
        "d.pcap",
    ):
        assert sum(name in text for text in captures.notes) == 1, captures.notes


def test_a_file_that_shrinks_is_named_and_one_that_is_replaced_is_read(tmp_path: Path) -> None:
    [whole, *_] = capture_files("hosts")
    file, other = tmp_path / "a.pcap", tmp_path / "other"
    file.write_bytes(whole.read_bytes())
    captures = GrowingCaptures([tmp_path])
    count = poll(captures)
    assert count
    os.truncate(file, 100)
    assert poll(captures) == 0
    assert [text.partition(": ")[2] for text in captures.notes] == [
        f"stopped reading: the file is shorter than the {whole.stat().st_size} bytes read before"
    ]
    other.write_bytes(whole.read_bytes())
    other.replace(file)
    assert poll(captures) == count
    file.unlink()
    assert poll(captures) == 0


def test_a_file_that_ends_within_a_packet_waits(tmp_path: Path) -> None:
    [whole, *_] = capture_files("hosts")
    raw = whole.read_bytes()
    file = tmp_path / "a.pcap"
    file.write_bytes(raw[:-3])
    captures = GrowingCaptures([file])
    before = poll(captures)
    [text] = captures.unfinished()
    assert text.endswith("bytes are not a complete packet")
    file.write_bytes(raw)
    assert before + poll(captures) == poll(GrowingCaptures([file]))
    assert captures.unfinished() == captures.notes == []


@pytest.mark.parametrize("paths", [["no-such"], ["no-such/*.pcap"]])
def test_a_path_that_is_not_there_is_an_error(paths: Iterable[str]) -> None:
    with pytest.raises(CaptureError):
        poll(GrowingCaptures(paths))


def test_a_directory_may_be_empty_until_it_must_not_be(tmp_path: Path) -> None:
    captures = GrowingCaptures([tmp_path])
    assert poll(captures) == 0
    with pytest.raises(CaptureError, match="no file in this directory ends in"):
        list(captures.poll(must_exist=True))


def test_if_no_file_is_a_capture_the_first_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_text("not a capture")
    captures = GrowingCaptures([tmp_path])
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        list(captures.poll(must_exist=True))
    assert poll(captures) == 0
    assert len(captures.notes) == 1


def test_an_object_store_is_refused() -> None:
    with pytest.raises((StorageError, CaptureError)):
        poll(GrowingCaptures(["memory://captures"]))


def test_a_file_that_is_touched_while_it_is_read_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = forms(listed(capture_files("everything")))
    looked, times = Path.stat, count(1)

    def touched(path: Path, **how: Any) -> os.stat_result:
        status = looked(path, **how)
        if path.is_relative_to(tmp_path) and path.suffix:
            os.utime(path, ns=(0, next(times)))
        return status

    monkeypatch.setattr(Path, "stat", touched)
    reader, captures = ActivityReader(), GrowingCaptures([tmp_path])
    for file in sorted(capture_files("everything"), key=first_us):
        shutil.copy(file, tmp_path)
        reader.read(captures.poll())
    reader.finish()
    assert forms(reader) == expected
    assert not [text for text in captures.notes if "stopped reading" in text]
