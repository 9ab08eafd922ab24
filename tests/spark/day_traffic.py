"""Messages for answers that need several days: introductions, tags, groups, metrics and more."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.protocol.test_telemetry import pushed
from tests.spark.traffic import TOPIC_ID, made, nested, request, response

if TYPE_CHECKING:
    from tests.spark.traffic import Traffic

VERSIONS = {
    "ApiVersions": 3,
    "ConsumerGroupHeartbeat": 1,
    "GetTelemetrySubscriptions": 0,
    "Heartbeat": 4,
    "JoinGroup": 9,
    "LeaveGroup": 5,
    "PushTelemetry": 0,
    "ShareAcknowledge": 1,
    "ShareFetch": 1,
    "SyncGroup": 5,
}
"""The APIs that `asked` and `answered` draw, with their versions."""
WAITING = ("JoinGroup", "ConsumerGroupHeartbeat", "ShareFetch")
"""The APIs for which some answers need exchanges that span two days."""
MEMBER_ID_REQUIRED, REBALANCE, UNKNOWN_GROUP = 79, 27, 69
ASSIGNMENT = struct.pack(">hii", 1, 0, -1)


class _Member:
    """Draw requests from group members, and the responses to them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.member = chance.choice(["one", "two"])
        self.generation = chance.randrange(1, 4)

    def request(self, api: str) -> Any:
        fields: dict[str, Any] = getattr(self, f"ask_{api}", dict)()
        return made(f"{api}Request", **fields)

    def response(self, api: str) -> Any:
        fields: dict[str, Any] = getattr(self, f"answer_{api}", dict)()
        return made(f"{api}Response", **fields)

    def of_group(self, *groups: str) -> dict[str, Any]:
        return {"group_id": self.chance.choice(groups or ["workers"]), "member_id": self.member}

    def ask_ApiVersions(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        name, version = self.chance.choice([("librdkafka", "2.3"), ("apache-kafka-java", "4.1.0")])
        return {"client_software_name": name, "client_software_version": version}

    def ask_JoinGroup(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        name = self.chance.choice(["range", "own"])
        protocol = nested(
            "JoinGroupRequest", "JoinGroupRequestProtocol", name=name,
            metadata=bytes([self.chance.randrange(2)]),
        )  # fmt: skip
        asks = {"session_timeout_ms": 45_000, "protocol_type": "consumer", "protocols": [protocol]}
        return {"group_id": "workers", "member_id": self.chance.choice([self.member, ""]), **asks}

    def ask_SyncGroup(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        parts = self.chance.sample([ASSIGNMENT, b"\0", b""], 2)
        given = [
            nested("SyncGroupRequest", "SyncGroupRequestAssignment", member_id=one, assignment=data)
            for one, data in zip(("one", "two"), parts, strict=True)
        ]
        more = {"protocol_type": "consumer", "assignments": given}
        return {**self.of_group(), "generation_id": self.generation, **more}

    def ask_Heartbeat(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        return {**self.of_group(), "generation_id": self.generation}

    def ask_LeaveGroup(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        leaving = nested(
            "LeaveGroupRequest", "MemberIdentity", member_id=self.member, reason="done"
        )
        return {"group_id": "workers", "members": [leaving]}

    def ask_ConsumerGroupHeartbeat(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        epoch = self.chance.choice([0, 0, 1, 2, -1])
        return {**self.of_group("workers", "movers"), "member_epoch": epoch}

    def ask_PushTelemetry(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        instance = self.chance.choice([UUID(int=0), UUID(int=0), UUID(int=5)])
        value = self.chance.choice([0.1, 0.7, 1e-9, -0.3, 1e16])
        metrics = self.chance.choice([pushed(value), pushed(value), b"\xff"])
        return {"client_instance_id": instance, "metrics": metrics}

    def ask_ShareFetch(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        topics = [self._acknowledged("ShareFetchRequest", "FetchTopic", "FetchPartition")]
        return {**self.of_group("sharing"), "topics": topics}

    def ask_ShareAcknowledge(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        names = ("ShareAcknowledgeRequest", "AcknowledgeTopic", "AcknowledgePartition")
        return {**self.of_group("sharing"), "topics": [self._acknowledged(*names)]}

    def _acknowledged(self, message: str, topic: str, partition: str) -> Any:
        """Return the topic of a request that acknowledges records. Some ranges are huge."""
        first = self.chance.choice([7, 7, 0])
        last = 2**63 - 2 if first == 0 else first + self.chance.randrange(3)
        batch = nested(
            message, "AcknowledgementBatch", first_offset=first, last_offset=last,
            acknowledge_types=[self.chance.choice([1, 2])],
        )  # fmt: skip
        of_partition = nested(message, partition, acknowledgement_batches=[batch])
        return nested(message, topic, topic_id=TOPIC_ID, partitions=[of_partition])

    def answer_JoinGroup(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        listed = [
            nested("JoinGroupResponse", "JoinGroupResponseMember", member_id=one)
            for one in self.chance.choice([["one"], ["one", "two"]])
        ]
        code = self.chance.choice([0, 0, 0, MEMBER_ID_REQUIRED])
        told = {"error_code": code, "generation_id": self.generation, "leader": "one"}
        return {**told, "member_id": self.member, "members": listed}

    def answer_Heartbeat(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        return {"error_code": self.chance.choice([0, REBALANCE])}

    answer_SyncGroup = answer_Heartbeat  # noqa: N815 - the name of the API

    def answer_ConsumerGroupHeartbeat(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        code = self.chance.choice([0, UNKNOWN_GROUP])
        return {"error_code": code, "member_epoch": self.generation}

    def answer_GetTelemetrySubscriptions(self) -> dict[str, Any]:  # noqa: N802 - the API
        return {"client_instance_id": UUID(int=9)}

    def answer_ShareFetch(self) -> dict[str, Any]:  # noqa: N802 - the name of the API
        first = self.chance.randrange(9)
        acquired = nested(
            "ShareFetchResponse", "AcquiredRecords", first_offset=first,
            last_offset=first + self.chance.randrange(4),
            delivery_count=self.chance.randrange(1, 4),
        )  # fmt: skip
        of_partition = nested(
            "ShareFetchResponse", "PartitionData", acquired_records=[acquired], records=b""
        )
        topic = nested(
            "ShareFetchResponse", "ShareFetchableTopicResponse", topic_id=TOPIC_ID,
            partitions=[of_partition],
        )  # fmt: skip
        return {"responses": [topic]}


def asked(api: str, chance: random.Random) -> Any:
    """Draw a request to one of the APIs in `VERSIONS`."""
    return _Member(chance).request(api)


def answered(api: str, chance: random.Random) -> Any:
    """Draw a response from one of the APIs in `VERSIONS`."""
    return _Member(chance).response(api)


def tags(chance: random.Random) -> dict[int, bytes]:
    """Draw the tags of a header. Usually there are none."""
    return chance.choice([{}, {}, {10_001: b"trace %d" % chance.randrange(5)}])


def converse(traffic: Traffic, connection: Any, number: int) -> None:
    """Add an exchange of each API, with correlation ids from ``number`` on, and a tagged field."""
    chance = random.Random(number)
    # A later part names the client's software and its instance id.
    later = {"ApiVersions": 2, "GetTelemetrySubscriptions": 3}
    for place, (api, version) in enumerate(VERSIONS.items()):
        if number // 1000 < later.get(api, 0):
            continue
        tagged = request(asked(api, chance), version, number + place, tags={10_001: b"%d" % place})
        traffic.send(connection, "request", tagged)
        answer = response(answered(api, chance), version, number + place)
        traffic.send(connection, "response", answer)
    fetch = made("FetchRequest", cluster_id="here")
    traffic.exchange(connection, fetch, made("FetchResponse"), 15, number + 99)


def ask(traffic: Traffic, connection: Any, number: int) -> None:
    """Send the requests that are answered on another day."""
    chance = random.Random(-number)
    for place, api in enumerate(WAITING):
        payload = request(asked(api, chance), VERSIONS[api], number + 100 + place)
        traffic.send(connection, "request", payload)


def answer(traffic: Traffic, connection: Any, number: int) -> None:
    """Send the responses to the requests from `ask`, in the same order."""
    chance = random.Random(number)
    for place, api in enumerate(WAITING):
        payload = response(answered(api, chance), VERSIONS[api], number + 100 + place)
        traffic.send(connection, "response", payload)
