"""Connect to one broker: send requests by name and as JSON, and return the answers."""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import flexwire
from flexwire.arguments import refuse, to_int, to_kind, to_text, to_version
from flexwire.client.answers import BrokerAnswer, FramePayload
from flexwire.client.connection import DEFAULT_SECONDS, Connection
from flexwire.client.notation import HostPort, parse_host_port, split_header_tag
from flexwire.client.security import PLAINTEXT, Security, log_in
from flexwire.client.write_requests import why_it_writes
from flexwire.closeable import Closeable
from flexwire.codec import Message, message
from flexwire.codec.partial_explanation import explain_cut
from flexwire.errors import (
    CallError,
    DecodeError,
    JsonFormError,
    LoginError,
    TapError,
    VersionNotOfferedError,
    WriteRefusedError,
)
from flexwire.protocol import (
    SENT_FRAME_LIMIT,
    api_name,
    expects_response,
    parse_response,
    read_request,
    request_header_version,
)
from flexwire.protocol.apis import api_key_of, released_versions
from flexwire.protocol.audit.evidence import fitting_releases, read_versions
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.headers import UNSUPPORTED_VERSION, parse_correlation_id, request_name
from flexwire.protocol.readable_json import (
    JsonStructure,
    describe_error_code,
    record_field_names,
    walk_structures,
)
from flexwire.protocol.records_json import encode_records
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import catalog
from flexwire.versions import HIGHEST, Versions
from flexwire.wire.limits import HIGHEST_TAG, INT32_MAX
from flexwire.wire.schema import Presence

if TYPE_CHECKING:
    from collections.abc import Callable


def usable_versions(api_key: int, offered: Mapping[int, Versions]) -> Versions:
    """Return the versions that flexwire can write and that a broker with these ranges can read.

    If the ranges match a release, the result excludes versions that the release advertises but does
    not read: Kafka 4.x advertises Produce from version 0, and reads it from version 3.

    >>> usable_versions(3, {3: Versions(0, 99)})
    Versions('0-13')
    """
    writable = released_versions(api_key)
    readable = Versions.NONE
    for release in fitting_releases(offered):
        readable |= read_versions(api_key, release)
    return offered.get(api_key, Versions.NONE) & writable & (readable or writable)


def latest_version(api_key: int, offered: Mapping[int, Versions], broker: str) -> int:
    """Return the newest of `usable_versions`. Raises `CallError` if there is no usable version."""
    usable = usable_versions(api_key, offered)
    if usable:
        return usable.highest
    name = api_name(api_key)
    if api_key not in offered:
        raise CallError(f"{broker} does not offer {name}: the ApiVersions response lacks this API")
    raise CallError(
        f"{broker} offers {name} {offered[api_key]}, but flexwire knows none of these versions"
    )


# These fields have no default in the spec, and zero or "" is never a useful value for them. Brokers
# refuse such a value, do not wait as requested, or take the caller for broker 0. In ACL filters, 1
# stands for any.
OWN_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "AddRaftVoterRequest": {"timeoutMs": 60_000},
    "ApiVersionsRequest": {
        "clientSoftwareName": "flexwire",
        "clientSoftwareVersion": re.sub(r"[^A-Za-z0-9.-]", "-", flexwire.__version__),
    },
    "DeleteRecordsRequest": {"timeoutMs": 60_000},
    "DeleteTopicsRequest": {"timeoutMs": 60_000},
    "CreatePartitionsRequest": {"timeoutMs": 60_000},
    "DescribeAclsRequest": {"resourceTypeFilter": 1, "operation": 1, "permissionType": 1},
    "ListOffsetRequest": {"replicaId": -1},
    "ListOffsetsRequest": {"replicaId": -1, "timeoutMs": 60_000},
    "ProduceRequest": {"acks": -1, "timeoutMs": 60_000},
}


def read_body(kind: type[Message], form: Any, version: int) -> Message:
    """Return the message for a JSON form, in which fields may be missing and records may be JSON.

    Missing fields get the default from the spec or, if the spec has none, from `OWN_DEFAULTS`. A
    field that does not exist in the version is refused, although Kafka would ignore some such
    fields. Raises `JsonFormError` with the path of the part that does not fit.
    """
    try:
        form = {} if form is None else copy.deepcopy(form)
    except RecursionError:
        reason = "nested too deeply"
        raise JsonFormError(reason, message=kind.entry.name, version=version) from None
    names = kind.definition.served.former_names(version)
    records, own = record_field_names(kind, version), OWN_DEFAULTS.get(kind.entry.name, {})
    try:
        for structure in walk_structures(form, kind.definition.schema(version), names):
            former = names.get(structure.schema.name, {})
            _refuse_absent(structure, former)
            _encode_records(structure, records)
            _fill(structure, former, own)
    except JsonFormError as error:
        raise error.within(kind.entry.name, version) from None
    return kind.from_json(form, version, defaults=True)


