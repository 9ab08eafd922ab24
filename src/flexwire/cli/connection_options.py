"""The options for connections to a broker: TLS, SASL, a properties file, and time limits."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import InputError, read_standard_input
from flexwire.cli.terminal import note

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.client.config import ClientConfig
    from flexwire.client.security import Login, Security

# The mechanisms in `flexwire.client.security`. The names are repeated so that --help does not
# import `flexwire.client.security`.
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_PLAIN_WARNING = (
    "warning: PLAIN without TLS sends the password unencrypted, so anybody on the network path "
    "can read it; use SCRAM, which does not send the password, or --tls"
)
_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options for a connection, as the user gave them."""

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
        help=(
            "A client properties file in the format of Kafka's own tools, with TLS and SASL "
            "settings; key files can be in PEM or PKCS #12. The command lists the settings that it "
            "does not use."
        ),
    ),
    click.option(
        "--tls", is_flag=True, help=("Use TLS and trust the system's certificate authorities.")
    ),
    click.option(
        "--ca", type=_FILE, help=("Use TLS and trust the certificate authorities in this PEM file.")
    ),
    click.option(
        "--certificate",
        type=_FILE,
        help="Use mutual TLS: send the broker this certificate chain, in PEM.",
    ),
    click.option(
        "--key",
        type=_FILE,
        help="The key for the certificate chain, if the key is in a separate file.",
    ),
    click.option(
        "--sasl",
        type=click.Choice(MECHANISMS, case_sensitive=False),
        help="Log in as --user with this SASL mechanism.",
    ),
    click.option("--user", metavar="NAME", help="The user name for the login."),
    click.option(
        "--password-file",
        metavar="FILE",
        help="A file whose first line is the password, or - for standard input. Without this "
        "option, the command asks for the password.",
    ),
    click.option("--client-id", help="The client id in request headers.  [default: flexwire]"),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help=(
            "The time limit, in seconds, for the broker to respond and for this command to decode "
            "and print the response.  [default: 30]"
        ),
    ),
)


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `ConnectionOptions` to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reach(options: ConnectionOptions) -> ClientConfig:
    """Return the settings of a connection.

    Raises a usage error for mutually exclusive options.
    """
    from flexwire.client.config import ClientConfig

    if options.command_config is None:
        config = ClientConfig(_security(options))
        _warn_of(config)
    else:
        _refuse_both(options)
        config = told_config(options.command_config)
    if options.client_id is not None:
        config = replace(config, client_id=options.client_id)
    if options.timeout is not None:
        config = replace(config, timeout=options.timeout)
    return config


def told_config(path: Path) -> ClientConfig:
    """Read the properties file of a client. Print the settings that are not used."""
    from flexwire.client.config import read_client_config

    config = read_client_config(path)
    if config.ignored:
        note(f"{path}: not used: {', '.join(config.ignored)}")
    _warn_of(config)
    return config


def _warn_of(config: ClientConfig) -> None:
    if config.security.lays_password_open:
        print(_PLAIN_WARNING, file=sys.stderr)


def _refuse_both(options: ConnectionOptions) -> None:
    """Raise a usage error if options and a properties file are used together."""
    connection_options = (
        options.tls,
        options.ca,
        options.certificate,
        options.key,
        options.sasl,
        options.user,
    )
    if any(connection_options) or options.password_file is not None:
        raise click.UsageError(
            "with --command-config, leave out --tls, --ca, --certificate, --key, --sasl, --user "
            "and --password-file"
        )


def _security(options: ConnectionOptions) -> Security:
    from flexwire.client.security import Security
    from flexwire.client.tls import client_context

    if options.key is not None and options.certificate is None:
        raise click.UsageError("--key needs --certificate; give both")
    context = None
    if options.tls or options.ca or options.certificate:
        context = client_context(options.ca, certificate=options.certificate, key=options.key)
    return Security(context, _login(options))


def _login(options: ConnectionOptions) -> Login | None:
    from flexwire.client.security import Login

    if options.sasl is None:
        if options.user is not None or options.password_file is not None:
            raise click.UsageError("a login requires --sasl, such as PLAIN or SCRAM-SHA-256")
        return None
    if options.user is None:
        raise click.UsageError("--sasl needs --user")
    return Login(options.sasl, options.user, _password(options.password_file))


def _password(file: str | None) -> str:
    if file is None:
        answer: str = click.prompt("Password", hide_input=True, err=True)
        return answer
    try:
        raw = read_standard_input() if file == "-" else Path(file).read_bytes()
        lines = raw.decode().splitlines()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"{file}: {why}") from None
    return lines[0] if lines else ""
