"""Groups and their members, according to their coordinators: `groups` and `group_members`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.types import StructType

from flexwire.answers.state.log import HIDES, IS_LATER, moment
from flexwire.columnar import decode_messages, message_type
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.nested_messages import GROUP_MESSAGES
from flexwire.tables.typed_records import fields_there, int16_in_front
from flexwire.tasks import begin_task, kept_columns, map_in_arrow, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from flexwire.answers.state.log import InternalLog


# The message that each column of bytes contains, and the fields to extract from it.
OPENED: Final = {
    "subscription": (GROUP_MESSAGES["consumer"].subscription, "topics"),
    "assignment": (GROUP_MESSAGES["consumer"].assignment, "assigned_partitions"),
}


def open_consumer_protocol(rows: DataFrame) -> DataFrame:
    """Replace the bytes in ``subscription`` and ``assignment`` with the fields of `OPENED`.

    A client may send any bytes here; those that are not such a message become null.
    """
    opened = pa.schema(
        {name: message_type(of).field(field).type for name, (of, field) in OPENED.items()}
    )
    names = [column for column in rows.columns if column not in OPENED]
    schema = StructType([*kept_columns(rows, names), *spark_schema(opened)])
    return map_in_arrow(rows.select(*schema.names), _task, schema)


def _task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name, (message, field) in OPENED.items():
            versions, bodies = int16_in_front(columns[name].cast(pa.binary()))
            opened = decode_messages(message, bodies, versions, mode="PERMISSIVE").values
            # With this expression, Spark keeps the nulls of the messages.
            columns[name] = pc.struct_field(opened, field)
        yield pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


class GroupRecords(NamedTuple):
    """The records for a type of group: those of the group, of a member, and of its assignment."""

    group: str
    member: str
    assignment: str


CLASSIC: Final = "GroupMetadata"
CLASSIC_TYPE: Final = "classic"
TYPES: Final = {
    "consumer": GroupRecords(
        "ConsumerGroupMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupCurrentMemberAssignment",
    ),
    "share": GroupRecords(
        "ShareGroupMetadata", "ShareGroupMemberMetadata", "ShareGroupCurrentMemberAssignment"
    ),
    "streams": GroupRecords(
        "StreamsGroupMetadata", "StreamsGroupMemberMetadata", "StreamsGroupCurrentMemberAssignment"
    ),
}
RECORDS: Final = (CLASSIC, *(name for record_type in TYPES.values() for name in record_type))
# The protocol type of consumer groups.
_CONSUMERS: Final = "consumer"
_KEY: Final = ("type", "group", "member_id")
_SIDES: Final = ("group_value", "member", "assignment")
_MEMBER: Final = (
    "instance_id",
    "rack_id",
    "client_id",
    "client_host",
    "topics",
    "topic_regex",
)
_OF_GROUPS: Final = (
    "key.group",
    "key.group_id",
    "key.member_id",
    "value.protocol_type",
    "value.protocol",
    "value.generation",
    "value.current_state_timestamp",
    "value.epoch",
    "value.members.member_id",
)
_OF_PROTOCOLS: Final = (
    *_OF_GROUPS,
    "value.members.client_id",
    "value.members.assignment",
    "value.client_id",
)
_OF_MEMBERS: Final = (
    *_OF_GROUPS,
    "value.members.group_instance_id",
    "value.members.client_id",
    "value.members.client_host",
    "value.members.rebalance_timeout",
    "value.members.session_timeout",
    "value.members.subscription",
    "value.members.assignment",
    *(f"value.{name}" for name in (*_MEMBER[:-2], "subscribed_topic_names")),
    "value.subscribed_topic_regex",
    "value.rebalance_timeout_ms",
    "value.member_epoch",
    *(f"value.assigned_partitions.{name}" for name in ("topic_id", "partitions")),
    *(f"value.active_tasks.{name}" for name in ("subtopology_id", "partitions")),
)
_PARTITIONS: Final = (
    "array<struct<topic: string, topic_id: string, subtopology_id: string, partition: int>>"
)


def groups(log: InternalLog) -> DataFrame:
    """Return the groups in the records of coordinators, without groups that only commit.

    Columns: ``group``; ``type``: classic, consumer, share or streams; ``protocol_type`` and
    ``protocol`` of a classic group; ``epoch``: the generation of a classic group, or the group
    epoch; ``members``: their number; ``time``: since when a classic group has its state;
    ``log_partition`` of its records; ``is_known``: false if compaction removed a record that may
    have existed. Deleted groups are left out.

    A group id belongs to only one group at a time, as in the coordinator of 4.x. A record of a
    classic group, or its tombstone, replaces a group of any type with the same id. The coordinator
    of 3.x does not read any other type of group.
    """
    described = _by_group(_last(log, _OF_GROUPS))
    # A record of a member also creates the group, before a record with the group's epoch exists.
    epoch = F.coalesce("value.epoch", F.when(_is_there() & F.col("is_known"), F.lit(0)))
    return described.select(
        "group",
        "type",
        *(f"value.{name}" for name in ("protocol_type", "protocol")),
        epoch.alias("epoch"),
        _member_count().alias("members"),
        moment("value.time").alias("time"),
        "log_partition",
        "is_known",
    )


def group_protocols(log: InternalLog) -> DataFrame:
    """Return the protocols of consumer groups, without groups that only commit.

    Columns: ``group``; ``type``: classic or consumer; ``protocol_type`` and ``protocol`` of a
    classic group; ``members``: their number; ``client_ids`` of the members, in any order;
    ``assignments`` of the members of a classic group, as bytes; ``is_known`` as in `groups`.
    """
    last = _last(log, _OF_PROTOCOLS)
    described = _by_group(last, F.collect_set("member.client_id").alias("joined_ids"))
    is_classic = F.col("type") == CLASSIC_TYPE
    client_ids = F.when(is_classic, F.col("value.members.client_id")).otherwise(F.col("joined_ids"))
    return described.where(is_classic | (F.col("type") == _CONSUMERS)).select(
        "group",
        "type",
        *(f"value.{name}" for name in ("protocol_type", "protocol")),
        _member_count().cast("bigint").alias("members"),
        client_ids.alias("client_ids"),
        F.col("value.members.assignment").alias("assignments"),
        "is_known",
    )


def _by_group(last: DataFrame, *others: Column) -> DataFrame:
    """Return a row for each group, with its ``value`` and the number of ``joined`` members."""
    is_group = F.col("member_id").isNull()
    by_group = last.groupBy("type", "group").agg(
        F.max_by("group_value", F.when(is_group, F.lit(0))).alias("value"),
        F.count(F.when(F.col("member").isNotNull(), F.lit(0))).alias("joined"),
        F.bool_and("is_known").alias("is_known"),
        F.max("log_partition").alias("log_partition"),
        *others,
    )
    return by_group.where(_is_there() | ~F.col("is_known"))


def _is_there() -> Column:
    return F.col("value").isNotNull() | (F.col("joined") > 0)


def _member_count() -> Column:
    classic = F.when(F.col("type") == CLASSIC_TYPE, F.size("value.members"))
    return F.coalesce(classic, F.when(_is_there(), F.col("joined")))


def group_members(log: InternalLog) -> DataFrame:
    """Return the members of groups.

    Columns: ``group``, ``type``, ``member_id``; ``instance_id``, ``rack_id``, ``client_id``,
    ``client_host``; ``topics`` and ``topic_regex`` of its subscription; ``assigned``: its
    partitions, with ``topic`` in classic groups, ``topic_id`` in others, and ``subtopology_id`` in
    groups of streams (active tasks); ``member_epoch``: the generation in classic groups, null if no
    record has the assignment; ``rebalance_timeout_ms``, ``session_timeout_ms``; ``is_known``: false
    if compaction removed some of its records, or the record that would show whether it exists. A
    classic group about which nothing is known has a single row, whose ``member_id`` is null.

    The subscription and the assignment of a member of a classic group are known if the member is a
    consumer that writes them in Kafka's format. The ``topics`` of a member of a streams group come
    from its topology.
    """
    last = _last(log, _OF_MEMBERS)
    of_classic = (F.col("type") == CLASSIC_TYPE) & F.col("group_value").isNotNull()
    return _classic_members(last.where(of_classic)).unionByName(_members(last))


def _classic_members(last: DataFrame) -> DataFrame:
    value = F.col("group_value")
    is_consumer = value["protocol_type"] == _CONSUMERS
    each = last.select(
        "group", "type", "is_known", value, F.explode("group_value.members").alias("m")
    )
    protocol_columns = ("subscription", "assignment")
    flat = each.select(
        "group",
        "type",
        "is_known",
        "m.member_id",
        F.col("m.group_instance_id").alias("instance_id"),
        "m.client_id",
        "m.client_host",
        value["epoch"].alias("member_epoch"),
        _timeout().alias("rebalance_timeout_ms"),
        F.col("m.session_timeout").alias("session_timeout_ms"),
        *(F.when(is_consumer, F.col(f"m.{name}")).alias(name) for name in protocol_columns),
    )
    opened_members = open_consumer_protocol(flat)
    return opened_members.select(
        *_KEY,
        "instance_id",
        F.lit(None).cast("string").alias("rack_id"),
        "client_id",
        "client_host",
        F.col("subscription").alias("topics"),
        F.lit(None).cast("string").alias("topic_regex"),
        _flat("assignment", "topic").alias("assigned"),
        "member_epoch",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "is_known",
    )


def _timeout() -> Column:
    """Return a classic member's rebalance timeout if one is set, or else its session timeout."""
    timeout = F.col("m.rebalance_timeout")
    return F.coalesce(F.when(timeout >= 0, timeout), "m.session_timeout")


