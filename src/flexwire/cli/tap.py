"""`flexwire tap`: run a proxy that captures the traffic that passes through it."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.metrics_options import METRICS_OPTIONS, metrics_port
from flexwire.cli.options import (
    Format,
    InputError,
    format_option,
    parse_percentage,
    parse_time,
)
from flexwire.cli.tap_plans import to_faults, to_rehearsal
from flexwire.cli.terminal import LogFormatter
from flexwire.printable import printable
from flexwire.tap.config import MIB, TapConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.tap import ListenTls, MetricsPort, TapSecurity, UpstreamTls
    from flexwire.tap.config import Option
    from flexwire.tap.header_stamps import HeaderTag, StampConfig
    from flexwire.tap.listeners import PortRange
    from flexwire.tap.metrics import TapStatistics
    from flexwire.tap.security import ThrowawayCa
    from flexwire.tap.tap import Tap


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PASSWORDS = {
    "listen": "FLEXWIRE_LISTEN_KEY_PASSWORD",
    "upstream": "FLEXWIRE_UPSTREAM_KEY_PASSWORD",
}


def _parsed_tags(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[HeaderTag, ...]:
    from flexwire.errors import ArgumentError
    from flexwire.tap.header_stamps import parse_header_tag

    try:
        return tuple(parse_header_tag(text) for text in texts)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from None


def filter_options(verb: str, note: str = "") -> tuple[Callable[..., Any], ...]:
    """Add the options of a frame filter to a command.

    ``verb`` is the first word of the help of each option. `to_filter` reads the options.
    """
    return (
        click.option(
            "--only-api",
            "only_apis",
            metavar="NAME",
            multiple=True,
            help=f"{verb} only requests for this API (a name or key) and their responses.{note}",
        ),
        click.option(
            "--only-client-id",
            "only_client_ids",
            metavar="TEXT",
            multiple=True,
            help=f"{verb} only requests with this client id; * stands for any text.",
        ),
        click.option(
            "--only-topic",
            "only_topics",
            metavar="TEXT",
            multiple=True,
            help=f"{verb} only requests that name this topic; * stands for any text.",
        ),
    )


# The options for fields of `TapConfig` that depend on several options or must be parsed.
_FIELD_OPTIONS = {
    "keep": (
        click.option(
            "--keep-mib",
            type=click.IntRange(min=1),
            help="Keep at most this many MiB of this run on disk: the tap removes the oldest "
            "finished files, and counts them.  [default: everything]",
        ),
        click.option(
            "--keep-files",
            type=click.IntRange(min=1),
            help="Keep at most this many files of this run: the tap removes the oldest finished "
            "files, and counts them.",
        ),
    ),
    "only": filter_options(
        "Capture",
        " Can be given multiple times. The filter appears in the capture and in every report "
        "about the capture.",
    ),
    "ports": (
        click.option(
            "--ports",
            metavar="FIRST-LAST",
            help="Assign each broker one of these ports. A later run with the same --out "
            "assigns the same ports.  [default: those after --listen]",
        ),
        *METRICS_OPTIONS,
    ),
    "security": (
        click.option(
            "--listen-certificate",
            type=_FILE,
            help="The certificate chain that the tap sends to clients, in PEM. The file must "
            "also contain the key, unless --listen-key specifies another file.",
        ),
        click.option("--listen-key", type=_FILE, help="The key for --listen-certificate, in PEM."),
        click.option(
            "--listen-key-password-file",
            type=_FILE,
            help="A file that contains the password for --listen-key. Without this option, the "
            f"password is taken from ${_PASSWORDS['listen']}.",
        ),
        click.option(
            "--listen-ca",
            type=_FILE,
            help="The certificate authorities, in PEM, that the tap trusts for clients' "
            "certificates.  [default: the system's]",
        ),
        click.option(
            "--listen-client-auth",
            type=click.Choice(["none", "requested", "required"]),
            default="none",
            show_default=True,
            help="Whether the tap asks clients for a certificate. The values have the same meaning "
            "as for Kafka's ssl.client.auth.",
        ),
        click.option(
            "--throwaway-ca",
            type=click.Path(file_okay=False, path_type=Path),
            help="For testing: create a certificate authority and a certificate for --listen in "
            "this directory, both valid for a week, and print how clients can trust them.",
        ),
        click.option(
            "--upstream-ca",
            type=_FILE,
            help="The certificate authorities, in PEM, that the tap trusts for brokers' "
            "certificates.  [default: the system's]",
        ),
        click.option(
            "--upstream-certificate",
            type=_FILE,
            help="The certificate that the tap sends to brokers; see --as-one-principal.",
        ),
        click.option(
            "--upstream-key", type=_FILE, help="The key for --upstream-certificate, in PEM."
        ),
        click.option(
            "--upstream-key-password-file",
            type=_FILE,
            help="A file that contains the password for --upstream-key. Without this option, the "
            f"password is taken from ${_PASSWORDS['upstream']}.",
        ),
        click.option(
            "--upstream-name",
            help="The name in the certificate of --upstream, if it differs from the address.",
        ),
        click.option(
            "--any-upstream-name",
            is_flag=True,
            help="Do not check the names in brokers' certificates. This corresponds to an empty "
            "ssl.endpoint.identification.algorithm in Kafka.",
        ),
        click.option(
            "--as-one-principal",
            is_flag=True,
            help="Confirm that brokers may see one principal for all clients. This option is "
            "required if clients or the tap have certificates.",
        ),
        click.option(
            "--with-credentials/--without-credentials",
            default=None,
            help="Write passwords and tokens to the capture, or asterisks in their place.  "
            "[default: without, if TLS is used]",
        ),
    ),
    "rehearsal": (
        click.option(
            "--pretend",
            metavar="RELEASE",
            help="Rehearse an upgrade to a release, for example 4.4. The tap offers clients only "
            "the versions that both the release and the brokers support. With --only-client-id, "
            "the rehearsal affects only clients with this id. docs/rehearse.md describes how "
            "clients may react.",
        ),
        click.option(
            "--share",
            metavar="PERCENT",
            callback=parse_percentage,
            help="Rehearse with this percentage of the clients, such as 5%. The tap chooses the "
            "clients by address and client id.",
        ),
        click.option(
            "--for",
            "seconds",
            metavar="TIME",
            callback=parse_time,
            help="End the rehearsal after this time, such as 90s, 10m or 2h. SIGUSR1 ends the "
            "rehearsal immediately. The tap then continues without the rehearsal.",
        ),
        click.option(
            "--most-failed",
            type=click.IntRange(min=0),
            help="End the rehearsal as soon as more than this many clients have been refused.",
        ),
    ),
    "faults": (
        click.option(
            "--fault",
            "faults",
            metavar="TEXT",
            multiple=True,
            help="Break requests on purpose, for example 'Produce error=NOT_LEADER_OR_FOLLOWER "
            "once' or 'Fetch delay=2s 5%'. docs/faults.md describes the grammar. Can be given "
            "multiple times. If several faults match a request, the first one is used. SIGUSR1 "
            "ends all faults.",
        ),
        click.option(
            "--fault-file",
            type=_FILE,
            help="Read further faults from this file, one per line.",
        ),
        click.option(
            "--fault-seed",
            type=click.IntRange(min=0),
            help="The random seed for faults with a percentage, such as 5%.  [default: a new one]",
        ),
    ),
    "stamping": (
        click.option(
            "--header-tag",
            "header_tags",
            multiple=True,
            metavar="NUMBER=VALUE",
            callback=_parsed_tags,
            help="Add this tagged field to the header of each request. VALUE is a string, or "
            "hex:DIGITS for bytes. In a string, the tap replaces {client}, {connection} and "
            "{trace_id} with their values.",
        ),
        click.option(
            "--request-limit",
            type=click.IntRange(min=1),
            help="The brokers' socket.request.max.bytes; by default 100 MiB. If the tag would "
            "make a request larger than this, the request is sent without the tag.",
        ),
    ),
}


def config_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for every field of `TapConfig` to a command, in the order of the fields."""
    options: list[Callable[..., Any]] = []
    for field in dataclasses.fields(TapConfig):
        declared: Option | None = field.metadata.get("option")
        own = _FIELD_OPTIONS.get(field.name, ())
        options += own if declared is None else (_click_option(field, declared),)
    for option in reversed(options):
        command = option(command)
    return command


