"""`flexwire records dump` shows credentials of a cluster's metadata only on request."""

from __future__ import annotations

import base64
import io
import sys
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.protocol.credentials import CREDENTIALS
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.record_types import framed_messages
from flexwire.records import Record, encode_batch
from tests.capture.made_metadata import TIME, TYPES
from tests.cli.test_records_dump import Run

if TYPE_CHECKING:
    from pathlib import Path

METADATA = "__cluster_metadata-0"
SNAPSHOT, SEGMENT = f"{186:020}-0000000001.checkpoint", f"{0:020}.log"
# The secret is long enough that no part of it occurs by chance.
SECRET = "s3cr3t-0f-@lic3!"  # noqa: S105  # it is only a placeholder
OF_METADATA = {name for names in framed_messages(InternalTopic.METADATA.module).values()
               for name in names}  # fmt: skip
SECRETS = [one for one in CREDENTIALS if one.message_name in OF_METADATA]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


def value(name: str, version: int = 0) -> bytes:
    """Return a record with the secret in each field that may contain one."""
    made: Any = message(name)()
    for one in SECRETS:
        if one.message_name == name:
            [attribute] = one.attributes
            is_bytes = isinstance(getattr(made, attribute), bytes)
            setattr(made, attribute, SECRET.encode() if is_bytes else SECRET)
            if one.if_secret:
                setattr(made, one.if_secret.lower(), "listener.name.a.ssl.keystore.password")
    return bytes([1, TYPES[name], version]) + bytes(made.encode(version))


VALUES = {name: value(name) for name in sorted({one.message_name for one in SECRETS})}


def written(path: Path, values: list[bytes], *, is_control: bool = False) -> Path:
    records = [Record(at, TIME, None, one, []) for at, one in enumerate(values)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_batch(records, is_control=is_control))
    return path


def leaks(text: str) -> list[str]:
    """Return the notations that could show part of the secret; base64 may begin at any byte."""
    data, found = SECRET.encode(), []
    for at in range(len(data) - 8):
        piece = data[at : at + 9]
        encoded = base64.b64encode(piece).decode()
        forms = {"text": piece.decode(), "hex": piece.hex(), "base64": encoded}
        found += [name for name, form in forms.items() if form in text]
    return found


def test_the_metadata_has_messages_with_credentials() -> None:
    assert {"UserScramCredentialRecord", "ConfigRecord"} <= {*VALUES}
    assert all(SECRET.encode() in one for one in VALUES.values())


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("place", [f"{METADATA}/{SEGMENT}", f"copied/{SNAPSHOT}", f"x/{SEGMENT}"])
def test_credentials_are_withheld_and_counted(
    place: str, output: str, tmp_path: Path, run: Run
) -> None:
    path = written(tmp_path / place, [*VALUES.values()])
    shown = run(path, "--deep", "--format", output).out
    assert leaks(shown) == []
    assert "withheld" in shown
    assert leaks(run(path, "--deep", "--format", output, "--show-credentials").out) != []


def test_how_many_are_withheld_is_told(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path / METADATA / SEGMENT, [*VALUES.values()])
    rows = [one for one in run.rows(path, "--deep") if one["type"] == "record"]
    assert [one["withheldCredentials"] for one in rows] == [1, 3]
    assert rows[1]["value"]["data"]["salt"] == base64.b64encode(b"withheld").decode()
    assert "4 credentials withheld (--show-credentials)" in run(path, "--deep").out
    rows = run.rows(path, "--deep", "--show-credentials")
    assert not any("withheldCredentials" in one for one in rows)
    rows = run.rows(path, "--deep", "--without", "content")
    assert not any("withheldCredentials" in one for one in rows)


@pytest.mark.parametrize("name", VALUES)
def test_what_does_not_decode_is_withheld_as_a_whole(name: str, tmp_path: Path, run: Run) -> None:
    whole = VALUES[name]
    values = [whole[:size] for size in range(len(whole))]
    values += [whole[:at] + bytes([byte]) + whole[at + 1 :] for at in range(3) for byte in (0, 99)]
    values += [whole[:3] + bytes([200]) + whole[3:], whole + b"\0"]
    path = written(tmp_path / METADATA / SEGMENT, values)
    for options in ((), ("--decode", "consumer-offsets"), ("--release", "3.0"), ("--value", "hex")):
        for output in ("text", "json"):
            shown = run(path, "--deep", "--format", output, *options).out
            assert leaks(shown) == [], options
    # Only a possible credential is withheld.
    assert leaks(run(path, "--deep", "--show-credentials").out) != []


def test_control_records_that_do_not_decode_are_withheld(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path / METADATA / SEGMENT, [*VALUES.values()], is_control=True)
    assert leaks(run(path, "--deep").out) == []


def test_standard_input_is_no_way_around(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written(tmp_path / SEGMENT, [*VALUES.values()]).read_bytes()

    class Piped:
        buffer = io.BytesIO(data)

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Piped())
    shown = run("-", "--deep").out
    assert "4 credentials withheld" in shown or "2 credentials withheld" in shown
    assert leaks(shown) == []


def test_records_of_others_are_shown_as_they_are(tmp_path: Path, run: Run) -> None:
    # The value begins like a metadata record, but is not one.
    path = written(tmp_path / "orders-0" / SEGMENT, [VALUES["ConfigRecord"] + b"!", b"plain"])
    shown = run(path, "--deep", "--value", "hex").out
    assert SECRET.encode().hex() in shown
    assert "withheld" not in shown