def _members(last: DataFrame) -> DataFrame:
    is_known, is_member = F.col("is_known"), F.col("member_id").isNotNull()
    # The members of a classic group are listed only in the group's own record.
    is_group = (F.col("type") == CLASSIC_TYPE) & F.col("group_value").isNull()
    rows = last.where(
        (is_member & F.col("member").isNotNull()) | (is_member | is_group) & ~is_known
    )
    none = F.when(is_known & F.col("assignment").isNull(), F.array().cast(_PARTITIONS))
    return rows.select(
        *_KEY,
        *(f"member.{name}" for name in _MEMBER),
        F.coalesce("assignment.assigned", none).alias("assigned"),
        "assignment.member_epoch",
        "member.rebalance_timeout_ms",
        F.lit(None).cast("int").alias("session_timeout_ms"),
        "is_known",
    )


def _last(log: InternalLog, fields: Sequence[str]) -> DataFrame:
    """Return the last records of groups and members: ``group_value``, ``member``, ``assignment``.

    These structures contain the fields in ``fields``; all other fields are null. The row of a group
    has a null ``member_id``. The records of deleted groups and members are null.
    """
    rows = _rows(log, fields)
    at = F.when(~F.col(IS_LATER), F.col("at"))
    last_records = rows.groupBy(*_KEY).agg(
        *(
            aggregate
            for name in _SIDES
            for aggregate in (
                F.max_by(name, F.when(F.col("side") == name, at)).alias(name),
                F.max(F.when(F.col("side") == name, at)).alias(f"{name}_at"),
                F.bool_or(F.col(HIDES) & (F.col("side") == name)).alias(f"{name}_{HIDES}"),
            )
        ),
        F.max("partition").alias("log_partition"),
    )
    # If all records of a key may have been removed, the member's other record does not show their
    # content.
    is_holed = F.col("log_partition").isin(*log.incomplete) if log.incomplete else F.lit(False)
    is_group = F.col("member_id").isNull()
    group, member, assignment = (
        F.col(f"{name}_at").isNotNull()
        | ~(F.col(f"{name}_{HIDES}") | (is_holed & (is_group == (name == _SIDES[0]))))
        for name in _SIDES
    )
    return _one_of_an_id(last_records.withColumn("is_known", group & member & assignment))