def _click_option(field: dataclasses.Field[Any], option: Option) -> Callable[..., Any]:
    """Return the command-line option for a field."""
    if isinstance(field.default, bool):
        return click.option(option.flag, field.name, is_flag=True, help=option.help)
    default: Any = field.default
    kind: click.ParamType[Any] | None = None
    if isinstance(default, float):
        kind = click.FloatRange(option.least, option.most, min_open=option.is_open)
    elif option.least is not None:
        kind = click.IntRange(option.least, option.most)
        default = None if default is None else default // option.unit
    return click.option(
        option.flag,
        field.name,
        type=kind,
        default=default,
        show_default=default is not None,
        help=option.help,
    )


def to_security(listen: str, parameters: dict[str, Any]) -> tuple[TapSecurity, ThrowawayCa | None]:
    """Return the security settings, and the throwaway authority if the options request one."""
    from flexwire.tap import TapSecurity

    own, throwaway = _listening(listen, parameters)
    security = TapSecurity(
        own,
        _connecting(parameters),
        as_one_principal=parameters["as_one_principal"],
        with_credentials=parameters["with_credentials"],
    )
    return security, throwaway


def how_to_trust(authority: ThrowawayCa) -> str:
    """Return the client settings for trusting a throwaway authority."""
    return (
        f"clients trust {authority.ca}:\n"
        f"  Java        security.protocol=SSL, ssl.truststore.type=PEM, "
        f"ssl.truststore.location={authority.ca}\n"
        f"  librdkafka  security.protocol=ssl, ssl.ca.location={authority.ca}\n"
        f"  others      use the same file as the CA file (cafile); with SASL, the protocol is "
        "SASL_SSL"
    )


