"""Frames, requests, responses and their pairing: Kafka's protocol without sockets."""

from __future__ import annotations

from flexwire.protocol.apis import Verdict, accepted, api_name, verdict
from flexwire.protocol.conversation import Conversation, Turn, expects_response
from flexwire.protocol.credentials import (
    WITHHELD,
    carries_credentials,
    credential_fields,
    withhold,
)
from flexwire.protocol.frames import DEFAULT_FRAME_LIMIT, FrameSplitter
from flexwire.protocol.headers import request_header_version, response_header_version
from flexwire.protocol.requests import RequestFrame, parse_request
from flexwire.protocol.responses import ResponseFrame, parse_response
from flexwire.protocol.sasl import Authentication, SaslExchange, is_believable

__all__ = [
    "DEFAULT_FRAME_LIMIT",
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
    "carries_credentials",
    "credential_fields",
    "expects_response",
    "is_believable",
    "parse_request",
    "parse_response",
    "request_header_version",
    "response_header_version",
    "verdict",
    "withhold",
]
