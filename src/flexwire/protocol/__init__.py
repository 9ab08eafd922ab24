"""Frames, requests, responses and the conversations they make: Kafka's protocol without sockets.

A connection is two streams of frames, and a frame does not say what it is. So this room reads in
steps. Bytes are cut into frames (`FrameSplitter`), and a frame's header is read (`parse_request`,
`parse_response`). A `Conversation` then decides from the earlier frames what each frame is: a
request, the response to a certain request, or a SASL token. Further modules say what Kafka's
releases do with a message (`verdict`, `flexwire.protocol.audit`) and which of its fields hold
credentials. Bytes come in and facts go out: sockets and files belong to other rooms, bodies to the
codec.

The laws of this room (tests below `tests/`):

- `conversation` alone decides what a frame is and which request a response answers. Otherwise the
  tap, captures and Spark would pair differently (`protocol/test_conversation.py`).
- `error_codes` alone says which field is an error code (`protocol/test_error_codes.py`).
- A log does not name the release that wrote it, so `record_types` alone decides how its records are
  read (`protocol/test_record_types.py`).
"""

from __future__ import annotations

from flexwire.protocol.apis import Verdict, accepted, api_name, verdict
from flexwire.protocol.client_instances import (
    assigned_client_instance_id,
    client_instance_id,
)
from flexwire.protocol.conversation import Conversation, Turn, expects_response
from flexwire.protocol.credentials import (
    WITHHELD,
    carries_credentials,
    credential_fields,
    withhold,
)
from flexwire.protocol.frames import DEFAULT_FRAME_LIMIT, SENT_FRAME_LIMIT, FrameSplitter
from flexwire.protocol.headers import (
    RequestFrame,
    ResponseFrame,
    parse_request,
    parse_response,
    read_request,
    request_header_version,
    response_header_version,
)
from flexwire.protocol.sasl import Authentication, SaslExchange, is_believable

__all__ = [
    "DEFAULT_FRAME_LIMIT",
    "SENT_FRAME_LIMIT",
    "WITHHELD",
    "Authentication",
    "Conversation",
    "FrameSplitter",
    "RequestFrame",
    "ResponseFrame",
    "SaslExchange",
    "Turn",
    "Verdict",
    "accepted",
    "api_name",
    "assigned_client_instance_id",
    "carries_credentials",
    "client_instance_id",
    "credential_fields",
    "expects_response",
    "is_believable",
    "parse_request",
    "parse_response",
    "read_request",
    "request_header_version",
    "response_header_version",
    "verdict",
    "withhold",
]
