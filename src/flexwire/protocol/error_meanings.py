"""The meaning of error codes and their remedies, in flexwire's own words.

A name says little to a person who sees it for the first time. In a report, a client that handles a
code by itself looks broken to a person who does not know that.
"""

from __future__ import annotations

from typing import Final

# A name is at the margin, with its meaning beneath; names in lower case are settings.
_TEXT: Final = """
UNKNOWN_SERVER_ERROR
    The broker failed in a way that it has no code for; its log says how.
NONE
    Nothing failed.
OFFSET_OUT_OF_RANGE
    The partition has no record at this offset: retention removed it, or nobody wrote it yet. A
    consumer goes where auto.offset.reset says.
CORRUPT_MESSAGE
    A record batch is damaged: its crc, size or layout is wrong. Old brokers also say it of a record
    without a key in a compacted topic.
UNKNOWN_TOPIC_OR_PARTITION
    This broker knows no such topic or partition: it does not exist, is very new, was deleted, or
    the client may not see it.
INVALID_FETCH_SIZE
    A fetch asked for an impossible number of bytes.
LEADER_NOT_AVAILABLE
    The partition has no leader right now: one is being elected, or all replicas are down.
NOT_LEADER_OR_FOLLOWER
    Another broker leads this partition. The client's metadata is old, and it asks for new ones.
REQUEST_TIMED_OUT
    The broker was not done in the time that the request gave it. What was asked may have happened
    nevertheless.
BROKER_NOT_AVAILABLE
    The broker that is needed is not running, or there is none with this id.
REPLICA_NOT_AVAILABLE
    This broker has no copy of the partition that it could serve. In metadata it only says that a
    replica is down.
MESSAGE_TOO_LARGE
    A record batch is larger than max.message.bytes of the topic. Make batches smaller, or allow
    more.
STALE_CONTROLLER_EPOCH
    An order came from a controller that another has replaced since.
OFFSET_METADATA_TOO_LARGE
    The text committed beside an offset is longer than offset.metadata.max.bytes.
NETWORK_EXCEPTION
    The connection ended before the answer had come. Clients say it; brokers do not send it.
COORDINATOR_LOAD_IN_PROGRESS
    This broker has just become the coordinator, and still reads what it has to know from its log.
COORDINATOR_NOT_AVAILABLE
    There is no coordinator right now: its topic is being made, or that topic's partition has no
    leader.
NOT_COORDINATOR
    Another broker coordinates this group or transactional id. FindCoordinator says which, and
    clients ask.
INVALID_TOPIC_EXCEPTION
    No topic can have this name, or it is an internal topic that clients must not touch.
RECORD_LIST_TOO_LARGE
    The batches for a partition are larger than one segment of its log may be (segment.bytes).
NOT_ENOUGH_REPLICAS
    Fewer replicas are in sync than min.insync.replicas asks for. Nothing was written.
NOT_ENOUGH_REPLICAS_AFTER_APPEND
    The records were written, then fewer replicas were in sync than min.insync.replicas asks for.
    Without idempotence another try writes them twice.
INVALID_REQUIRED_ACKS
    A producer asked for acks other than 0, 1 and all.
ILLEGAL_GENERATION
    The group has rebalanced since this member last heard of it. The member joins again.
INCONSISTENT_GROUP_PROTOCOL
    The member has no assignor or protocol type in common with the others of its group.
INVALID_GROUP_ID
    The group id is empty, or not one that this request can be about.
UNKNOWN_MEMBER_ID
    The coordinator has no such member: its session ran out, or it left. It joins again as a new
    one.
INVALID_SESSION_TIMEOUT
    The session timeout is not between group.min.session.timeout.ms and group.max.session.timeout.ms
    of the broker.
REBALANCE_IN_PROGRESS
    The group is sharing out its partitions anew, and the member has to join again. Clients do; it
    is part of every rebalance.
INVALID_COMMIT_OFFSET_SIZE
    A commit of offsets is too large to be written down.
TOPIC_AUTHORIZATION_FAILED
    The principal may not do this with the topic; an ACL for it is missing.
GROUP_AUTHORIZATION_FAILED
    The principal may not do this with the group; an ACL for it is missing.
CLUSTER_AUTHORIZATION_FAILED
    The principal may not do this with the cluster; an ACL for it is missing.
INVALID_TIMESTAMP
    A record's timestamp is farther from the broker's clock than the topic allows.
UNSUPPORTED_SASL_MECHANISM
    The broker does not have this SASL mechanism on the listener; its answer lists those it has.
ILLEGAL_SASL_STATE
    A request of the SASL handshake came where the broker did not wait for one.
UNSUPPORTED_VERSION
    The broker does not read this version of the request. An ApiVersions response says which it
    reads.
TOPIC_ALREADY_EXISTS
    There is a topic with this name already.
INVALID_PARTITIONS
    The number of partitions is below 1, or not above what the topic has.
INVALID_REPLICATION_FACTOR
    The replication factor is below 1, or there are fewer brokers than that.
INVALID_REPLICA_ASSIGNMENT
    The brokers given for the replicas do not fit: one is unknown or named twice, or there are too
    few.
INVALID_CONFIG
    There is no such setting, or it does not take this value.
NOT_CONTROLLER
    Another node is the active controller. Clients look up which and ask there.
INVALID_REQUEST
    The values of the request do not fit together, or the broker could not read it; its log says
    why.
UNSUPPORTED_FOR_MESSAGE_FORMAT
    The topic keeps its records in an old format that has no place for what was asked.
POLICY_VIOLATION
    A rule that the operators of the cluster wrote refuses this topic or setting.
OUT_OF_ORDER_SEQUENCE_NUMBER
    A batch of an idempotent producer skipped sequence numbers: the one before it was lost.
DUPLICATE_SEQUENCE_NUMBER
    The broker wrote this batch before. The producer takes it as done.
INVALID_PRODUCER_EPOCH
    A newer producer works under the same id, or the transaction ran out of time. The producer has
    to abort and begin anew.
INVALID_TXN_STATE
    The transaction is not in a state in which this can be asked.
INVALID_PRODUCER_ID_MAPPING
    The transactional id does not belong to this producer id; it may have expired. Initialize the
    producer again.
INVALID_TRANSACTION_TIMEOUT
    The transaction wants more time than transaction.max.timeout.ms of the broker.
CONCURRENT_TRANSACTIONS
    The transaction before this one is still being completed. Clients wait and ask again.
TRANSACTION_COORDINATOR_FENCED
    A transaction marker came from a coordinator that another has replaced since.
TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    The principal may not use this transactional id; an ACL for it is missing.
SECURITY_DISABLED
    The cluster has no authorizer, and so no ACLs.
OPERATION_NOT_ATTEMPTED
    Another part of the same request failed first, and this one was left undone.
KAFKA_STORAGE_ERROR
    The broker's disk failed under this partition. Another replica takes over if there is one.
LOG_DIR_NOT_FOUND
    The broker has no log directory of this path.
SASL_AUTHENTICATION_FAILED
    The broker refused the credentials.
UNKNOWN_PRODUCER_ID
    The broker has forgotten this producer, as all its records were removed or it was silent for
    long. Newer clients begin anew by themselves.
REASSIGNMENT_IN_PROGRESS
    The partition is already being moved to other brokers.
DELEGATION_TOKEN_AUTH_DISABLED
    The brokers were given no secret for delegation tokens (delegation.token.secret.key).
DELEGATION_TOKEN_NOT_FOUND
    There is no such delegation token; it may have expired.
DELEGATION_TOKEN_OWNER_MISMATCH
    Only its owner and its renewers may change this delegation token.
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    Delegation tokens are given out on authenticated connections only, and not to those that logged
    in by such a token.
DELEGATION_TOKEN_AUTHORIZATION_FAILED
    The principal may not do this with delegation tokens; an ACL for it is missing.
DELEGATION_TOKEN_EXPIRED
    The delegation token is past its time.
INVALID_PRINCIPAL_TYPE
    The type of a principal is not one that the cluster has; "User" is.
NON_EMPTY_GROUP
    The group still has members; stop them first.
GROUP_ID_NOT_FOUND
    There is no such group.
FETCH_SESSION_ID_NOT_FOUND
    The broker has let go of this fetch session. The client begins another; a few of these are
    usual.
INVALID_FETCH_SESSION_EPOCH
    A fetch was not the next one of its session. The client begins another session.
LISTENER_NOT_FOUND
    The partition's leader has no listener like the one that was asked.
TOPIC_DELETION_DISABLED
    The brokers do not let topics be deleted (delete.topic.enable).
FENCED_LEADER_EPOCH
    The partition has had a new leader that the client does not know of. It asks for new metadata.
UNKNOWN_LEADER_EPOCH
    The client knows of a newer leader than this broker does. The broker catches up.
UNSUPPORTED_COMPRESSION_TYPE
    This version of the request cannot carry a codec of these batches, as zstd in old ones.
STALE_BROKER_EPOCH
    The request is about an earlier life of a broker that has restarted since.
OFFSET_NOT_AVAILABLE
    A new leader does not know yet up to where records are safe.
MEMBER_ID_REQUIRED
    Not a failure: a client that joins a group for the first time gets a member id, and joins again
    with it.
PREFERRED_LEADER_NOT_AVAILABLE
    The replica that should lead is down or behind, so another does.
GROUP_MAX_SIZE_REACHED
    The group has as many members as group.max.size allows.
FENCED_INSTANCE_ID
    Another member has joined with the same group.instance.id; give each its own.
ELIGIBLE_LEADERS_NOT_AVAILABLE
    No replica can be made leader: those in sync are down.
ELECTION_NOT_NEEDED
    The partition has the leader that the election would give it.
NO_REASSIGNMENT_IN_PROGRESS
    The partition is not being moved, so there is nothing to cancel.
GROUP_SUBSCRIBED_TO_TOPIC
    The group reads this topic, so its offsets there cannot be deleted.
INVALID_RECORD
    The broker refuses a record, as one without a key in a compacted topic; the response says which
    and why.
UNSTABLE_OFFSET_COMMIT
    A transaction that is still open would change this offset. The consumer waits and asks again.
THROTTLING_QUOTA_EXCEEDED
    The client changes topics faster than its quota allows; it may go on after the throttle time.
PRODUCER_FENCED
    A newer producer has the same transactional id, and this one has to end.
RESOURCE_NOT_FOUND
    What was named does not exist, such as a user's SCRAM credentials.
DUPLICATE_RESOURCE
    The request names the same thing twice.
UNACCEPTABLE_CREDENTIAL
    A SCRAM credential is refused: its name is empty, or its iterations are too few or too many.
INCONSISTENT_VOTER_SET
    Two controllers do not agree on who votes in the quorum.
INVALID_UPDATE_VERSION
    A feature cannot be brought to this version.
FEATURE_UPDATE_FAILED
    The features of the cluster could not be changed; the controller's log says why.
PRINCIPAL_DESERIALIZATION_FAILURE
    The controller could not read whose request a broker forwarded.
SNAPSHOT_NOT_FOUND
    The controller has no such snapshot of the metadata.
POSITION_OUT_OF_RANGE
    The snapshot has fewer bytes than the position asked for.
UNKNOWN_TOPIC_ID
    This broker knows no topic of this id: it is very new, or was deleted, perhaps to be made again.
DUPLICATE_BROKER_REGISTRATION
    A broker with this id is alive already; two are started with one node.id.
BROKER_ID_NOT_REGISTERED
    The controllers know no broker of this id.
INCONSISTENT_TOPIC_ID
    The broker keeps a topic of this name and of another id: it was deleted and made again.
INCONSISTENT_CLUSTER_ID
    The request is for another cluster; a node or client was pointed at the wrong one.
TRANSACTIONAL_ID_NOT_FOUND
    The coordinator knows no such transactional id.
FETCH_SESSION_TOPIC_ID_ERROR
    A fetch session began with topic names and went on with ids, or the other way. The client begins
    another session.
INELIGIBLE_REPLICA
    A leader wants a replica in sync that the controller does not allow there, as it is fenced or
    shutting down.
NEW_LEADER_ELECTED
    Not a failure: the leader's request was done, and another broker leads the partition now.
OFFSET_MOVED_TO_TIERED_STORAGE
    The records at this offset are only in remote storage by now; a follower begins after them.
FENCED_MEMBER_EPOCH
    The coordinator has cut the member off. It gives up its partitions and joins again.
UNRELEASED_INSTANCE_ID
    The member that has this group.instance.id has not left the group yet.
UNSUPPORTED_ASSIGNOR
    The brokers do not have the assignor that the member asks for.
STALE_MEMBER_EPOCH
    The member used an epoch that has passed. Its next heartbeat brings the new one.
MISMATCHED_ENDPOINT_TYPE
    A request for controllers reached a broker, or one for brokers a controller.
UNSUPPORTED_ENDPOINT_TYPE
    The broker does not know this kind of endpoint.
UNKNOWN_CONTROLLER_ID
    There is no controller of this id.
UNKNOWN_SUBSCRIPTION_ID
    What the broker wants to be told of a client's metrics has changed. The client asks for it
    again.
TELEMETRY_TOO_LARGE
    A client pushed more bytes of metrics than the broker takes.
INVALID_REGISTRATION
    The controller refuses the broker: its settings, directories or features do not fit the cluster.
TRANSACTION_ABORTABLE
    The transaction cannot be completed. The producer aborts it, and can go on with the next one.
INVALID_RECORD_STATE
    A record of a share group cannot be acknowledged so: its lock ran out, or it was acknowledged
    before.
SHARE_SESSION_NOT_FOUND
    The broker has let go of this share session. The client begins another.
INVALID_SHARE_SESSION_EPOCH
    A request was not the next one of its share session. The client begins another session.
FENCED_STATE_EPOCH
    The state of a share group was written by somebody who has been replaced since.
INVALID_VOTER_KEY
    The controller that was reached is not the voter meant: its id or directory is another.
DUPLICATE_VOTER
    The controller votes in the quorum already.
VOTER_NOT_FOUND
    No such controller votes in the quorum.
INVALID_REGULAR_EXPRESSION
    The broker cannot read the pattern for topics as a regular expression.
REBOOTSTRAP_REQUIRED
    What the client knows of the cluster is too old to go by; it starts again from its bootstrap
    servers.
STREAMS_INVALID_TOPOLOGY
    The broker refuses the topology of a Streams application.
STREAMS_INVALID_TOPOLOGY_EPOCH
    The epoch of a Streams topology is not one that can come now.
STREAMS_TOPOLOGY_FENCED
    The Streams group has gone on to a newer topology; this member runs an old one.
SHARE_SESSION_LIMIT_REACHED
    The broker holds as many share sessions as it may; wait for one to end.
GROUP_DELETION_FAILED
    The group could not be deleted; the coordinator's log says why.
STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    The description of a Streams topology could not be written down.
CONTROLLER_ID_NOT_REGISTERED
    The quorum has no registration of a controller with this id.
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
'There is a topic with this name already.'
"""
