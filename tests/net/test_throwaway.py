"""A throwaway authority, whose key is not stored, is created once and is valid for a week."""

from __future__ import annotations

import builtins
import ssl
import stat
import sys
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client.tls import client_context, server_context
from flexwire.errors import MissingExtraError, TlsError
from flexwire.tap.security import listener_names, make_throwaway_ca
from tests.net.test_tls import shaken
from tests.tls import Authority

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_clients_that_trust_its_ca_take_its_certificate(host: str, tmp_path: Path) -> None:
    made = make_throwaway_ca(tmp_path / "made", listener_names(host))
    server = server_context(made.certificate, made.key)
    for name in ("localhost", "127.0.0.1", "::1"):
        assert shaken(client_context(made.ca), server, name) == "nobody"
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client_context(made.ca), server, "elsewhere.example")


def test_only_its_owner_may_read_the_key_and_the_authoritys_own_is_not_kept(
    tmp_path: Path,
) -> None:
    made = make_throwaway_ca(tmp_path, ["tap.example"])
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    keys = [path for path in tmp_path.iterdir() if b"PRIVATE" in path.read_bytes()]
    assert keys == [made.key]


def test_a_second_run_takes_what_the_first_made(tmp_path: Path) -> None:
    made = make_throwaway_ca(tmp_path, ["a.example", "b.example"])
    before = {path: path.read_bytes() for path in made}
    assert make_throwaway_ca(tmp_path, ["b.example"]) == made
    assert {path: path.read_bytes() for path in made} == before


@pytest.mark.parametrize("name", ["ca.pem", "tap.pem", "tap.key"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_nothing_is_written_over_and_no_link_followed(kind: str, name: str, tmp_path: Path) -> None:
    """Either all three files are written or none, whichever files already exist."""
    directory, other = tmp_path / "made", tmp_path / "other"
    directory.mkdir()
    if kind != "dangling link":
        other.write_bytes(b"somebody's")
    if kind == "file":
        (directory / name).write_bytes(b"somebody's")
    else:
        (directory / name).symlink_to(other)
    with pytest.raises(TlsError):
        make_throwaway_ca(directory, ["a.example"])
    assert [path.name for path in directory.iterdir()] == [name]
    assert not other.exists() or other.read_bytes() == b"somebody's"


def test_one_that_does_not_hold_is_said_and_left_alone(tmp_path: Path) -> None:
    made = make_throwaway_ca(tmp_path, ["a.example"])
    with pytest.raises(TlsError, match=r"is not for c\.example; delete the directory"):
        make_throwaway_ca(tmp_path, ["c.example"])
    expired, _ = Authority(tmp_path / "other").certificate(["a.example"], expired=True)
    made.certificate.write_bytes(expired.read_bytes())
    with pytest.raises(TlsError, match="the certificate has expired"):
        make_throwaway_ca(tmp_path, ["a.example"])
    made.certificate.write_bytes(b"not PEM")
    with pytest.raises(TlsError, match="no throwaway CA"):
        make_throwaway_ca(tmp_path, ["a.example"])


def test_a_key_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tap.key").write_text("somebody's")
    with pytest.raises(TlsError, match=r"no throwaway CA: .*exists"):
        make_throwaway_ca(tmp_path, ["a.example"])
    assert (tmp_path / "tap.key").read_text() == "somebody's"
    assert [path.name for path in tmp_path.iterdir()] == ["tap.key"]


def test_a_tap_on_all_interfaces_has_the_names_of_its_machine() -> None:
    assert set(listener_names("0.0.0.0")) > {"localhost", "127.0.0.1"}  # noqa: S104 - the test needs this address
    assert listener_names("tap.example") == ("tap.example",)


def test_without_cryptography_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("cryptography"):
            raise ModuleNotFoundError(name, name="cryptography")
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "flexwire.tap.authority", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'flexwire\[tls\]'"):
        make_throwaway_ca(tmp_path / "no", ["a.example"])
    assert not (tmp_path / "no").exists()
