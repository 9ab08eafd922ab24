"""The body of a request, from what a person writes: defaults filled in, records encoded."""

from __future__ import annotations

import base64
import copy
import re
from typing import TYPE_CHECKING, Any, Final

import flexwire
from flexwire.arguments import refuse
from flexwire.client.header_tags import split_header_tag
from flexwire.errors import JsonFormError
from flexwire.protocol.records_form import encode_records
from flexwire.protocol.shown import Structure, records_names, structures
from flexwire.wire.limits import HIGHEST_TAG
from flexwire.wire.schema import Presence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.codec import Message

# Where a spec gives no default, and zero or "" is what no client means: brokers refuse it, do not
# wait for what was asked, or take the caller for broker 0. In ACL filters 1 is any.
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
    """The message of a JSON form in which fields may be missing, and records may be JSON.

    What is missing has the default of its spec, or of `OWN_DEFAULTS` where the spec gives none. A
    field that the version does not have is refused, though Kafka would leave some out silently.
    Raises `JsonFormError` with the path of what does not fit.
    """
    try:
        form = {} if form is None else copy.deepcopy(form)
    except RecursionError:
        reason = "nested too deeply"
        raise JsonFormError(reason, message=kind.entry.name, version=version) from None
    names = kind.definition.served.former_names(version)
    records, own = records_names(kind, version), OWN_DEFAULTS.get(kind.entry.name, {})
    try:
        for one in structures(form, kind.definition.schema(version), names):
            former = names.get(one.schema.name, {})
            _refuse_absent(one, former)
            _encode_records(one, records)
            _fill(one, former, own)
    except JsonFormError as error:
        raise error.within(kind.entry.name, version) from None
    return kind.from_json(form, version, defaults=True)


def parse_header_tag(text: str) -> tuple[int, bytes]:
    r"""A tagged field of the request header, as ``10042=text`` or ``10042=hex:00ff``.

    >>> parse_header_tag("10042=a1"), parse_header_tag("10042=hex:00 ff")
    ((10042, b'a1'), (10042, b'\x00\xff'))
    """
    tag, value = split_header_tag(text)
    if tag > HIGHEST_TAG:
        raise refuse("header tag", f"at most {HIGHEST_TAG}", tag)
    return tag, value.encode() if isinstance(value, str) else value


def _encode_records(one: Structure, names: frozenset[str]) -> None:
    for name in names & one.form.keys():
        value = one.form[name]
        if isinstance(value, list | dict):
            raw = encode_records(value, one.at(name))
            one.form[name] = base64.b64encode(raw).decode()


def _refuse_absent(one: Structure, former: Mapping[str, str]) -> None:
    presence = {found.json_name: found.presence for found in one.schema.fields}
    for name in one.form:
        if presence.get(former.get(name, name)) is Presence.ABSENT:
            has = ", ".join(
                known for known, where in presence.items() if where is not Presence.ABSENT
            )
            reason = f"this version does not have it; it has {has}"
            raise JsonFormError(reason, path=one.at(name))


def _fill(one: Structure, former: Mapping[str, str], own: Mapping[str, Any]) -> None:
    given = {former.get(name, name) for name in one.form}
    for found in one.schema.fields:
        name = found.json_name
        if found.presence is Presence.INLINE and name in own and name not in given:
            one.form[name] = own[name]