def _listening(
    listen: str, parameters: dict[str, Any]
) -> tuple[ListenTls | None, ThrowawayCa | None]:
    from flexwire.client.notation import parse_listener
    from flexwire.tap import ListenTls
    from flexwire.tap.security import listener_names, make_throwaway_ca

    certificate, key, authority = parameters["listen_certificate"], parameters["listen_key"], None
    if parameters["throwaway_ca"] is not None:
        if certificate is not None:
            raise InputError("give either --listen-certificate or --throwaway-ca, not both")
        address, is_tls = parse_listener(listen)
        if not is_tls:
            raise InputError("--throwaway-ca is for --listen ssl://…")
        advertised_names = (parameters["advertised_host"],) if parameters["advertised_host"] else ()
        authority = make_throwaway_ca(
            parameters["throwaway_ca"], (*advertised_names, *listener_names(address.host))
        )
        certificate, key = authority.certificate, authority.key
    if certificate is None:
        _refuse_alone(parameters, "listen_certificate", "listen_key", "listen_ca")
        if parameters["listen_client_auth"] != "none":
            raise InputError("--listen-client-auth needs --listen-certificate")
        return None, None
    auth = parameters["listen_client_auth"]
    return ListenTls(
        certificate, key, _password(parameters, "listen"), parameters["listen_ca"], auth
    ), authority


def _connecting(parameters: dict[str, Any]) -> UpstreamTls | None:
    from flexwire.tap import UpstreamTls

    if parameters["upstream_certificate"] is None:
        _refuse_alone(parameters, "upstream_certificate", "upstream_key")
    upstream = UpstreamTls(
        parameters["upstream_ca"],
        parameters["upstream_certificate"],
        parameters["upstream_key"],
        _password(parameters, "upstream"),
        parameters["upstream_name"],
        check_names=not parameters["any_upstream_name"],
    )
    # Without these options, only an ssl:// address turns TLS on.
    return None if upstream == UpstreamTls(password=upstream.password) else upstream


