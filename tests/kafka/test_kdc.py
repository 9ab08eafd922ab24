"""The programs for a Kerberos realm are available, or the error explains why they are not."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tools import debian, maven
from tools.kdc import REALM, Kdc, kdc

if TYPE_CHECKING:
    from pathlib import Path

ASKS = """
import sys, time
from pathlib import Path
from tools.kdc import kdc

with kdc(Path(sys.argv[1])) as realm:
    print("begun", flush=True)
    time.sleep(600)
"""


def listens(directory: Path) -> tuple[str, int]:
    (line,) = [one for one in (directory / "krb5.conf").read_text().splitlines() if " kdc =" in one]
    host, port = line.removeprefix("  kdc = ").split(":")
    return host, int(port)


def ended(realm: Kdc, *command: str) -> int:
    """Return the exit code of a program in the realm."""
    ran = subprocess.run(command, env=realm.environment(), capture_output=True, check=False)
    return ran.returncode


@pytest.mark.kafka
def test_a_realm_gives_tickets_for_names_that_have_keys_and_for_no_others(tmp_path: Path) -> None:
    with kdc(tmp_path) as realm:
        alice, _ = realm.keytab("alice"), realm.keytab("kafka/broker.test")
        assert ended(realm, "kinit", "-k", "-t", str(alice), "bob") == 1
        assert ended(realm, "kinit", "-k", "-t", str(alice), "alice") == 0
        assert ended(realm, "kvno", f"kafka/broker.test@{REALM}") == 0
        assert ended(realm, "kvno", f"kafka/other.test@{REALM}") == 1
        with pytest.raises(RuntimeError, match=r"kdb5_util .*File exists"):
            realm.create()
        with pytest.raises(RuntimeError, match=r"addprinc -randkey a@b@c: .*Malformed"):
            realm.keytab("a@b@c")


@pytest.mark.kafka
def test_a_kdc_ends_with_its_caller_though_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASKS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=maven.ROOT) as caller:
        try:
            assert caller.stdout is not None
            assert caller.stdout.readline() == "begun\n"
            socket.create_connection(listens(tmp_path), 60).close()
        finally:
            caller.kill()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(listens(tmp_path), 60).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.2)
    pytest.fail("the KDC still answers")


def test_where_there_is_no_apt_the_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "KEPT", tmp_path / "kept")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"one, two cannot be brought .* no apt-get on the path"):
        debian.Programs("both", ("one", "two")).bring()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["lock"]


@pytest.mark.parametrize("says", ["W: Slow\nE: Unable to locate package one\nE: Broken", ""])
@pytest.mark.parametrize("fails", ["update", "install"])
def test_what_apt_says_is_passed_on_and_nothing_half_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, fails: str
) -> None:
    fake = tmp_path / "apt-get"
    ends = f"printf '%s' '{says}' >&2; exit 100"
    fake.write_text(f'#!/bin/sh\ncase "$*" in *{fails}*) {ends};; esac\n')
    fake.chmod(0o755)
    monkeypatch.setattr(debian, "KEPT", tmp_path / "kept")
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = "E: Unable to locate package one" if says else "apt-get ended with 100"
    with pytest.raises(SystemExit, match=f"from Debian's packages: {wanted}\n"):
        debian.Programs("one", ("one",)).bring()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["lock"]
