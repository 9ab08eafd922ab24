"""The meaning of error codes and their remedies, in flexwire's own words.

An error's name alone does not help a person who sees the error for the first time. In a report, a
client that handles an error code itself may look broken to a person who does not know the code.
"""

from __future__ import annotations

from typing import Final

# Each name begins at the margin. The meaning follows, indented. Names in lower case are settings.
_TEXT: Final = """
UNKNOWN_SERVER_ERROR
    The broker failed, and no other error code describes the failure. The broker's log contains the
    reason.
NONE
    Nothing failed.
OFFSET_OUT_OF_RANGE
    The partition has no record at this offset: retention removed the record, or no record has been
    written there yet. A consumer follows auto.offset.reset.
CORRUPT_MESSAGE
    A record batch is damaged: its CRC, size or layout is wrong. Old brokers also return
    this code for a record without a key in a compacted topic.
UNKNOWN_TOPIC_OR_PARTITION
    This broker does not know the topic or partition: it does not exist, it was created very
    recently, it was deleted, or the client is not authorized to see it.
INVALID_FETCH_SIZE
    A fetch requested an invalid number of bytes.
LEADER_NOT_AVAILABLE
    The partition has no leader right now: a leader is being elected, or all replicas are down.
NOT_LEADER_OR_FOLLOWER
    Another broker leads this partition. The client's metadata is outdated, so the client requests
    new metadata.
REQUEST_TIMED_OUT
    The broker did not finish within the request's timeout. The operation may still have happened.
BROKER_NOT_AVAILABLE
    The required broker is not running, or no broker has this id.
REPLICA_NOT_AVAILABLE
    This broker has no available replica of the partition. In a Metadata response, this code only
    means that a replica is down.
MESSAGE_TOO_LARGE
    A record batch is larger than the topic's max.message.bytes. Make batches smaller, or raise the
    limit.
STALE_CONTROLLER_EPOCH
    A request came from a controller that another controller has replaced.
OFFSET_METADATA_TOO_LARGE
    The text committed with an offset is longer than offset.metadata.max.bytes.
NETWORK_EXCEPTION
    The connection ended before the response arrived. Clients report this code themselves; brokers
    do not send it.
COORDINATOR_LOAD_IN_PROGRESS
    This broker has just become the coordinator and is still loading the coordinator's state from
    an internal topic.
COORDINATOR_NOT_AVAILABLE
    There is no coordinator right now: the coordinator's internal topic is being created, or a
    partition of this topic has no leader.
NOT_COORDINATOR
    Another broker coordinates this group or transactional id. Clients find that broker with a
    FindCoordinator request.
INVALID_TOPIC_EXCEPTION
    The topic name is invalid, or belongs to an internal topic that clients must not change.
RECORD_LIST_TOO_LARGE
    The batches for a partition are larger than the size limit of a log segment (segment.bytes).
NOT_ENOUGH_REPLICAS
    Fewer replicas are in sync than min.insync.replicas requires. Nothing was written.
NOT_ENOUGH_REPLICAS_AFTER_APPEND
    The records were written, but then fewer replicas were in sync than min.insync.replicas
    requires. A retry writes these records twice, unless the producer is idempotent.
INVALID_REQUIRED_ACKS
    A producer requested acks other than 0, 1 or all.
ILLEGAL_GENERATION
    The group has rebalanced, but this member still uses an old generation. The member joins again.
INCONSISTENT_GROUP_PROTOCOL
    The member has no assignor or protocol type in common with the other members of its group.
INVALID_GROUP_ID
    The group id is empty, or this request does not support this kind of group.
UNKNOWN_MEMBER_ID
    The coordinator has no such member: its session expired, or it left. The client joins again as a
    new member.
INVALID_SESSION_TIMEOUT
    The session timeout is not between the broker's group.min.session.timeout.ms and
    group.max.session.timeout.ms.
REBALANCE_IN_PROGRESS
    The group is assigning its partitions again, and the member must rejoin. Clients rejoin
    automatically. This code is part of every rebalance.
INVALID_COMMIT_OFFSET_SIZE
    An offset commit is too large to be stored.
TOPIC_AUTHORIZATION_FAILED
    The principal is not authorized for this operation on the topic. An ACL that allows the
    operation is missing.
GROUP_AUTHORIZATION_FAILED
    The principal is not authorized for this operation on the group. An ACL that allows the
    operation is missing.
CLUSTER_AUTHORIZATION_FAILED
    The principal is not authorized for this operation on the cluster. An ACL that allows the
    operation is missing.
INVALID_TIMESTAMP
    The difference between a record's timestamp and the broker's clock is greater than the topic
    allows.
UNSUPPORTED_SASL_MECHANISM
    The listener does not support this SASL mechanism. The broker's response lists the supported
    mechanisms.
ILLEGAL_SASL_STATE
    The broker received a SASL request when it expected none.
UNSUPPORTED_VERSION
    The broker does not support this version of the request. The broker's ApiVersions response
    lists the supported versions.
TOPIC_ALREADY_EXISTS
    A topic with this name already exists.
INVALID_PARTITIONS
    The number of partitions is less than 1, or not greater than the topic's current number of
    partitions.
INVALID_REPLICATION_FACTOR
    The replication factor is less than 1, or there are too few brokers.
INVALID_REPLICA_ASSIGNMENT
    The replica assignment is invalid: a broker is unknown or listed twice, or there are too few
    brokers.
INVALID_CONFIG
    The setting does not exist, or does not accept this value.
NOT_CONTROLLER
    Another node is the active controller. Clients look up the active controller and send the
    request to it.
INVALID_REQUEST
    The values in the request contradict each other, or the broker could not read the request. The
    broker's log contains the reason.
UNSUPPORTED_FOR_MESSAGE_FORMAT
    The topic stores its records in an old format that does not support this request.
POLICY_VIOLATION
    A policy that the cluster's operators configured rejects this topic or setting.
OUT_OF_ORDER_SEQUENCE_NUMBER
    A batch of an idempotent producer skipped sequence numbers: the previous batch was lost.
DUPLICATE_SEQUENCE_NUMBER
    The broker has already written this batch. The producer treats the batch as successful.
INVALID_PRODUCER_EPOCH
    A newer producer uses the same id, or the transaction timed out. The producer must abort and
    begin again.
INVALID_TXN_STATE
    The transaction's state does not allow this request.
INVALID_PRODUCER_ID_MAPPING
    The transactional id does not belong to this producer id. The transactional id may have
    expired. Initialize the producer again.
INVALID_TRANSACTION_TIMEOUT
    The transaction's timeout is longer than the broker's transaction.max.timeout.ms.
CONCURRENT_TRANSACTIONS
    The previous transaction is still being completed. Clients wait and retry.
TRANSACTION_COORDINATOR_FENCED
    A transaction marker came from a coordinator that another coordinator has replaced.
TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    The principal is not authorized to use this transactional id. An ACL that allows the operation
    is missing.
SECURITY_DISABLED
    The cluster has no authorizer, and therefore no ACLs.
OPERATION_NOT_ATTEMPTED
    Another part of the same request failed first, so this part was not tried.
KAFKA_STORAGE_ERROR
    The broker's disk that contains this partition failed. If the partition has another replica,
    that replica takes over.
LOG_DIR_NOT_FOUND
    The broker has no log directory with this path.
SASL_AUTHENTICATION_FAILED
    The broker rejected the credentials.
UNKNOWN_PRODUCER_ID
    The broker no longer remembers this producer, because all its records were removed or it was
    inactive for a long time. Newer clients recover automatically.
REASSIGNMENT_IN_PROGRESS
    The partition is already being moved to other brokers.
DELEGATION_TOKEN_AUTH_DISABLED
    No secret for delegation tokens (delegation.token.secret.key) is configured on the brokers.
DELEGATION_TOKEN_NOT_FOUND
    The delegation token does not exist; it may have expired.
DELEGATION_TOKEN_OWNER_MISMATCH
    Only the owner and the renewers of this delegation token may change it.
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    Delegation tokens are issued only on authenticated connections, and only if the client did not
    log in with a delegation token.
DELEGATION_TOKEN_AUTHORIZATION_FAILED
    The principal is not authorized for this operation on delegation tokens. An ACL that allows the
    operation is missing.
DELEGATION_TOKEN_EXPIRED
    The delegation token has expired.
INVALID_PRINCIPAL_TYPE
    The cluster does not recognize this principal type. The type "User" is valid.
NON_EMPTY_GROUP
    The group still has members. Stop the members first.
GROUP_ID_NOT_FOUND
    The group does not exist.
FETCH_SESSION_ID_NOT_FOUND
    The broker has dropped this fetch session. The client starts another fetch session. A few of
    these errors are normal.
INVALID_FETCH_SESSION_EPOCH
    A fetch contains the wrong epoch for its session. The client starts another fetch session.
LISTENER_NOT_FOUND
    The partition's leader has no listener with the name of the listener that received the request.
TOPIC_DELETION_DISABLED
    The brokers do not allow topics to be deleted (delete.topic.enable).
FENCED_LEADER_EPOCH
    The partition has a new leader that the client does not know. The client requests new metadata.
UNKNOWN_LEADER_EPOCH
    The client knows of a newer leader than this broker does. The broker will learn of this leader
    soon.
UNSUPPORTED_COMPRESSION_TYPE
    This version of the request does not support the compression type of the batches. For example,
    old versions do not support zstd.
STALE_BROKER_EPOCH
    The broker epoch in the request predates the broker's last restart.
OFFSET_NOT_AVAILABLE
    A new leader does not know its high watermark yet.
MEMBER_ID_REQUIRED
    This is not a failure. A client that joins a group for the first time receives a member id and
    then joins again with this id.
PREFERRED_LEADER_NOT_AVAILABLE
    The preferred leader is down or behind, so another replica leads.
GROUP_MAX_SIZE_REACHED
    The group already contains as many members as group.max.size allows.
FENCED_INSTANCE_ID
    Another member has joined with the same group.instance.id. Give each member its own
    group.instance.id.
ELIGIBLE_LEADERS_NOT_AVAILABLE
    No replica can become the leader, because all replicas in the ISR are down.
ELECTION_NOT_NEEDED
    The partition already has the leader that the election would choose.
NO_REASSIGNMENT_IN_PROGRESS
    The partition is not being moved, so there is nothing to cancel.
GROUP_SUBSCRIBED_TO_TOPIC
    The group reads this topic, so its offsets for the topic cannot be deleted.
INVALID_RECORD
    The broker rejects a record, such as a record without a key in a compacted topic. The response
    identifies the record and contains the reason.
UNSTABLE_OFFSET_COMMIT
    A transaction that is still open would change this offset. The consumer waits and retries.
THROTTLING_QUOTA_EXCEEDED
    The client changes topics faster than its quota allows. The client can continue after the
    throttle time.
PRODUCER_FENCED
    A newer producer uses the same transactional id, so this producer must stop.
RESOURCE_NOT_FOUND
    The requested resource, such as a user's SCRAM credentials, does not exist.
DUPLICATE_RESOURCE
    The request contains the same resource twice.
UNACCEPTABLE_CREDENTIAL
    A SCRAM credential was rejected: its user name is empty, or its number of iterations is too low
    or too high.
INCONSISTENT_VOTER_SET
    Two controllers disagree about the voters of the quorum.
INVALID_UPDATE_VERSION
    A feature cannot be changed to this version.
FEATURE_UPDATE_FAILED
    The features of the cluster could not be changed. The controller's log contains the reason.
PRINCIPAL_DESERIALIZATION_FAILURE
    The controller could not read the principal of a forwarded request.
SNAPSHOT_NOT_FOUND
    The controller has no such snapshot of the metadata.
POSITION_OUT_OF_RANGE
    The requested position is beyond the end of the snapshot.
UNKNOWN_TOPIC_ID
    This broker knows no topic with this id: the topic was created very recently, or it was deleted
    and perhaps created again.
DUPLICATE_BROKER_REGISTRATION
    A broker with this id is already running. Two brokers have the same node.id.
BROKER_ID_NOT_REGISTERED
    The controllers know no broker with this id.
INCONSISTENT_TOPIC_ID
    The broker has a topic with this name but a different id: the topic was deleted and created
    again.
INCONSISTENT_CLUSTER_ID
    The request is for another cluster: a node or client uses the address of the wrong cluster.
TRANSACTIONAL_ID_NOT_FOUND
    The coordinator knows no such transactional id.
FETCH_SESSION_TOPIC_ID_ERROR
    A fetch session began with topic names and continued with ids, or vice versa. The client starts
    another session.
INELIGIBLE_REPLICA
    A leader tried to add a replica to the ISR, but the controller does not allow it, because the
    replica's broker is fenced or shutting down.
NEW_LEADER_ELECTED
    This is not a failure. The leader's request succeeded, and another broker now leads the
    partition.
OFFSET_MOVED_TO_TIERED_STORAGE
    The records at this offset are now only in remote storage. A follower does not fetch these
    records; it continues with the records in the leader's local log.
FENCED_MEMBER_EPOCH
    The coordinator has fenced the member. The member gives up its partitions and joins again.
UNRELEASED_INSTANCE_ID
    The member that uses this group.instance.id has not left the group yet.
UNSUPPORTED_ASSIGNOR
    The brokers do not provide the assignor that the member requests.
STALE_MEMBER_EPOCH
    The member used an old epoch. The response to the member's next heartbeat contains the new
    epoch.
MISMATCHED_ENDPOINT_TYPE
    A request for controllers reached a broker, or a request for brokers reached a controller.
UNSUPPORTED_ENDPOINT_TYPE
    The broker does not recognize this type of endpoint.
UNKNOWN_CONTROLLER_ID
    No controller has this id.
UNKNOWN_SUBSCRIPTION_ID
    The broker's subscription to a client's metrics has changed. The client requests the
    subscription again.
TELEMETRY_TOO_LARGE
    A client pushed more metrics data than the broker accepts.
INVALID_REGISTRATION
    The controller rejects the broker: its settings, directories or features do not match the
    cluster.
TRANSACTION_ABORTABLE
    The transaction cannot be completed. The producer aborts the transaction and can then continue
    with the next one.
INVALID_RECORD_STATE
    A record of a share group cannot be acknowledged: its lock expired, or it was already
    acknowledged.
SHARE_SESSION_NOT_FOUND
    The broker has dropped this share session. The client starts another share session.
INVALID_SHARE_SESSION_EPOCH
    A request contains the wrong epoch for its share session. The client starts another session.
FENCED_STATE_EPOCH
    The writer of a share group's state has been replaced.
INVALID_VOTER_KEY
    The request reached a controller other than the intended voter: the id or the directory
    differs.
DUPLICATE_VOTER
    The controller is already a voter of the quorum.
VOTER_NOT_FOUND
    This controller is not a voter of the quorum.
INVALID_REGULAR_EXPRESSION
    The broker cannot parse the topic pattern as a regular expression.
REBOOTSTRAP_REQUIRED
    The client's metadata is too old to use. The client starts again from its bootstrap servers.
STREAMS_INVALID_TOPOLOGY
    The broker rejects the topology of a Streams application.
STREAMS_INVALID_TOPOLOGY_EPOCH
    The topology epoch in the request is not valid for the Streams group.
STREAMS_TOPOLOGY_FENCED
    The Streams group uses a newer topology than this member.
SHARE_SESSION_LIMIT_REACHED
    The broker has reached its limit on share sessions. Retry after another share session has
    ended.
GROUP_DELETION_FAILED
    The group could not be deleted. The coordinator's log contains the reason.
STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    The description of a Streams topology could not be stored.
CONTROLLER_ID_NOT_REGISTERED
    No controller with this id is registered in the quorum.
"""


def _read(text: str) -> dict[str, str]:
    meanings: dict[str, str] = {}
    name = ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            meanings[name] = f"{meanings[name]} {line.strip()}".strip()
        else:
            name = line
            meanings[name] = ""
    return meanings


MEANINGS: Final = _read(_TEXT)
"""The meaning of each error code, by name.

>>> MEANINGS["TOPIC_ALREADY_EXISTS"]
'A topic with this name already exists.'
"""
