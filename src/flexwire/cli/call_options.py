"""The options of `flexwire call` that say how a broker is reached, and what they come to."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.loudness import note
from flexwire.cli.options import InputError, read_standard_input

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.net.calling.client_config import ClientConfig
    from flexwire.net.calling.security import Login, Security

# Those of `flexwire.net.calling.security`, which --help need not import.
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_LAID_OPEN = (
    "warning: PLAIN without TLS sends the password as it is, and whoever is on the way reads it; "
    "SCRAM does not send it, and --tls hides it"
)
_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@dataclass(frozen=True, slots=True)
class Reaching:
    """The options as they were given."""

    command_config: Path | None
    tls: bool
    ca: Path | None
    certificate: Path | None
    key: Path | None
    sasl: str | None
    user: str | None
    password_file: str | None
    client_id: str | None
    timeout: float | None


_OPTIONS = (
    click.option(
        "--command-config",
        type=_FILE,
        help="A client's properties file, as Kafka's own tools take it: TLS and SASL, PEM and "
        "PKCS #12. What it has for other purposes is listed and not used.",
    ),
    click.option("--tls", is_flag=True, help="Speak TLS; the system's authorities are trusted."),
    click.option("--ca", type=_FILE, help="Speak TLS and trust the authorities of this PEM file."),
    click.option(
        "--certificate", type=_FILE, help="Speak TLS and come with this chain, in PEM: mutual TLS."
    ),
    click.option("--key", type=_FILE, help="The chain's key, where it is in a file of its own."),
    click.option(
        "--sasl",
        type=click.Choice(MECHANISMS, case_sensitive=False),
        help="Log in, as --user says.",
    ),
    click.option("--user", metavar="NAME", help="The name to log in with."),
    click.option(
        "--password-file",
        metavar="FILE",
        help="The file whose first line is the password, - for standard input; else it is asked "
        "for.",
    ),
    click.option("--client-id", help="The client id in request headers.  [default: flexwire]"),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="How long a broker may take for an answer, and this command to decode and "
        "print it.  [default: 30]",
    ),
)


def reaching_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `Reaching`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reach(given: Reaching) -> ClientConfig:
    """Say how a broker is reached; a usage error for options that do not go together."""
    from flexwire.net.calling.client_config import ClientConfig

    if given.command_config is None:
        config = ClientConfig(_security(given))
    else:
        config = _configured(given, given.command_config)
        if config.ignored:
            told = ", ".join(config.ignored)
            note(f"{given.command_config}: not used: {told}")
    if config.security.lays_password_open:
        print(_LAID_OPEN, file=sys.stderr)
    if given.client_id is not None:
        config = replace(config, client_id=given.client_id)
    if given.timeout is not None:
        config = replace(config, timeout=given.timeout)
    return config


def _configured(given: Reaching, path: Path) -> ClientConfig:
    from flexwire.net.calling.client_config import read_client_config

    others = (given.tls, given.ca, given.certificate, given.key, given.sasl, given.user)
    if any(others) or given.password_file is not None:
        raise click.UsageError(
            "--command-config says how to reach the broker; leave out --tls, --ca, --certificate, "
            "--key, --sasl, --user and --password-file"
        )
    return read_client_config(path)


def _security(given: Reaching) -> Security:
    from flexwire.net.calling.security import Security
    from flexwire.net.tls import client_context

    if given.key is not None and given.certificate is None:
        raise click.UsageError("--key is the key of --certificate; give both")
    context = None
    if given.tls or given.ca or given.certificate:
        context = client_context(given.ca, certificate=given.certificate, key=given.key)
    return Security(context, _login(given))


def _login(given: Reaching) -> Login | None:
    from flexwire.net.calling.security import Login

    if given.sasl is None:
        if given.user is not None or given.password_file is not None:
            raise click.UsageError("--sasl says how to log in: PLAIN or SCRAM-SHA-256")
        return None
    if given.user is None:
        raise click.UsageError("--sasl needs --user")
    return Login(given.sasl, given.user, _password(given.password_file))


def _password(file: str | None) -> str:
    if file is None:
        asked: str = click.prompt("Password", hide_input=True, err=True)
        return asked
    try:
        raw = read_standard_input() if file == "-" else Path(file).read_bytes()
        lines = raw.decode().splitlines()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"{file}: {why}") from None
    return lines[0] if lines else ""