def parse_header_tag(text: str) -> tuple[int, bytes]:
    r"""Return the tag and the value that ``10042=text`` or ``10042=hex:00ff`` describes.

    >>> parse_header_tag("10042=a1"), parse_header_tag("10042=hex:00 ff")
    ((10042, b'a1'), (10042, b'\x00\xff'))
    """
    tag, value = split_header_tag(text)
    if tag > HIGHEST_TAG:
        raise refuse("header tag", f"at most {HIGHEST_TAG}", tag)
    return tag, value.encode() if isinstance(value, str) else value


def _encode_records(structure: JsonStructure, names: frozenset[str]) -> None:
    for name in names & structure.form.keys():
        value = structure.form[name]
        if isinstance(value, list | dict):
            raw = encode_records(value, structure.at(name))
            structure.form[name] = base64.b64encode(raw).decode()


def _refuse_absent(structure: JsonStructure, former: Mapping[str, str]) -> None:
    presence = {field.json_name: field.presence for field in structure.schema.fields}
    for name in structure.form:
        if presence.get(former.get(name, name)) is Presence.ABSENT:
            has = ", ".join(
                present
                for present, presence_of in presence.items()
                if presence_of is not Presence.ABSENT
            )
            reason = f"this version has no such field; the available fields are {has}"
            raise JsonFormError(reason, path=structure.at(name))


def _fill(structure: JsonStructure, former: Mapping[str, str], own: Mapping[str, Any]) -> None:
    names = {former.get(name, name) for name in structure.form}
    for field in structure.schema.fields:
        name = field.json_name
        if field.presence is Presence.INLINE and name in own and name not in names:
            structure.form[name] = own[name]


LATEST: Final = "latest"
DEFAULT_CLIENT_ID: Final = "flexwire"
# From version 2 on, the request header has tagged fields.
_TAGGED_HEADER: Final = 2


