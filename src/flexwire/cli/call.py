"""`flexwire call`: send any request as JSON, and print the response as JSON."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.completion import request_names
from flexwire.cli.connection_options import ConnectionOptions, connection_options, reach
from flexwire.cli.options import (
    Format,
    InputError,
    read_json,
    read_lines,
    release_option,
)
from flexwire.cli.standard_input import plain_name, takes_standard_input
from flexwire.cli.terminal import note, print_line
from flexwire.errors import (
    CallError,
    FlexwireError,
    VersionNotOfferedError,
    WriteRefusedError,
    short,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from flexwire.client import Broker, BrokerAnswer, Cluster


@contextmanager
def limit_cpu_time(seconds: float, subject: str) -> Iterator[None]:
    """Limit the CPU time of a block to ``seconds``.

    Raise `CallError` about ``subject`` when the limit is reached.

    Waiting does not count, because each wait has its own limit. The limit works only in the main
    thread, and only on systems with the necessary timers (POSIX). On other systems, there is no
    limit.

    Python drops an exception that is raised in a finalizer or in a garbage-collector callback. The
    error is therefore raised again after every further ``seconds``, and at the end of the block.
    """
    if not hasattr(signal, "setitimer") or not _is_main():
        yield
        return
    too_long = CallError(
        f"{subject} took more than {seconds:g} s; set a higher limit with --timeout SECONDS"
    )
    reached = False

    def on_timeout(_: int, __: FrameType | None) -> None:
        nonlocal reached
        reached = True
        raise too_long

    old_handler = signal.signal(signal.SIGPROF, on_timeout)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old_handler)
    if reached:
        raise too_long


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


_LATEST = "latest"
_MIB = 1024 * 1024
ANSWER_BYTES = 8 * _MIB
"""The default limit for the size of a response. The limit is low because one byte can become 100
bytes of Python objects.
"""
_TO_SHOW = "decoding and printing the answer"
_INSIST = "use --any-version to send this version anyway"
# An int16 has at most five digits.
_DIGITS = re.compile(r"[0-9]{1,9}")
_LINE_KEYS = frozenset({"message", "version", "body", "to", "headerTags"})


@dataclass(frozen=True, slots=True)
class _CallOptions:
    """The options for requests and for the output.

    A line of --requests can override the version and the route.
    """

    version: str
    any_version: bool
    to: str
    retry: bool
    yes: bool
    header_tags: tuple[str, ...]
    release: str | None
    explain: bool
    records: bool
    raw: bool
    output: Format | None
    answer_mib: int


@click.command()
@click.argument("address")
@click.argument("message", required=False, shell_complete=request_names)
@click.argument("body", metavar="[JSON]", required=False)
@click.option(
    "-V",
    "--version",
    default=_LATEST,
    show_default=True,
    metavar="N|latest",
    help='The message version; "latest" is the newest version that both the broker and flexwire '
    "know.",
)
@click.option(
    "--any-version",
    is_flag=True,
    help="Use the version given by --version without first checking that the broker offers it.",
)
@click.option(
    "--to",
    default="any",
    show_default=True,
    metavar="ROUTE",
    help="The broker to send the request to: any, a node id, leader:TOPIC-PARTITION, group:ID, "
    "transaction:ID, share:GROUP:TOPIC_ID:PARTITION, or controller for the active controller.",
)
@click.option(
    "--retry",
    is_flag=True,
    help="If the answer indicates that another broker is responsible, look up that broker and send "
    "the request again, up to 5 times.",
)
@click.option(
    "--yes", is_flag=True, help="Also send requests that may change something on the broker."
)
@click.option(
    "--header-tag",
    "header_tags",
    metavar="NUMBER=VALUE",
    multiple=True,
    help="Add a tagged field to the request header: 10042=text or 10042=hex:00ff. Can be given "
    "multiple times.",
)
@release_option
@click.option(
    "--requests",
    metavar="FILE",
    help="Send the requests in this file, one per line; - reads standard input. Each line has the "
    'form {"message": …, "body": …}, and can also contain version, to and headerTags. The command '
    "prints one line for each request.",
)
@click.option("--apis", is_flag=True, help="List the broker's APIs with their versions.")
@click.option(
    "--bootstrap-controller",
    is_flag=True,
    help="Treat ADDRESS as the address of a controller's listener.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print an explanation of the request and response bytes to standard error.",
)
@click.option("--records", is_flag=True, help="Show records as JSON instead of base64.")
@click.option("--raw", is_flag=True, help="Print the JSON form without the names of error codes.")
@click.option(
    "--format",
    "output",
    type=click.Choice(Format, case_sensitive=False),
    help="The output format: json, or human-readable text. The default is json, or text with "
    "--apis.",
)
@connection_options
@click.option(
    "--answer-mib",
    type=click.IntRange(min=1),
    default=ANSWER_BYTES // _MIB,
    show_default=True,
    help="Reject answers larger than this many MiB.",
)
@takes_standard_input(
    *("body", "requests", "password_file"),
    **dict.fromkeys(("command_config", "ca", "certificate", "key"), plain_name),
)
def call(
    *,
    address: str,
    message: str | None,
    body: str | None,
    requests: str | None,
    apis: bool,
    bootstrap_controller: bool,
    command_config: Any,
    tls: bool,
    ca: Any,
    certificate: Any,
    key: Any,
    sasl: str | None,
    user: str | None,
    password_file: str | None,
    client_id: str | None,
    timeout: float | None,
    **asking: Any,
) -> None:
    """Send a request to a broker and print the broker's answer as JSON.

    ADDRESS is the HOST:PORT of a broker, or a comma-separated list for several brokers. MESSAGE is
    the name of a request, such as Metadata. JSON is the body of the request: the JSON text, the
    path of a file, or - for standard input. Fields that you omit get their default values. Write
    records as base64 or as JSON: a list of {"key": …, "value": …, "headers": …}.

    \b
    flexwire call localhost:9092 Metadata '{"topics": null}' --version 12
    flexwire call localhost:9092 OffsetFetch '{"groups": [{"groupId": "a"}]}' --to group:a
    flexwire call localhost:9092 DescribeQuorum --to controller --explain
    flexwire call broker:9093 ListGroups --command-config client.properties

    A request needs --yes unless flexwire knows that the request only reads. If the answer contains
    an error code, the command names the error in the answer and on standard error, and exits with
    1. It also exits with 1 if the answer deviates from Kafka's protocol. In this case, it prints
    the part that it could read, and reports on standard error where the answer deviates.
    """  # noqa: D301 - click needs a real backspace character
    if sum((message is not None, requests is not None, apis)) != 1:
        raise click.UsageError("give exactly one of MESSAGE, --requests and --apis")
    connection = ConnectionOptions(
        command_config, tls, ca, certificate, key, sasl, user, password_file, client_id, timeout
    )
    options = _CallOptions(**asking)
    request = None if message is None else _to_request(message, body)
    from flexwire.client import Cluster

    config = reach(connection)
    with Cluster(
        address,
        config.security,
        client_id=config.client_id,
        timeout=config.timeout,
        frame_limit=options.answer_mib * _MIB,
        controllers=bootstrap_controller,
    ) as cluster:
        if requests is not None:
            _call_each_line(cluster, requests, options, config.timeout)
        else:
            _call_once(cluster, request, options, config.timeout)


def _call_once(
    cluster: Cluster, request: dict[str, Any] | None, options: _CallOptions, seconds: float
) -> None:
    """Send one request, or print the broker's APIs. The time to decode the response is limited."""
    with limit_cpu_time(seconds, _TO_SHOW):
        if request is None:
            _print_apis(cluster.broker(options.to), options.output)
        else:
            _call(cluster, request, options)


