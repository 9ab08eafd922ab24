"""The arguments of each tool, which a client sees as a JSON Schema."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from flexwire.parties import AuditVerdict  # noqa: TC001 - msgspec needs the class at run time

MOST_BYTES: Final = 4 << 20
"""The maximum size of a message or frame that a tool reads, and the maximum number of characters in
its text.
"""
MOST_ROWS: Final = 1_000
"""The maximum number of rows in one result."""

_Text = Annotated[str, Meta(max_length=MOST_BYTES)]
_Name = Annotated[str, Meta(max_length=1_000)]
_Names = Annotated[tuple[_Name, ...], Meta(max_length=100)]
_Version = Annotated[
    int | Literal["latest"] | None,
    Meta(description="The version of the message; for a response, the version of the request."),
]


class PagedArguments(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The arguments that choose the rows of a result."""

    skip: Annotated[int, Meta(ge=0, description="How many rows to skip at the start.")] = 0
    rows: Annotated[
        int, Meta(ge=1, le=MOST_ROWS, description="The maximum number of rows to return.")
    ] = 100


class BytesArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify bytes and their kind."""

    data: Annotated[
        _Text | None,
        Meta(description="The bytes: hex, a hex dump, or base64. Give either data or file."),
    ] = None
    file: Annotated[
        _Name | None,
        Meta(description="A file below the root: a capture, raw bytes, or bytes as text."),
    ] = None
    packet: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="If file is a capture: the number of a packet, as numbered by Wireshark."),
    ] = None
    message: Annotated[
        _Name | None,
        Meta(
            description="The name of the message, such as FetchRequest, if the bytes are a "
            "message without its header. Without a name, the bytes are one or more whole frames."
        ),
    ] = None
    version: _Version = None
    api: Annotated[
        _Name | None,
        Meta(
            description="If the frame is a response: the API, such as Metadata. Requires version."
        ),
    ] = None
    request: Annotated[
        _Text | None,
        Meta(description="Instead of api and version: the request that the frame answers."),
    ] = None


class SchemaArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify a message and its version."""

    message: Annotated[_Name, Meta(description="The name of the message, such as FetchRequest.")]
    version: Annotated[
        int | Literal["latest"] | None,
        Meta(description="The version of the message. The default is the newest stable version."),
    ] = None
    release: Annotated[
        _Name | None, Meta(description="Use the layout of this Kafka release, such as 4.0.")
    ] = None


class AnalysisArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify an analysis."""

    analysis: Annotated[_Name, Meta(description="The directory of the analysis, below the root.")]


class AuditArguments(AnalysisArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify an analysis and select findings from its audit."""

    release: Annotated[_Name | None, Meta(description="Return only findings for this release.")] = (
        None
    )
    verdict: Annotated[
        AuditVerdict | None, Meta(description="Return only findings with this verdict.")
    ] = None


class AnswersArguments(AnalysisArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify an analysis and one of its answers."""

    name: Annotated[
        _Name | None,
        Meta(
            description="The name of the answer to return. Without a name, all answers are listed."
        ),
    ] = None


class FramesArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify a capture and select the frames in it that match all given lists."""

    file: Annotated[_Name, Meta(description="A capture below the root.")]
    connection: Annotated[
        _Name | None,
        Meta(
            description="Return only frames of this connection. Write the connection as the frames "
            "tool prints it."
        ),
    ] = None
    apis: Annotated[
        _Names,
        Meta(
            description="Return only requests for these APIs, such as Fetch, and their responses."
        ),
    ] = ()
    client_ids: Annotated[
        _Names,
        Meta(description="Return only requests with these client ids; * stands for any text."),
    ] = ()
    topics: Annotated[
        _Names,
        Meta(description="Return only requests that name these topics; * stands for any text."),
    ] = ()


class ListArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments that specify a directory."""

    directory: Annotated[_Name, Meta(description="A directory below the root.")] = "."
