"""Make frame payloads with the codec."""

from __future__ import annotations

from typing import Any

from flexwire.codec import Message, message
from flexwire.protocol import request_header_version, response_header_version


def make(name: str, **fields: Any) -> Any:
    return message(name)(**fields)


def request_payload(
    api_key: int,
    version: int,
    body: Message | bytes = b"",
    *,
    correlation_id: int = 7,
    client_id: str | None = "tests",
    unknown_tagged_fields: dict[int, bytes] | None = None,
) -> bytes:
    header = make(
        "RequestHeader",
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id or "",
        unknown_tagged_fields=unknown_tagged_fields or {},
    )
    header_version = request_header_version(api_key, version)
    raw = body if isinstance(body, bytes) else body.encode(version)
    if header_version == 0:
        header.client_id = ""
    elif client_id is None:
        header.client_id = None
    encoded: bytes = header.encode(header_version)
    return encoded + raw


def response_payload(
    api_key: int,
    version: int,
    body: Message | bytes = b"",
    *,
    correlation_id: int = 7,
    body_version: int | None = None,
    unknown_tagged_fields: dict[int, bytes] | None = None,
) -> bytes:
    header = make(
        "ResponseHeader",
        correlation_id=correlation_id,
        unknown_tagged_fields=unknown_tagged_fields or {},
    )
    raw = (
        body
        if isinstance(body, bytes)
        else body.encode(version if body_version is None else body_version)
    )
    encoded: bytes = header.encode(response_header_version(api_key, version))
    return encoded + raw


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload
