"""`flexwire tap` with TLS turns its options into contexts, and its messages are useful."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.client.tls import client_context
from flexwire.errors import FlexwireError
from flexwire.tap import HostPort, TapStatistics
from flexwire.tap.config import TapConfig
from flexwire.tap.rehearsal import RehearsalPlan
from tests.net.broker import LOOPBACK, Broker, captured, connected, run, serving
from tests.net.test_relay import answering, asking, echo
from tests.tls import Authority

if TYPE_CHECKING:
    from flexwire.tap import TapSecurity

HERE = f"ssl://{LOOPBACK}:0"


@pytest.mark.long
@pytest.mark.slow
def test_a_try_with_a_throwaway_ca_as_it_says_itself(tmp_path: Path) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as upstream:
            command = ["tap", "--listen", HERE, "--upstream", str(upstream)]
            command += ["--throwaway-ca", str(tmp_path / "ca"), "--out", str(tmp_path / "out")]
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "flexwire", *command, stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            told = [(await process.stdout.readline()).decode() for _ in range(5)]
            where = re.match(rf"listening on ssl://{LOOPBACK}:(\d+), capturing into ", told[0])
            trusted = re.search(r"ssl\.ca\.location=(\S+)", told[3])
            assert where is not None
            assert trusted is not None
            assert f"ssl.truststore.location={trusted[1]}\n" in told[2]
            context = client_context(Path(trusted[1]))
            async with connected(HostPort(LOOPBACK, int(where[1])), context) as client:
                assert await client.ask(asking(b"x")) == answering(b"x")
            process.send_signal(signal.SIGINT)
            rest = (await process.stdout.read()).decode()
            assert await process.wait() == 0
            assert re.search(r"^requests +1$", rest, re.MULTILINE)
        assert len(captured((tmp_path / "out").iterdir())) == 2

    run(job())


def told(patch: pytest.MonkeyPatch, out: Path, *options: str) -> dict[str, Any]:
    """Return the configuration that the command builds from its options, without running a tap."""
    found: list[dict[str, Any]] = []

    async def run_tap(*_: Any, **given: Any) -> TapStatistics:
        found.append(given)
        return TapStatistics()

    patch.setattr("flexwire.tap.tap.run_tap", run_tap)
    command = ["tap", "--upstream", "ssl://b:1", "--out", str(out / "out"), *options]
    CliRunner().invoke(app, command, catch_exceptions=False)
    return found[0]


def given(patch: pytest.MonkeyPatch, out: Path, *options: str) -> TapSecurity:
    """Return the configuration that the command builds from its TLS options."""
    security: TapSecurity = told(patch, out, *options)["security"]
    return security


def config(**given: Any) -> TapConfig:
    known = {one.name for one in fields(TapConfig)}
    address = HostPort(LOOPBACK, 1)
    return TapConfig(
        address, address, Path("out"), **{n: v for n, v in given.items() if n in known}
    )


def test_a_command_without_options_runs_the_tap_that_python_has_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config(**told(monkeypatch, tmp_path)) == config()


# The value of an option: as the user writes it, and as the configuration stores it.
VALUES: dict[str, tuple[str | None, Any]] = {
    "advertised_host": ("tap.example", "tap.example"),
    "keep_addresses": (None, True),
    "max_bytes": ("3", 3 << 20),
    "sample": ("0.25", 0.25),
    "processes": ("2", 2),
    "live": ("tap.sock", "tap.sock"),
    "most_held": ("7", 7 << 20),
}


def test_each_option_of_a_field_sets_this_field_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_by = {
        one.name: one.metadata["option"] for one in fields(TapConfig) if "option" in one.metadata
    }
    assert {*VALUES} == {*told_by}
    for name, (text, value) in VALUES.items():
        options = [told_by[name].flag, *([] if text is None else [text])]
        assert config(**told(monkeypatch, tmp_path, *options)) == replace(config(), **{name: value})


def test_a_password_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = map(str, Authority(tmp_path).certificate(password="opens"))  # noqa: S106 - of a test
    secret = tmp_path / "secret"
    blanks = " with blanks "
    secret.write_text(f"{blanks}\n")
    options = ["--listen", HERE, "--listen-certificate", certificate, "--listen-key", key]
    options += ["--upstream-certificate", certificate, "--upstream-key", key]
    files = ["--listen-key-password-file", str(secret), "--upstream-key-password-file", str(secret)]
    one = given(monkeypatch, tmp_path, *options, *files)
    assert one.listen is not None
    assert one.upstream is not None
    assert one.listen.password == one.upstream.password == blanks
    monkeypatch.setenv("FLEXWIRE_LISTEN_KEY_PASSWORD", "one")
    monkeypatch.setenv("FLEXWIRE_UPSTREAM_KEY_PASSWORD", "two")
    two = given(monkeypatch, tmp_path, *options)
    assert two.listen is not None
    assert two.upstream is not None
    assert (two.listen.password, two.upstream.password) == ("one", "two")
    # A password alone does not turn on TLS.
    assert given(monkeypatch, tmp_path).upstream is None


@pytest.mark.parametrize(
    ("options", "withholds"),
    [
        ((), False),
        (("--without-credentials",), True),
        (("--any-upstream-name",), True),
        (("--any-upstream-name", "--with-credentials"), False),
    ],
)
def test_credentials_are_withheld_under_tls_or_when_asked(
    options: tuple[str, ...], withholds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert given(monkeypatch, tmp_path, *options).withholds is withholds


@pytest.mark.parametrize(
    ("options", "wording"),
    [
        (["--listen-key", "FILE"], "--listen-key needs --listen-certificate"),
        (["--listen-ca", "FILE"], "--listen-ca needs --listen-certificate"),
        (["--upstream-key", "FILE"], "--upstream-key needs --upstream-certificate"),
        (["--listen-client-auth", "required"], "needs --listen-certificate"),
        (["--throwaway-ca", "DIR"], "is for --listen ssl://"),
        (
            ["--throwaway-ca", "DIR", "--listen-certificate", "FILE"],
            "either --listen-certificate or --throwaway-ca",
        ),
        (["--listen", HERE], "TLS needs a certificate"),
        (["--listen-key-password-file", "BYTES", "--listen-certificate", "FILE"], "in UTF-8"),
    ],
)
def test_options_that_do_not_fit_are_said(options: list[str], wording: str, tmp_path: Path) -> None:
    named = {"FILE": tmp_path / "file", "DIR": tmp_path / "dir", "BYTES": tmp_path / "bytes"}
    named["FILE"].write_bytes(b"")
    named["BYTES"].write_bytes(b"opens\xff")
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path / "out")]
    command += [str(named.get(one, one)) for one in options]
    with pytest.raises(FlexwireError, match=wording) as caught:
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert "opens" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "plan"),
    [
        (["--pretend", "4.4"], RehearsalPlan("4.4.0")),
        (
            ["--pretend", "4.0.2", "--share", "5%", "--for", "10m", "--most-failed", "3"],
            RehearsalPlan("4.0.2", share=0.05, seconds=600, most_failed=3),
        ),
        (
            ["--pretend", "4", "--share", "12.5%", "--for", "90s"],
            RehearsalPlan("4", share=0.125, seconds=90),
        ),
        ([], None),
    ],
)
def test_a_rehearsal_is_what_its_options_say(
    options: list[str],
    plan: RehearsalPlan | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert told(monkeypatch, tmp_path, *options)["rehearsal"] == plan


def test_faults_are_those_of_options_and_of_a_file_in_this_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "faults.txt"
    file.write_text("# of every day\nFetch delay=2s 5%\n", encoding="utf-8")
    options = ["--fault", "Produce close", "--fault", "* cut", "--fault-file", str(file)]
    plan = told(monkeypatch, tmp_path, *options, "--fault-seed", "7")["faults"]
    assert [str(fault) for fault in plan.faults] == ["Produce close", "* cut", "Fetch delay=2s 5%"]
    assert plan.seed == 7
    assert told(monkeypatch, tmp_path)["faults"] is None


@pytest.mark.parametrize(
    ("options", "file", "reason"),
    [
        (["--fault-seed", "7"], None, "--fault-seed needs --fault"),
        (["--fault", "Fetch"], None, "--fault: expected one of error"),
        (["--fault", "Fetch close", "--pretend", "4.4"], None, "either --fault or --pretend"),
        (["--fault", "Fetch close", "--header-tag", "10042=x"], None, "either --fault or --header"),
        (["--fault", "Fetch close", "--processes", "2"], None, "leave out --processes"),
        (["--fault-file"], b"Fetch close\nFetch", "faults.txt: line 2: expected one of error"),
        (["--fault-file"], b"\xff", "expected text in UTF-8"),
        (["--fault-file"], b"Fetch close\n" * 101, "at most 100"),
    ],
)
def test_options_that_are_no_faults_are_refused(
    options: list[str], file: bytes | None, reason: str, tmp_path: Path
) -> None:
    if file is not None:
        path = tmp_path / "faults.txt"
        path.write_bytes(file)
        options = [*options, str(path)]
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path / "out"), *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert reason in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--share", "5%"], "--share needs --pretend"),
        (["--for", "10m"], "--for needs --pretend"),
        (["--most-failed", "0"], "--most-failed needs --pretend"),
        (["--pretend", "4.4", "--share", "0%"], "expected a percentage such as 5%, got '0%'"),
        (["--pretend", "4.4", "--share", "0.05"], "expected a percentage such as 5%, got '0.05'"),
        (["--pretend", "4.4", "--for", "10"], "expected a time such as 90s, 10m or 2h, got '10'"),
        (["--pretend", "4.4", "--for", "0m"], "expected a time such as 90s, 10m or 2h, got '0m'"),
        (["--pretend", "9.9"], "9.9"),
        (["--pretend", "4.4", "--header-tag", "10042=x"], "either --pretend or --header-tag"),
    ],
)
def test_options_that_no_rehearsal_has_are_refused(
    options: list[str], reason: str, tmp_path: Path
) -> None:
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path / "out"), *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert reason in result.output + str(result.exception)
