"""`flexwire records dump`: what its options do, how it reads, and its exit codes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.cli import main
from flexwire.cli.records_dump_options import DECODER_NAMES, NOTATIONS, ConventionName
from flexwire.cli.records_dump_rows import sequence_of, show_bytes, typed_headers
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.records import decode_batches
from flexwire.records.conventions import CONVENTIONS
from tests.capture.log_vectors import BASE, data_of, write, write_all
from tests.records.inflating import FORMS
from tests.records.kip82_bytes import new_message, new_wrapper

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]
ORDERS, TX = f"orders-none-0/{BASE}.log", f"tx-0/{BASE}.log"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("logs")
    write_all(made)
    return made


class Run:
    """Run the command in this process, and keep its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.patch = patch
        self.code: object = None
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: object) -> Run:
        given = [str(one) for one in arguments]
        self.patch.setattr(sys, "argv", ["flexwire", "records", "dump", *given])
        with pytest.raises(SystemExit) as caught:
            main()
        self.code = caught.value.code
        self.out, self.err = self.capsys.readouterr()
        return self

    def rows(self, *arguments: object) -> list[Row]:
        self(*arguments, "--format", "json")
        assert self.err == ""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


def of(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["type"] == kind]


# The messages that the command prints.


def test_batches_alone_unless_asked(run: Run, root: Path) -> None:
    rows = run.rows(root / TX)
    assert [row["type"] for row in rows] == ["file"] + ["batch"] * 6
    assert run.code == 0
    assert {row["file"] for row in rows} == {str(root / TX)}


@pytest.mark.parametrize(
    "option", [["--deep"], ["--key", "hex"], ["--value", "auto"], ["--headers", "utf-8"]]
)
def test_what_is_about_records_shows_them(run: Run, root: Path, option: list[str]) -> None:
    assert len(of(run.rows(root / TX, *option), "record")) == 12


@pytest.mark.parametrize(
    ("offsets", "records", "batches"),
    [
        ("9-12", [9, 10, 11, 12], 2),
        ("40-", [40, 41], 2),
        ("-1", [0, 1], 1),
        ("39", [39], 1),
        ("500-", [], 0),
    ],
)
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_offsets(
    run: Run, root: Path, codec: str, offsets: str, records: list[int], batches: int
) -> None:
    log = root / f"orders-{codec}-0/{BASE}.log"
    rows = run.rows(log, "--deep", "--offsets", offsets)
    assert [row["offset"] for row in of(rows, "record")] == records
    assert len(of(rows, "batch")) == batches
    assert len(of(run.rows(log, "--offsets", offsets), "batch")) == batches


@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_within_a_wrapper(run: Run, root: Path, magic: int) -> None:
    log = root / f"old-{magic}-0/00000000000000000100.log"
    rows = run.rows(log, "--deep", "--offsets", "109-112")
    assert [row["offset"] for row in of(rows, "record")] == [109, 110, 111, 112]


@pytest.mark.parametrize(
    ("times", "offsets"),
    [
        ("2023-11-14T22:13:29/2023-11-14T22:13:31", [9, 10, 11]),
        ("2023-11-15T00:13:29+02:00/1700000011000", [9, 10, 11]),
        ("2023-11-14T22:15/", [40, 41]),
        ("/1700000000999", [0]),
        ("2024-01-01/", []),
    ],
)
def test_times(run: Run, root: Path, times: str, offsets: list[int]) -> None:
    rows = run.rows(root / ORDERS, "--deep", "--time", times)
    assert [row["offset"] for row in of(rows, "record")] == offsets
    # A batch without a record in this time range is not shown.
    for batch in of(rows, "batch"):
        assert any(batch["baseOffset"] <= one <= batch["lastOffset"] for one in offsets)


def test_times_by_the_headers_of_batches(run: Run, root: Path) -> None:
    rows = run.rows(root / ORDERS, "--time", "2023-11-14T22:13:35/2023-11-14T22:13:39")
    assert [row["baseOffset"] for row in of(rows, "batch")] == [11]
    # The time is between the producer's time and the broker's; the records have the broker's time.
    appended = run.rows(root / f"append-0/{BASE}.log", "--time", "/1795252746181")
    assert [row["baseOffset"] for row in of(appended, "batch")] == [0, 1]
    assert of(run.rows(root / f"append-0/{BASE}.log", "--time", "/1795252746165"), "batch") == []
    # A delete horizon is later than any record, and is stored as the first timestamp.
    compacted = run.rows(root / f"compacted-0/{BASE}.log", "--time", "/1795252754325")
    assert [row["baseOffset"] for row in of(compacted, "batch")] == [32]


