"""What `flexwire tap` is told of TLS, and what it tells of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.net import ListenTls, TapSecurity, UpstreamTls
    from flexwire.net.throwaway import Throwaway

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PASSWORDS = {
    "listen": "FLEXWIRE_LISTEN_KEY_PASSWORD",
    "upstream": "FLEXWIRE_UPSTREAM_KEY_PASSWORD",
}
_OPTIONS = (
    click.option(
        "--listen-certificate",
        type=_FILE,
        help="The certificate to listen with: its chain in PEM, and its key unless --listen-key "
        "has it.",
    ),
    click.option("--listen-key", type=_FILE, help="The key of --listen-certificate, in PEM."),
    click.option(
        "--listen-key-password-file",
        type=_FILE,
        help=f"What opens that key, in a file; or in ${_PASSWORDS['listen']}.",
    ),
    click.option(
        "--listen-ca",
        type=_FILE,
        help="The authorities of clients' certificates, in PEM.  [default: the system's]",
    ),
    click.option(
        "--listen-client-auth",
        type=click.Choice(["none", "requested", "required"]),
        default="none",
        show_default=True,
        help="Whether clients are to come with a certificate, as Kafka's ssl.client.auth.",
    ),
    click.option(
        "--throwaway-ca",
        type=click.Path(file_okay=False, path_type=Path),
        help="For a try: make an authority and a certificate for --listen in this directory, good "
        "for a week, and say how clients come to trust it.",
    ),
    click.option(
        "--upstream-ca",
        type=_FILE,
        help="The authorities of brokers' certificates, in PEM.  [default: the system's]",
    ),
    click.option(
        "--upstream-certificate",
        type=_FILE,
        help="The certificate to come to brokers with; see --as-one-principal.",
    ),
    click.option("--upstream-key", type=_FILE, help="The key of --upstream-certificate, in PEM."),
    click.option(
        "--upstream-key-password-file",
        type=_FILE,
        help=f"What opens that key, in a file; or in ${_PASSWORDS['upstream']}.",
    ),
    click.option(
        "--upstream-name",
        help="The name in the certificate of --upstream, where that is not its address.",
    ),
    click.option(
        "--any-upstream-name",
        is_flag=True,
        help="Take brokers' certificates for any name, as with an empty "
        "ssl.endpoint.identification.algorithm.",
    ),
    click.option(
        "--as-one-principal",
        is_flag=True,
        help="With certificates of clients or of the tap's own: brokers see one principal for "
        "all clients, and that is meant.",
    ),
    click.option(
        "--with-credentials/--without-credentials",
        default=None,
        help="Whether the capture holds passwords and tokens, or asterisks in their place.  "
        "[default: without, where there is TLS]",
    ),
)


def security_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that `to_security` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def to_security(
    listen: str, advertised_host: str | None, told: dict[str, Any]
) -> tuple[TapSecurity, Throwaway | None]:
    """What the options say, and the throwaway authority, if one was asked for."""
    from flexwire.net import TapSecurity

    own, throwaway = _listening(listen, advertised_host, told)
    security = TapSecurity(
        own,
        _connecting(told),
        as_one_principal=told["as_one_principal"],
        with_credentials=told["with_credentials"],
    )
    return security, throwaway


def how_to_trust(made: Throwaway) -> str:
    """What clients are to be told of a throwaway authority."""
    return (
        f"clients trust {made.ca}:\n"
        f"  Java        security.protocol=SSL, ssl.truststore.type=PEM, "
        f"ssl.truststore.location={made.ca}\n"
        f"  librdkafka  security.protocol=ssl, ssl.ca.location={made.ca}\n"
        f"  others      the file of authorities (cafile); with SASL it is SASL_SSL"
    )


def _listening(
    listen: str, advertised_host: str | None, told: dict[str, Any]
) -> tuple[ListenTls | None, Throwaway | None]:
    from flexwire.net import ListenTls
    from flexwire.net.host_port import parse_listener
    from flexwire.net.throwaway import make_throwaway, names_of

    certificate, key, made = told["listen_certificate"], told["listen_key"], None
    if told["throwaway_ca"] is not None:
        if certificate is not None:
            raise InputError("either --listen-certificate or --throwaway-ca, not both")
        address, is_tls = parse_listener(listen)
        if not is_tls:
            raise InputError("--throwaway-ca is for --listen ssl://…")
        named = (advertised_host,) if advertised_host else ()
        made = make_throwaway(told["throwaway_ca"], (*named, *names_of(address.host)))
        certificate, key = made.certificate, made.key
    if certificate is None:
        _refuse_alone(told, "listen_certificate", "listen_key", "listen_ca")
        if told["listen_client_auth"] != "none":
            raise InputError("--listen-client-auth goes with --listen-certificate")
        return None, None
    auth = told["listen_client_auth"]
    return ListenTls(certificate, key, _password(told, "listen"), told["listen_ca"], auth), made


def _connecting(told: dict[str, Any]) -> UpstreamTls | None:
    from flexwire.net import UpstreamTls

    if told["upstream_certificate"] is None:
        _refuse_alone(told, "upstream_certificate", "upstream_key")
    given = UpstreamTls(
        told["upstream_ca"],
        told["upstream_certificate"],
        told["upstream_key"],
        _password(told, "upstream"),
        told["upstream_name"],
        check_names=not told["any_upstream_name"],
    )
    # Without any of them, ssl:// says whether there is TLS at all.
    return None if given == UpstreamTls(password=given.password) else given


def _refuse_alone(told: dict[str, Any], with_: str, *names: str) -> None:
    for name in names:
        if told[name] is not None:
            raise InputError(f"{_option(name)} goes with {_option(with_)}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _password(told: dict[str, Any], side: str) -> str | None:
    path = told[f"{side}_key_password_file"]
    if path is None:
        return os.environ.get(_PASSWORDS[side])
    try:
        text: str = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        # A UnicodeDecodeError quotes what is in the file.
        reason = error.strerror if isinstance(error, OSError) else "expected text in UTF-8"
        raise InputError(f"{path}: {reason}") from None
    return text.rstrip("\r\n")
