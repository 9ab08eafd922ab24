"""The tools of the server: their arguments, and the form of their results.

A tool is a function of the root and its arguments. The function calls the same functions as the
command with the same name, and returns the JSON that this command prints (docs/json.md), with only
the requested rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from flexwire.cli.mcp.analyses import answers, audit
from flexwire.cli.mcp.arguments import (
    MOST_BYTES,
    AnswersArguments,
    AuditArguments,
    BytesArguments,
    FramesArguments,
    ListArguments,
    SchemaArguments,
)
from flexwire.cli.mcp.bounds import Page
from flexwire.cli.options import InputError
from flexwire.errors import CodecError, UnknownMessageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

    from flexwire.cli.captured_frames import FrameRow
    from flexwire.cli.frames import ShownFrame
    from flexwire.cli.mcp.arguments import PagedArguments
    from flexwire.cli.mcp.root import ServedRoot
    from flexwire.codec import Message

MOST_COUNTED: Final = 100_000
"""The maximum number of frames that are counted after the last frame of a result."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, title and description for clients, its arguments, and its function."""

    name: str
    title: str
    description: str
    arguments: type[Struct]
    answer: Callable[[ServedRoot, Any], dict[str, Any]]

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, which are an object."""
        schema = msgspec.json.schema(self.arguments)
        inner: dict[str, Any] = schema["$defs"][self.arguments.__name__]
        return {
            name: value for name, value in inner.items() if name not in {"title", "description"}
        }


def explain(root: ServedRoot, asked: BytesArguments) -> dict[str, Any]:
    """Explain a message or frames byte by byte. Each row is a field."""
    from flexwire.cli.explain import (
        explain_message,
        explanation_form,
        frame_sections,
        withheld_note,
    )
    from flexwire.wire.encoding import Encoding

    frames: list[dict[str, Any]]
    if asked.message is None:
        frames = [
            {
                "where": shown.where,
                "sections": [
                    {
                        "title": f"{section.title}{withheld_note(section.withheld)}",
                        **explanation_form(section.explanation),
                    }
                    for section in frame_sections(shown)
                ],
                "error": None if shown.error is None else str(shown.error),
            }
            for shown in _frames(root, asked)
        ]
    else:
        kind, raw = _message(asked.message), _bytes(root, asked)
        shown_bytes, withheld = _without_credentials(kind, raw, asked.version)
        explanation = explain_message(
            kind, shown_bytes, asked.version, lenient=False, encoding=Encoding.KAFKA
        )
        title = f"{kind.__name__}{withheld_note(withheld)}"
        section = {"title": title, **explanation_form(explanation)}
        frames = [{"where": None, "sections": [section], "error": section["error"]}]
    sections = [section for frame in frames for section in frame["sections"]]
    _take_rows(sections, asked)
    return {"frames": frames}


def _take_rows(sections: list[dict[str, Any]], asked: PagedArguments) -> None:
    """Keep only the requested fields. The counts of sections do not change."""
    skip, most = asked.skip, asked.rows
    for section in sections:
        rows = section["annotations"]
        page = Page.of(rows, skip, most)
        skip, most = max(skip - len(rows), 0), most - len(page.rows)
        section["annotations"] = page


def decode(root: ServedRoot, asked: BytesArguments) -> dict[str, Any]:
    """Decode a message or frames. Each row is an element of the outermost list, or a frame."""
    from flexwire.cli.decode import frame_form, named_form
    from flexwire.cli.frames import body_and_version
    from flexwire.protocol import withhold

    if asked.message is None:
        forms = [frame_form(shown) for shown in _frames(root, asked)]
        return {"frames": Page.of(forms, asked.skip, asked.rows)}
    kind = _message(asked.message)
    body, number = body_and_version(kind, _bytes(root, asked), asked.version)
    value = kind.decode(body, number)
    withheld = withhold(value)
    return {
        "message": kind.__name__,
        "version": number,
        "body": named_form(value, number),
        "withheldCredentials": withheld,
    }


def _message(name: str) -> type[Message]:
    from flexwire.cli.options import find_message

    return find_message(name, None, (), "strict")


def _frames(root: ServedRoot, asked: BytesArguments) -> list[ShownFrame]:
    """Return the requested frames, without credentials."""
    from flexwire.cli.frames import frames_of_packet, read_frame_bytes

    if asked.packet is not None:
        if asked.file is None:
            raise InputError("packet requires a capture: pass the path of the capture as file")
        if asked.api or asked.request or asked.version is not None:
            raise InputError(
                "the capture shows the kind of each frame: leave out api, request and version"
            )
        with root.file(asked.file) as path:
            return frames_of_packet(path, asked.packet)
    request = None if asked.request is None else _of_text(asked.request)
    frames = read_frame_bytes(
        _bytes(root, asked), asked.version, api=asked.api, request=request, withheld=True
    )
    for shown in frames:
        if shown.error is not None and not any(frame.is_read for frame in frames):
            raise shown.error
    return frames


def _bytes(root: ServedRoot, asked: BytesArguments) -> bytes:
    """Return the requested bytes from a string or a file. The string is never a file name."""
    from flexwire.cli.options import Notation, read_content

    if (asked.data is None) == (asked.file is None):
        raise InputError("pass either data (the bytes) or file (the path of a file below the root)")
    if asked.packet is not None:
        raise InputError("packet selects a frame of a capture: leave out message")
    if asked.data is not None:
        raw = _of_text(asked.data)
    else:
        name = str(asked.file)
        with root.file(name) as path, path.open("rb") as file:
            raw = read_content(file.read(MOST_BYTES + 1), Notation.AUTO, name)
    if not 0 < len(raw) <= MOST_BYTES:
        raise InputError(f"expected 1 to {MOST_BYTES:,} bytes, got {_number(raw)}")
    return raw


def _number(raw: bytes) -> str:
    return f"more than {MOST_BYTES:,}" if len(raw) > MOST_BYTES else "none"


def _of_text(text: str) -> bytes:
    from flexwire.cli.options import Notation, read_line

    return read_line(text.encode("utf-8", "surrogatepass"), Notation.AUTO)


def _without_credentials(
    kind: type[Message], raw: bytes, version: int | str | None
) -> tuple[bytes, int]:
    """Return a message without its credentials, and the number of credentials.

    Raises `CodecError` if the message may contain credentials but cannot be decoded.
    """
    from flexwire.cli.frames import body_and_version
    from flexwire.protocol.frame_explanation import holds_credentials, withheld_bytes

    body, number = body_and_version(kind, raw, version)
    try:
        shown, count = withheld_bytes(kind, body, number)
    except (CodecError, UnknownMessageError):
        # It is unknown where the credential is, so no part of the message may be shown.
        if holds_credentials(kind.__name__, raw):
            raise
        shown, count = body, 0
    return raw[: len(raw) - len(body)] + shown, count


def schema_show(_root: ServedRoot, asked: SchemaArguments) -> dict[str, Any]:
    """Show a message at one version. Each row is a field."""
    from flexwire.cli.options import find_message, version_or_stable
    from flexwire.cli.schema_list import listed_form
    from flexwire.cli.schema_resolve import resolved_form
    from flexwire.schema.catalog import catalog
    from flexwire.wire.encoding import Encoding

    kind = find_message(asked.message, asked.release, (), "strict")
    form = resolved_form(kind, version_or_stable(kind, asked.version), Encoding.KAFKA)
    fields = Page.of(form.pop("fields"), asked.skip, asked.rows)
    return {**listed_form(catalog().entry(form["message"]), None), **form, "fields": fields}


def frames(root: ServedRoot, asked: FramesArguments) -> dict[str, Any]:
    """List frames in a capture with the packets in which they end. Each row is a frame."""
    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.capture.messages import find_packets
    from flexwire.cli.captured_frames import FittingFrames, frame_row
    from flexwire.tap.frame_filter import parse_api

    only = CaptureFilter(tuple(map(parse_api, asked.apis)), asked.client_ids, asked.topics)
    rows: list[FrameRow] = []
    last, count, is_whole = asked.skip + asked.rows, 0, True
    with root.file(asked.file) as path:
        found = FittingFrames(path, only)
        for item in found.read():
            if asked.connection not in {None, item.frame.connection}:
                continue
            if count == last + MOST_COUNTED:
                is_whole = False
                break
            count += 1
            if asked.skip < count <= last:
                rows.append(frame_row(count, item))
        ends = [(row.connection, row.direction, row.timestamp_us) for row in rows]
        packets = find_packets(path, ends)
    listed = [{"packet": packet, **row.form} for row, packet in zip(rows, packets, strict=True)]
    return {
        "count": count,
        "isCountedToTheEnd": is_whole,
        "bytesNotRead": dict(found.unused),
        "frames": Page(listed, max(count - last, 0)),
    }


def list_inputs(root: ServedRoot, asked: ListArguments) -> dict[str, Any]:
    """List the captures, logs and analyses in a directory, sorted by name."""
    found = root.search(asked.directory)
    return {
        "count": len(found.rows),
        "searchEndedEarly": found.is_cut,
        "linksNotFollowed": found.links,
        "directoriesNotReadable": found.unreadable,
        "files": Page.of(found.rows, asked.skip, asked.rows),
    }


TOOLS: Final = (
    Tool(
        "explain",
        "Explain bytes",
        "Explain the bytes of a Kafka message, of whole frames, or of a packet in a capture: the "
        "offset, length, path, type and value of each field. Credentials are withheld.",
        BytesArguments,
        explain,
    ),
    Tool(
        "decode",
        "Decode bytes",
        "Decode a Kafka message, whole frames, or the frames of a packet in a capture to JSON, "
        "including records and the names of error codes. Credentials are withheld.",
        BytesArguments,
        decode,
    ),
    Tool(
        "frames",
        "List frames in a capture",
        "List the frames of a capture: the packet, time, connection, message, version, correlation "
        "id and client id of each frame. Pass a packet number to the explain tool or the decode "
        "tool.",
        FramesArguments,
        frames,
    ),
    Tool(
        "schema_show",
        "Show a message",
        "Show a message of Kafka's protocol at one version: its fields in wire order, with types, "
        "tags and defaults; its versions; and the releases that contain the message.",
        SchemaArguments,
        schema_show,
    ),
    Tool(
        "audit",
        "Read an audit",
        "Read the stored audit of an analysis: which clients break on which Kafka release, and "
        "why. The most serious finding comes first.",
        AuditArguments,
        audit,
    ),
    Tool(
        "answers",
        "Read answers",
        "Read the answers that an analysis stored about traffic and logs. Without a name, the tool "
        "lists the answers. With a name, the tool returns the rows of that answer, the most "
        "important first.",
        AnswersArguments,
        answers,
    ),
    Tool(
        "list",
        "List files",
        "List the captures, log segments, request logs and analyses below the root.",
        ListArguments,
        list_inputs,
    ),
)
"""All tools, in the order in which clients see them."""