class Broker(Closeable):
    """A connection to a broker, opened by ``with Broker.connect("localhost:9092") as broker: …``.

    `call` sends a request and waits for its answer. Raises `CallError`, or `LoginError` if SASL
    fails, or the codec's own error for an invalid body or invalid bytes. Some errors end the
    connection. `is_open` is then false.
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
        frame_limit: int = SENT_FRAME_LIMIT,
    ) -> Self:
        """Connect to a broker and, if ``security`` contains a login, log in.

        ``timeout`` is the time limit for each answer, in seconds. ``frame_limit`` is the largest
        accepted size of an answer, in bytes.
        """
        to_kind(security, "security", Security)
        to_int(frame_limit, "frame_limit", least=1)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise refuse("timeout", "seconds, more than 0", timeout)
        if client_id is not None:
            to_text(client_id, "client_id")
        host_port = to_address(address)
        connection = Connection(host_port, security, timeout=timeout, frame_limit=frame_limit)
        broker = cls(connection, client_id)
        if security.login is not None:
            try:
                log_in(broker, security.login)
            except LoginError as error:
                broker.close()
                raise LoginError(f"{host_port}: {error}") from None
            except BaseException:
                broker.close()
                raise
        return broker

    @property
    def address(self) -> HostPort:
        """The address of the broker."""
        return self._connection.address

    @property
    def is_open(self) -> bool:
        """True if the broker can be called."""
        return self._connection.is_open

    @property
    def offered(self) -> dict[int, Versions]:
        """The versions that the broker advertises, by API key. They are requested only once."""
        if self._offered is None:
            self._offered = self._ask_versions()
        return self._offered

    def newest(self, name: str) -> int:
        """Return the newest version of an API that both sides support.

        Raises `CallError` if there is no such version.
        """
        return latest_version(api_key_of(name), self.offered, str(self.address))

    def check_version(self, name: str, version: int) -> None:
        """Raise `VersionNotOfferedError` if the broker does not offer a version of an API.

        ApiVersions can be sent in every version: a broker that does not support the version answers
        in a version that every client can read (KIP-511).
        """
        api_key = api_key_of(name)
        offered = self.offered.get(api_key, Versions.NONE)
        if version in offered or api_key == api_key_of(NEGOTIATES):
            return
        offer = f"offers {api_name(api_key)} {offered}" if offered else "does not offer this API"
        raise VersionNotOfferedError(
            f"{self.address} {offer}; {api_name(api_key)} {version} was requested"
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
        watch: Callable[[BrokerAnswer], None] | None = None,
    ) -> BrokerAnswer:
        """Send a request and return its answer.

        ``body`` is a message object or its JSON form. Missing fields of the JSON form get their
        defaults. ``version`` is a number or "latest" (`newest`). ``header_tags`` are tagged fields
        of the request header. ``release`` is the Kafka release whose layout is used. ``watch`` is
        called with the answer before the request is sent, and again before the response is decoded.

        Unless ``allow_writes`` is true, raises `WriteRefusedError` for a request that may change
        something on the broker; see `flexwire.client.broker`. Raises `DecodeError` for an answer
        that is not in Kafka's format; `ask` returns such an answer.
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
        watch: Callable[[BrokerAnswer], None] | None = None,
    ) -> BrokerAnswer:
        """Do the same as `call`, but return even an answer that is not in Kafka's format.

        In that case, `BrokerAnswer.deviation` describes the difference.
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
            raise refuse("header_tags", "a mapping of tags to bytes", tags)
        header = self._header(api_key, version, tags)
        payload = header + request.encode(version)
        frame = FramePayload(payload, len(header))
        asked = BrokerAnswer(self.address, version, request, frame, read_request(payload))
        return self._exchange(asked, release, watch or _nobody)

    def exchange_token(self, token: bytes) -> bytes:
        """Send a bare SASL token, as SaslHandshake v0 requires, and return the broker's token."""
        return self._connection.exchange(token)

    def exchange_bytes(self, data: bytes) -> bytes:
        """Send bytes unchanged, even if they are not a frame, and return the next frame's payload.

        Raises `ConnectionEndedError`, `NoAnswerError` or `UnreadableFrameError`.
        """
        return self._connection.exchange_bytes(data)

    @property
    def unread_length(self) -> int:
        """The number of unrequested bytes that arrived after the last answer."""
        return self._connection.unread_length

    def close(self) -> None:
        """End the connection. Calling this again has no effect."""
        self._connection.close()

    def _header(self, api_key: int, version: int, tags: Mapping[int, bytes]) -> bytes:
        header_version = request_header_version(api_key, version)
        if tags and header_version < _TAGGED_HEADER:
            raise CallError(
                f"the header of {api_name(api_key)} v{version} cannot contain tagged fields; "
                "use a flexible version"
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
        self, sent_only: BrokerAnswer, release: str | None, watch: Callable[[BrokerAnswer], None]
    ) -> BrokerAnswer:
        sent, payload = sent_only.request_header, sent_only.request_frame.payload
        watch(sent_only)
        is_answered = expects_response(sent, payload)
        came = self._connection.exchange(payload, is_answered=is_answered)
        if not is_answered:
            return sent_only
        correlation_id = parse_correlation_id(came)
        if correlation_id != sent.correlation_id:
            self.close()
            raise CallError(
                f"{self.address} answered a different request: expected correlation id "
                f"{sent.correlation_id}, got {correlation_id}"
            )
        response = parse_response(came, sent.api_key, sent_only.version)
        answered = replace(
            sent_only,
            response_version=response.body_version,
            response_frame=FramePayload(came, response.body_offset),
            response_header=response,
        )
        watch(answered)
        kind = message(response.message_name, release)
        body = came[response.body_offset :]
        try:
            return replace(answered, response=kind.decode(body, response.body_version))
        except DecodeError as error:
            return _deviating(replace(answered, deviation=error), kind, body)

    def _ask_versions(self) -> dict[int, Versions]:
        version = catalog().entry(NEGOTIATES).versions.highest
        answer = self.ask(NEGOTIATES, None, version)
        if answer.response is None and (answer.read or {}).get("errorCode") == UNSUPPORTED_VERSION:
            # The broker reports its versions in an unknown layout, like the mock broker of
            # librdkafka.
            answer = self.ask(NEGOTIATES, None, 0)
        response: Any = answer.readable()
        if response.error_code == UNSUPPORTED_VERSION:
            # The broker reports its versions. Brokers before KIP-511 reported nothing, and
            # supported only version 0.
            own = _ranges(response).get(api_key_of(NEGOTIATES), Versions(0, 0))
            response = self.call(NEGOTIATES, None, min(own.highest, version)).response
        if response.error_code != NO_ERROR:
            name = describe_error_code(response.error_code)
            raise CallError(f"{self.address} does not report its API versions: {name}")
        return _ranges(response)


def _deviating(answered: BrokerAnswer, kind: type[Message], body: bytes) -> BrokerAnswer:
    """Return the answer, with the readable parts of a body that deviates from Kafka's format."""
    version = answered.response_version
    try:
        return replace(answered, response=kind.decode(body, version, lenient=True))
    except DecodeError:
        return replace(answered, read=explain_cut(kind, body, version, 0).form)


def _nobody(_: BrokerAnswer) -> None:
    """Ignore the answer."""


def to_address(address: str | HostPort | tuple[str, int]) -> HostPort:
    """Return an address from ``host:port`` or a pair. Raises `CallError` for any other text."""
    if isinstance(address, str):
        return parse_address(address)
    match address:
        case (str(host), int(port)) if not isinstance(port, bool):
            return HostPort(host, port)
        case _:
            raise refuse("address", "host:port, or a host and a port", address)


def parse_address(text: str) -> HostPort:
    """Return the address in ``host:port``. Raises `CallError` for any other text."""
    try:
        return parse_host_port(text)
    except TapError as error:
        raise CallError(str(error)) from None


def _ranges(response: Any) -> dict[int, Versions]:
    return {
        api.api_key: Versions(api.min_version, api.max_version)
        for api in response.api_keys
        if 0 <= api.min_version <= api.max_version <= HIGHEST
    }