def _to_request(message: str, body: str | None) -> dict[str, Any]:
    """Return the request in the form of a --requests line. Raise an error for an unknown API."""
    from flexwire.protocol.apis import api_key_of

    api_key_of(message)
    return {"message": message, "body": None if body is None else read_json(body)}


def _call(cluster: Cluster, request: dict[str, Any], options: _CallOptions) -> None:
    try:
        answer = _ask(cluster, request, options)
    except WriteRefusedError as error:
        raise click.UsageError(f"{error}; --yes sends it") from None
    except VersionNotOfferedError as error:
        raise VersionNotOfferedError(f"{error}; {_INSIST}") from None
    from flexwire.client.write_requests import remark_on

    if answer.response_frame is None:
        note("no response is expected, because acks is 0")
    if (remark := remark_on(answer.api_name, answer.request)) is not None:
        note(f"{answer.api_name}: {remark}")
    form = _answer_form(answer, options)
    if form is not None and options.output is Format.TEXT:
        from flexwire.cli.decode import print_outline

        title = f"{answer.api_name}Response version {answer.response_version}"
        print_outline(title, form)
    else:
        print(json.dumps(form, ensure_ascii=False, indent=2))
    has_failed = _print_errors(answer)
    answer.exact()
    if has_failed:
        sys.exit(1)


def _call_each_line(cluster: Cluster, source: str, options: _CallOptions, seconds: float) -> None:
    if options.output is Format.TEXT:
        raise click.UsageError("--requests prints lines of JSON, so leave out --format text")
    failed = 0
    for number, line in read_lines(source):
        line_form: dict[str, Any] = {"line": number}
        try:
            with limit_cpu_time(seconds, _TO_SHOW):
                failed += _call_line(cluster, line, options, line_form)
        except (FlexwireError, click.UsageError) as error:
            failed += 1
            why = str(error) if not isinstance(error, click.UsageError) else error.message
            line_form["error"] = f"{type(error).__name__}: {why}"
            print(json.dumps(line_form, ensure_ascii=False), flush=True)
    if failed:
        print(f"{failed} of the requests failed or were answered with error codes", file=sys.stderr)
        sys.exit(1)


