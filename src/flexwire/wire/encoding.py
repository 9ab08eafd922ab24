"""The encodings of a message: Kafka's own, two from drafts of KIP-482, and two forced encodings."""

from __future__ import annotations

from enum import Enum


class Encoding(Enum):
    """An encoding of a message version. The same object has different bytes in each encoding.

    The encodings of the drafts, and FIXED, change versions that are flexible in the spec. FLEXIBLE
    changes versions that are not flexible. Each encoding writes all other versions as KAFKA does.
    `flexwire.schema.resolve` decides how an encoding affects a field.
    """

    #: As released Kafka writes it: KIP-482, final.
    KAFKA = "kafka"
    #: KIP-482's second draft: KAFKA, but a tag and a length share one varlong, bit by bit.
    INTERLEAVED = "interleaved"
    #: KIP-482's first draft: every structure begins with its tagged fields; no compact types.
    OPTIONAL_BUFFERS = "optional-buffers"
    #: Without compact types and without tagged fields, whatever the spec says.
    FIXED = "fixed"
    #: With compact types and tag sections, whatever the spec says.
    FLEXIBLE = "flexible"
