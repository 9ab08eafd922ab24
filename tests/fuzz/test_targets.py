"""Every fuzz target passes on its own corpus and on damaged inputs, and detects a broken law."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.definition import Definition
from fuzz.__main__ import NAMES
from fuzz.corpus import corpus, write
from fuzz.law import LawBrokenError
from fuzz.targets import HEAD_BYTES, TARGETS, case_of, head, pairs
from tests.capture import test_accounts
from tests.columnar import test_odd_arrays
from tests.traced import traced

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RAW = bytes.fromhex("001200030000000700016100")
SOUND = head("RequestHeader", 2) + RAW


@cache
def some(target: str) -> list[bytes]:
    """Return a sample of a target's inputs, of every kind; ``make fuzz`` uses all inputs."""
    whole = list(corpus(target))
    return whole[:: max(1, len(whole) // 40)]


@pytest.mark.parametrize("target", NAMES)
def test_sound_and_damaged_inputs_pass(target: str) -> None:
    source = random.Random(target)
    for data in some(target):
        TARGETS[target](data)
        damaged = bytearray(data)
        for _ in range(3):
            damaged[source.randrange(len(damaged))] = source.choice([0, 0x7F, 0x80, 0xFF])
            TARGETS[target](bytes(damaged))
        TARGETS[target](bytes(damaged[: source.randrange(len(damaged))]))


# The memory that any input may take: twice what reading a capture takes. Inflated data has a lower
# limit.
FIXED_BYTES = 2 << 20
# These targets read data in several ways and search for the beginning of a block, so they need more
# memory.
MORE = {"pieces": 16 << 20}
LIES = [bytes.fromhex(lie) for lie in ("000f4240", "7fffffff", "00ffffff", "c1843d", "ffffffff07")]


@pytest.mark.long
@pytest.mark.parametrize("target", NAMES)
def test_memory_stays_in_proportion_to_the_input(target: str) -> None:
    source = random.Random(target)
    for data in some(target)[::4]:
        # Everything that is compiled only once is compiled here, before memory is measured.
        TARGETS[target](data)
        for lie in LIES:
            at = source.randint(HEAD_BYTES, max(HEAD_BYTES, len(data) - len(lie)))
            lying = data[:at] + lie + data[at + len(lie) :]
            with traced() as memory:
                TARGETS[target](lying)
            assert memory.most <= FIXED_BYTES + MORE.get(target, 0) + 1000 * len(lying)


@pytest.mark.parametrize("target", NAMES)
def test_inputs_of_few_bytes_pass(target: str) -> None:
    for data in (b"", b"\x00", b"\xff\xff", b"\xff\xff\xff", b"\x00\x00\x00\x00"):
        TARGETS[target](data)


def test_the_names_are_those_of_the_targets() -> None:
    assert set(NAMES) == set(TARGETS)


def test_a_case_is_a_message_of_the_catalog() -> None:
    case = case_of(head("RequestHeader", 2, Encoding.FIXED) + b"rest")
    assert case is not None
    assert (case.kind, case.version) == (message("RequestHeader"), 2)
    assert (case.encoding, case.body) == (Encoding.FIXED, b"rest")
    assert case_of(b"\xff" * HEAD_BYTES) is not None
    assert len(pairs()) < 2**16


def test_inputs_of_messages_are_messages() -> None:
    for data in some("generated"):
        case = case_of(data)
        assert case is not None
        case.kind.decode(case.body, case.version, encoding=case.encoding)


def test_writing_a_corpus_keeps_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "found").write_bytes(b"new")
    write("captures", tmp_path)
    assert (tmp_path / "found").read_bytes() == b"new"
    written = sorted(path.read_bytes() for path in tmp_path.glob("sound-*"))
    assert written == sorted(corpus("captures"))


def planted(monkeypatch: pytest.MonkeyPatch, name: str, change: Any) -> None:
    usual = getattr(Definition, name)

    def wrong(*arguments: Any, **options: Any) -> Any:
        return change(usual(*arguments, **options))

    monkeypatch.setattr(Definition, name, wrong)


@pytest.mark.parametrize(
    ("target", "method", "change"),
    [
        ("generated", "encode_generated", lambda raw: raw + b"\x00"),
        ("generated", "decode", lambda read: (read[0], read[1] + 1)),
        ("reference", "encode_reference", lambda raw: raw[:-2] + b"b\x00"),
        ("kernels", "encode_reference", lambda raw: raw + b"\x00"),
        ("kernels", "decode_reference", lambda read: (read[0].replace(client_id="b"), read[1])),
        ("kernels", "decode_reference", lambda read: (read[0], read[1] - 1)),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, target: str, method: str, change: Any
) -> None:
    TARGETS[target](SOUND)
    planted(monkeypatch, method, change)
    with pytest.raises(LawBrokenError, match=f"RequestHeader v2, kafka.*\n.*{RAW.hex()}"):
        TARGETS[target](SOUND)


@pytest.mark.parametrize(
    ("target", "law"),
    [("connections", test_accounts.hold_account), ("columns", test_odd_arrays.check_records)],
)
def test_a_target_of_choices_sees_a_law_that_is_broken(
    monkeypatch: pytest.MonkeyPatch, target: str, law: Any
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("planted")

    monkeypatch.setitem(law.__globals__, law.__name__, broken)
    inputs = list(corpus(target))
    with pytest.raises(AssertionError, match="planted"):
        list(map(TARGETS[target], inputs))


def test_another_exception_than_ours_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("planted")

    monkeypatch.setattr(Definition, "decode_reference", fail)
    with pytest.raises(IndexError, match="planted"):
        TARGETS["reference"](SOUND)


@pytest.mark.long
def test_one_input_is_tried_without_atheris(tmp_path: Path) -> None:
    crash = tmp_path / "crash"
    crash.write_bytes(SOUND)
    for target in ("generated", "captures"):
        command = [sys.executable, "-m", "fuzz", target, "--input", str(crash)]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_what_fuzzing_needs_is_pinned() -> None:
    text = (ROOT / "fuzz" / "requirements.lock").read_text(encoding="utf-8")
    entry = r"[a-z-]+==[0-9.]+(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert re.fullmatch(f"(?:{entry})+", text)
    assert text.startswith("atheris==")