@pytest.mark.parametrize("given", ["5-1", "-", "", "x", "1-2-3", "--1"])
def test_ranges_that_are_none(run: Run, root: Path, given: str) -> None:
    assert run(root / TX, "--offsets", given).code == 2


@pytest.mark.parametrize("given", ["/", "now", "2023", "x/", "2024-01-01/2023-01-01"])
def test_times_that_are_none(run: Run, root: Path, given: str) -> None:
    assert run(root / TX, "--time", given).code == 2


@pytest.mark.parametrize(("most", "positions"), [(0, []), (738, [0]), (739, [0, 738])])
def test_max_bytes_reads_the_start_alone(
    run: Run, root: Path, most: int, positions: list[int]
) -> None:
    rows = run.rows(root / ORDERS, "--max-bytes", most)
    assert [row["position"] for row in of(rows, "batch")] == positions
    assert run.code == 0


def test_parts_can_be_left_out(run: Run, root: Path) -> None:
    rows = run.rows(root / TX, "--deep", "--without", "batches", "--without", "metadata")
    assert {row["type"] for row in rows} == {"file", "record"}
    assert rows[1].keys() == {"type", "file", "key", "value", "headers"}
    rows = run.rows(root / TX, "--deep", "--without", "content")
    record = of(rows, "record")[0]
    assert record.keys() == {
        *("type", "file", "offset", "timestamp", "sequence", "keySize", "valueSize")
    }


def test_a_directory_is_all_that_is_known_in_it(run: Run, root: Path) -> None:
    rows = run.rows(root / "tx-0")
    assert [row["file"].rpartition("/")[2] for row in of(rows, "file")] == [
        f"{BASE}.log",
        f"{BASE}.index",
        f"{BASE}.timeindex",
        f"{BASE}.txnindex",
        "00000000000000000012.snapshot",
        "leader-epoch-checkpoint",
    ]
    kinds = {row["type"] for row in rows}
    assert kinds >= {
        *("offset-index-entry", "time-index-entry", "aborted-transaction", "producer"),
        "checkpoint-entry",
    }


def test_gaps_between_offsets(run: Run, root: Path) -> None:
    data = data_of(ORDERS)
    log = write(root, f"gaps-0/{BASE}.log", data[:738] + data[1389:])
    assert of(run.rows(log, "--deep"), "gap") == [
        {"type": "gap", "file": str(log), "after": 10, "before": 21}
    ]
    # Compaction leaves gaps, so gaps are not damage.
    assert run.code == 0
    assert of(run.rows(log, "--deep", "--offsets", "9-22"), "gap") == []


# Internal topics, and notations of values.


def test_the_directory_names_the_decoder(run: Run, root: Path) -> None:
    log = root / f"__consumer_offsets-0/{BASE}.log"
    by_name = run.rows(log, "--deep")
    assert by_name == run.rows(log, "--decode", "consumer-offsets")
    elsewhere = write(root, f"copied/{BASE}.log", log.read_bytes())
    copied = run.rows(elsewhere, "--decode", "consumer-offsets")
    contents = [[row.get("key"), row.get("value")] for row in by_name]
    assert contents == [[row.get("key"), row.get("value")] for row in copied]


def test_what_does_not_decode_is_shown_and_told(run: Run, root: Path) -> None:
    rows = run.rows(root / TX, "--decode", "metadata", "--show-credentials")
    record, finding = of(rows, "record")[0], of(rows, "finding")[0]
    assert record["value"]["base64"] == "djA="
    assert record["value"]["reason"] in finding["reason"]
    assert finding["reason"].startswith("offset 0: ")
    assert run.code == 100


def test_what_a_newer_kafka_wrote_is_shown_and_no_finding(run: Run, root: Path) -> None:
    rows = run.rows(root / TX, "--decode", "consumer-offsets")
    assert "record type" in of(rows, "record")[0]["value"]["reason"]
    assert run.code == 0