def _one_of_an_id(last: DataFrame) -> DataFrame:
    """Drop groups that a later group with the same id replaced (`GroupMetadataManager`)."""
    of_id = Window.partitionBy("group")
    is_classic, value = F.col("type") == CLASSIC_TYPE, F.col("group_value")
    is_gone = F.col(f"group_value_{HIDES}") & F.col("group_value_at").isNull()
    newest = F.greatest(*(F.col(f"{name}_at") for name in _SIDES))
    of_consumers = F.col("type") == _CONSUMERS
    may_hide = F.array_contains(F.array(*(f"{name}_{HIDES}" for name in _SIDES)), value=True)
    seen = last.withColumns(
        {
            "classic_at": F.max(F.when(is_classic, F.col("group_value_at"))).over(of_id),
            "classic_is_gone": F.bool_or(is_classic & is_gone).over(of_id),
            "consumers_at": F.max(F.when(of_consumers, newest)).over(of_id),
            "consumers_hide": F.bool_or(of_consumers & may_hide).over(of_id),
        }
    )
    # Kafka treats such a group as a group that only commits.
    is_simple = (F.coalesce(F.length(value["protocol_type"]), F.lit(0)) == 0) & (
        F.size(value["members"]) == 0
    )
    is_simple = is_classic & F.coalesce(is_simple, F.lit(False))
    is_before = F.when(is_classic, is_simple & (F.col("consumers_at") > F.col("group_value_at")))
    conditions = {
        name: F.when(
            ~F.coalesce(is_before, F.col(f"{name}_at") < F.col("classic_at"), F.lit(False)),
            F.col(name),
        )
        for name in _SIDES
    }
    may_be_other = F.when(is_classic, is_simple & F.col("consumers_hide")).otherwise(
        F.col("classic_is_gone")
    )
    return seen.withColumns(conditions | {"is_known": F.col("is_known") & ~may_be_other})


