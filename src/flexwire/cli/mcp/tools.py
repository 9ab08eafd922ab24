"""The tools of the server: what each takes, and the form of its answer.

A tool is a function of the root and its arguments. It calls the same functions as the command of
the same name, and returns the JSON that the command prints (docs/json.md), without the rows that
were not requested.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from flexwire.cli.mcp.bounds import Page
from flexwire.cli.options import InputError
from flexwire.errors import CodecError, UnknownMessageError, short
from flexwire.parties import AuditVerdict  # noqa: TC001 - msgspec reads it when it runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.cli.frames import ShownFrame
    from flexwire.cli.mcp.root import ServedRoot
    from flexwire.codec import Message
    from flexwire.facts.facts import Facts
    from flexwire.tables.output import Output

MOST_BYTES: Final = 4 << 20
"""The most bytes of a message or a frame that a tool reads, and the most characters of its text."""
MOST_FACTS_BYTES: Final = 64 << 20
"""The most bytes of an analysis' facts that a tool reads."""
MOST_ROWS: Final = 1_000
"""The most rows of one answer."""
_FACTS: Final = "facts.json"
_TABLES: Final = "tables"

_Text = Annotated[str, Meta(max_length=MOST_BYTES)]
_Name = Annotated[str, Meta(max_length=1_000)]
_Version = Annotated[
    int | Literal["latest"] | None,
    Meta(description="The version of the message, or of the request that a response answers."),
]


class PagedArguments(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The rows that are wanted of an answer."""

    skip: Annotated[int, Meta(ge=0, description="How many rows to leave out at the start.")] = 0
    rows: Annotated[
        int, Meta(ge=1, le=MOST_ROWS, description=("The maximum number of rows to return."))
    ] = 100


class BytesArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Bytes, and a description of them."""

    data: Annotated[
        _Text | None,
        Meta(description="The bytes: hex, a hex dump, or base64. Give data or file."),
    ] = None
    file: Annotated[
        _Name | None,
        Meta(description="A file below the root with the bytes, raw or as text, or a capture."),
    ] = None
    packet: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="With a capture as file: the number of the packet, as Wireshark counts."),
    ] = None
    message: Annotated[
        _Name | None,
        Meta(
            description=(
                "The name of the message, such as FetchRequest, if the bytes are a message "
                "without its header. Without this name the bytes are one or several whole "
                "frames."
            )
        ),
    ] = None
    version: _Version = None
    api: Annotated[
        _Name | None,
        Meta(
            description=("If the frame is a response: its API, such as Metadata. It needs version.")
        ),
    ] = None
    request: Annotated[
        _Text | None,
        Meta(description="Instead of api and version: the request that the frame answers."),
    ] = None


class SchemaArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A message, and its version."""

    message: Annotated[_Name, Meta(description="The name of the message, such as FetchRequest.")]
    version: Annotated[
        int | Literal["latest"] | None,
        Meta(description=("The default is the newest stable version.")),
    ] = None
    release: Annotated[
        _Name | None, Meta(description="The Kafka release whose layout to use, such as 4.0.")
    ] = None


class AuditArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An analysis, and which findings of its audit."""

    analysis: Annotated[_Name, Meta(description="The directory of the analysis, below the root.")]
    release: Annotated[_Name | None, Meta(description="Only findings for this release.")] = None
    verdict: Annotated[
        AuditVerdict | None, Meta(description="Only findings with this verdict.")
    ] = None


class AnswersArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An analysis, and one of its answers."""

    analysis: Annotated[_Name, Meta(description="The directory of the analysis, below the root.")]
    name: Annotated[
        _Name | None,
        Meta(description="The answer whose rows to return. Without it the tool lists all answers."),
    ] = None


class ListArguments(PagedArguments, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A directory."""

    directory: Annotated[_Name, Meta(description="A directory below the root.")] = "."


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, title and description for clients, its arguments, and its function."""

    name: str
    title: str
    description: str
    arguments: type[Struct]
    answer: Callable[[ServedRoot, Any], dict[str, Any]]

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object."""
        schema = msgspec.json.schema(self.arguments)
        inner: dict[str, Any] = schema["$defs"][self.arguments.__name__]
        return {
            name: value for name, value in inner.items() if name not in {"title", "description"}
        }