@pytest.mark.parametrize(
    ("data", "notation", "expected"),
    [
        (None, "hex", None),
        (b"", "auto", ""),
        (b"\xff", "auto", {"base64": "/w=="}),
        ("é".encode(), "auto", "é"),
        (b"\x01\xff", "hex", {"hex": "01ff"}),
        (b"ab", "base64", {"base64": "YWI="}),
        (b"\xff", "int8", -1),
        (b"\xff\xfe", "int16", -2),
        (b"\0\0\1\0", "int32", 256),
        (b"\x80" + bytes(7), "int64", -(2**63)),
        (b"\x3f\x80\0\0", "float32", 1.0),
        (b"\x7f\xf0" + bytes(6), "float64", "Infinity"),
        (b"abc", "int32", {"base64": "YWJj"}),
        (bytes(range(16)), "uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (b"short", "uuid", {"base64": "c2hvcnQ="}),
    ],
)
def test_notations(data: bytes | None, notation: str, expected: Any) -> None:
    assert show_bytes(data, notation) == expected


def test_after_the_highest_sequence_comes_zero() -> None:
    [batch] = decode_batches(data_of(TX)[:94])
    batch.base_sequence = 2**31 - 2
    assert [sequence_of(batch, offset) for offset in (0, 1, 2)] == [2**31 - 2, 2**31 - 1, 0]


def test_headers_by_their_convention(run: Run, root: Path) -> None:
    rows = run.rows(root / ORDERS, "--offsets", "0", "--headers", "utf-8")
    headers = of(rows, "record")[0]["headers"]
    assert headers[0] == {"key": "trace", "type": "str", "value": "a0"}
    assert headers[3] == {"key": "null", "value": None}
    assert headers[5]["value"]["base64"] == "AP8H"
    assert "UTF-8" in headers[5]["value"]["reason"]


@pytest.mark.parametrize(
    ("convention", "data", "expected"),
    [
        ("connect", b"3", {"type": "int", "value": 3}),
        ("connect", b"[1,null,true]", {"type": "list", "value": [1, None, True]}),
        ("connect", b"9" * 30, {"type": "Decimal", "value": "9" * 30}),
        ("connect", b"2024-01-31", {"type": "date", "value": "2024-01-31"}),
        ("kip-82", b"\x04\0\0\0\x03", {"type": "int", "value": 3}),
        ("kip-82", b"\x02\xd8\0", {"type": "char", "value": r"\ud800"}),
        ("kip-82", b"\x07\x7f\xf8" + bytes(6), {"type": "double", "value": "NaN"}),
        ("kip-82", b"\x09\xff", {"type": "byte[]", "value": {"base64": "/w=="}}),
        ("kip-82", b"", {}),
    ],
)
def test_typed_header_values(convention: str, data: bytes, expected: Row) -> None:
    [header] = typed_headers(CONVENTIONS[convention], [(b"k", data)])
    json.dumps(header, allow_nan=False)
    if "type" in expected:
        assert header == {"key": "k", **expected}
    else:
        assert header["value"]["base64"] == ""
        assert header["value"]["reason"]


def test_header_types_by_hand(run: Run, root: Path) -> None:
    given = ["--headers", "kip-1308", "--header-type", "trace=short"]
    rows = run.rows(root / ORDERS, "--offsets", "0", *given)
    assert of(rows, "record")[0]["headers"][0] == {"key": "trace", "type": "int", "value": 24880}
    assert run(root / ORDERS, *given[2:]).code == 2
    assert run(root / ORDERS, *given[:3], "trace").code == 2
    assert run(root / ORDERS, *given[:3], "trace=word").code == 1


def test_the_options_name_all_there_is() -> None:
    assert list(CONVENTIONS) == list(ConventionName().choices)
    assert [topic.value for topic in InternalTopic] == list(DECODER_NAMES)
    assert len(set(NOTATIONS)) == len(NOTATIONS)


# Damage, and where the damage ends.


def flip(data: bytearray) -> bytearray:
    data[900] ^= 1
    return data


DAMAGE: dict[str, tuple[Callable[[bytearray], bytes | bytearray], str]] = {
    "flipped": (flip, "the declared crc is"),
    "cut": (
        lambda data: data[:-100],
        "the batch declares 3074 bytes, but the file ends after 2974",
    ),
    "twice": (lambda data: data + data[:738], "base offset 0, expected 42 or more"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_told_with_its_place(run: Run, tmp_path: Path, name: str) -> None:
    edit, reason = DAMAGE[name]
    log = write(tmp_path, ORDERS, bytes(edit(bytearray(data_of(ORDERS)))))
    rows = run.rows(log, "--deep")
    [finding] = of(rows, "finding")
    assert reason in finding["reason"]
    assert run.code == 100
    assert of(run.rows(log, "--findings"), "batch") == []
    assert run.code == 100


def test_a_damaged_batch_is_shown_as_far_as_it_reads(run: Run, root: Path) -> None:
    rows = run.rows(root / f"flipped-0/{BASE}.log", "--deep")
    assert [row["isValid"] for row in of(rows, "batch")] == [True, False, True, True, True]
    assert len(of(rows, "record")) == 42
    damaged = write(root, f"inflated-0/{BASE}.log", data_of(f"orders-zstd-0/{BASE}.log"))
    with damaged.open("r+b") as file:
        file.seek(400)
        file.write(b"\xff\xff\xff")
    reasons = [row["reason"] for row in of(run.rows(damaged, "--deep"), "finding")]
    assert len(reasons) == 2
    assert "crc" in reasons[0]
    assert "of the inflated records" in reasons[1]


def test_indexes_beside_a_log_are_compared_with_it(run: Run, root: Path) -> None:
    log = root / f"index-offset-0/{BASE}.log"
    [finding] = of(run.rows(log), "finding")
    assert finding["file"] == str(log.with_suffix(".index"))
    # If the index is also given, it is still compared only once.
    assert len(of(run.rows(log, log.with_suffix(".index")), "finding")) == 1
    assert of(run.rows(log, "--offsets", "0-5"), "finding") == []


def test_a_log_of_another_name_is_read_all_the_same(run: Run, tmp_path: Path) -> None:
    log = write(tmp_path, "copies/orders.log", data_of(ORDERS))
    write(tmp_path, "copies/orders.index", bytes(3))
    assert len(of(run.rows(log), "batch")) == 5
    assert run.code == 0


@pytest.mark.parametrize(
    ("name", "code"), [("notes.txt", 1), ("42.index", 1), ("absent.log", 2), ("empty", 1)]
)
def test_files_that_cannot_be_dumped(run: Run, tmp_path: Path, name: str, code: int) -> None:
    if name == "empty":
        (tmp_path / name).mkdir()
    elif name != "absent.log":
        (tmp_path / name).write_bytes(bytes(16))
    assert run(tmp_path / name).code == code
    assert name in run.err


def test_an_empty_log(run: Run, tmp_path: Path) -> None:
    assert [row["type"] for row in run.rows(write(tmp_path, ORDERS, b""))] == ["file"]


def test_text_says_what_there_was(run: Run, root: Path) -> None:
    run(root / f"flipped-0/{BASE}.log", "--deep", "--offsets", "9-12")
    assert run.out.splitlines()[-1] == "1 file, 2 batches, 4 records, 1 finding"
    assert (
        "! 651 bytes at 738: the declared crc is 0x7a34c9db, but the actual crc is 0x7c2eef92"
        in run.out
    )
    assert 'key order-9  value {"state":"paid","n":9}' in run.out
    assert "header binary 0x00ff07" in run.out
    assert "\x1b" not in run.out


def test_a_batch_beyond_its_bound_is_a_finding(run: Run, tmp_path: Path) -> None:
    form = FORMS["magic 2, zstd"]
    data = form.packed(form.body([bytes(1 << 21)]), 1)
    log = write(tmp_path, f"bombs-0/{BASE}.log", data)
    [told] = of(run.rows(log, "--deep", "--batch-mib", 1), "finding")
    assert run.code == 100
    assert (told["position"], told["size"]) == (0, len(data))
    assert "the records inflate to more than 1048576 bytes" in told["reason"]
    read = run.rows(log, "--deep", "--batch-mib", 3)
    assert (len(of(read, "record")), of(read, "finding")) == (1, [])
    # A wrapper in KIP-82's own format has the same limit.
    log = write(tmp_path, f"old-0/{BASE}.log", new_wrapper(new_message(bytes(1 << 21))))
    [told] = of(run.rows(log, "--dialect", "kip-82", "--batch-mib", 1), "finding")
    assert "inflate to more than 1048576 bytes" in told["reason"]