def _rows(log: InternalLog, fields: Sequence[str]) -> DataFrame:
    """Return every record with its group, its member, and the requested fields."""
    named_fields = fields_there(InternalTopic.CONSUMER_OFFSETS, RECORDS, fields)
    typed = log.typed(named_fields, ("message", "is_tombstone"), only_last=True)

    def of(records: Sequence[str], side: str, name: str, kind: str) -> Column:
        """Return a field that exists only in some of these records."""
        there = [
            F.col(f"{record}.{side}.{name}")
            for record in records
            if name in _fields(typed, record, side)
        ]
        return F.coalesce(*there, F.lit(None).cast(kind)).alias(name)

    kinds = [*TYPES.values()]
    of_groups = [field.group for field in kinds]
    of_members = [field_spec.member for field_spec in kinds]
    of_assignments = [each_field.assignment for each_field in kinds]
    message, classic = F.col("message"), F.col(f"{CLASSIC}.value")
    kind, side = F.lit(CLASSIC_TYPE), F.lit(_SIDES[0])
    for name, records in TYPES.items():
        kind = F.when(message.isin(*records), F.lit(name)).otherwise(kind)
    for name, records_of in zip(_SIDES[1:], (of_members, of_assignments), strict=True):
        side = F.when(message.isin(*records_of), F.lit(name)).otherwise(side)
    others = RECORDS[1:]
    group = F.struct(
        classic["protocol_type"].alias("protocol_type"),
        classic["protocol"].alias("protocol"),
        F.coalesce(classic["generation"], of(of_groups, "value", "epoch", "int")).alias("epoch"),
        classic["current_state_timestamp"].alias("time"),
        classic["members"].alias("members"),
    )
    member = F.struct(
        of(of_members, "value", "instance_id", "string"),
        of(of_members, "value", "rack_id", "string"),
        of(of_members, "value", "client_id", "string"),
        of(of_members, "value", "client_host", "string"),
        of(of_members, "value", "subscribed_topic_names", "array<string>").alias("topics"),
        of(of_members, "value", "subscribed_topic_regex", "string").alias("topic_regex"),
        of(of_members, "value", "rebalance_timeout_ms", "int"),
    )
    assignment = F.struct(
        _assigned(typed, of_assignments), of(of_assignments, "value", "member_epoch", "int")
    )
    there = ~F.col("is_tombstone")
    sides = zip(_SIDES, (group, member, assignment), strict=True)
    return typed.select(
        kind.alias("type"),
        F.coalesce(f"{CLASSIC}.key.group", of(others, "key", "group_id", "string")).alias("group"),
        of(others, "key", "member_id", "string"),
        side.alias("side"),
        F.col("offset").alias("at"),
        "partition",
        *(F.when(there & (side == name), side_value).alias(name) for name, side_value in sides),
        IS_LATER,
        HIDES,
    )


def _assigned(typed: DataFrame, records: Sequence[str]) -> Column:
    """Return the partitions in assignments, by topic or subtopology."""
    by_list = {"assigned_partitions": "topic_id", "active_tasks": "subtopology_id"}
    there = [
        _flat(f"{record}.value.{name}", named)
        for name, named in by_list.items()
        for record in records
        if name in _fields(typed, record, "value")
    ]
    return F.coalesce(*there, F.lit(None).cast(_PARTITIONS)).alias("assigned")


def _fields(typed: DataFrame, record: str, side: str) -> list[str]:
    kind: Any = typed.schema[record].dataType
    names: list[str] = kind[side].dataType.names if side in kind.names else []
    return names


def _flat(partitions: str, named: str) -> Column:
    """Return each partition in a list by topic or subtopology, as the type ``_PARTITIONS``."""
    topic_fields = ("topic", "topic_id", "subtopology_id")

    def each(element: Column) -> Column:
        names = [
            element[name] if name == named else F.lit(None).cast("string") for name in topic_fields
        ]
        return F.transform(
            element["partitions"],
            lambda number: F.struct(
                *(value.alias(name) for name, value in zip(topic_fields, names, strict=True)),
                number.alias("partition"),
            ),
        )

    return F.array_sort(F.flatten(F.transform(partitions, each))).cast(_PARTITIONS)
