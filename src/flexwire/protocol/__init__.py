"""Frames, requests, responses and conversations: Kafka's protocol without sockets.

A connection consists of two streams of frames, and a frame does not show its own kind. This
package therefore reads in steps. A `FrameSplitter` divides bytes into frames, and `parse_request`
and `parse_response` read the headers. A `Conversation` then decides from the earlier frames what
each frame is: a request, the response to a certain request, or a SASL token. Other modules
describe how Kafka's releases react to a message (`verdict`, `flexwire.protocol.audit`) and list
the fields that contain credentials. The package works only on bytes: other packages handle sockets
and files, and the codec decodes bodies.

The laws of this package (tests below `tests/`):

- Only `conversation` decides what a frame is and which request a response answers. Otherwise the
  tap, captures and Spark could pair frames differently (`protocol/test_conversation.py`).
- Only `error_codes` decides which fields are error codes (`protocol/test_error_codes.py`).
- A log does not show which release wrote it, so only `record_types` decides how its records are
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
