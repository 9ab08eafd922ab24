"""One broker: requests by name and as JSON, each with its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from flexwire.arguments import refuse, to_int, to_kind, to_text, to_version
from flexwire.client.answers import Answer, Frame
from flexwire.client.authentication import log_in
from flexwire.client.bodies import read_body
from flexwire.client.connection import DEFAULT_SECONDS, Closing, Connection
from flexwire.client.host_port import HostPort, parse_host_port
from flexwire.client.security import PLAINTEXT, Security
from flexwire.client.versions import latest_version
from flexwire.client.writing import why_it_writes
from flexwire.codec import Message, message
from flexwire.codec.explain_cut import explain_cut
from flexwire.errors import (
    CallError,
    DecodeError,
    LoginError,
    TapError,
    UnknownMessageError,
    VersionNotOfferedError,
    WriteRefusedError,
    short,
)
from flexwire.protocol import (
    DEFAULT_FRAME_LIMIT,
    api_name,
    expects_response,
    parse_response,
    read_request,
    request_header_version,
)
from flexwire.protocol.apis import find_api
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.headers import UNSUPPORTED_VERSION, parse_correlation_id, request_name
from flexwire.protocol.shown import called
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from flexwire.versions import HIGHEST, Versions
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

LATEST: Final = "latest"
DEFAULT_CLIENT_ID: Final = "flexwire"
_ASKS_VERSIONS: Final = "ApiVersions"
# The request header whose version has tagged fields.
_TAGGED_HEADER: Final = 2


class Broker(Closing):
    """A connection to a broker: ``with Broker.connect("localhost:9092") as broker: …``.

    `call` sends a request and waits for its answer. What goes wrong is a `CallError`, a
    `LoginError` where SASL fails, or the codec's own error for bytes or a body that do not fit.
    After some the connection has ended, as `is_open` says.
    """

    def __init__(self, connection: Connection, client_id: str | None = DEFAULT_CLIENT_ID) -> None:
        self._connection = connection
        self._client_id = client_id
        self._correlation_id = 0
        self._offered: dict[int, Versions] | None = None

    @classmethod
    def connect(
        cls,
        address: str | HostPort | tuple[str, int],
        security: Security = PLAINTEXT,
        *,
        client_id: str | None = DEFAULT_CLIENT_ID,
        timeout: float = DEFAULT_SECONDS,
        frame_limit: int = DEFAULT_FRAME_LIMIT,
    ) -> Self:
        """Connect, and log in where ``security`` says as whom.

        ``timeout`` is for one answer, in seconds; ``frame_limit`` is how many bytes it may have.
        """
        to_kind(security, "security", Security)
        to_int(frame_limit, "frame_limit", least=1)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise refuse("timeout", "seconds, more than 0", timeout)
        if client_id is not None:
            to_text(client_id, "client_id")
        found = to_address(address)
        connection = Connection(found, security, timeout=timeout, frame_limit=frame_limit)
        made = cls(connection, client_id)
        if security.login is not None:
            try:
                log_in(made, security.login)
            except LoginError as error:
                made.close()
                raise LoginError(f"{found}: {error}") from None
            except BaseException:
                made.close()
                raise
        return made

    @property
    def address(self) -> HostPort:
        """Where the broker is reached."""
        return self._connection.address

    @property
    def is_open(self) -> bool:
        """Whether it can be called."""
        return self._connection.is_open

    @property
    def offered(self) -> dict[int, Versions]:
        """By api key the versions that the broker says it has, asked for once."""
        if self._offered is None:
            self._offered = self._ask_versions()
        return self._offered

    def newest(self, name: str) -> int:
        """The newest version of an API that the broker reads and flexwire writes; `CallError`."""
        return latest_version(api_key_of(name), self.offered, str(self.address))

    def check_version(self, name: str, version: int) -> None:
        """Raise `VersionNotOfferedError` for a version of an API that the broker does not offer.

        Of ApiVersions every version may be sent: the broker itself says that it lacks one, in a
        version that everybody reads (KIP-511).
        """
        api_key = api_key_of(name)
        offered = self.offered.get(api_key, Versions.NONE)
        if version in offered or api_key == api_key_of(_ASKS_VERSIONS):
            return
        told = f"offers {api_name(api_key)} {offered}" if offered else "does not offer it"
        raise VersionNotOfferedError(
            f"{self.address} {told}; {api_name(api_key)} {version} was asked for"
        )

    def call(
        self,
        message_name: str,
        body: Message | Mapping[str, Any] | None = None,
        version: int | str = LATEST,
        *,
        header_tags: Mapping[int, bytes] | None = None,
        release: str | None = None,
        allow_writes: bool = True,
        watch: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Send a request and return its answer.

        ``body`` is a message object or its JSON form, in which fields may be missing: they have
        their defaults. ``version`` is a number or "latest" (`newest`). ``header_tags`` are tagged
        fields of the request header. ``release`` is the Kafka release whose layout to use.
        ``watch`` is given what is sent, before it is, and then what came, before it is decoded.

        Raises `WriteRefusedError` for what may change something on the broker, unless
        ``allow_writes``; see `flexwire.client.writing`. Raises `DecodeError` for an answer
        that is not Kafka's; `ask` returns it.
        """
        return self.ask(
            message_name,
            body,
            version,
            header_tags=header_tags,
            release=release,
            allow_writes=allow_writes,
            watch=watch,
        ).exact()

    def ask(
        self,
        message_name: str,
        body: Message | Mapping[str, Any] | None = None,
        version: int | str = LATEST,
        *,
        header_tags: Mapping[int, bytes] | None = None,
        release: str | None = None,
        allow_writes: bool = True,
        watch: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Do what `call` does, but return an answer that is not Kafka's too.

        `Answer.deviation` says then what is wrong with it.
        """
        api_key = api_key_of(message_name)
        if version == LATEST:
            version = latest_version(api_key, self.offered, str(self.address))
        version = to_version(version)
        name = request_name(api_key, version)
        kind = message(name, release)
        request = body if isinstance(body, Message) else read_body(kind, body, version)
        if not isinstance(request, Message) or type(request).__name__ != name:
            raise refuse("body", f"the body of a {name}", body)
        why = why_it_writes(name.removesuffix("Request"), request)
        if why is not None and not allow_writes:
            raise WriteRefusedError(why)
        tags = {} if header_tags is None else header_tags
        if not isinstance(tags, Mapping):
            raise refuse("header_tags", "tags and their bytes", tags)
        header = self._header(api_key, version, tags)
        payload = header + request.encode(version)
        frame = Frame(payload, len(header))
        asked = Answer(self.address, version, request, frame, read_request(payload))
        return self._exchange(asked, release, watch or _nobody)

    def exchange_token(self, token: bytes) -> bytes:
        """Send a bare SASL token, as SaslHandshake v0 wants, and give the broker's."""
        return self._connection.exchange(token)

    def close(self) -> None:
        """End the connection; a second call does nothing."""
        self._connection.close()

    def _header(self, api_key: int, version: int, tags: Mapping[int, bytes]) -> bytes:
        header_version = request_header_version(api_key, version)
        if tags and header_version < _TAGGED_HEADER:
            raise CallError(
                f"{api_name(api_key)} v{version} has no tagged fields in its header; "
                "they begin with its first flexible version"
            )
        self._correlation_id = self._correlation_id % INT32_MAX + 1
        header = message("RequestHeader")(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id if header_version else "",
            unknown_tagged_fields=dict(tags),
        )
        return header.encode(header_version)

    def _exchange(
        self, asked: Answer, release: str | None, watch: Callable[[Answer], None]
    ) -> Answer:
        sent, payload = asked.request_header, asked.request_frame.payload
        watch(asked)
        is_answered = expects_response(sent, payload)
        came = self._connection.exchange(payload, is_answered=is_answered)
        if not is_answered:
            return asked
        correlation_id = parse_correlation_id(came)
        if correlation_id != sent.correlation_id:
            self.close()
            raise CallError(
                f"{self.address} answers another request: expected correlation id "
                f"{sent.correlation_id}, got {correlation_id}"
            )
        found = parse_response(came, sent.api_key, asked.version)
        answered = replace(
            asked,
            response_version=found.body_version,
            response_frame=Frame(came, found.body_offset),
            response_header=found,
        )
        watch(answered)
        kind = message(found.message_name, release)
        body = came[found.body_offset :]
        try:
            return replace(answered, response=kind.decode(body, found.body_version))
        except DecodeError as error:
            return _deviating(replace(answered, deviation=error), kind, body)

    def _ask_versions(self) -> dict[int, Versions]:
        version = catalog().entry(f"{_ASKS_VERSIONS}Request").versions.highest
        answer = self.ask(_ASKS_VERSIONS, None, version)
        if answer.response is None and (answer.read or {}).get("errorCode") == UNSUPPORTED_VERSION:
            # It says which it has as no version lays it out, as librdkafka's mock does.
            answer = self.ask(_ASKS_VERSIONS, None, 0)
        response: Any = answer.readable()
        if response.error_code == UNSUPPORTED_VERSION:
            # The broker says which it has; before KIP-511 brokers said nothing, and had 0.
            own = _ranges(response).get(api_key_of(_ASKS_VERSIONS), Versions(0, 0))
            response = self.call(_ASKS_VERSIONS, None, min(own.highest, version)).response
        if response.error_code != NO_ERROR:
            name = called(response.error_code)
            raise CallError(f"{self.address} does not say which versions it has: {name}")
        return _ranges(response)


def _deviating(answered: Answer, kind: type[Message], body: bytes) -> Answer:
    """The answer with what can be read of a body that is not Kafka's."""
    version = answered.response_version
    try:
        return replace(answered, response=kind.decode(body, version, lenient=True))
    except DecodeError:
        return replace(answered, read=explain_cut(kind, body, version, 0).form)


def _nobody(_: Answer) -> None:
    """Watch nothing."""


def api_key_of(name: str) -> int:
    """The api key of a request by its name, with or without the suffix.

    Raises `UnknownMessageError`, with the nearest names.

    >>> api_key_of("Metadata"), api_key_of("MetadataRequest")
    (3, 3)
    """
    name = to_text(name, "message_name").removesuffix("Request")
    if f"{name}Request" not in catalog().names():
        found = find_api(name).name.removesuffix("Request")
        raise UnknownMessageError(f"no API {short(name)}; did you mean {found!r}?")
    entry = catalog().entry(f"{name}Request")
    if entry.type is not MessageType.REQUEST or entry.api_key is None:
        raise refuse("message_name", "the name of a request", name)
    return entry.api_key


def to_address(given: str | HostPort | tuple[str, int]) -> HostPort:
    """Give an address: ``host:port``, or both apart. `CallError` for a text that is neither."""
    if isinstance(given, str):
        return parse_address(given)
    match given:
        case (str(host), int(port)) if not isinstance(port, bool):
            return HostPort(host, port)
        case _:
            raise refuse("address", "host:port, or a host and a port", given)


def parse_address(text: str) -> HostPort:
    """Read ``host:port``; `CallError` for others."""
    try:
        return parse_host_port(text)
    except TapError as error:
        raise CallError(str(error)) from None


def _ranges(response: Any) -> dict[int, Versions]:
    return {
        one.api_key: Versions(one.min_version, one.max_version)
        for one in response.api_keys
        if 0 <= one.min_version <= one.max_version <= HIGHEST
    }