def explain(root: ServedRoot, asked: BytesArguments) -> dict[str, Any]:
    """Explain a message or frames byte by byte; a row is a field."""
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
    """Keep the fields that are asked for; sections are counted through."""
    skip, most = asked.skip, asked.rows
    for section in sections:
        rows = section["annotations"]
        page = Page.of(rows, skip, most)
        skip, most = max(skip - len(rows), 0), most - len(page.rows)
        section["annotations"] = page


def decode(root: ServedRoot, asked: BytesArguments) -> dict[str, Any]:
    """Decode a message or frames; a row is an element of the outermost list, a frame."""
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
    """Return the frames that are asked about, without credentials."""
    from flexwire.cli.frames import frames_of_packet, read_frame_bytes

    if asked.packet is not None:
        if asked.file is None:
            raise InputError("packet is of a capture: name the capture with file")
        if asked.api or asked.request or asked.version is not None:
            raise InputError("a capture says what a frame is: leave out api, request and version")
        return frames_of_packet(root.file(asked.file), asked.packet)
    request = None if asked.request is None else _of_text(asked.request)
    frames = read_frame_bytes(
        _bytes(root, asked), asked.version, api=asked.api, request=request, withheld=True
    )
    for shown in frames:
        if shown.error is not None and not any(frame.is_read for frame in frames):
            raise shown.error
    return frames


def _bytes(root: ServedRoot, asked: BytesArguments) -> bytes:
    """Return the bytes that are asked about: of a text, which names no file, or of a file."""
    from flexwire.cli.options import Notation, read_content

    if (asked.data is None) == (asked.file is None):
        raise InputError("give the bytes as data, or a file below the root as file")
    if asked.packet is not None:
        raise InputError("packet is of a frame in a capture: leave out message")
    if asked.data is not None:
        raw = _of_text(asked.data)
    else:
        path = root.file(str(asked.file))
        with path.open("rb") as file:
            raw = read_content(file.read(MOST_BYTES + 1), Notation.AUTO, root.name_of(path))
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
    """Return a message without its credentials, and how many they are.

    Raises `CodecError` if the message may hold some and does not decode.
    """
    from flexwire.cli.frames import body_and_version
    from flexwire.protocol.frame_explanation import holds_credentials, withheld_bytes

    body, number = body_and_version(kind, raw, version)
    try:
        shown, count = withheld_bytes(kind, body, number)
    except (CodecError, UnknownMessageError):
        # The place of the credential is not known, so nothing of the message may be shown.
        if holds_credentials(kind.__name__, raw):
            raise
        shown, count = body, 0
    return raw[: len(raw) - len(body)] + shown, count


def schema_show(_root: ServedRoot, asked: SchemaArguments) -> dict[str, Any]:
    """Show a message at one version; a row is a field."""
    from flexwire.cli.options import find_message, version_or_stable
    from flexwire.cli.schema_list import listed_form
    from flexwire.cli.schema_resolve import resolved_form
    from flexwire.schema.catalog import catalog
    from flexwire.wire.encoding import Encoding

    kind = find_message(asked.message, asked.release, (), "strict")
    form = resolved_form(kind, version_or_stable(kind, asked.version), Encoding.KAFKA)
    fields = Page.of(form.pop("fields"), asked.skip, asked.rows)
    return {**listed_form(catalog().entry(form["message"]), None), **form, "fields": fields}


def audit(root: ServedRoot, asked: AuditArguments) -> dict[str, Any]:
    """Return what the audit of an analysis says; a row is a finding, the gravest first."""
    from flexwire.cli.analyze import audit_form
    from flexwire.facts.audit import findings
    from flexwire.report.audit_files import audit_row
    from flexwire.survey.surveyed_files import analysis_notes

    _, facts = _analysis(root, asked.analysis)
    if not facts.has_traffic:
        raise InputError(f"{short(asked.analysis)} has no traffic, so it has no audit")
    releases = facts.audit.releases
    if asked.release is not None and asked.release not in releases:
        raise InputError(
            f"the audit is for {', '.join(releases)}, and not for {short(asked.release)}"
        )
    found = [
        msgspec.to_builtins(audit_row(finding))
        for finding in findings(facts.audit)
        if asked.release in {None, finding.release} and asked.verdict in {None, finding.verdict}
    ]
    return {
        "notes": analysis_notes(facts),
        "releases": [
            form for form in audit_form(facts) if asked.release in {None, form["release"]}
        ],
        "notJudged": facts.audit.left_out.sentence,
        "count": len(found),
        "findings": Page.of(found, asked.skip, asked.rows),
    }


