"""A uuid as Kafka prints it: its 16 bytes as 22 characters of base64url, without padding."""

from __future__ import annotations

import base64
import uuid


def uuid_text(value: uuid.UUID) -> str:
    """Write a uuid as Kafka prints it.

    >>> from uuid import UUID
    >>> uuid_text(UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid_text(text: str) -> uuid.UUID:
    """Read what `uuid_text` writes, and with padding too. Raises `ValueError`.

    The last character holds four bits more than a uuid: more than one text stands for each.

    >>> uuid_text(parse_uuid_text("AAAAAAAAAAAAAAAAAAAAAf=="))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    return uuid.UUID(bytes=raw)