def _call_line(
    cluster: Cluster, line: bytes, options: _CallOptions, line_form: dict[str, Any]
) -> bool:
    """Send the request in a line and print the response. Return whether the request failed."""
    request = _parse_line(line)
    line_form["message"] = request["message"]
    answer = _ask(cluster, request, options)
    form = {"version": answer.version, "broker": str(answer.broker)}
    form["response"] = _answer_form(answer, options)
    if answer.deviation is not None:
        form["error"] = f"DecodeError: {answer.deviation}"
    print(json.dumps(line_form | form, ensure_ascii=False), flush=True)
    return bool(answer.error_codes) or answer.deviation is not None


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{short(line)} is not a request in JSON: {error}") from None
    if not isinstance(request, dict) or not isinstance(request.get("message"), str):
        raise InputError(f'expected {{"message": …, "body": …}}, got {short(request)}')
    if unknown := request.keys() - _LINE_KEYS:
        raise InputError(f"expected {', '.join(sorted(_LINE_KEYS))}, got {short(min(unknown))}")
    return request


def _ask(cluster: Cluster, request: dict[str, Any], options: _CallOptions) -> BrokerAnswer:
    from flexwire.client.cluster import RETRIES

    return cluster.ask(
        request["message"],
        request.get("body"),
        _version(request.get("version", options.version)),
        to=str(request.get("to", options.to)),
        retries=RETRIES if options.retry else 0,
        header_tags=_tags(request.get("headerTags", {}), options.header_tags),
        release=options.release,
        allow_writes=options.yes,
        any_version=options.any_version,
        watch=_print_explanation if options.explain else None,
    )


def _version(value: Any) -> int | str:
    if value == _LATEST or type(value) is int:
        return value  # type: ignore[no-any-return]  # the value has one of these types
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    raise click.UsageError(f"--version: expected a number or {_LATEST}, got {short(value)}")


def _tags(of_line: Any, option_texts: tuple[str, ...]) -> dict[int, bytes]:
    from flexwire.client.broker import parse_header_tag

    if not isinstance(of_line, dict):
        raise InputError(f'headerTags: expected {{"10042": …}}, got {short(of_line)}')
    texts = [*option_texts, *(f"{tag}={value}" for tag, value in of_line.items())]
    tags: dict[int, bytes] = {}
    for tag, value in map(parse_header_tag, texts):
        if tag in tags:
            raise InputError(f"--header-tag: tag {tag} appears twice")
        tags[tag] = value
    return tags


def _answer_form(answer: BrokerAnswer, options: _CallOptions) -> dict[str, Any] | None:
    return answer.to_json(names=not options.raw, records=options.records)


def _print_explanation(answer: BrokerAnswer) -> None:
    from flexwire.cli.explain import table_lines, withheld_note
    from flexwire.client.answers import explain_request, explain_response

    parts = explain_response if answer.response_frame else explain_request
    for part in parts(answer):
        withheld = withheld_note(part.withheld)
        print(f"{part.title}{withheld}", file=sys.stderr)
        for line in table_lines(part.explanation, part.data):
            print(line, file=sys.stderr)
        print(file=sys.stderr)


# The advice for each error code, by the name of the code.
_HINTS = {
    "NOT_LEADER_OR_FOLLOWER": "--to leader:TOPIC-PARTITION sends the request to the leader",
    "NOT_COORDINATOR": "--to group:ID or transaction:ID sends the request to the coordinator",
    "NOT_CONTROLLER": "--to controller sends the request to the active controller",
}


def _print_errors(answer: BrokerAnswer) -> bool:
    """Print the error codes in a response. Return whether the response contains error codes."""
    codes = answer.error_codes
    for code in codes:
        print(f"error: {code}", file=sys.stderr)
    for name in dict.fromkeys(code.name for code in codes):
        if name in _HINTS:
            note(_HINTS[name])
    return bool(codes)


def _print_apis(broker: Broker, output: Format | None) -> None:
    from flexwire.protocol.audit import fitting_releases

    releases, rows = fitting_releases(broker.offered), list(_apis(broker))
    if output is Format.JSON:
        form = {"broker": str(broker.address), "releases": list(releases), "apis": rows}
        print(json.dumps(form, ensure_ascii=False, indent=2))
        return
    named = ", ".join(releases) or "no release in the catalog"
    print_line(f"{broker.address}: the versions match {named}")
    print(f"{'key':>5}  {'API':38}  {'broker':9}  {'usable':9}  request")
    for row in rows:
        name = row["api"] or "(not in the catalog)"
        effect, usable = "reads" if row["reads"] else "may write", row["usable"] or "none"
        print(f"{row['apiKey']:5}  {name:38}  {row['broker']:9}  {usable:9}  {effect}")


def _apis(broker: Broker) -> Iterator[dict[str, Any]]:
    from flexwire.client.broker import usable_versions
    from flexwire.client.write_requests import READING
    from flexwire.protocol import api_name
    from flexwire.protocol.apis import request_entries

    for key, versions in sorted(broker.offered.items()):
        name = api_name(key) if request_entries(key) else None
        usable = str(usable_versions(key, broker.offered)) if name else "none"
        yield {
            "apiKey": key,
            "api": name,
            "broker": str(versions),
            "usable": None if usable == "none" else usable,
            "reads": name in READING,
        }