def answers(root: ServedRoot, asked: AnswersArguments) -> dict[str, Any]:
    """List the stored answers of an analysis, or return rows of one, the most important first."""
    from flexwire.schema.coercion import nearest
    from flexwire.survey.surveyed_files import analysis_notes

    output, facts = _analysis(root, asked.analysis)
    by_name = {answer.name: answer for answer in facts.answers}
    if not by_name:
        raise InputError(
            f"{short(asked.analysis)} has no stored answers: 'flexwire analyze' stores them with "
            "--answers all"
        )
    if asked.name is None:
        listed = [
            {"name": name, "question": answer.question, "rows": answer.rows}
            for name, answer in by_name.items()
        ]
        return {
            "notes": analysis_notes(facts),
            "answers": Page.of(listed, asked.skip, asked.rows),
            "unanswered": [
                {"name": question.name, "reason": question.reason} for question in facts.unanswered
            ],
        }
    answer = by_name.get(asked.name)
    if answer is None:
        known = [*by_name]
        raise InputError(
            f"{short(asked.analysis)} has no stored answer {short(asked.name)}; "
            f"{nearest(asked.name, known)}"
        )
    rows = _stored_rows(root, output, answer.name, asked)
    more = max(answer.rows - asked.skip - len(rows), 0)
    return {
        "notes": analysis_notes(facts),
        "name": answer.name,
        "question": answer.question,
        "meaning": answer.meaning,
        "advice": answer.advice,
        "count": answer.rows,
        "rows": Page(rows, more),
    }


def _stored_rows(
    root: ServedRoot, output: Output, name: str, asked: PagedArguments
) -> list[dict[str, Any]]:
    """Return rows of the table of an answer; it is read up to the last of them."""
    from flexwire.cli.answers import rows_form
    from flexwire.storage.filesystems import report_failures

    table = f"answers/{name}"
    for entry in output.files(table):
        root.file(root.name_of(_path(output) / entry.name))
    wanted: list[dict[str, Any]] = []
    skip = asked.skip
    dataset = output.dataset(table)
    with report_failures(output.where(table), "read"):
        for batch in dataset.to_batches(batch_size=MOST_ROWS):
            wanted += rows_form(batch.slice(skip, asked.rows - len(wanted)))
            skip = max(skip - len(batch), 0)
            if len(wanted) == asked.rows:
                break
    return wanted


def _analysis(root: ServedRoot, name: str) -> tuple[Output, Facts]:
    """Return the output of an analysis and its facts; both are files below the root."""
    from flexwire.facts.facts import Facts
    from flexwire.tables.output import output

    directory = root.directory(name)
    root.directory(root.name_of(directory / _TABLES))
    found = output(directory)
    path = root.file(root.name_of(_path(found) / _FACTS))
    if path.stat().st_size > MOST_FACTS_BYTES:
        raise InputError(f"{root.name_of(path)} has more than {MOST_FACTS_BYTES:,} bytes")
    try:
        return found, Facts.from_json(json.loads(path.read_bytes()))
    except (ValueError, RecursionError):
        # The reason may quote the file.
        raise InputError(
            f"{root.name_of(path)} does not hold the facts of this release of flexwire"
        ) from None


def _path(output: Output) -> Path:
    """Return the directory of an output, which is on this machine."""
    path = output.root.path
    if path is None:
        raise AssertionError  # a directory of this machine has a path
    return path


def list_inputs(root: ServedRoot, asked: ListArguments) -> dict[str, Any]:
    """List the captures, logs and analyses below a directory, in the order of their names."""
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
        "Explain the bytes of a Kafka message, of whole frames, or of a packet in a capture: "
        "offset, length, path, type and value of each field. Credentials are withheld.",
        BytesArguments,
        explain,
    ),
    Tool(
        "decode",
        "Decode bytes",
        "Decode a Kafka message, whole frames, or the frames of a packet in a capture to JSON, "
        "with the names of error codes, and records. Credentials are withheld.",
        BytesArguments,
        decode,
    ),
    Tool(
        "schema_show",
        "Show a message",
        "Show a message of Kafka's protocol at one version: its fields in their order on the wire "
        "with types, tags and defaults, its versions, and the releases that have it.",
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
        "Read the answers that an analysis stored about traffic and logs. Without a name it lists "
        "them; with one it returns rows, the most important first.",
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
"""All tools, in the order in which a client sees them."""