def _refuse_alone(parameters: dict[str, Any], with_: str, *names: str) -> None:
    for name in names:
        if parameters[name] is not None:
            raise InputError(f"{_option(name)} needs {_option(with_)}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _password(parameters: dict[str, Any], side: str) -> str | None:
    path = parameters[f"{side}_key_password_file"]
    if path is None:
        return os.environ.get(_PASSWORDS[side])
    try:
        text: str = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        # The text of a UnicodeDecodeError quotes the content of the file.
        reason = error.strerror if isinstance(error, OSError) else "expected text in UTF-8"
        raise InputError(f"{path}: {reason}") from None
    return text.rstrip("\r\n")


def to_config(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `TapConfig` from the options, except ``security``."""
    from flexwire.capture.files.retention import KeepLimit

    config: dict[str, Any] = {}
    for field in dataclasses.fields(TapConfig):
        if (option := field.metadata.get("option")) is not None:
            value = parameters[field.name]
            config[field.name] = value if value is None or option.unit == 1 else value * option.unit
    rotate, keep_mib, processes = (
        parameters["max_bytes"],
        parameters["keep_mib"],
        parameters["processes"],
    )
    if keep_mib is not None and keep_mib < (processes + 1) * rotate:
        raise InputError(
            f"--keep-mib must be at least {processes + 1} times --rotate {rotate}, got {keep_mib}"
        )
    if parameters["keep_addresses"] and parameters["ports"] is not None:
        raise InputError(
            "--ports sets the ports of the listeners for brokers, but --keep-addresses uses no "
            "such listeners"
        )
    keep_bytes = None if keep_mib is None else keep_mib * MIB
    return config | {
        "keep": KeepLimit(keep_bytes, parameters["keep_files"]),
        "only": to_filter(parameters),
        "ports": _ports(parameters["ports"]),
        "rehearsal": to_rehearsal(parameters),
        "faults": to_faults(parameters),
    }


def to_filter(parameters: dict[str, Any]) -> CaptureFilter:
    """Return the filter from the options. Raises `InputError` for an unknown API."""
    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.errors import ArgumentError
    from flexwire.tap.frame_filter import parse_api

    try:
        apis = tuple(map(parse_api, parameters["only_apis"]))
        return CaptureFilter(apis, parameters["only_client_ids"], parameters["only_topics"])
    except ArgumentError as error:
        raise InputError(f"--only-…: {error}") from None


def _ports(text: str | None) -> PortRange | None:
    from flexwire.errors import ArgumentError
    from flexwire.tap.listeners import parse_port_range

    try:
        return None if text is None else parse_port_range(text)
    except ArgumentError as error:
        raise InputError(f"--ports: {error}") from None


def _stamping(tags: tuple[HeaderTag, ...], limit: int | None) -> StampConfig | None:
    from flexwire.errors import ArgumentError
    from flexwire.tap.header_stamps import StampConfig

    try:
        return StampConfig(tags, limit) if tags else None
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None


def _tell(counts: TapStatistics, out: Path, output: Format) -> None:
    from flexwire.errors import CaptureError
    from flexwire.schema.spec import camel_case

    named = dataclasses.asdict(counts)
    del named["open_connections"]
    if output is Format.JSON:
        _print_line("stopped", **{camel_case(name): count for name, count in named.items()})
    else:
        for name, count in named.items():
            if count:
                print(f"{name.replace('_', ' '):24} {count:12,}")
    if not counts.is_captured:
        raise CaptureError(
            f"the capture is incomplete: {counts.capture_failures:,} frames are missing, "
            f"{counts.shortened_frames:,} frames are cut off (--hold-mib), "
            f"{counts.not_captured:,} connections were refused, and {counts.unended:,} "
            "connections were not captured until they closed; see the log for the reasons",
            source=str(out),
        )


def _print_line(kind: str, **fields: Any) -> None:
    print(json.dumps({"type": kind, **fields}, ensure_ascii=False), flush=True)


@click.command()
@click.option(
    "--upstream",
    required=True,
    help="A broker of the cluster: HOST:PORT, or ssl://HOST:PORT for TLS.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The output directory for the capture files.",
)
@click.option(
    "--listen",
    default="127.0.0.1:19092",
    show_default=True,
    help="The address that clients connect to: HOST:PORT, or ssl://HOST:PORT for TLS.",
)
@config_options
@format_option
def tap(
    *,
    upstream: str,
    out: Path,
    listen: str,
    output: Format,
    **parameters: Any,
) -> None:
    """Capture the traffic between clients and a cluster.

    The tap is a proxy that writes pcapng files for flexwire and Wireshark. Ctrl-C stops the tap.

    The tap rewrites the addresses that brokers advertise, so clients reach every broker through the
    tap. Everything else passes unchanged, unless --header-tag adds tags to request headers: the
    capture then contains the request as the client sent it, and the tags in comments.

    With --pretend, the tap rehearses an upgrade. Like brokers of the new release, the tap refuses
    clients that need versions or APIs that the release dropped. The cluster itself does not change.
    With --fault, the tap breaks requests on purpose, to show how an application reacts.

    With TLS, the tap decrypts what it receives and encrypts what it sends, so the capture is not
    encrypted. SASL passes unchanged. docs/tap.md describes TLS, SASL, and the tap as a service.

    Only you can read the capture files. Several taps can write to the same directory, because each
    new file gets the next free name. If the capture lacks frames that passed through the tap, the
    tap prints the number of missing frames and exits with 1. With --format json, the tap prints a
    line when it starts to listen, and all counts when it ends.
    """
    import asyncio

    from flexwire.tap.tap import run_tap
    from flexwire.tap.worker import keep_freed_memory

    stamping = _stamping(parameters["header_tags"], parameters["request_limit"])
    config = to_config(parameters)
    metrics = metrics_port(
        parameters["metrics"], beyond_loopback=parameters["metrics_beyond_loopback"]
    )
    _log_to_terminal()
    keep_freed_memory()
    security, throwaway = to_security(listen, parameters)

    def ready(running: Tap) -> None:
        scheme = "" if security.listen is None else "ssl://"
        trust = None if throwaway is None else how_to_trust(throwaway)
        _tell_ready(f"{scheme}{running.listen_address}", out, metrics, trust, output)

    counts = asyncio.run(
        run_tap(
            listen,
            upstream,
            out,
            security=security,
            stamping=stamping,
            metrics=metrics,
            ready=ready,
            **config,
        )
    )
    _tell(counts, out, output)


def _tell_ready(
    address: str, out: Path, metrics: MetricsPort | None, trust: str | None, output: Format
) -> None:
    url = None if metrics is None else f"http://{metrics.address}/metrics"
    if output is Format.JSON:
        _print_line("listening", address=address, out=str(out), metrics=url, trust=trust)
        return
    print(printable(f"listening on {address}, capturing into {out}; Ctrl-C stops"), flush=True)
    if url is not None:
        print(f"metrics at {url}", flush=True)
    if trust is not None:
        print(printable(trust, keep="\n"), flush=True)


def _log_to_terminal() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
