# Written by `python -m tools.pages.stubs` from the bundled catalog; do not edit.
# Editors show the docstring beneath a field, and Kafka's names can be long: hence `noqa`.
# ruff: noqa: PYI021, E501
# fmt: off

import uuid as _uuid
from typing import Literal, overload

from flexwire.codec import Message, MessageStruct

class AbortTransactionRecord(Message, kw_only=True):
    """Metadata record, api key 25; versions 0, flexible 0+; in Kafka 3.6.2 to 4.4.0."""

    reason: str | None = None
    """string, versions 0+, tagged 0+ (tag 0), nullable 0+."""

class AbortedTxn(Message, kw_only=True):
    """Data; versions 0, not flexible; in Kafka 4.4.0."""

    producer_id: int = 0
    """int64, versions 0+."""
    first_offset: int = 0
    """int64, versions 0+."""
    last_offset: int = 0
    """int64, versions 0+."""
    last_stable_offset: int = 0
    """int64, versions 0+."""

class AccessControlEntryRecord(Message, kw_only=True):
    """Metadata record, api key 18; versions 0, flexible 0+; in Kafka 3.2.3 to 4.4.0."""

    id: _uuid.UUID = ...
    """uuid, versions 0+."""
    resource_type: int = 0
    """int8, versions 0+."""
    resource_name: str = ""
    """string, versions 0+."""
    pattern_type: int = 0
    """int8, versions 0+."""
    principal: str = ""
    """string, versions 0+."""
    host: str = ""
    """string, versions 0+."""
    operation: int = 0
    """int8, versions 0+."""
    permission_type: int = 0
    """int8, versions 0+."""

class AccessControlRecord(Message, kw_only=True):
    """Metadata record, api key 6; versions 0, flexible 0+; in Kafka 2.8.2 to 3.4.1."""

    resource_type: int = 0
    """int8, versions 0+."""
    resource_name: str | None = ""
    """string, versions 0+, nullable 0+."""
    pattern_type: int = 0
    """int8, versions 0+."""
    principal: str = ""
    """string, versions 0+."""
    host: str = ""
    """string, versions 0+."""
    operation: int = 0
    """int8, versions 0+."""
    permission_type: int = 0
    """int8, versions 0+."""

class AddOffsetsToTxnRequest(Message, kw_only=True):
    """Request, api key 25; versions 0-4, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    transactional_id: str = ""
    """string, versions 0+."""
    producer_id: int = 0
    """int64, versions 0+."""
    producer_epoch: int = 0
    """int16, versions 0+."""
    group_id: str = ""
    """string, versions 0+."""

class AddOffsetsToTxnResponse(Message, kw_only=True):
    """Response, api key 25; versions 0-4, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""

class AddPartitionsToTxnRequest(Message, kw_only=True):
    """Request, api key 24; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class AddPartitionsToTxnTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class AddPartitionsToTxnTransaction(MessageStruct, kw_only=True):
        transactional_id: str = ""
        """string, versions 4+."""
        producer_id: int = 0
        """int64, versions 4+."""
        producer_epoch: int = 0
        """int16, versions 4+."""
        verify_only: bool = False
        """bool, versions 4+."""
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...
        """[]AddPartitionsToTxnTopic, versions 4+."""

    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...
    """[]AddPartitionsToTxnTransaction, versions 4+."""
    v3_and_below_transactional_id: str = ""
    """string, versions 0-3."""
    v3_and_below_producer_id: int = 0
    """int64, versions 0-3."""
    v3_and_below_producer_epoch: int = 0
    """int16, versions 0-3."""
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...
    """[]AddPartitionsToTxnTopic, versions 0-3."""

class AddPartitionsToTxnResponse(Message, kw_only=True):
    """Response, api key 24; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class AddPartitionsToTxnTopicResult(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...
        """[]AddPartitionsToTxnPartitionResult, versions 0+."""

    class AddPartitionsToTxnPartitionResult(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        partition_error_code: int = 0
        """int16, versions 0+."""

    class AddPartitionsToTxnResult(MessageStruct, kw_only=True):
        transactional_id: str = ""
        """string, versions 4+."""
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...
        """[]AddPartitionsToTxnTopicResult, versions 4+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 4+, ignorable."""
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...
    """[]AddPartitionsToTxnResult, versions 4+."""
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...
    """[]AddPartitionsToTxnTopicResult, versions 0-3."""

class AddRaftVoterRequest(Message, kw_only=True):
    """Request, api key 80; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class Listener(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    cluster_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    timeout_ms: int = 0
    """int32, versions 0+."""
    voter_id: int = 0
    """int32, versions 0+."""
    voter_directory_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    listeners: list[AddRaftVoterRequest.Listener] = ...
    """[]Listener, versions 0+."""
    ack_when_committed: bool = True
    """bool, versions 1+."""

class AddRaftVoterResponse(Message, kw_only=True):
    """Response, api key 80; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+, ignorable."""

class AllocateProducerIdsRequest(Message, kw_only=True):
    """Request, api key 67; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""

class AllocateProducerIdsResponse(Message, kw_only=True):
    """Response, api key 67; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    producer_id_start: int = 0
    """int64, versions 0+."""
    producer_id_len: int = 0
    """int32, versions 0+."""

class AlterClientQuotasRequest(Message, kw_only=True):
    """Request, api key 49; versions 0-1, flexible 1+; in Kafka 2.6.3 to 4.4.0."""

    class EntryData(MessageStruct, kw_only=True):
        entity: list[AlterClientQuotasRequest.EntityData] = ...
        """[]EntityData, versions 0+."""
        ops: list[AlterClientQuotasRequest.OpData] = ...
        """[]OpData, versions 0+."""

    class EntityData(MessageStruct, kw_only=True):
        entity_type: str = ""
        """string, versions 0+."""
        entity_name: str | None = ""
        """string, versions 0+, nullable 0+."""

    class OpData(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: float = 0.0
        """float64, versions 0+."""
        remove: bool = False
        """bool, versions 0+."""

    entries: list[AlterClientQuotasRequest.EntryData] = ...
    """[]EntryData, versions 0+."""
    validate_only: bool = False
    """bool, versions 0+."""

class AlterClientQuotasResponse(Message, kw_only=True):
    """Response, api key 49; versions 0-1, flexible 1+; in Kafka 2.6.3 to 4.4.0."""

    class EntryData(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        entity: list[AlterClientQuotasResponse.EntityData] = ...
        """[]EntityData, versions 0+."""

    class EntityData(MessageStruct, kw_only=True):
        entity_type: str = ""
        """string, versions 0+."""
        entity_name: str | None = ""
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    entries: list[AlterClientQuotasResponse.EntryData] = ...
    """[]EntryData, versions 0+."""

class AlterConfigsRequest(Message, kw_only=True):
    """Request, api key 33; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class AlterConfigsResource(MessageStruct, kw_only=True):
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        configs: list[AlterConfigsRequest.AlterableConfig] = ...
        """[]AlterableConfig, versions 0+."""

    class AlterableConfig(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        value: str | None = ""
        """string, versions 0+, nullable 0+."""

    resources: list[AlterConfigsRequest.AlterConfigsResource] = ...
    """[]AlterConfigsResource, versions 0+."""
    validate_only: bool = False
    """bool, versions 0+."""

class AlterConfigsResponse(Message, kw_only=True):
    """Response, api key 33; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class AlterConfigsResourceResponse(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ...
    """[]AlterConfigsResourceResponse, versions 0+."""

class AlterIsrRequest(Message, kw_only=True):
    """Request, api key 56; versions 0, flexible 0+; in Kafka 2.7.2 to 3.1.2."""

    class TopicData(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[AlterIsrRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        new_isr: list[int] = ...
        """[]int32, versions 0+."""
        current_isr_version: int = 0
        """int32, versions 0+."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""
    topics: list[AlterIsrRequest.TopicData] = ...
    """[]TopicData, versions 0+."""

class AlterIsrResponse(Message, kw_only=True):
    """Response, api key 56; versions 0, flexible 0+; in Kafka 2.7.2 to 3.1.2."""

    class TopicData(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[AlterIsrResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        isr: list[int] = ...
        """[]int32, versions 0+."""
        current_isr_version: int = 0
        """int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    topics: list[AlterIsrResponse.TopicData] = ...
    """[]TopicData, versions 0+."""

class AlterPartitionReassignmentsRequest(Message, kw_only=True):
    """Request, api key 45; versions 0-1, flexible 0+; in Kafka 2.4.1 to 4.4.0."""

    class ReassignableTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...
        """[]ReassignablePartition, versions 0+."""

    class ReassignablePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        replicas: list[int] | None = None
        """[]int32, versions 0+, nullable 0+."""

    timeout_ms: int = 60000
    """int32, versions 0+."""
    allow_replication_factor_change: bool = True
    """bool, versions 1+."""
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ...
    """[]ReassignableTopic, versions 0+."""

class AlterPartitionReassignmentsResponse(Message, kw_only=True):
    """Response, api key 45; versions 0-1, flexible 0+; in Kafka 2.4.1 to 4.4.0."""

    class ReassignableTopicResponse(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...
        """[]ReassignablePartitionResponse, versions 0+."""

    class ReassignablePartitionResponse(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    allow_replication_factor_change: bool = True
    """bool, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ...
    """[]ReassignableTopicResponse, versions 0+."""

class AlterPartitionRequest(Message, kw_only=True):
    """Request, api key 56; versions 0-3, flexible 0+; in Kafka 3.2.3 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 2+, ignorable."""
        partitions: list[AlterPartitionRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""
        topic_name: str = ""
        """string, versions 0-1, ignorable."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        new_isr: list[int] = ...
        """[]int32, versions 0-2."""
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ...
        """[]BrokerState, versions 3+."""
        leader_recovery_state: int = 0
        """int8, versions 1+."""
        partition_epoch: int = 0
        """int32, versions 0+."""

    class BrokerState(MessageStruct, kw_only=True):
        broker_id: int = 0
        """int32, versions 3+."""
        broker_epoch: int = -1
        """int64, versions 3+."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""
    topics: list[AlterPartitionRequest.TopicData] = ...
    """[]TopicData, versions 0+."""

class AlterPartitionResponse(Message, kw_only=True):
    """Response, api key 56; versions 0-3, flexible 0+; in Kafka 3.2.3 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 2+, ignorable."""
        partitions: list[AlterPartitionResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""
        topic_name: str = ""
        """string, versions 0-1, ignorable."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        isr: list[int] = ...
        """[]int32, versions 0+."""
        leader_recovery_state: int = 0
        """int8, versions 1+, ignorable."""
        partition_epoch: int = 0
        """int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    topics: list[AlterPartitionResponse.TopicData] = ...
    """[]TopicData, versions 0+."""

class AlterReplicaLogDirsRequest(Message, kw_only=True):
    """Request, api key 34; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class AlterReplicaLogDir(MessageStruct, kw_only=True):
        path: str = ""
        """string, versions 0+."""
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...
        """[]AlterReplicaLogDirTopic, versions 0+."""

    class AlterReplicaLogDirTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...
    """[]AlterReplicaLogDir, versions 0+."""

class AlterReplicaLogDirsResponse(Message, kw_only=True):
    """Response, api key 34; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class AlterReplicaLogDirTopicResult(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...
        """[]AlterReplicaLogDirPartitionResult, versions 0+."""

    class AlterReplicaLogDirPartitionResult(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...
    """[]AlterReplicaLogDirTopicResult, versions 0+."""

class AlterShareGroupOffsetsRequest(Message, kw_only=True):
    """Request, api key 91; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class AlterShareGroupOffsetsRequestTopic(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...
        """[]AlterShareGroupOffsetsRequestPartition, versions 0+."""

    class AlterShareGroupOffsetsRequestPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        start_offset: int = 0
        """int64, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...
    """[]AlterShareGroupOffsetsRequestTopic, versions 0+."""

class AlterShareGroupOffsetsResponse(Message, kw_only=True):
    """Response, api key 91; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class AlterShareGroupOffsetsResponseTopic(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...
        """[]AlterShareGroupOffsetsResponsePartition, versions 0+."""

    class AlterShareGroupOffsetsResponsePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...
    """[]AlterShareGroupOffsetsResponseTopic, versions 0+."""

class AlterUserScramCredentialsRequest(Message, kw_only=True):
    """Request, api key 51; versions 0, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class ScramCredentialDeletion(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        mechanism: int = 0
        """int8, versions 0+."""

    class ScramCredentialUpsertion(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        mechanism: int = 0
        """int8, versions 0+."""
        iterations: int = 0
        """int32, versions 0+."""
        salt: bytes = b""
        """bytes, versions 0+."""
        salted_password: bytes = b""
        """bytes, versions 0+."""

    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...
    """[]ScramCredentialDeletion, versions 0+."""
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...
    """[]ScramCredentialUpsertion, versions 0+."""

class AlterUserScramCredentialsResponse(Message, kw_only=True):
    """Response, api key 51; versions 0, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class AlterUserScramCredentialsResult(MessageStruct, kw_only=True):
        user: str = ""
        """string, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...
    """[]AlterUserScramCredentialsResult, versions 0+."""

class ApiVersionsRequest(Message, kw_only=True):
    """Request, api key 18; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    client_software_name: str = ""
    """string, versions 3+, ignorable."""
    client_software_version: str = ""
    """string, versions 3+, ignorable."""
    cluster_id: str | None = None
    """string, versions 5+, nullable 5+, ignorable."""
    node_id: int = -1
    """int32, versions 5+, ignorable."""

class ApiVersionsResponse(Message, kw_only=True):
    """Response, api key 18; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class ApiVersion(MessageStruct, kw_only=True):
        api_key: int = 0
        """int16, versions 0+."""
        min_version: int = 0
        """int16, versions 0+."""
        max_version: int = 0
        """int16, versions 0+."""

    class SupportedFeatureKey(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 3+."""
        min_version: int = 0
        """int16, versions 3+."""
        max_version: int = 0
        """int16, versions 3+."""

    class FinalizedFeatureKey(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 3+."""
        max_version_level: int = 0
        """int16, versions 3+."""
        min_version_level: int = 0
        """int16, versions 3+."""

    error_code: int = 0
    """int16, versions 0+."""
    api_keys: list[ApiVersionsResponse.ApiVersion] = ...
    """[]ApiVersion, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ...
    """[]SupportedFeatureKey, versions 3+, tagged 3+ (tag 0), ignorable."""
    finalized_features_epoch: int = -1
    """int64, versions 3+, tagged 3+ (tag 1), ignorable."""
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ...
    """[]FinalizedFeatureKey, versions 3+, tagged 3+ (tag 2), ignorable."""
    zk_migration_ready: bool = False
    """bool, versions 3+, tagged 3+ (tag 3), ignorable."""

class AssignReplicasToDirsRequest(Message, kw_only=True):
    """Request, api key 73; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    class DirectoryData(MessageStruct, kw_only=True):
        id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topics: list[AssignReplicasToDirsRequest.TopicData] = ...
        """[]TopicData, versions 0+."""

    class TopicData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""
    directories: list[AssignReplicasToDirsRequest.DirectoryData] = ...
    """[]DirectoryData, versions 0+."""

class AssignReplicasToDirsResponse(Message, kw_only=True):
    """Response, api key 73; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    class DirectoryData(MessageStruct, kw_only=True):
        id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topics: list[AssignReplicasToDirsResponse.TopicData] = ...
        """[]TopicData, versions 0+."""

    class TopicData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    directories: list[AssignReplicasToDirsResponse.DirectoryData] = ...
    """[]DirectoryData, versions 0+."""

class BeginQuorumEpochRequest(Message, kw_only=True):
    """Request, api key 53; versions 0-1, flexible 1+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[BeginQuorumEpochRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        voter_directory_id: _uuid.UUID = ...
        """uuid, versions 1+, ignorable."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    class LeaderEndpoint(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        port: int = 0
        """uint16, versions 1+."""

    cluster_id: str | None = None
    """string, versions 0+, nullable 0+."""
    voter_id: int = -1
    """int32, versions 1+, ignorable."""
    topics: list[BeginQuorumEpochRequest.TopicData] = ...
    """[]TopicData, versions 0+."""
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ...
    """[]LeaderEndpoint, versions 1+, ignorable."""

class BeginQuorumEpochResponse(Message, kw_only=True):
    """Response, api key 53; versions 0-1, flexible 1+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[BeginQuorumEpochResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        port: int = 0
        """uint16, versions 1+."""

    error_code: int = 0
    """int16, versions 0+."""
    topics: list[BeginQuorumEpochResponse.TopicData] = ...
    """[]TopicData, versions 0+."""
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 1+, tagged 1+ (tag 0)."""

class BeginTransactionRecord(Message, kw_only=True):
    """Metadata record, api key 23; versions 0, flexible 0+; in Kafka 3.6.2 to 4.4.0."""

    name: str | None = None
    """string, versions 0+, tagged 0+ (tag 0), nullable 0+."""

class BrokerHeartbeatRequest(Message, kw_only=True):
    """Request, api key 63; versions 0-2, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""
    current_metadata_offset: int = 0
    """int64, versions 0+."""
    want_fence: bool = False
    """bool, versions 0+."""
    want_shut_down: bool = False
    """bool, versions 0+."""
    offline_log_dirs: list[_uuid.UUID] = ...
    """[]uuid, versions 1+, tagged 1+ (tag 0)."""
    cordoned_log_dirs: list[_uuid.UUID] | None = None
    """[]uuid, versions 2+, tagged 2+ (tag 1), nullable 2+."""

class BrokerHeartbeatResponse(Message, kw_only=True):
    """Response, api key 63; versions 0-2, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    is_caught_up: bool = False
    """bool, versions 0+."""
    is_fenced: bool = True
    """bool, versions 0+."""
    should_shut_down: bool = False
    """bool, versions 0+."""

class BrokerRegistrationChangeRecord(Message, kw_only=True):
    """Metadata record, api key 17; versions 0-3, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = 0
    """int64, versions 0+."""
    fenced: int = 0
    """int8, versions 0+, tagged 0+ (tag 0)."""
    in_controlled_shutdown: int = 0
    """int8, versions 1+, tagged 1+ (tag 1)."""
    log_dirs: list[_uuid.UUID] = ...
    """[]uuid, versions 2+, tagged 2+ (tag 2)."""
    cordoned_log_dirs: list[_uuid.UUID] | None = None
    """[]uuid, versions 3+, tagged 3+ (tag 3), nullable 3+."""

class BrokerRegistrationRequest(Message, kw_only=True):
    """Request, api key 62; versions 0-4, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class Listener(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""
        security_protocol: int = 0
        """int16, versions 0+."""

    class Feature(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        min_supported_version: int = 0
        """int16, versions 0+."""
        max_supported_version: int = 0
        """int16, versions 0+."""

    broker_id: int = 0
    """int32, versions 0+."""
    cluster_id: str = ""
    """string, versions 0+."""
    incarnation_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    listeners: list[BrokerRegistrationRequest.Listener] = ...
    """[]Listener, versions 0+."""
    features: list[BrokerRegistrationRequest.Feature] = ...
    """[]Feature, versions 0+."""
    rack: str | None = ""
    """string, versions 0+, nullable 0+."""
    is_migrating_zk_broker: bool = False
    """bool, versions 1+."""
    log_dirs: list[_uuid.UUID] = ...
    """[]uuid, versions 2+, ignorable."""
    previous_broker_epoch: int = -1
    """int64, versions 3+, ignorable."""

class BrokerRegistrationResponse(Message, kw_only=True):
    """Response, api key 62; versions 0-4, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""

class ClearElrRecord(Message, kw_only=True):
    """Metadata record, api key 28; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    topic_name: str = ""
    """string, versions 0+."""

class ClientQuotaRecord(Message, kw_only=True):
    """Metadata record, api key 14; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    class EntityData(MessageStruct, kw_only=True):
        entity_type: str = ""
        """string, versions 0+."""
        entity_name: str | None = ""
        """string, versions 0+, nullable 0+."""

    entity: list[ClientQuotaRecord.EntityData] = ...
    """[]EntityData, versions 0+."""
    key: str = ""
    """string, versions 0+."""
    value: float = 0.0
    """float64, versions 0+."""
    remove: bool = False
    """bool, versions 0+."""

class ConfigRecord(Message, kw_only=True):
    """Metadata record, api key 4; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    resource_type: int = 0
    """int8, versions 0+."""
    resource_name: str = ""
    """string, versions 0+."""
    name: str = ""
    """string, versions 0+."""
    value: str | None = ""
    """string, versions 0+, nullable 0+."""

class ConsumerGroupCurrentMemberAssignmentKey(Message, kw_only=True):
    """Coordinator-key, api key 8; versions 0,8, not flexible; in Kafka 3.5.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,8."""
    member_id: str = ""
    """string, versions 0,8."""

class ConsumerGroupCurrentMemberAssignmentValue(Message, kw_only=True):
    """Coordinator-value, api key 8; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""
        assignment_epochs: list[int] | None = ...
        """[]int32, versions 0+, tagged 0+ (tag 0), nullable 0+."""

    member_epoch: int = 0
    """int32, versions 0+."""
    previous_member_epoch: int = 0
    """int32, versions 0+."""
    state: int = 0
    """int8, versions 0+."""
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...
    """[]TopicPartitions, versions 0+."""
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...
    """[]TopicPartitions, versions 0+."""

class ConsumerGroupDescribeRequest(Message, kw_only=True):
    """Request, api key 69; versions 0-1, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    group_ids: list[str] = ...
    """[]string, versions 0+."""
    include_authorized_operations: bool = False
    """bool, versions 0+."""

class ConsumerGroupDescribeResponse(Message, kw_only=True):
    """Response, api key 69; versions 0-1, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class Assignment(MessageStruct, kw_only=True):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ...
        """[]TopicPartitions, versions 0+."""

    class DescribedGroup(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        group_id: str = ""
        """string, versions 0+."""
        group_state: str = ""
        """string, versions 0+."""
        group_epoch: int = 0
        """int32, versions 0+."""
        assignment_epoch: int = 0
        """int32, versions 0+."""
        assignor_name: str = ""
        """string, versions 0+."""
        members: list[ConsumerGroupDescribeResponse.Member] = ...
        """[]Member, versions 0+."""
        authorized_operations: int = ...
        """int32, versions 0+."""

    class Member(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        instance_id: str | None = None
        """string, versions 0+, nullable 0+."""
        rack_id: str | None = None
        """string, versions 0+, nullable 0+."""
        member_epoch: int = 0
        """int32, versions 0+."""
        client_id: str = ""
        """string, versions 0+."""
        client_host: str = ""
        """string, versions 0+."""
        subscribed_topic_names: list[str] = ...
        """[]string, versions 0+."""
        subscribed_topic_regex: str | None = None
        """string, versions 0+, nullable 0+."""
        assignment: ConsumerGroupDescribeResponse.Assignment = ...
        """Assignment, versions 0+."""
        target_assignment: ConsumerGroupDescribeResponse.Assignment = ...
        """Assignment, versions 0+."""
        member_type: int = -1
        """int8, versions 1+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ...
    """[]DescribedGroup, versions 0+."""

class ConsumerGroupHeartbeatRequest(Message, kw_only=True):
    """Request, api key 68; versions 0-1, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    member_id: str = ""
    """string, versions 0+."""
    member_epoch: int = 0
    """int32, versions 0+."""
    instance_id: str | None = None
    """string, versions 0+, nullable 0+."""
    rack_id: str | None = None
    """string, versions 0+, nullable 0+."""
    rebalance_timeout_ms: int = -1
    """int32, versions 0+."""
    subscribed_topic_names: list[str] | None = None
    """[]string, versions 0+, nullable 0+."""
    subscribed_topic_regex: str | None = None
    """string, versions 1+, nullable 1+."""
    server_assignor: str | None = None
    """string, versions 0+, nullable 0+."""
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None
    """[]TopicPartitions, versions 0+, nullable 0+."""

class ConsumerGroupHeartbeatResponse(Message, kw_only=True):
    """Response, api key 68; versions 0-1, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class Assignment(MessageStruct, kw_only=True):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...
        """[]TopicPartitions, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    member_id: str | None = None
    """string, versions 0+, nullable 0+."""
    member_epoch: int = 0
    """int32, versions 0+."""
    heartbeat_interval_ms: int = 0
    """int32, versions 0+."""
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None
    """Assignment, versions 0+, nullable 0+."""

class ConsumerGroupMemberMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 5; versions 0,5, not flexible; in Kafka 3.5.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,5."""
    member_id: str = ""
    """string, versions 0,5."""

class ConsumerGroupMemberMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 5; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    class ClassicMemberMetadata(MessageStruct, kw_only=True):
        session_timeout_ms: int = 0
        """int32, versions 0+."""
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = ...
        """[]ClassicProtocol, versions 0+."""

    class ClassicProtocol(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        metadata: bytes = b""
        """bytes, versions 0+."""

    instance_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    rack_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    client_id: str = ""
    """string, versions 0+."""
    client_host: str = ""
    """string, versions 0+."""
    subscribed_topic_names: list[str] = ...
    """[]string, versions 0+."""
    subscribed_topic_regex: str | None = ""
    """string, versions 0+, nullable 0+."""
    rebalance_timeout_ms: int = -1
    """int32, versions 0+."""
    server_assignor: str | None = ""
    """string, versions 0+, nullable 0+."""
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = ...
    """ClassicMemberMetadata, versions 0+, tagged 0+ (tag 0), nullable 0+."""

class ConsumerGroupMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 3; versions 0,3, not flexible; in Kafka 3.5.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,3."""

class ConsumerGroupMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 3; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    epoch: int = 0
    """int32, versions 0+."""
    metadata_hash: int = 0
    """int64, versions 0+, tagged 0+ (tag 0)."""

class ConsumerGroupPartitionMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 4; versions 0,4, not flexible; in Kafka 3.5.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,4."""

class ConsumerGroupPartitionMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 4; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    class TopicMetadata(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topic_name: str = ""
        """string, versions 0+."""
        num_partitions: int = 0
        """int32, versions 0+."""
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = ...
        """[]PartitionMetadata, versions 0+."""

    class PartitionMetadata(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        racks: list[str] = ...
        """[]string, versions 0+."""

    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = ...
    """[]TopicMetadata, versions 0+."""

class ConsumerGroupRegularExpressionKey(Message, kw_only=True):
    """Coordinator-key, api key 16; versions 0,16, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,16."""
    regular_expression: str = ""
    """string, versions 0,16."""

class ConsumerGroupRegularExpressionValue(Message, kw_only=True):
    """Coordinator-value, api key 16; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    topics: list[str] = ...
    """[]string, versions 0+."""
    version: int = 0
    """int64, versions 0+."""
    timestamp: int = 0
    """int64, versions 0+."""

class ConsumerGroupTargetAssignmentMemberKey(Message, kw_only=True):
    """Coordinator-key, api key 7; versions 0,7, not flexible; in Kafka 3.5.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,7."""
    member_id: str = ""
    """string, versions 0,7."""

class ConsumerGroupTargetAssignmentMemberValue(Message, kw_only=True):
    """Coordinator-value, api key 7; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    class TopicPartition(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = ...
    """[]TopicPartition, versions 0+."""

class ConsumerGroupTargetAssignmentMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 6; versions 0,6, not flexible; in Kafka 3.5.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,6."""

class ConsumerGroupTargetAssignmentMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 6; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    assignment_epoch: int = 0
    """int32, versions 0+."""
    assignment_timestamp: int = 0
    """int64, versions 0+, tagged 0+ (tag 0), ignorable."""

class ConsumerProtocolAssignment(Message, kw_only=True):
    """Data; versions 0-3, not flexible; in Kafka 2.7.2 to 4.4.0."""

    class TopicPartition(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = ...
    """[]TopicPartition, versions 0+."""
    user_data: bytes | None = None
    """bytes, versions 0+, nullable 0+."""

class ConsumerProtocolSubscription(Message, kw_only=True):
    """Data; versions 0-3, not flexible; in Kafka 2.7.2 to 4.4.0."""

    class TopicPartition(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 1+."""
        partitions: list[int] = ...
        """[]int32, versions 1+."""

    topics: list[str] = ...
    """[]string, versions 0+."""
    user_data: bytes | None = None
    """bytes, versions 0+, nullable 0+."""
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = ...
    """[]TopicPartition, versions 1+, ignorable."""
    generation_id: int = -1
    """int32, versions 2+, ignorable."""
    rack_id: str | None = None
    """string, versions 3+, nullable 3+, ignorable."""

class ControlRecordTypeSchema(Message, kw_only=True):
    """Data; versions 0, not flexible; in Kafka 4.3.1 to 4.4.0."""

    type: int = 0
    """int16, versions 0+."""

class ControlledShutdownRequest(Message, kw_only=True):
    """Request, api key 7; versions 0-3, flexible 3+; in Kafka 2.4.1 to 3.9.2."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 2+, ignorable."""

class ControlledShutdownResponse(Message, kw_only=True):
    """Response, api key 7; versions 0-3, flexible 3+; in Kafka 2.4.1 to 3.9.2."""

    class RemainingPartition(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partition_index: int = 0
        """int32, versions 0+."""

    error_code: int = 0
    """int16, versions 0+."""
    remaining_partitions: list[ControlledShutdownResponse.RemainingPartition] = ...
    """[]RemainingPartition, versions 0+."""

class ControllerRegistrationRequest(Message, kw_only=True):
    """Request, api key 70; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    class Listener(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""
        security_protocol: int = 0
        """int16, versions 0+."""

    class Feature(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        min_supported_version: int = 0
        """int16, versions 0+."""
        max_supported_version: int = 0
        """int16, versions 0+."""

    controller_id: int = 0
    """int32, versions 0+."""
    incarnation_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    zk_migration_ready: bool = False
    """bool, versions 0+."""
    listeners: list[ControllerRegistrationRequest.Listener] = ...
    """[]Listener, versions 0+."""
    features: list[ControllerRegistrationRequest.Feature] = ...
    """[]Feature, versions 0+."""

class ControllerRegistrationResponse(Message, kw_only=True):
    """Response, api key 70; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""

class CreateAclsRequest(Message, kw_only=True):
    """Request, api key 30; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class AclCreation(MessageStruct, kw_only=True):
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        resource_pattern_type: int = 3
        """int8, versions 1+."""
        principal: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        operation: int = 0
        """int8, versions 0+."""
        permission_type: int = 0
        """int8, versions 0+."""

    creations: list[CreateAclsRequest.AclCreation] = ...
    """[]AclCreation, versions 0+."""

class CreateAclsResponse(Message, kw_only=True):
    """Response, api key 30; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class AclCreationResult(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    results: list[CreateAclsResponse.AclCreationResult] = ...
    """[]AclCreationResult, versions 0+."""

class CreateDelegationTokenRequest(Message, kw_only=True):
    """Request, api key 38; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class CreatableRenewers(MessageStruct, kw_only=True):
        principal_type: str = ""
        """string, versions 0+."""
        principal_name: str = ""
        """string, versions 0+."""

    owner_principal_type: str | None = ""
    """string, versions 3+, nullable 3+."""
    owner_principal_name: str | None = ""
    """string, versions 3+, nullable 3+."""
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ...
    """[]CreatableRenewers, versions 0+."""
    max_lifetime_ms: int = 0
    """int64, versions 0+."""

class CreateDelegationTokenResponse(Message, kw_only=True):
    """Response, api key 38; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    error_code: int = 0
    """int16, versions 0+."""
    principal_type: str = ""
    """string, versions 0+."""
    principal_name: str = ""
    """string, versions 0+."""
    token_requester_principal_type: str = ""
    """string, versions 3+."""
    token_requester_principal_name: str = ""
    """string, versions 3+."""
    issue_timestamp_ms: int = 0
    """int64, versions 0+."""
    expiry_timestamp_ms: int = 0
    """int64, versions 0+."""
    max_timestamp_ms: int = 0
    """int64, versions 0+."""
    token_id: str = ""
    """string, versions 0+."""
    hmac: bytes = b""
    """bytes, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 0+."""

class CreatePartitionsRequest(Message, kw_only=True):
    """Request, api key 37; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class CreatePartitionsTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        count: int = 0
        """int32, versions 0+."""
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...
        """[]CreatePartitionsAssignment, versions 0+, nullable 0+."""

    class CreatePartitionsAssignment(MessageStruct, kw_only=True):
        broker_ids: list[int] = ...
        """[]int32, versions 0+."""

    topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ...
    """[]CreatePartitionsTopic, versions 0+."""
    timeout_ms: int = 0
    """int32, versions 0+."""
    validate_only: bool = False
    """bool, versions 0+."""

class CreatePartitionsResponse(Message, kw_only=True):
    """Response, api key 37; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class CreatePartitionsTopicResult(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...
    """[]CreatePartitionsTopicResult, versions 0+."""

class CreateTopicsRequest(Message, kw_only=True):
    """Request, api key 19; versions 0-7, flexible 5+; in Kafka 2.4.1 to 4.4.0."""

    class CreatableTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        num_partitions: int = 0
        """int32, versions 0+."""
        replication_factor: int = 0
        """int16, versions 0+."""
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ...
        """[]CreatableReplicaAssignment, versions 0+."""
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = ...
        """[]CreatableTopicConfig, versions 0+."""

    class CreatableReplicaAssignment(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        broker_ids: list[int] = ...
        """[]int32, versions 0+."""

    class CreatableTopicConfig(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        value: str | None = ""
        """string, versions 0+, nullable 0+."""

    topics: list[CreateTopicsRequest.CreatableTopic] = ...
    """[]CreatableTopic, versions 0+."""
    timeout_ms: int = 60000
    """int32, versions 0+."""
    validate_only: bool = False
    """bool, versions 1+."""

class CreateTopicsResponse(Message, kw_only=True):
    """Response, api key 19; versions 0-7, flexible 5+; in Kafka 2.4.1 to 4.4.0."""

    class CreatableTopicResult(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 7+, ignorable."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 1+, nullable 1+, ignorable."""
        topic_config_error_code: int = 0
        """int16, versions 5+, tagged 5+ (tag 0), ignorable."""
        num_partitions: int = -1
        """int32, versions 5+, ignorable."""
        replication_factor: int = -1
        """int16, versions 5+, ignorable."""
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ...
        """[]CreatableTopicConfigs, versions 5+, nullable 5+, ignorable."""

    class CreatableTopicConfigs(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 5+."""
        value: str | None = ""
        """string, versions 5+, nullable 5+."""
        read_only: bool = False
        """bool, versions 5+."""
        config_source: int = -1
        """int8, versions 5+, ignorable."""
        is_sensitive: bool = False
        """bool, versions 5+."""

    throttle_time_ms: int = 0
    """int32, versions 2+, ignorable."""
    topics: list[CreateTopicsResponse.CreatableTopicResult] = ...
    """[]CreatableTopicResult, versions 0+."""

class DefaultPrincipalData(Message, kw_only=True):
    """Data; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    type: str = ""
    """string, versions 0+."""
    name: str = ""
    """string, versions 0+."""
    token_authenticated: bool = False
    """bool, versions 0+."""

class DelegationTokenRecord(Message, kw_only=True):
    """Metadata record, api key 10; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    owner: str = ""
    """string, versions 0+."""
    requester: str = ""
    """string, versions 0+."""
    renewers: list[str] = ...
    """[]string, versions 0+."""
    issue_timestamp: int = 0
    """int64, versions 0+."""
    max_timestamp: int = 0
    """int64, versions 0+."""
    expiration_timestamp: int = 0
    """int64, versions 0+."""
    token_id: str = ""
    """string, versions 0+."""

class DeleteAclsRequest(Message, kw_only=True):
    """Request, api key 31; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DeleteAclsFilter(MessageStruct, kw_only=True):
        resource_type_filter: int = 0
        """int8, versions 0+."""
        resource_name_filter: str | None = ""
        """string, versions 0+, nullable 0+."""
        pattern_type_filter: int = 3
        """int8, versions 1+."""
        principal_filter: str | None = ""
        """string, versions 0+, nullable 0+."""
        host_filter: str | None = ""
        """string, versions 0+, nullable 0+."""
        operation: int = 0
        """int8, versions 0+."""
        permission_type: int = 0
        """int8, versions 0+."""

    filters: list[DeleteAclsRequest.DeleteAclsFilter] = ...
    """[]DeleteAclsFilter, versions 0+."""

class DeleteAclsResponse(Message, kw_only=True):
    """Response, api key 31; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DeleteAclsFilterResult(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...
        """[]DeleteAclsMatchingAcl, versions 0+."""

    class DeleteAclsMatchingAcl(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        pattern_type: int = 3
        """int8, versions 1+."""
        principal: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        operation: int = 0
        """int8, versions 0+."""
        permission_type: int = 0
        """int8, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ...
    """[]DeleteAclsFilterResult, versions 0+."""

class DeleteGroupsRequest(Message, kw_only=True):
    """Request, api key 42; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    groups_names: list[str] = ...
    """[]string, versions 0+."""

class DeleteGroupsResponse(Message, kw_only=True):
    """Response, api key 42; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DeletableGroupResult(MessageStruct, kw_only=True):
        group_id: str = ""
        """string, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 3+, nullable 3+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    results: list[DeleteGroupsResponse.DeletableGroupResult] = ...
    """[]DeletableGroupResult, versions 0+."""

class DeleteRecordsRequest(Message, kw_only=True):
    """Request, api key 21; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DeleteRecordsTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ...
        """[]DeleteRecordsPartition, versions 0+."""

    class DeleteRecordsPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        offset: int = 0
        """int64, versions 0+."""

    topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ...
    """[]DeleteRecordsTopic, versions 0+."""
    timeout_ms: int = 0
    """int32, versions 0+."""

class DeleteRecordsResponse(Message, kw_only=True):
    """Response, api key 21; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DeleteRecordsTopicResult(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...
        """[]DeleteRecordsPartitionResult, versions 0+."""

    class DeleteRecordsPartitionResult(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        low_watermark: int = 0
        """int64, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...
    """[]DeleteRecordsTopicResult, versions 0+."""

class DeleteShareGroupOffsetsRequest(Message, kw_only=True):
    """Request, api key 92; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class DeleteShareGroupOffsetsRequestTopic(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...
    """[]DeleteShareGroupOffsetsRequestTopic, versions 0+."""

class DeleteShareGroupOffsetsResponse(Message, kw_only=True):
    """Response, api key 92; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class DeleteShareGroupOffsetsResponseTopic(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...
    """[]DeleteShareGroupOffsetsResponseTopic, versions 0+."""

class DeleteShareGroupStateRequest(Message, kw_only=True):
    """Request, api key 86; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class DeleteStateData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ...
    """[]DeleteStateData, versions 0+."""

class DeleteShareGroupStateResponse(Message, kw_only=True):
    """Response, api key 86; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class DeleteStateResult(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ...
        """[]PartitionResult, versions 0+."""

    class PartitionResult(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ...
    """[]DeleteStateResult, versions 0+."""

class DeleteTopicsRequest(Message, kw_only=True):
    """Request, api key 20; versions 0-6, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class DeleteTopicState(MessageStruct, kw_only=True):
        name: str | None = None
        """string, versions 6+, nullable 6+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 6+."""

    topics: list[DeleteTopicsRequest.DeleteTopicState] = ...
    """[]DeleteTopicState, versions 6+."""
    topic_names: list[str] = ...
    """[]string, versions 0-5, ignorable."""
    timeout_ms: int = 0
    """int32, versions 0+."""

class DeleteTopicsResponse(Message, kw_only=True):
    """Response, api key 20; versions 0-6, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class DeletableTopicResult(MessageStruct, kw_only=True):
        name: str | None = ""
        """string, versions 0+, nullable 6+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 6+, ignorable."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 5+, nullable 5+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...
    """[]DeletableTopicResult, versions 0+."""

class DescribeAclsRequest(Message, kw_only=True):
    """Request, api key 29; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    resource_type_filter: int = 0
    """int8, versions 0+."""
    resource_name_filter: str | None = ""
    """string, versions 0+, nullable 0+."""
    pattern_type_filter: int = 3
    """int8, versions 1+."""
    principal_filter: str | None = ""
    """string, versions 0+, nullable 0+."""
    host_filter: str | None = ""
    """string, versions 0+, nullable 0+."""
    operation: int = 0
    """int8, versions 0+."""
    permission_type: int = 0
    """int8, versions 0+."""

class DescribeAclsResponse(Message, kw_only=True):
    """Response, api key 29; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DescribeAclsResource(MessageStruct, kw_only=True):
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        pattern_type: int = 3
        """int8, versions 1+."""
        acls: list[DescribeAclsResponse.AclDescription] = ...
        """[]AclDescription, versions 0+."""

    class AclDescription(MessageStruct, kw_only=True):
        principal: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        operation: int = 0
        """int8, versions 0+."""
        permission_type: int = 0
        """int8, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    resources: list[DescribeAclsResponse.DescribeAclsResource] = ...
    """[]DescribeAclsResource, versions 0+."""

class DescribeClientQuotasRequest(Message, kw_only=True):
    """Request, api key 48; versions 0-1, flexible 1+; in Kafka 2.6.3 to 4.4.0."""

    class ComponentData(MessageStruct, kw_only=True):
        entity_type: str = ""
        """string, versions 0+."""
        match_type: int = 0
        """int8, versions 0+."""
        match: str | None = ""
        """string, versions 0+, nullable 0+."""

    components: list[DescribeClientQuotasRequest.ComponentData] = ...
    """[]ComponentData, versions 0+."""
    strict: bool = False
    """bool, versions 0+."""

class DescribeClientQuotasResponse(Message, kw_only=True):
    """Response, api key 48; versions 0-1, flexible 1+; in Kafka 2.6.3 to 4.4.0."""

    class EntryData(MessageStruct, kw_only=True):
        entity: list[DescribeClientQuotasResponse.EntityData] = ...
        """[]EntityData, versions 0+."""
        values: list[DescribeClientQuotasResponse.ValueData] = ...
        """[]ValueData, versions 0+."""

    class EntityData(MessageStruct, kw_only=True):
        entity_type: str = ""
        """string, versions 0+."""
        entity_name: str | None = ""
        """string, versions 0+, nullable 0+."""

    class ValueData(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: float = 0.0
        """float64, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    entries: list[DescribeClientQuotasResponse.EntryData] | None = ...
    """[]EntryData, versions 0+, nullable 0+."""

class DescribeClusterRequest(Message, kw_only=True):
    """Request, api key 60; versions 0-2, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    include_cluster_authorized_operations: bool = False
    """bool, versions 0+."""
    endpoint_type: int = 1
    """int8, versions 1+."""
    include_fenced_brokers: bool = False
    """bool, versions 2+."""

class DescribeClusterResponse(Message, kw_only=True):
    """Response, api key 60; versions 0-2, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class DescribeClusterBroker(MessageStruct, kw_only=True):
        broker_id: int = 0
        """int32, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """int32, versions 0+."""
        rack: str | None = None
        """string, versions 0+, nullable 0+."""
        is_fenced: bool = False
        """bool, versions 2+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    endpoint_type: int = 1
    """int8, versions 1+."""
    cluster_id: str = ""
    """string, versions 0+."""
    controller_id: int = -1
    """int32, versions 0+."""
    brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ...
    """[]DescribeClusterBroker, versions 0+."""
    cluster_authorized_operations: int = ...
    """int32, versions 0+."""

class DescribeConfigsRequest(Message, kw_only=True):
    """Request, api key 32; versions 0-4, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class DescribeConfigsResource(MessageStruct, kw_only=True):
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        configuration_keys: list[str] | None = ...
        """[]string, versions 0+, nullable 0+."""

    resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ...
    """[]DescribeConfigsResource, versions 0+."""
    include_synonyms: bool = False
    """bool, versions 1+."""
    include_documentation: bool = False
    """bool, versions 3+."""

class DescribeConfigsResponse(Message, kw_only=True):
    """Response, api key 32; versions 0-4, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class DescribeConfigsResult(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...
        """[]DescribeConfigsResourceResult, versions 0+."""

    class DescribeConfigsResourceResult(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        value: str | None = ""
        """string, versions 0+, nullable 0+."""
        read_only: bool = False
        """bool, versions 0+."""
        config_source: int = -1
        """int8, versions 1+, ignorable."""
        is_sensitive: bool = False
        """bool, versions 0+."""
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ...
        """[]DescribeConfigsSynonym, versions 1+, ignorable."""
        config_type: int = 0
        """int8, versions 3+, ignorable."""
        documentation: str | None = ""
        """string, versions 3+, nullable 3+, ignorable."""
        is_default: bool = False
        """bool, versions 0."""

    class DescribeConfigsSynonym(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 1+."""
        value: str | None = ""
        """string, versions 1+, nullable 1+."""
        source: int = 0
        """int8, versions 1+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    results: list[DescribeConfigsResponse.DescribeConfigsResult] = ...
    """[]DescribeConfigsResult, versions 0+."""

class DescribeDelegationTokenRequest(Message, kw_only=True):
    """Request, api key 41; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DescribeDelegationTokenOwner(MessageStruct, kw_only=True):
        principal_type: str = ""
        """string, versions 0+."""
        principal_name: str = ""
        """string, versions 0+."""

    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...
    """[]DescribeDelegationTokenOwner, versions 0+, nullable 0+."""

class DescribeDelegationTokenResponse(Message, kw_only=True):
    """Response, api key 41; versions 0-3, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DescribedDelegationToken(MessageStruct, kw_only=True):
        principal_type: str = ""
        """string, versions 0+."""
        principal_name: str = ""
        """string, versions 0+."""
        token_requester_principal_type: str = ""
        """string, versions 3+."""
        token_requester_principal_name: str = ""
        """string, versions 3+."""
        issue_timestamp: int = 0
        """int64, versions 0+."""
        expiry_timestamp: int = 0
        """int64, versions 0+."""
        max_timestamp: int = 0
        """int64, versions 0+."""
        token_id: str = ""
        """string, versions 0+."""
        hmac: bytes = b""
        """bytes, versions 0+."""
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ...
        """[]DescribedDelegationTokenRenewer, versions 0+."""

    class DescribedDelegationTokenRenewer(MessageStruct, kw_only=True):
        principal_type: str = ""
        """string, versions 0+."""
        principal_name: str = ""
        """string, versions 0+."""

    error_code: int = 0
    """int16, versions 0+."""
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ...
    """[]DescribedDelegationToken, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 0+."""

class DescribeGroupsRequest(Message, kw_only=True):
    """Request, api key 15; versions 0-6, flexible 5+; in Kafka 2.4.1 to 4.4.0."""

    groups: list[str] = ...
    """[]string, versions 0+."""
    include_authorized_operations: bool = False
    """bool, versions 3+."""

class DescribeGroupsResponse(Message, kw_only=True):
    """Response, api key 15; versions 0-6, flexible 5+; in Kafka 2.4.1 to 4.4.0."""

    class DescribedGroup(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 6+, nullable 6+."""
        group_id: str = ""
        """string, versions 0+."""
        group_state: str = ""
        """string, versions 0+."""
        protocol_type: str = ""
        """string, versions 0+."""
        protocol_data: str = ""
        """string, versions 0+."""
        members: list[DescribeGroupsResponse.DescribedGroupMember] = ...
        """[]DescribedGroupMember, versions 0+."""
        authorized_operations: int = ...
        """int32, versions 3+."""

    class DescribedGroupMember(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        group_instance_id: str | None = None
        """string, versions 4+, nullable 4+, ignorable."""
        client_id: str = ""
        """string, versions 0+."""
        client_host: str = ""
        """string, versions 0+."""
        member_metadata: bytes = b""
        """bytes, versions 0+."""
        member_assignment: bytes = b""
        """bytes, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    groups: list[DescribeGroupsResponse.DescribedGroup] = ...
    """[]DescribedGroup, versions 0+."""

class DescribeLogDirsRequest(Message, kw_only=True):
    """Request, api key 35; versions 0-5, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DescribableLogDirTopic(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...
    """[]DescribableLogDirTopic, versions 0+, nullable 0+."""

class DescribeLogDirsResponse(Message, kw_only=True):
    """Response, api key 35; versions 0-5, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class DescribeLogDirsResult(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        log_dir: str = ""
        """string, versions 0+."""
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ...
        """[]DescribeLogDirsTopic, versions 0+."""
        total_bytes: int = -1
        """int64, versions 4+, ignorable."""
        usable_bytes: int = -1
        """int64, versions 4+, ignorable."""
        is_cordoned: bool = False
        """bool, versions 5+, ignorable."""

    class DescribeLogDirsTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...
        """[]DescribeLogDirsPartition, versions 0+."""

    class DescribeLogDirsPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        partition_size: int = 0
        """int64, versions 0+."""
        offset_lag: int = 0
        """int64, versions 0+."""
        is_future_key: bool = False
        """bool, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 3+, ignorable."""
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ...
    """[]DescribeLogDirsResult, versions 0+."""

class DescribeProducersRequest(Message, kw_only=True):
    """Request, api key 61; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class TopicRequest(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partition_indexes: list[int] = ...
        """[]int32, versions 0+."""

    topics: list[DescribeProducersRequest.TopicRequest] = ...
    """[]TopicRequest, versions 0+."""

class DescribeProducersResponse(Message, kw_only=True):
    """Response, api key 61; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class TopicResponse(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[DescribeProducersResponse.PartitionResponse] = ...
        """[]PartitionResponse, versions 0+."""

    class PartitionResponse(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        active_producers: list[DescribeProducersResponse.ProducerState] = ...
        """[]ProducerState, versions 0+."""

    class ProducerState(MessageStruct, kw_only=True):
        producer_id: int = 0
        """int64, versions 0+."""
        producer_epoch: int = 0
        """int32, versions 0+."""
        last_sequence: int = -1
        """int32, versions 0+."""
        last_timestamp: int = -1
        """int64, versions 0+."""
        coordinator_epoch: int = 0
        """int32, versions 0+."""
        current_txn_start_offset: int = -1
        """int64, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    topics: list[DescribeProducersResponse.TopicResponse] = ...
    """[]TopicResponse, versions 0+."""

class DescribeQuorumRequest(Message, kw_only=True):
    """Request, api key 55; versions 0-2, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[DescribeQuorumRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""

    topics: list[DescribeQuorumRequest.TopicData] = ...
    """[]TopicData, versions 0+."""

class DescribeQuorumResponse(Message, kw_only=True):
    """Response, api key 55; versions 0-2, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class ReplicaState(MessageStruct, kw_only=True):
        replica_id: int = 0
        """int32, versions 0+."""
        replica_directory_id: _uuid.UUID = ...
        """uuid, versions 2+."""
        log_end_offset: int = 0
        """int64, versions 0+."""
        last_fetch_timestamp: int = -1
        """int64, versions 1+, ignorable."""
        last_caught_up_timestamp: int = -1
        """int64, versions 1+, ignorable."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[DescribeQuorumResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 2+, nullable 2+, ignorable."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        high_watermark: int = 0
        """int64, versions 0+."""
        current_voters: list[DescribeQuorumResponse.ReplicaState] = ...
        """[]ReplicaState, versions 0+."""
        observers: list[DescribeQuorumResponse.ReplicaState] = ...
        """[]ReplicaState, versions 0+."""

    class Node(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 2+."""
        listeners: list[DescribeQuorumResponse.Listener] = ...
        """[]Listener, versions 2+."""

    class Listener(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 2+."""
        host: str = ""
        """string, versions 2+."""
        port: int = 0
        """uint16, versions 2+."""

    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 2+, nullable 2+, ignorable."""
    topics: list[DescribeQuorumResponse.TopicData] = ...
    """[]TopicData, versions 0+."""
    nodes: list[DescribeQuorumResponse.Node] = ...
    """[]Node, versions 2+."""

class DescribeShareGroupOffsetsRequest(Message, kw_only=True):
    """Request, api key 90; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class DescribeShareGroupOffsetsRequestGroup(MessageStruct, kw_only=True):
        group_id: str = ""
        """string, versions 0+."""
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...
        """[]DescribeShareGroupOffsetsRequestTopic, versions 0+, nullable 0+."""

    class DescribeShareGroupOffsetsRequestTopic(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...
    """[]DescribeShareGroupOffsetsRequestGroup, versions 0+."""

class DescribeShareGroupOffsetsResponse(Message, kw_only=True):
    """Response, api key 90; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class DescribeShareGroupOffsetsResponseGroup(MessageStruct, kw_only=True):
        group_id: str = ""
        """string, versions 0+."""
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ...
        """[]DescribeShareGroupOffsetsResponseTopic, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    class DescribeShareGroupOffsetsResponseTopic(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...
        """[]DescribeShareGroupOffsetsResponsePartition, versions 0+."""

    class DescribeShareGroupOffsetsResponsePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        start_offset: int = 0
        """int64, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        lag: int = -1
        """int64, versions 1+, ignorable."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...
    """[]DescribeShareGroupOffsetsResponseGroup, versions 0+."""

class DescribeTopicPartitionsRequest(Message, kw_only=True):
    """Request, api key 75; versions 0, flexible 0+; in Kafka 3.8.1 to 4.4.0."""

    class TopicRequest(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""

    class Cursor(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partition_index: int = 0
        """int32, versions 0+."""

    topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ...
    """[]TopicRequest, versions 0+."""
    response_partition_limit: int = 2000
    """int32, versions 0+."""
    cursor: DescribeTopicPartitionsRequest.Cursor | None = None
    """Cursor, versions 0+, nullable 0+."""

class DescribeTopicPartitionsResponse(Message, kw_only=True):
    """Response, api key 75; versions 0, flexible 0+; in Kafka 3.8.1 to 4.4.0."""

    class DescribeTopicPartitionsResponseTopic(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        name: str | None = ""
        """string, versions 0+, nullable 0+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+, ignorable."""
        is_internal: bool = False
        """bool, versions 0+, ignorable."""
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ...
        """[]DescribeTopicPartitionsResponsePartition, versions 0+."""
        topic_authorized_operations: int = ...
        """int32, versions 0+."""

    class DescribeTopicPartitionsResponsePartition(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        partition_index: int = 0
        """int32, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = -1
        """int32, versions 0+, ignorable."""
        replica_nodes: list[int] = ...
        """[]int32, versions 0+."""
        isr_nodes: list[int] = ...
        """[]int32, versions 0+."""
        eligible_leader_replicas: list[int] | None = None
        """[]int32, versions 0+, nullable 0+."""
        last_known_elr: list[int] | None = None
        """[]int32, versions 0+, nullable 0+."""
        offline_replicas: list[int] = ...
        """[]int32, versions 0+, ignorable."""

    class Cursor(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partition_index: int = 0
        """int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+, ignorable."""
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ...
    """[]DescribeTopicPartitionsResponseTopic, versions 0+."""
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None
    """Cursor, versions 0+, nullable 0+."""

class DescribeTransactionsRequest(Message, kw_only=True):
    """Request, api key 65; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    transactional_ids: list[str] = ...
    """[]string, versions 0+."""

class DescribeTransactionsResponse(Message, kw_only=True):
    """Response, api key 65; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    class TransactionState(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        transactional_id: str = ""
        """string, versions 0+."""
        transaction_state: str = ""
        """string, versions 0+."""
        transaction_timeout_ms: int = 0
        """int32, versions 0+."""
        transaction_start_time_ms: int = 0
        """int64, versions 0+."""
        producer_id: int = 0
        """int64, versions 0+."""
        producer_epoch: int = 0
        """int16, versions 0+."""
        topics: list[DescribeTransactionsResponse.TopicData] = ...
        """[]TopicData, versions 0+."""

    class TopicData(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    transaction_states: list[DescribeTransactionsResponse.TransactionState] = ...
    """[]TransactionState, versions 0+."""

class DescribeUserScramCredentialsRequest(Message, kw_only=True):
    """Request, api key 50; versions 0, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class UserName(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""

    users: list[DescribeUserScramCredentialsRequest.UserName] | None = ...
    """[]UserName, versions 0+, nullable 0+."""

class DescribeUserScramCredentialsResponse(Message, kw_only=True):
    """Response, api key 50; versions 0, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class DescribeUserScramCredentialsResult(MessageStruct, kw_only=True):
        user: str = ""
        """string, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ...
        """[]CredentialInfo, versions 0+."""

    class CredentialInfo(MessageStruct, kw_only=True):
        mechanism: int = 0
        """int8, versions 0+."""
        iterations: int = 0
        """int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...
    """[]DescribeUserScramCredentialsResult, versions 0+."""

class ElectLeadersRequest(Message, kw_only=True):
    """Request, api key 43; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    election_type: int = 0
    """int8, versions 1+."""
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ...
    """[]TopicPartitions, versions 0+, nullable 0+."""
    timeout_ms: int = 60000
    """int32, versions 0+."""

class ElectLeadersResponse(Message, kw_only=True):
    """Response, api key 43; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    class ReplicaElectionResult(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partition_result: list[ElectLeadersResponse.PartitionResult] = ...
        """[]PartitionResult, versions 0+."""

    class PartitionResult(MessageStruct, kw_only=True):
        partition_id: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 1+."""
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ...
    """[]ReplicaElectionResult, versions 0+."""

class EndQuorumEpochRequest(Message, kw_only=True):
    """Request, api key 54; versions 0-1, flexible 1+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[EndQuorumEpochRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        preferred_successors: list[int] = ...
        """[]int32, versions 0, ignorable."""
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...
        """[]ReplicaInfo, versions 1+, ignorable."""

    class ReplicaInfo(MessageStruct, kw_only=True):
        candidate_id: int = 0
        """int32, versions 1+."""
        candidate_directory_id: _uuid.UUID = ...
        """uuid, versions 1+."""

    class LeaderEndpoint(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        port: int = 0
        """uint16, versions 1+."""

    cluster_id: str | None = None
    """string, versions 0+, nullable 0+."""
    topics: list[EndQuorumEpochRequest.TopicData] = ...
    """[]TopicData, versions 0+."""
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...
    """[]LeaderEndpoint, versions 1+, ignorable."""

class EndQuorumEpochResponse(Message, kw_only=True):
    """Response, api key 54; versions 0-1, flexible 1+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[EndQuorumEpochResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        port: int = 0
        """uint16, versions 1+."""

    error_code: int = 0
    """int16, versions 0+."""
    topics: list[EndQuorumEpochResponse.TopicData] = ...
    """[]TopicData, versions 0+."""
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 1+, tagged 1+ (tag 0)."""

class EndTransactionRecord(Message, kw_only=True):
    """Metadata record, api key 24; versions 0, flexible 0+; in Kafka 3.6.2 to 4.4.0."""

class EndTxnMarker(Message, kw_only=True):
    """Data; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    coordinator_epoch: int = 0
    """int32, versions 0+."""

class EndTxnRequest(Message, kw_only=True):
    """Request, api key 26; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    transactional_id: str = ""
    """string, versions 0+."""
    producer_id: int = 0
    """int64, versions 0+."""
    producer_epoch: int = 0
    """int16, versions 0+."""
    committed: bool = False
    """bool, versions 0+."""

class EndTxnResponse(Message, kw_only=True):
    """Response, api key 26; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    producer_id: int = -1
    """int64, versions 5+, ignorable."""
    producer_epoch: int = -1
    """int16, versions 5+, ignorable."""

class EnvelopeRequest(Message, kw_only=True):
    """Request, api key 58; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    request_data: bytes = b""
    """bytes, versions 0+."""
    request_principal: bytes | None = b""
    """bytes, versions 0+, nullable 0+."""
    client_host_address: bytes = b""
    """bytes, versions 0+."""

class EnvelopeResponse(Message, kw_only=True):
    """Response, api key 58; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    response_data: bytes | None = None
    """bytes, versions 0+, nullable 0+."""
    error_code: int = 0
    """int16, versions 0+."""

class ExpireDelegationTokenRequest(Message, kw_only=True):
    """Request, api key 40; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    hmac: bytes = b""
    """bytes, versions 0+."""
    expiry_time_period_ms: int = 0
    """int64, versions 0+."""

class ExpireDelegationTokenResponse(Message, kw_only=True):
    """Response, api key 40; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    error_code: int = 0
    """int16, versions 0+."""
    expiry_timestamp_ms: int = 0
    """int64, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 0+."""

class FeatureLevelRecord(Message, kw_only=True):
    """Metadata record, api key 12; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    name: str = ""
    """string, versions 0+."""
    feature_level: int = 0
    """int16, versions 0+."""

class FenceBrokerRecord(Message, kw_only=True):
    """Metadata record, api key 7; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    id: int = 0
    """int32, versions 0+."""
    epoch: int = 0
    """int64, versions 0+."""

class FetchRequest(Message, kw_only=True):
    """Request, api key 1; versions 0-18, flexible 12+; in Kafka 2.4.1 to 4.4.0."""

    class ReplicaState(MessageStruct, kw_only=True):
        replica_id: int = -1
        """int32, versions 15+."""
        replica_epoch: int = -1
        """int64, versions 15+."""

    class FetchTopic(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0-12, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 13+, ignorable."""
        partitions: list[FetchRequest.FetchPartition] = ...
        """[]FetchPartition, versions 0+."""

    class FetchPartition(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        current_leader_epoch: int = -1
        """int32, versions 9+, ignorable."""
        fetch_offset: int = 0
        """int64, versions 0+."""
        last_fetched_epoch: int = -1
        """int32, versions 12+."""
        log_start_offset: int = -1
        """int64, versions 5+, ignorable."""
        partition_max_bytes: int = 0
        """int32, versions 0+."""
        replica_directory_id: _uuid.UUID = ...
        """uuid, versions 17+, tagged 17+ (tag 0), ignorable."""
        high_watermark: int = ...
        """int64, versions 18+, tagged 18+ (tag 1), ignorable."""

    class ForgottenTopic(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 7-12, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 13+, ignorable."""
        partitions: list[int] = ...
        """[]int32, versions 7+."""

    cluster_id: str | None = None
    """string, versions 12+, tagged 12+ (tag 0), nullable 12+, ignorable."""
    replica_id: int = -1
    """int32, versions 0-14."""
    replica_state: FetchRequest.ReplicaState = ...
    """ReplicaState, versions 15+, tagged 15+ (tag 1)."""
    max_wait_ms: int = 0
    """int32, versions 0+."""
    min_bytes: int = 0
    """int32, versions 0+."""
    max_bytes: int = 2147483647
    """int32, versions 3+, ignorable."""
    isolation_level: int = 0
    """int8, versions 4+, ignorable."""
    session_id: int = 0
    """int32, versions 7+, ignorable."""
    session_epoch: int = -1
    """int32, versions 7+, ignorable."""
    topics: list[FetchRequest.FetchTopic] = ...
    """[]FetchTopic, versions 0+."""
    forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ...
    """[]ForgottenTopic, versions 7+."""
    rack_id: str = ""
    """string, versions 11+, ignorable."""

class FetchResponse(Message, kw_only=True):
    """Response, api key 1; versions 0-18, flexible 12+; in Kafka 2.4.1 to 4.4.0."""

    class FetchableTopicResponse(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0-12, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 13+, ignorable."""
        partitions: list[FetchResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        high_watermark: int = 0
        """int64, versions 0+."""
        last_stable_offset: int = -1
        """int64, versions 4+, ignorable."""
        log_start_offset: int = -1
        """int64, versions 5+, ignorable."""
        diverging_epoch: FetchResponse.EpochEndOffset = ...
        """EpochEndOffset, versions 12+, tagged 12+ (tag 0)."""
        current_leader: FetchResponse.LeaderIdAndEpoch = ...
        """LeaderIdAndEpoch, versions 12+, tagged 12+ (tag 1)."""
        snapshot_id: FetchResponse.SnapshotId = ...
        """SnapshotId, versions 12+, tagged 12+ (tag 2)."""
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ...
        """[]AbortedTransaction, versions 4+, nullable 4+, ignorable."""
        preferred_read_replica: int = -1
        """int32, versions 11+."""
        records: bytes | None = None
        """records, versions 0+, nullable 0+."""

    class EpochEndOffset(MessageStruct, kw_only=True):
        epoch: int = -1
        """int32, versions 12+."""
        end_offset: int = -1
        """int64, versions 12+."""

    class LeaderIdAndEpoch(MessageStruct, kw_only=True):
        leader_id: int = -1
        """int32, versions 12+."""
        leader_epoch: int = -1
        """int32, versions 12+."""

    class SnapshotId(MessageStruct, kw_only=True):
        end_offset: int = -1
        """int64, versions 0+."""
        epoch: int = -1
        """int32, versions 0+."""

    class AbortedTransaction(MessageStruct, kw_only=True):
        producer_id: int = 0
        """int64, versions 4+."""
        first_offset: int = 0
        """int64, versions 4+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 16+."""
        host: str = ""
        """string, versions 16+."""
        port: int = 0
        """int32, versions 16+."""
        rack: str | None = None
        """string, versions 16+, nullable 16+."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 7+, ignorable."""
    session_id: int = 0
    """int32, versions 7+."""
    responses: list[FetchResponse.FetchableTopicResponse] = ...
    """[]FetchableTopicResponse, versions 0+."""
    node_endpoints: list[FetchResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 16+, tagged 16+ (tag 0)."""

class FetchSnapshotRequest(Message, kw_only=True):
    """Request, api key 59; versions 0-1, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class TopicSnapshot(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ...
        """[]PartitionSnapshot, versions 0+."""

    class PartitionSnapshot(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        current_leader_epoch: int = 0
        """int32, versions 0+."""
        snapshot_id: FetchSnapshotRequest.SnapshotId = ...
        """SnapshotId, versions 0+."""
        position: int = 0
        """int64, versions 0+."""
        replica_directory_id: _uuid.UUID = ...
        """uuid, versions 1+, tagged 1+ (tag 0), ignorable."""

    class SnapshotId(MessageStruct, kw_only=True):
        end_offset: int = 0
        """int64, versions 0+."""
        epoch: int = 0
        """int32, versions 0+."""

    cluster_id: str | None = None
    """string, versions 0+, tagged 0+ (tag 0), nullable 0+."""
    replica_id: int = -1
    """int32, versions 0+."""
    max_bytes: int = 2147483647
    """int32, versions 0+."""
    topics: list[FetchSnapshotRequest.TopicSnapshot] = ...
    """[]TopicSnapshot, versions 0+."""

class FetchSnapshotResponse(Message, kw_only=True):
    """Response, api key 59; versions 0-1, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class TopicSnapshot(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ...
        """[]PartitionSnapshot, versions 0+."""

    class PartitionSnapshot(MessageStruct, kw_only=True):
        index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        snapshot_id: FetchSnapshotResponse.SnapshotId = ...
        """SnapshotId, versions 0+."""
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ...
        """LeaderIdAndEpoch, versions 0+, tagged 0+ (tag 0)."""
        size: int = 0
        """int64, versions 0+."""
        position: int = 0
        """int64, versions 0+."""
        unaligned_records: bytes | None = None
        """records, versions 0+."""

    class SnapshotId(MessageStruct, kw_only=True):
        end_offset: int = 0
        """int64, versions 0+."""
        epoch: int = 0
        """int32, versions 0+."""

    class LeaderIdAndEpoch(MessageStruct, kw_only=True):
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        port: int = 0
        """uint16, versions 1+."""

    throttle_time_ms: int = 0
    """int32, versions 0+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    topics: list[FetchSnapshotResponse.TopicSnapshot] = ...
    """[]TopicSnapshot, versions 0+."""
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 1+, tagged 1+ (tag 0)."""

class FindCoordinatorRequest(Message, kw_only=True):
    """Request, api key 10; versions 0-6, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    key: str = ""
    """string, versions 0-3."""
    key_type: int = 0
    """int8, versions 1+."""
    coordinator_keys: list[str] = ...
    """[]string, versions 4+."""

class FindCoordinatorResponse(Message, kw_only=True):
    """Response, api key 10; versions 0-6, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class Coordinator(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 4+."""
        node_id: int = 0
        """int32, versions 4+."""
        host: str = ""
        """string, versions 4+."""
        port: int = 0
        """int32, versions 4+."""
        error_code: int = 0
        """int16, versions 4+."""
        error_message: str | None = ""
        """string, versions 4+, nullable 4+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 0-3."""
    error_message: str | None = ""
    """string, versions 1-3, nullable 1-3, ignorable."""
    node_id: int = 0
    """int32, versions 0-3."""
    host: str = ""
    """string, versions 0-3."""
    port: int = 0
    """int32, versions 0-3."""
    coordinators: list[FindCoordinatorResponse.Coordinator] = ...
    """[]Coordinator, versions 4+."""

class GetTelemetrySubscriptionsRequest(Message, kw_only=True):
    """Request, api key 71; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    client_instance_id: _uuid.UUID = ...
    """uuid, versions 0+."""

class GetTelemetrySubscriptionsResponse(Message, kw_only=True):
    """Response, api key 71; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    client_instance_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    subscription_id: int = 0
    """int32, versions 0+."""
    accepted_compression_types: list[int] = ...
    """[]int8, versions 0+."""
    push_interval_ms: int = 0
    """int32, versions 0+."""
    telemetry_max_bytes: int = 0
    """int32, versions 0+."""
    delta_temporality: bool = False
    """bool, versions 0+."""
    requested_metrics: list[str] = ...
    """[]string, versions 0+."""

class GroupMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 2; versions 0,2, not flexible; in Kafka 2.8.2 to 4.4.0."""

    group: str = ""
    """string, versions 0,2."""

class GroupMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 2; versions 0-4, flexible 4+; in Kafka 2.8.2 to 4.4.0."""

    class MemberMetadata(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        group_instance_id: str | None = None
        """string, versions 3+, nullable 3+, ignorable."""
        client_id: str = ""
        """string, versions 0+."""
        client_host: str = ""
        """string, versions 0+."""
        rebalance_timeout: int = -1
        """int32, versions 1+, ignorable."""
        session_timeout: int = 0
        """int32, versions 0+."""
        subscription: bytes = b""
        """bytes, versions 0+."""
        assignment: bytes = b""
        """bytes, versions 0+."""

    protocol_type: str = ""
    """string, versions 0+."""
    generation: int = 0
    """int32, versions 0+."""
    protocol: str | None = ""
    """string, versions 0+, nullable 0+."""
    leader: str | None = ""
    """string, versions 0+, nullable 0+."""
    current_state_timestamp: int = -1
    """int64, versions 2+, ignorable."""
    members: list[GroupMetadataValue.MemberMetadata] = ...
    """[]MemberMetadata, versions 0+."""

class HeartbeatRequest(Message, kw_only=True):
    """Request, api key 12; versions 0-4, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    group_id: str = ""
    """string, versions 0+."""
    generation_id: int = 0
    """int32, versions 0+."""
    member_id: str = ""
    """string, versions 0+."""
    group_instance_id: str | None = None
    """string, versions 3+, nullable 3+."""

class HeartbeatResponse(Message, kw_only=True):
    """Response, api key 12; versions 0-4, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""

class IncrementalAlterConfigsRequest(Message, kw_only=True):
    """Request, api key 44; versions 0-1, flexible 1+; in Kafka 2.4.1 to 4.4.0."""

    class AlterConfigsResource(MessageStruct, kw_only=True):
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ...
        """[]AlterableConfig, versions 0+."""

    class AlterableConfig(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        config_operation: int = 0
        """int8, versions 0+."""
        value: str | None = ""
        """string, versions 0+, nullable 0+."""

    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ...
    """[]AlterConfigsResource, versions 0+."""
    validate_only: bool = False
    """bool, versions 0+."""

class IncrementalAlterConfigsResponse(Message, kw_only=True):
    """Response, api key 44; versions 0-1, flexible 1+; in Kafka 2.4.1 to 4.4.0."""

    class AlterConfigsResourceResponse(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""
        resource_type: int = 0
        """int8, versions 0+."""
        resource_name: str = ""
        """string, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...
    """[]AlterConfigsResourceResponse, versions 0+."""

class InitProducerIdRequest(Message, kw_only=True):
    """Request, api key 22; versions 0-6, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    transactional_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    transaction_timeout_ms: int = 0
    """int32, versions 0+."""
    producer_id: int = -1
    """int64, versions 3+."""
    producer_epoch: int = -1
    """int16, versions 3+."""
    enable2_pc: bool = False
    """bool, versions 6+."""
    keep_prepared_txn: bool = False
    """bool, versions 6+."""

class InitProducerIdResponse(Message, kw_only=True):
    """Response, api key 22; versions 0-6, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    producer_id: int = -1
    """int64, versions 0+."""
    producer_epoch: int = 0
    """int16, versions 0+."""
    ongoing_txn_producer_id: int = -1
    """int64, versions 6+."""
    ongoing_txn_producer_epoch: int = -1
    """int16, versions 6+."""

class InitializeShareGroupStateRequest(Message, kw_only=True):
    """Request, api key 83; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class InitializeStateData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        state_epoch: int = 0
        """int32, versions 0+."""
        start_offset: int = 0
        """int64, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ...
    """[]InitializeStateData, versions 0+."""

class InitializeShareGroupStateResponse(Message, kw_only=True):
    """Response, api key 83; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class InitializeStateResult(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ...
        """[]PartitionResult, versions 0+."""

    class PartitionResult(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ...
    """[]InitializeStateResult, versions 0+."""

class JoinGroupRequest(Message, kw_only=True):
    """Request, api key 11; versions 0-9, flexible 6+; in Kafka 2.4.1 to 4.4.0."""

    class JoinGroupRequestProtocol(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        metadata: bytes = b""
        """bytes, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    session_timeout_ms: int = 0
    """int32, versions 0+."""
    rebalance_timeout_ms: int = -1
    """int32, versions 1+, ignorable."""
    member_id: str = ""
    """string, versions 0+."""
    group_instance_id: str | None = None
    """string, versions 5+, nullable 5+."""
    protocol_type: str = ""
    """string, versions 0+."""
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ...
    """[]JoinGroupRequestProtocol, versions 0+."""
    reason: str | None = None
    """string, versions 8+, nullable 8+, ignorable."""

class JoinGroupResponse(Message, kw_only=True):
    """Response, api key 11; versions 0-9, flexible 6+; in Kafka 2.4.1 to 4.4.0."""

    class JoinGroupResponseMember(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        group_instance_id: str | None = None
        """string, versions 5+, nullable 5+, ignorable."""
        metadata: bytes = b""
        """bytes, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 2+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    generation_id: int = -1
    """int32, versions 0+."""
    protocol_type: str | None = None
    """string, versions 7+, nullable 7+, ignorable."""
    protocol_name: str | None = ""
    """string, versions 0+, nullable 7+."""
    leader: str = ""
    """string, versions 0+."""
    skip_assignment: bool = False
    """bool, versions 9+."""
    member_id: str = ""
    """string, versions 0+."""
    members: list[JoinGroupResponse.JoinGroupResponseMember] = ...
    """[]JoinGroupResponseMember, versions 0+."""

class KRaftVersionRecord(Message, kw_only=True):
    """Data; versions 0, flexible 0+; in Kafka 3.8.1 to 4.4.0."""

    version: int = 0
    """int16, versions 0+."""
    k_raft_version: int = 0
    """int16, versions 0+."""

class LeaderAndIsrRequest(Message, kw_only=True):
    """Request, api key 4; versions 0-7, flexible 4+; in Kafka 2.4.1 to 3.9.2."""

    class LeaderAndIsrPartitionState(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0-1, ignorable."""
        partition_index: int = 0
        """int32, versions 0+."""
        controller_epoch: int = 0
        """int32, versions 0+."""
        leader: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        isr: list[int] = ...
        """[]int32, versions 0+."""
        partition_epoch: int = 0
        """int32, versions 0+."""
        replicas: list[int] = ...
        """[]int32, versions 0+."""
        adding_replicas: list[int] = ...
        """[]int32, versions 3+, ignorable."""
        removing_replicas: list[int] = ...
        """[]int32, versions 3+, ignorable."""
        is_new: bool = False
        """bool, versions 1+, ignorable."""
        leader_recovery_state: int = 0
        """int8, versions 6+."""

    class LeaderAndIsrTopicState(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 2+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 5+, ignorable."""
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...
        """[]LeaderAndIsrPartitionState, versions 2+."""

    class LeaderAndIsrLiveLeader(MessageStruct, kw_only=True):
        broker_id: int = 0
        """int32, versions 0+."""
        host_name: str = ""
        """string, versions 0+."""
        port: int = 0
        """int32, versions 0+."""

    controller_id: int = 0
    """int32, versions 0+."""
    is_k_raft_controller: bool = False
    """bool, versions 7+."""
    controller_epoch: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 2+, ignorable."""
    type: int = 0
    """int8, versions 5+."""
    ungrouped_partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...
    """[]LeaderAndIsrPartitionState, versions 0-1."""
    topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState] = ...
    """[]LeaderAndIsrTopicState, versions 2+."""
    live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = ...
    """[]LeaderAndIsrLiveLeader, versions 0+."""

class LeaderAndIsrResponse(Message, kw_only=True):
    """Response, api key 4; versions 0-7, flexible 4+; in Kafka 2.4.1 to 3.9.2."""

    class LeaderAndIsrPartitionError(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0-4, ignorable."""
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    class LeaderAndIsrTopicError(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 5+."""
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...
        """[]LeaderAndIsrPartitionError, versions 5+."""

    error_code: int = 0
    """int16, versions 0+."""
    partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...
    """[]LeaderAndIsrPartitionError, versions 0-4."""
    topics: list[LeaderAndIsrResponse.LeaderAndIsrTopicError] = ...
    """[]LeaderAndIsrTopicError, versions 5+."""

class LeaderChangeMessage(Message, kw_only=True):
    """Data; versions 0-1, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class Voter(MessageStruct, kw_only=True):
        voter_id: int = 0
        """int32, versions 0+."""
        voter_directory_id: _uuid.UUID = ...
        """uuid, versions 1+."""

    version: int = 0
    """int16, versions 0+."""
    leader_id: int = 0
    """int32, versions 0+."""
    voters: list[LeaderChangeMessage.Voter] = ...
    """[]Voter, versions 0+."""
    granting_voters: list[LeaderChangeMessage.Voter] = ...
    """[]Voter, versions 0+."""

class LeaveGroupRequest(Message, kw_only=True):
    """Request, api key 13; versions 0-5, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class MemberIdentity(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 3+."""
        group_instance_id: str | None = None
        """string, versions 3+, nullable 3+."""
        reason: str | None = None
        """string, versions 5+, nullable 5+, ignorable."""

    group_id: str = ""
    """string, versions 0+."""
    member_id: str = ""
    """string, versions 0-2."""
    members: list[LeaveGroupRequest.MemberIdentity] = ...
    """[]MemberIdentity, versions 3+."""

class LeaveGroupResponse(Message, kw_only=True):
    """Response, api key 13; versions 0-5, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class MemberResponse(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 3+."""
        group_instance_id: str | None = ""
        """string, versions 3+, nullable 3+."""
        error_code: int = 0
        """int16, versions 3+."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    members: list[LeaveGroupResponse.MemberResponse] = ...
    """[]MemberResponse, versions 3+."""

class LegacyOffsetCommitKey(Message, kw_only=True):
    """Coordinator-key, api key 0; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group: str = ""
    """string, versions 0."""
    topic: str = ""
    """string, versions 0."""
    partition: int = 0
    """int32, versions 0."""

class LegacyOffsetCommitValue(Message, kw_only=True):
    """Coordinator-value, api key 0; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    offset: int = 0
    """int64, versions 0."""
    metadata: str = ""
    """string, versions 0."""
    commit_timestamp: int = 0
    """int64, versions 0."""

class ListClientMetricsResourcesRequest(Message, kw_only=True):
    """Request, api key 74; versions 0, flexible 0+; in Kafka 3.7.2 to 4.0.2."""

class ListClientMetricsResourcesResponse(Message, kw_only=True):
    """Response, api key 74; versions 0, flexible 0+; in Kafka 3.7.2 to 4.0.2."""

    class ClientMetricsResource(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    client_metrics_resources: list[ListClientMetricsResourcesResponse.ClientMetricsResource] = ...
    """[]ClientMetricsResource, versions 0+."""

class ListConfigResourcesRequest(Message, kw_only=True):
    """Request, api key 74; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    resource_types: list[int] = ...
    """[]int8, versions 1+."""

class ListConfigResourcesResponse(Message, kw_only=True):
    """Response, api key 74; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class ConfigResource(MessageStruct, kw_only=True):
        resource_name: str = ""
        """string, versions 0+."""
        resource_type: int = 16
        """int8, versions 1+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...
    """[]ConfigResource, versions 0+."""

class ListGroupsRequest(Message, kw_only=True):
    """Request, api key 16; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    states_filter: list[str] = ...
    """[]string, versions 4+."""
    types_filter: list[str] = ...
    """[]string, versions 5+."""

class ListGroupsResponse(Message, kw_only=True):
    """Response, api key 16; versions 0-5, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class ListedGroup(MessageStruct, kw_only=True):
        group_id: str = ""
        """string, versions 0+."""
        protocol_type: str = ""
        """string, versions 0+."""
        group_state: str = ""
        """string, versions 4+, ignorable."""
        group_type: str = ""
        """string, versions 5+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    groups: list[ListGroupsResponse.ListedGroup] = ...
    """[]ListedGroup, versions 0+."""

class ListOffsetRequest(Message, kw_only=True):
    """Request, api key 2; versions 0-5, not flexible; in Kafka 2.4.1 to 2.7.2."""

    class ListOffsetTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[ListOffsetRequest.ListOffsetPartition] = ...
        """[]ListOffsetPartition, versions 0+."""

    class ListOffsetPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        current_leader_epoch: int = -1
        """int32, versions 4+, ignorable."""
        timestamp: int = 0
        """int64, versions 0+."""
        max_num_offsets: int = 1
        """int32, versions 0."""

    replica_id: int = 0
    """int32, versions 0+."""
    isolation_level: int = 0
    """int8, versions 2+."""
    topics: list[ListOffsetRequest.ListOffsetTopic] = ...
    """[]ListOffsetTopic, versions 0+."""

class ListOffsetResponse(Message, kw_only=True):
    """Response, api key 2; versions 0-5, not flexible; in Kafka 2.4.1 to 2.7.2."""

    class ListOffsetTopicResponse(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[ListOffsetResponse.ListOffsetPartitionResponse] = ...
        """[]ListOffsetPartitionResponse, versions 0+."""

    class ListOffsetPartitionResponse(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        old_style_offsets: list[int] = ...
        """[]int64, versions 0."""
        timestamp: int = -1
        """int64, versions 1+."""
        offset: int = -1
        """int64, versions 1+."""
        leader_epoch: int = -1
        """int32, versions 4+."""

    throttle_time_ms: int = 0
    """int32, versions 2+, ignorable."""
    topics: list[ListOffsetResponse.ListOffsetTopicResponse] = ...
    """[]ListOffsetTopicResponse, versions 0+."""

class ListOffsetsRequest(Message, kw_only=True):
    """Request, api key 2; versions 0-11, flexible 6+; in Kafka 2.8.2 to 4.4.0."""

    class ListOffsetsTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ...
        """[]ListOffsetsPartition, versions 0+."""

    class ListOffsetsPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        current_leader_epoch: int = -1
        """int32, versions 4+, ignorable."""
        timestamp: int = 0
        """int64, versions 0+."""
        max_num_offsets: int = 1
        """int32, versions 0."""

    replica_id: int = 0
    """int32, versions 0+."""
    isolation_level: int = 0
    """int8, versions 2+."""
    topics: list[ListOffsetsRequest.ListOffsetsTopic] = ...
    """[]ListOffsetsTopic, versions 0+."""
    timeout_ms: int = 0
    """int32, versions 10+, ignorable."""

class ListOffsetsResponse(Message, kw_only=True):
    """Response, api key 2; versions 0-11, flexible 6+; in Kafka 2.8.2 to 4.4.0."""

    class ListOffsetsTopicResponse(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...
        """[]ListOffsetsPartitionResponse, versions 0+."""

    class ListOffsetsPartitionResponse(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        timestamp: int = -1
        """int64, versions 1+."""
        offset: int = -1
        """int64, versions 1+."""
        leader_epoch: int = -1
        """int32, versions 4+."""
        old_style_offsets: list[int] = ...
        """[]int64, versions 0."""

    throttle_time_ms: int = 0
    """int32, versions 2+, ignorable."""
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ...
    """[]ListOffsetsTopicResponse, versions 0+."""

class ListPartitionReassignmentsRequest(Message, kw_only=True):
    """Request, api key 46; versions 0, flexible 0+; in Kafka 2.4.1 to 4.4.0."""

    class ListPartitionReassignmentsTopics(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partition_indexes: list[int] = ...
        """[]int32, versions 0+."""

    timeout_ms: int = 60000
    """int32, versions 0+."""
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None
    """[]ListPartitionReassignmentsTopics, versions 0+, nullable 0+."""

class ListPartitionReassignmentsResponse(Message, kw_only=True):
    """Response, api key 46; versions 0, flexible 0+; in Kafka 2.4.1 to 4.4.0."""

    class OngoingTopicReassignment(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...
        """[]OngoingPartitionReassignment, versions 0+."""

    class OngoingPartitionReassignment(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        replicas: list[int] = ...
        """[]int32, versions 0+."""
        adding_replicas: list[int] = ...
        """[]int32, versions 0+."""
        removing_replicas: list[int] = ...
        """[]int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...
    """[]OngoingTopicReassignment, versions 0+."""

class ListTransactionsRequest(Message, kw_only=True):
    """Request, api key 66; versions 0-2, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    state_filters: list[str] = ...
    """[]string, versions 0+."""
    producer_id_filters: list[int] = ...
    """[]int64, versions 0+."""
    duration_filter: int = -1
    """int64, versions 1+."""
    transactional_id_pattern: str | None = None
    """string, versions 2+, nullable 2+."""

class ListTransactionsResponse(Message, kw_only=True):
    """Response, api key 66; versions 0-2, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    class TransactionState(MessageStruct, kw_only=True):
        transactional_id: str = ""
        """string, versions 0+."""
        producer_id: int = 0
        """int64, versions 0+."""
        transaction_state: str = ""
        """string, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    unknown_state_filters: list[str] = ...
    """[]string, versions 0+."""
    transaction_states: list[ListTransactionsResponse.TransactionState] = ...
    """[]TransactionState, versions 0+."""

class MetadataRequest(Message, kw_only=True):
    """Request, api key 3; versions 0-13, flexible 9+; in Kafka 2.4.1 to 4.4.0."""

    class MetadataRequestTopic(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 10+, ignorable."""
        name: str | None = ""
        """string, versions 0+, nullable 10+."""

    topics: list[MetadataRequest.MetadataRequestTopic] | None = ...
    """[]MetadataRequestTopic, versions 0+, nullable 1+."""
    allow_auto_topic_creation: bool = True
    """bool, versions 4+."""
    include_cluster_authorized_operations: bool = False
    """bool, versions 8-10."""
    include_topic_authorized_operations: bool = False
    """bool, versions 8+."""

class MetadataResponse(Message, kw_only=True):
    """Response, api key 3; versions 0-13, flexible 9+; in Kafka 2.4.1 to 4.4.0."""

    class MetadataResponseBroker(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """int32, versions 0+."""
        rack: str | None = None
        """string, versions 1+, nullable 1+, ignorable."""

    class MetadataResponseTopic(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        name: str | None = ""
        """string, versions 0+, nullable 12+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 10+, ignorable."""
        is_internal: bool = False
        """bool, versions 1+, ignorable."""
        partitions: list[MetadataResponse.MetadataResponsePartition] = ...
        """[]MetadataResponsePartition, versions 0+."""
        topic_authorized_operations: int = ...
        """int32, versions 8+."""

    class MetadataResponsePartition(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        partition_index: int = 0
        """int32, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = -1
        """int32, versions 7+, ignorable."""
        replica_nodes: list[int] = ...
        """[]int32, versions 0+."""
        isr_nodes: list[int] = ...
        """[]int32, versions 0+."""
        offline_replicas: list[int] = ...
        """[]int32, versions 5+, ignorable."""

    throttle_time_ms: int = 0
    """int32, versions 3+, ignorable."""
    brokers: list[MetadataResponse.MetadataResponseBroker] = ...
    """[]MetadataResponseBroker, versions 0+."""
    cluster_id: str | None = None
    """string, versions 2+, nullable 2+, ignorable."""
    controller_id: int = -1
    """int32, versions 1+, ignorable."""
    topics: list[MetadataResponse.MetadataResponseTopic] = ...
    """[]MetadataResponseTopic, versions 0+."""
    cluster_authorized_operations: int = ...
    """int32, versions 8-10."""
    error_code: int = 0
    """int16, versions 13+, ignorable."""

class NoOpRecord(Message, kw_only=True):
    """Metadata record, api key 20; versions 0, flexible 0+; in Kafka 3.3.2 to 4.4.0."""

class OffsetCommitKey(Message, kw_only=True):
    """Coordinator-key, api key 1; versions 0-1, not flexible; in Kafka 2.8.2 to 4.4.0."""

    group: str = ""
    """string, versions 0-1."""
    topic: str = ""
    """string, versions 0-1."""
    partition: int = 0
    """int32, versions 0-1."""

class OffsetCommitRequest(Message, kw_only=True):
    """Request, api key 8; versions 0-10, flexible 8+; in Kafka 2.4.1 to 4.4.0."""

    class OffsetCommitRequestTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-9, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 10+, ignorable."""
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ...
        """[]OffsetCommitRequestPartition, versions 0+."""

    class OffsetCommitRequestPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        committed_offset: int = 0
        """int64, versions 0+."""
        committed_leader_epoch: int = -1
        """int32, versions 6+, ignorable."""
        committed_metadata: str | None = ""
        """string, versions 0+, nullable 0+."""
        commit_timestamp: int = -1
        """int64, versions 1."""

    group_id: str = ""
    """string, versions 0+."""
    generation_id_or_member_epoch: int = -1
    """int32, versions 1+, ignorable."""
    member_id: str = ""
    """string, versions 1+, ignorable."""
    group_instance_id: str | None = None
    """string, versions 7+, nullable 7+."""
    retention_time_ms: int = -1
    """int64, versions 2-4, ignorable."""
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ...
    """[]OffsetCommitRequestTopic, versions 0+."""

class OffsetCommitResponse(Message, kw_only=True):
    """Response, api key 8; versions 0-10, flexible 8+; in Kafka 2.4.1 to 4.4.0."""

    class OffsetCommitResponseTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-9, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 10+, ignorable."""
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ...
        """[]OffsetCommitResponsePartition, versions 0+."""

    class OffsetCommitResponsePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 3+, ignorable."""
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ...
    """[]OffsetCommitResponseTopic, versions 0+."""

class OffsetCommitValue(Message, kw_only=True):
    """Coordinator-value, api key 1; versions 0-4, flexible 4+; in Kafka 2.8.2 to 4.4.0."""

    offset: int = 0
    """int64, versions 0+."""
    leader_epoch: int = -1
    """int32, versions 3+, ignorable."""
    metadata: str = ""
    """string, versions 0+."""
    commit_timestamp: int = 0
    """int64, versions 0+."""
    expire_timestamp: int = -1
    """int64, versions 1, ignorable."""
    topic_id: _uuid.UUID = ...
    """uuid, versions 4+, tagged 4+ (tag 0), ignorable."""

class OffsetDeleteRequest(Message, kw_only=True):
    """Request, api key 47; versions 0, not flexible; in Kafka 2.4.1 to 4.4.0."""

    class OffsetDeleteRequestTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...
        """[]OffsetDeleteRequestPartition, versions 0+."""

    class OffsetDeleteRequestPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...
    """[]OffsetDeleteRequestTopic, versions 0+."""

class OffsetDeleteResponse(Message, kw_only=True):
    """Response, api key 47; versions 0, not flexible; in Kafka 2.4.1 to 4.4.0."""

    class OffsetDeleteResponseTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...
        """[]OffsetDeleteResponsePartition, versions 0+."""

    class OffsetDeleteResponsePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    error_code: int = 0
    """int16, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 0+, ignorable."""
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...
    """[]OffsetDeleteResponseTopic, versions 0+."""

class OffsetFetchRequest(Message, kw_only=True):
    """Request, api key 9; versions 0-10, flexible 6+; in Kafka 2.4.1 to 4.4.0."""

    class OffsetFetchRequestTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-7."""
        partition_indexes: list[int] = ...
        """[]int32, versions 0-7."""

    class OffsetFetchRequestGroup(MessageStruct, kw_only=True):
        group_id: str = ""
        """string, versions 8+."""
        member_id: str | None = None
        """string, versions 9+, nullable 9+, ignorable."""
        member_epoch: int = -1
        """int32, versions 9+, ignorable."""
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...
        """[]OffsetFetchRequestTopics, versions 8+, nullable 8+."""

    class OffsetFetchRequestTopics(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 8-9, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 10+, ignorable."""
        partition_indexes: list[int] = ...
        """[]int32, versions 8+."""

    group_id: str = ""
    """string, versions 0-7."""
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...
    """[]OffsetFetchRequestTopic, versions 0-7, nullable 2-7."""
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...
    """[]OffsetFetchRequestGroup, versions 8+."""
    require_stable: bool = False
    """bool, versions 7+."""

class OffsetFetchResponse(Message, kw_only=True):
    """Response, api key 9; versions 0-10, flexible 6+; in Kafka 2.4.1 to 4.4.0."""

    class OffsetFetchResponseTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-7."""
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...
        """[]OffsetFetchResponsePartition, versions 0-7."""

    class OffsetFetchResponsePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0-7."""
        committed_offset: int = 0
        """int64, versions 0-7."""
        committed_leader_epoch: int = -1
        """int32, versions 5-7, ignorable."""
        metadata: str | None = ""
        """string, versions 0-7, nullable 0-7."""
        error_code: int = 0
        """int16, versions 0-7."""

    class OffsetFetchResponseGroup(MessageStruct, kw_only=True):
        group_id: str = ""
        """string, versions 8+."""
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ...
        """[]OffsetFetchResponseTopics, versions 8+."""
        error_code: int = 0
        """int16, versions 8+."""

    class OffsetFetchResponseTopics(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 8-9, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 10+, ignorable."""
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...
        """[]OffsetFetchResponsePartitions, versions 8+."""

    class OffsetFetchResponsePartitions(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 8+."""
        committed_offset: int = 0
        """int64, versions 8+."""
        committed_leader_epoch: int = -1
        """int32, versions 8+, ignorable."""
        metadata: str | None = ""
        """string, versions 8+, nullable 8+."""
        error_code: int = 0
        """int16, versions 8+."""

    throttle_time_ms: int = 0
    """int32, versions 3+, ignorable."""
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ...
    """[]OffsetFetchResponseTopic, versions 0-7."""
    error_code: int = 0
    """int16, versions 2-7, ignorable."""
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...
    """[]OffsetFetchResponseGroup, versions 8+."""

class OffsetForLeaderEpochRequest(Message, kw_only=True):
    """Request, api key 23; versions 0-4, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class OffsetForLeaderTopic(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...
        """[]OffsetForLeaderPartition, versions 0+."""

    class OffsetForLeaderPartition(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        current_leader_epoch: int = -1
        """int32, versions 2+, ignorable."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    replica_id: int = -2
    """int32, versions 3+, ignorable."""
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ...
    """[]OffsetForLeaderTopic, versions 0+."""

class OffsetForLeaderEpochResponse(Message, kw_only=True):
    """Response, api key 23; versions 0-4, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class OffsetForLeaderTopicResult(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ...
        """[]EpochEndOffset, versions 0+."""

    class EpochEndOffset(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        partition: int = 0
        """int32, versions 0+."""
        leader_epoch: int = -1
        """int32, versions 1+, ignorable."""
        end_offset: int = -1
        """int64, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 2+, ignorable."""
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...
    """[]OffsetForLeaderTopicResult, versions 0+."""

class PartitionChangeRecord(Message, kw_only=True):
    """Metadata record, api key 5; versions 0-2, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    partition_id: int = -1
    """int32, versions 0+."""
    topic_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    isr: list[int] | None = None
    """[]int32, versions 0+, tagged 0+ (tag 0), nullable 0+."""
    leader: int = -2
    """int32, versions 0+, tagged 0+ (tag 1)."""
    replicas: list[int] | None = None
    """[]int32, versions 0+, tagged 0+ (tag 2), nullable 0+."""
    removing_replicas: list[int] | None = None
    """[]int32, versions 0+, tagged 0+ (tag 3), nullable 0+."""
    adding_replicas: list[int] | None = None
    """[]int32, versions 0+, tagged 0+ (tag 4), nullable 0+."""
    leader_recovery_state: int = -1
    """int8, versions 0+, tagged 0+ (tag 5)."""
    directories: list[_uuid.UUID] | None = None
    """[]uuid, versions 1+, tagged 1+ (tag 8), nullable 1+."""
    eligible_leader_replicas: list[int] | None = None
    """[]int32, versions 2+, tagged 2+ (tag 6), nullable 2+."""
    last_known_elr: list[int] | None = None
    """[]int32, versions 2+, tagged 2+ (tag 7), nullable 2+."""

class PartitionRecord(Message, kw_only=True):
    """Metadata record, api key 3; versions 0-2, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    partition_id: int = -1
    """int32, versions 0+."""
    topic_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    replicas: list[int] = ...
    """[]int32, versions 0+."""
    isr: list[int] = ...
    """[]int32, versions 0+."""
    removing_replicas: list[int] = ...
    """[]int32, versions 0+."""
    adding_replicas: list[int] = ...
    """[]int32, versions 0+."""
    leader: int = -1
    """int32, versions 0+."""
    leader_recovery_state: int = 0
    """int8, versions 0+, tagged 0+ (tag 0)."""
    leader_epoch: int = -1
    """int32, versions 0+."""
    partition_epoch: int = -1
    """int32, versions 0+."""
    directories: list[_uuid.UUID] = ...
    """[]uuid, versions 1+."""
    eligible_leader_replicas: list[int] | None = None
    """[]int32, versions 2+, tagged 2+ (tag 1), nullable 2+."""
    last_known_elr: list[int] | None = None
    """[]int32, versions 2+, tagged 2+ (tag 2), nullable 2+."""

class ProduceRequest(Message, kw_only=True):
    """Request, api key 0; versions 0-13, flexible 9+; in Kafka 2.4.1 to 4.4.0."""

    class TopicProduceData(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-12, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 13+, ignorable."""
        partition_data: list[ProduceRequest.PartitionProduceData] = ...
        """[]PartitionProduceData, versions 0+."""

    class PartitionProduceData(MessageStruct, kw_only=True):
        index: int = 0
        """int32, versions 0+."""
        records: bytes | None = None
        """records, versions 0+, nullable 0+."""

    transactional_id: str | None = None
    """string, versions 3+, nullable 3+."""
    acks: int = 0
    """int16, versions 0+."""
    timeout_ms: int = 0
    """int32, versions 0+."""
    topic_data: list[ProduceRequest.TopicProduceData] = ...
    """[]TopicProduceData, versions 0+."""

class ProduceResponse(Message, kw_only=True):
    """Response, api key 0; versions 0-13, flexible 9+; in Kafka 2.4.1 to 4.4.0."""

    class TopicProduceResponse(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-12, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 13+, ignorable."""
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = ...
        """[]PartitionProduceResponse, versions 0+."""

    class PartitionProduceResponse(MessageStruct, kw_only=True):
        index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        base_offset: int = 0
        """int64, versions 0+."""
        log_append_time_ms: int = -1
        """int64, versions 2+, ignorable."""
        log_start_offset: int = -1
        """int64, versions 5+, ignorable."""
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ...
        """[]BatchIndexAndErrorMessage, versions 8+, ignorable."""
        error_message: str | None = None
        """string, versions 8+, nullable 8+, ignorable."""
        current_leader: ProduceResponse.LeaderIdAndEpoch = ...
        """LeaderIdAndEpoch, versions 10+, tagged 10+ (tag 0)."""

    class BatchIndexAndErrorMessage(MessageStruct, kw_only=True):
        batch_index: int = 0
        """int32, versions 8+."""
        batch_index_error_message: str | None = None
        """string, versions 8+, nullable 8+."""

    class LeaderIdAndEpoch(MessageStruct, kw_only=True):
        leader_id: int = -1
        """int32, versions 10+."""
        leader_epoch: int = -1
        """int32, versions 10+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 10+."""
        host: str = ""
        """string, versions 10+."""
        port: int = 0
        """int32, versions 10+."""
        rack: str | None = None
        """string, versions 10+, nullable 10+."""

    responses: list[ProduceResponse.TopicProduceResponse] = ...
    """[]TopicProduceResponse, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    node_endpoints: list[ProduceResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 10+, tagged 10+ (tag 0)."""

class ProducerIdsRecord(Message, kw_only=True):
    """Metadata record, api key 15; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 0+."""
    next_producer_id: int = 0
    """int64, versions 0+."""

class ProducerSnapshot(Message, kw_only=True):
    """Data; versions 1, not flexible; in Kafka 4.0.0 to 4.4.0."""

    class ProducerEntry(MessageStruct, kw_only=True):
        producer_id: int = 0
        """int64, versions 1."""
        epoch: int = 0
        """int16, versions 1."""
        last_sequence: int = 0
        """int32, versions 1."""
        last_offset: int = 0
        """int64, versions 1."""
        offset_delta: int = 0
        """int32, versions 1."""
        timestamp: int = 0
        """int64, versions 1."""
        coordinator_epoch: int = 0
        """int32, versions 1."""
        current_txn_first_offset: int = 0
        """int64, versions 1."""

    crc: int = 0
    """uint32, versions 1."""
    producer_entries: list[ProducerSnapshot.ProducerEntry] = ...
    """[]ProducerEntry, versions 1."""

class PushTelemetryRequest(Message, kw_only=True):
    """Request, api key 72; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    client_instance_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    subscription_id: int = 0
    """int32, versions 0+."""
    terminating: bool = False
    """bool, versions 0+."""
    compression_type: int = 0
    """int8, versions 0+."""
    metrics: bytes = b""
    """bytes, versions 0+."""

class PushTelemetryResponse(Message, kw_only=True):
    """Response, api key 72; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""

class QuorumStateData(Message, kw_only=True):
    """Data; versions 0-1, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class Voter(MessageStruct, kw_only=True):
        voter_id: int = 0
        """int32, versions 0."""

    cluster_id: str = ""
    """string, versions 0."""
    leader_id: int = -1
    """int32, versions 0+."""
    leader_epoch: int = -1
    """int32, versions 0+."""
    voted_id: int = -1
    """int32, versions 0+."""
    voted_directory_id: _uuid.UUID = ...
    """uuid, versions 1+."""
    applied_offset: int = 0
    """int64, versions 0."""
    current_voters: list[QuorumStateData.Voter] | None = ...
    """[]Voter, versions 0, nullable 0."""

class QuotaRecord(Message, kw_only=True):
    """Metadata record, api key 14; versions 0, not flexible; in Kafka 2.8.2."""

    class EntityData(MessageStruct, kw_only=True):
        entity_type: str = ""
        """string, versions 0+."""
        entity_name: str | None = ""
        """string, versions 0+, nullable 0+."""

    entity: list[QuotaRecord.EntityData] = ...
    """[]EntityData, versions 0+."""
    key: str = ""
    """string, versions 0+."""
    value: float = 0.0
    """float64, versions 0+."""
    remove: bool = False
    """bool, versions 0+."""

class ReadShareGroupStateRequest(Message, kw_only=True):
    """Request, api key 84; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class ReadStateData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ReadShareGroupStateRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[ReadShareGroupStateRequest.ReadStateData] = ...
    """[]ReadStateData, versions 0+."""

class ReadShareGroupStateResponse(Message, kw_only=True):
    """Response, api key 84; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class ReadStateResult(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = ...
        """[]PartitionResult, versions 0+."""

    class PartitionResult(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        state_epoch: int = 0
        """int32, versions 0+."""
        start_offset: int = 0
        """int64, versions 0+."""
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = ...
        """[]StateBatch, versions 0+."""

    class StateBatch(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        delivery_state: int = 0
        """int8, versions 0+."""
        delivery_count: int = 0
        """int16, versions 0+."""

    results: list[ReadShareGroupStateResponse.ReadStateResult] = ...
    """[]ReadStateResult, versions 0+."""

class ReadShareGroupStateSummaryRequest(Message, kw_only=True):
    """Request, api key 87; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class ReadStateSummaryData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...
    """[]ReadStateSummaryData, versions 0+."""

class ReadShareGroupStateSummaryResponse(Message, kw_only=True):
    """Response, api key 87; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class ReadStateSummaryResult(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ...
        """[]PartitionResult, versions 0+."""

    class PartitionResult(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        state_epoch: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        start_offset: int = 0
        """int64, versions 0+."""
        delivery_complete_count: int = -1
        """int32, versions 1+, ignorable."""

    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...
    """[]ReadStateSummaryResult, versions 0+."""

class RegisterBrokerRecord(Message, kw_only=True):
    """Metadata record, api key 0; versions 0-4, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    class BrokerEndpoint(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""
        security_protocol: int = 0
        """int16, versions 0+."""

    class BrokerFeature(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        min_supported_version: int = 0
        """int16, versions 0+."""
        max_supported_version: int = 0
        """int16, versions 0+."""

    broker_id: int = 0
    """int32, versions 0+."""
    is_migrating_zk_broker: bool = False
    """bool, versions 2+."""
    incarnation_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    broker_epoch: int = 0
    """int64, versions 0+."""
    end_points: list[RegisterBrokerRecord.BrokerEndpoint] = ...
    """[]BrokerEndpoint, versions 0+."""
    features: list[RegisterBrokerRecord.BrokerFeature] = ...
    """[]BrokerFeature, versions 0+."""
    rack: str | None = ""
    """string, versions 0+, nullable 0+."""
    fenced: bool = True
    """bool, versions 0+."""
    in_controlled_shutdown: bool = False
    """bool, versions 1+."""
    log_dirs: list[_uuid.UUID] = ...
    """[]uuid, versions 3+, tagged 3+ (tag 0)."""
    cordoned_log_dirs: list[_uuid.UUID] | None = None
    """[]uuid, versions 4+, tagged 4+ (tag 1), nullable 4+."""

class RegisterControllerRecord(Message, kw_only=True):
    """Metadata record, api key 27; versions 0, flexible 0+; in Kafka 3.7.2 to 4.4.0."""

    class ControllerEndpoint(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""
        security_protocol: int = 0
        """int16, versions 0+."""

    class ControllerFeature(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        min_supported_version: int = 0
        """int16, versions 0+."""
        max_supported_version: int = 0
        """int16, versions 0+."""

    controller_id: int = 0
    """int32, versions 0+."""
    incarnation_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    zk_migration_ready: bool = False
    """bool, versions 0+."""
    end_points: list[RegisterControllerRecord.ControllerEndpoint] = ...
    """[]ControllerEndpoint, versions 0+."""
    features: list[RegisterControllerRecord.ControllerFeature] = ...
    """[]ControllerFeature, versions 0+."""

class RemoteLogSegmentMetadataRecord(Message, kw_only=True):
    """Metadata record, api key 0; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    class RemoteLogSegmentIdEntry(MessageStruct, kw_only=True):
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = ...
        """TopicIdPartitionEntry, versions 0+."""
        id: _uuid.UUID = ...
        """uuid, versions 0+."""

    class TopicIdPartitionEntry(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partition: int = 0
        """int32, versions 0+."""

    class SegmentLeaderEpochEntry(MessageStruct, kw_only=True):
        leader_epoch: int = 0
        """int32, versions 0+."""
        offset: int = 0
        """int64, versions 0+."""

    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = ...
    """RemoteLogSegmentIdEntry, versions 0+."""
    start_offset: int = 0
    """int64, versions 0+."""
    end_offset: int = 0
    """int64, versions 0+."""
    broker_id: int = 0
    """int32, versions 0+."""
    max_timestamp_ms: int = 0
    """int64, versions 0+."""
    event_timestamp_ms: int = 0
    """int64, versions 0+."""
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = ...
    """[]SegmentLeaderEpochEntry, versions 0+."""
    segment_size_in_bytes: int = 0
    """int32, versions 0+."""
    custom_metadata: bytes | None = None
    """bytes, versions 0+, nullable 0+."""
    remote_log_segment_state: int = 0
    """int8, versions 0+."""
    txn_index_empty: bool = False
    """bool, versions 0+, tagged 0+ (tag 0)."""

class RemoteLogSegmentMetadataSnapshotRecord(Message, kw_only=True):
    """Metadata record, api key 3; versions 0, flexible 0+; in Kafka 3.1.2 to 4.4.0."""

    class SegmentLeaderEpochEntry(MessageStruct, kw_only=True):
        leader_epoch: int = 0
        """int32, versions 0+."""
        offset: int = 0
        """int64, versions 0+."""

    segment_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    start_offset: int = 0
    """int64, versions 0+."""
    end_offset: int = 0
    """int64, versions 0+."""
    broker_id: int = 0
    """int32, versions 0+."""
    max_timestamp_ms: int = 0
    """int64, versions 0+."""
    event_timestamp_ms: int = 0
    """int64, versions 0+."""
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = ...
    """[]SegmentLeaderEpochEntry, versions 0+."""
    segment_size_in_bytes: int = 0
    """int32, versions 0+."""
    custom_metadata: bytes | None = None
    """bytes, versions 0+, nullable 0+."""
    remote_log_segment_state: int = 0
    """int8, versions 0+."""
    txn_index_empty: bool = False
    """bool, versions 0+, tagged 0+ (tag 0)."""

class RemoteLogSegmentMetadataUpdateRecord(Message, kw_only=True):
    """Metadata record, api key 1; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    class RemoteLogSegmentIdEntry(MessageStruct, kw_only=True):
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = ...
        """TopicIdPartitionEntry, versions 0+."""
        id: _uuid.UUID = ...
        """uuid, versions 0+."""

    class TopicIdPartitionEntry(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partition: int = 0
        """int32, versions 0+."""

    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = ...
    """RemoteLogSegmentIdEntry, versions 0+."""
    broker_id: int = 0
    """int32, versions 0+."""
    event_timestamp_ms: int = 0
    """int64, versions 0+."""
    custom_metadata: bytes | None = None
    """bytes, versions 0+, nullable 0+."""
    remote_log_segment_state: int = 0
    """int8, versions 0+."""

class RemotePartitionDeleteMetadataRecord(Message, kw_only=True):
    """Metadata record, api key 2; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    class TopicIdPartitionEntry(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partition: int = 0
        """int32, versions 0+."""

    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = ...
    """TopicIdPartitionEntry, versions 0+."""
    broker_id: int = 0
    """int32, versions 0+."""
    event_timestamp_ms: int = 0
    """int64, versions 0+."""
    remote_partition_delete_state: int = 0
    """int8, versions 0+."""

class RemoveAccessControlEntryRecord(Message, kw_only=True):
    """Metadata record, api key 19; versions 0, flexible 0+; in Kafka 3.2.3 to 4.4.0."""

    id: _uuid.UUID = ...
    """uuid, versions 0+."""

class RemoveDelegationTokenRecord(Message, kw_only=True):
    """Metadata record, api key 26; versions 0, flexible 0+; in Kafka 3.6.2 to 4.4.0."""

    token_id: str = ""
    """string, versions 0+."""

class RemoveFeatureLevelRecord(Message, kw_only=True):
    """Metadata record, api key 16; versions 0, flexible 0+; in Kafka 3.0.2 to 3.2.3."""

    name: str = ""
    """string, versions 0+."""

class RemoveRaftVoterRequest(Message, kw_only=True):
    """Request, api key 81; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    cluster_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    voter_id: int = 0
    """int32, versions 0+."""
    voter_directory_id: _uuid.UUID = ...
    """uuid, versions 0+."""

class RemoveRaftVoterResponse(Message, kw_only=True):
    """Response, api key 81; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+, ignorable."""

class RemoveTopicRecord(Message, kw_only=True):
    """Metadata record, api key 9; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    topic_id: _uuid.UUID = ...
    """uuid, versions 0+."""

class RemoveUserScramCredentialRecord(Message, kw_only=True):
    """Metadata record, api key 22; versions 0, flexible 0+; in Kafka 3.5.2 to 4.4.0."""

    name: str = ""
    """string, versions 0+."""
    mechanism: int = 0
    """int8, versions 0+."""

class RenewDelegationTokenRequest(Message, kw_only=True):
    """Request, api key 39; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    hmac: bytes = b""
    """bytes, versions 0+."""
    renew_period_ms: int = 0
    """int64, versions 0+."""

class RenewDelegationTokenResponse(Message, kw_only=True):
    """Response, api key 39; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    error_code: int = 0
    """int16, versions 0+."""
    expiry_timestamp_ms: int = 0
    """int64, versions 0+."""
    throttle_time_ms: int = 0
    """int32, versions 0+."""

class RequestHeader(Message, kw_only=True):
    """Header; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    request_api_key: int = 0
    """int16, versions 0+."""
    request_api_version: int = 0
    """int16, versions 0+."""
    correlation_id: int = 0
    """int32, versions 0+."""
    client_id: str | None = ""
    """string, versions 1+, nullable 1+."""

class ResponseHeader(Message, kw_only=True):
    """Header; versions 0-1, flexible 1+; in Kafka 2.4.1 to 4.4.0."""

    correlation_id: int = 0
    """int32, versions 0+."""

class SaslAuthenticateRequest(Message, kw_only=True):
    """Request, api key 36; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    auth_bytes: bytes = b""
    """bytes, versions 0+."""

class SaslAuthenticateResponse(Message, kw_only=True):
    """Response, api key 36; versions 0-2, flexible 2+; in Kafka 2.4.1 to 4.4.0."""

    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    auth_bytes: bytes = b""
    """bytes, versions 0+."""
    session_lifetime_ms: int = 0
    """int64, versions 1+, ignorable."""

class SaslHandshakeRequest(Message, kw_only=True):
    """Request, api key 17; versions 0-1, not flexible; in Kafka 2.4.1 to 4.4.0."""

    mechanism: str = ""
    """string, versions 0+."""

class SaslHandshakeResponse(Message, kw_only=True):
    """Response, api key 17; versions 0-1, not flexible; in Kafka 2.4.1 to 4.4.0."""

    error_code: int = 0
    """int16, versions 0+."""
    mechanisms: list[str] = ...
    """[]string, versions 0+."""

class ShareAcknowledgeRequest(Message, kw_only=True):
    """Request, api key 79; versions 0-2, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class AcknowledgeTopic(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ...
        """[]AcknowledgePartition, versions 0+."""

    class AcknowledgePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ...
        """[]AcknowledgementBatch, versions 0+."""

    class AcknowledgementBatch(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        acknowledge_types: list[int] = ...
        """[]int8, versions 0+."""

    group_id: str | None = None
    """string, versions 0+, nullable 0+."""
    member_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    share_session_epoch: int = 0
    """int32, versions 0+."""
    is_renew_ack: bool = False
    """bool, versions 2+."""
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ...
    """[]AcknowledgeTopic, versions 0+."""

class ShareAcknowledgeResponse(Message, kw_only=True):
    """Response, api key 79; versions 0-2, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class ShareAcknowledgeTopicResponse(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ShareAcknowledgeResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...
        """LeaderIdAndEpoch, versions 0+."""

    class LeaderIdAndEpoch(MessageStruct, kw_only=True):
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """int32, versions 0+."""
        rack: str | None = None
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    acquisition_lock_timeout_ms: int = 0
    """int32, versions 2+, ignorable."""
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ...
    """[]ShareAcknowledgeTopicResponse, versions 0+."""
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 0+."""

class ShareFetchRequest(Message, kw_only=True):
    """Request, api key 78; versions 0-2, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class FetchTopic(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ShareFetchRequest.FetchPartition] = ...
        """[]FetchPartition, versions 0+."""

    class FetchPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        partition_max_bytes: int = 0
        """int32, versions 0."""
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ...
        """[]AcknowledgementBatch, versions 0+."""

    class AcknowledgementBatch(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        acknowledge_types: list[int] = ...
        """[]int8, versions 0+."""

    class ForgottenTopic(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    group_id: str | None = None
    """string, versions 0+, nullable 0+."""
    member_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    share_session_epoch: int = 0
    """int32, versions 0+."""
    max_wait_ms: int = 0
    """int32, versions 0+."""
    min_bytes: int = 0
    """int32, versions 0+."""
    max_bytes: int = 2147483647
    """int32, versions 0+."""
    max_records: int = 0
    """int32, versions 1+."""
    batch_size: int = 0
    """int32, versions 1+."""
    share_acquire_mode: int = 0
    """int8, versions 2+, ignorable."""
    is_renew_ack: bool = False
    """bool, versions 2+."""
    topics: list[ShareFetchRequest.FetchTopic] = ...
    """[]FetchTopic, versions 0+."""
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ...
    """[]ForgottenTopic, versions 0+."""

class ShareFetchResponse(Message, kw_only=True):
    """Response, api key 78; versions 0-2, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class ShareFetchableTopicResponse(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[ShareFetchResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        acknowledge_error_code: int = 0
        """int16, versions 0+."""
        acknowledge_error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = ...
        """LeaderIdAndEpoch, versions 0+."""
        records: bytes | None = None
        """records, versions 0+, nullable 0."""
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = ...
        """[]AcquiredRecords, versions 0+."""

    class LeaderIdAndEpoch(MessageStruct, kw_only=True):
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""

    class AcquiredRecords(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        delivery_count: int = 0
        """int16, versions 0+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """int32, versions 0+."""
        rack: str | None = None
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    acquisition_lock_timeout_ms: int = 0
    """int32, versions 1+."""
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ...
    """[]ShareFetchableTopicResponse, versions 0+."""
    node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 0+."""

class ShareGroupCurrentMemberAssignmentKey(Message, kw_only=True):
    """Coordinator-key, api key 14; versions 0,14, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,14."""
    member_id: str = ""
    """string, versions 0,14."""

class ShareGroupCurrentMemberAssignmentValue(Message, kw_only=True):
    """Coordinator-value, api key 14; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    member_epoch: int = 0
    """int32, versions 0+."""
    previous_member_epoch: int = 0
    """int32, versions 0+."""
    state: int = 0
    """int8, versions 0+."""
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = ...
    """[]TopicPartitions, versions 0+."""

class ShareGroupDescribeRequest(Message, kw_only=True):
    """Request, api key 77; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    group_ids: list[str] = ...
    """[]string, versions 0+."""
    include_authorized_operations: bool = False
    """bool, versions 0+."""

class ShareGroupDescribeResponse(Message, kw_only=True):
    """Response, api key 77; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class Assignment(MessageStruct, kw_only=True):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ...
        """[]TopicPartitions, versions 0+."""

    class DescribedGroup(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        group_id: str = ""
        """string, versions 0+."""
        group_state: str = ""
        """string, versions 0+."""
        group_epoch: int = 0
        """int32, versions 0+."""
        assignment_epoch: int = 0
        """int32, versions 0+."""
        assignor_name: str = ""
        """string, versions 0+."""
        members: list[ShareGroupDescribeResponse.Member] = ...
        """[]Member, versions 0+."""
        authorized_operations: int = ...
        """int32, versions 0+."""

    class Member(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        rack_id: str | None = None
        """string, versions 0+, nullable 0+."""
        member_epoch: int = 0
        """int32, versions 0+."""
        client_id: str = ""
        """string, versions 0+."""
        client_host: str = ""
        """string, versions 0+."""
        subscribed_topic_names: list[str] = ...
        """[]string, versions 0+."""
        assignment: ShareGroupDescribeResponse.Assignment = ...
        """Assignment, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    groups: list[ShareGroupDescribeResponse.DescribedGroup] = ...
    """[]DescribedGroup, versions 0+."""

class ShareGroupHeartbeatRequest(Message, kw_only=True):
    """Request, api key 76; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0+."""
    member_id: str = ""
    """string, versions 0+."""
    member_epoch: int = 0
    """int32, versions 0+."""
    rack_id: str | None = None
    """string, versions 0+, nullable 0+."""
    subscribed_topic_names: list[str] | None = None
    """[]string, versions 0+, nullable 0+."""

class ShareGroupHeartbeatResponse(Message, kw_only=True):
    """Response, api key 76; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class TopicPartitions(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class Assignment(MessageStruct, kw_only=True):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ...
        """[]TopicPartitions, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    member_id: str | None = None
    """string, versions 0+, nullable 0+."""
    member_epoch: int = 0
    """int32, versions 0+."""
    heartbeat_interval_ms: int = 0
    """int32, versions 0+."""
    assignment: ShareGroupHeartbeatResponse.Assignment | None = None
    """Assignment, versions 0+, nullable 0+."""

class ShareGroupMemberMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 10; versions 0,10, not flexible; in Kafka 3.9.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,10."""
    member_id: str = ""
    """string, versions 0,10."""

class ShareGroupMemberMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 10; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    rack_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    client_id: str = ""
    """string, versions 0+."""
    client_host: str = ""
    """string, versions 0+."""
    subscribed_topic_names: list[str] = ...
    """[]string, versions 0+."""

class ShareGroupMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 11; versions 0,11, not flexible; in Kafka 3.9.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,11."""

class ShareGroupMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 11; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    epoch: int = 0
    """int32, versions 0+."""
    metadata_hash: int = 0
    """int64, versions 0+."""

class ShareGroupPartitionMetadataKey(Message, kw_only=True):
    """Data; versions 9, not flexible; in Kafka 3.9.2 to 4.0.2."""

    group_id: str = ""
    """string, versions 9."""

class ShareGroupPartitionMetadataValue(Message, kw_only=True):
    """Data; versions 0, flexible 0+; in Kafka 3.9.2 to 4.0.2."""

    class TopicMetadata(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topic_name: str = ""
        """string, versions 0+."""
        num_partitions: int = 0
        """int32, versions 0+."""
        partition_metadata: list[ShareGroupPartitionMetadataValue.PartitionMetadata] = ...
        """[]PartitionMetadata, versions 0+."""

    class PartitionMetadata(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        racks: list[str] = ...
        """[]string, versions 0+."""

    topics: list[ShareGroupPartitionMetadataValue.TopicMetadata] = ...
    """[]TopicMetadata, versions 0+."""

class ShareGroupStatePartitionMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 15; versions 0,15, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,15."""

class ShareGroupStatePartitionMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 15; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    class TopicPartitionsInfo(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class TopicInfo(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        topic_name: str = ""
        """string, versions 0+."""

    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...
    """[]TopicPartitionsInfo, versions 0+."""
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...
    """[]TopicPartitionsInfo, versions 0+."""
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = ...
    """[]TopicInfo, versions 0+."""

class ShareGroupTargetAssignmentMemberKey(Message, kw_only=True):
    """Coordinator-key, api key 13; versions 0,13, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,13."""
    member_id: str = ""
    """string, versions 0,13."""

class ShareGroupTargetAssignmentMemberValue(Message, kw_only=True):
    """Coordinator-value, api key 13; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    class TopicPartition(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = ...
    """[]TopicPartition, versions 0+."""

class ShareGroupTargetAssignmentMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 12; versions 0,12, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0,12."""

class ShareGroupTargetAssignmentMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 12; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    assignment_epoch: int = 0
    """int32, versions 0+."""
    assignment_timestamp: int = 0
    """int64, versions 0+, tagged 0+ (tag 0), ignorable."""

class ShareSnapshotKey(Message, kw_only=True):
    """Coordinator-key, api key 0; versions 0, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""
    topic_id: _uuid.UUID = ...
    """uuid, versions 0."""
    partition: int = 0
    """int32, versions 0."""

class ShareSnapshotValue(Message, kw_only=True):
    """Coordinator-value, api key 0; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    class StateBatch(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        delivery_state: int = 0
        """int8, versions 0+."""
        delivery_count: int = 0
        """int16, versions 0+."""

    snapshot_epoch: int = 0
    """int32, versions 0+."""
    state_epoch: int = 0
    """int32, versions 0+."""
    leader_epoch: int = 0
    """int32, versions 0+."""
    start_offset: int = 0
    """int64, versions 0+."""
    delivery_complete_count: int = -1
    """int32, versions 0+, tagged 0+ (tag 0)."""
    create_timestamp: int = 0
    """int64, versions 0+."""
    write_timestamp: int = 0
    """int64, versions 0+."""
    state_batches: list[ShareSnapshotValue.StateBatch] = ...
    """[]StateBatch, versions 0+."""

class ShareUpdateKey(Message, kw_only=True):
    """Coordinator-key, api key 1; versions 0-1, not flexible; in Kafka 4.0.0 to 4.4.0."""

    group_id: str = ""
    """string, versions 0-1."""
    topic_id: _uuid.UUID = ...
    """uuid, versions 0-1."""
    partition: int = 0
    """int32, versions 0-1."""

class ShareUpdateValue(Message, kw_only=True):
    """Coordinator-value, api key 1; versions 0, flexible 0+; in Kafka 4.0.0 to 4.4.0."""

    class StateBatch(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        delivery_state: int = 0
        """int8, versions 0+."""
        delivery_count: int = 0
        """int16, versions 0+."""

    snapshot_epoch: int = 0
    """int32, versions 0+."""
    leader_epoch: int = 0
    """int32, versions 0+."""
    start_offset: int = 0
    """int64, versions 0+."""
    delivery_complete_count: int = -1
    """int32, versions 0+, tagged 0+ (tag 0)."""
    state_batches: list[ShareUpdateValue.StateBatch] = ...
    """[]StateBatch, versions 0+."""

class SnapshotFooterRecord(Message, kw_only=True):
    """Data; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    version: int = 0
    """int16, versions 0+."""

class SnapshotHeaderRecord(Message, kw_only=True):
    """Data; versions 0, flexible 0+; in Kafka 3.0.2 to 4.4.0."""

    version: int = 0
    """int16, versions 0+."""
    last_contained_log_timestamp: int = 0
    """int64, versions 0+."""

class StopReplicaRequest(Message, kw_only=True):
    """Request, api key 5; versions 0-4, flexible 2+; in Kafka 2.4.1 to 3.9.2."""

    class StopReplicaPartitionV0(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0."""
        partition_index: int = 0
        """int32, versions 0."""

    class StopReplicaTopicV1(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 1-2."""
        partition_indexes: list[int] = ...
        """[]int32, versions 1-2."""

    class StopReplicaTopicState(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 3+."""
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState] = ...
        """[]StopReplicaPartitionState, versions 3+."""

    class StopReplicaPartitionState(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 3+."""
        leader_epoch: int = -1
        """int32, versions 3+."""
        delete_partition: bool = False
        """bool, versions 3+."""

    controller_id: int = 0
    """int32, versions 0+."""
    is_k_raft_controller: bool = False
    """bool, versions 4+."""
    controller_epoch: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 1+, ignorable."""
    delete_partitions: bool = False
    """bool, versions 0-2."""
    ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0] = ...
    """[]StopReplicaPartitionV0, versions 0."""
    topics: list[StopReplicaRequest.StopReplicaTopicV1] = ...
    """[]StopReplicaTopicV1, versions 1-2."""
    topic_states: list[StopReplicaRequest.StopReplicaTopicState] = ...
    """[]StopReplicaTopicState, versions 3+."""

class StopReplicaResponse(Message, kw_only=True):
    """Response, api key 5; versions 0-4, flexible 2+; in Kafka 2.4.1 to 3.9.2."""

    class StopReplicaPartitionError(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    error_code: int = 0
    """int16, versions 0+."""
    partition_errors: list[StopReplicaResponse.StopReplicaPartitionError] = ...
    """[]StopReplicaPartitionError, versions 0+."""

class StreamsGroupCurrentMemberAssignmentKey(Message, kw_only=True):
    """Coordinator-key, api key 22; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""
    member_id: str = ""
    """string, versions 0."""

class StreamsGroupCurrentMemberAssignmentValue(Message, kw_only=True):
    """Coordinator-value, api key 22; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class TaskIds(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""
        assignment_epochs: list[int] | None = ...
        """[]int32, versions 0+, tagged 0+ (tag 0), nullable 0+."""

    member_epoch: int = 0
    """int32, versions 0+."""
    previous_member_epoch: int = 0
    """int32, versions 0+."""
    state: int = 0
    """int8, versions 0+."""
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""

class StreamsGroupDescribeRequest(Message, kw_only=True):
    """Request, api key 89; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    group_ids: list[str] = ...
    """[]string, versions 0+."""
    include_authorized_operations: bool = False
    """bool, versions 0+."""
    include_topology_description: bool = False
    """bool, versions 1+."""

class StreamsGroupDescribeResponse(Message, kw_only=True):
    """Response, api key 89; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class Endpoint(MessageStruct, kw_only=True):
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    class TaskOffset(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partition: int = 0
        """int32, versions 0+."""
        offset: int = 0
        """int64, versions 0+."""

    class Assignment(MessageStruct, kw_only=True):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        """[]TaskIds, versions 0+."""
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        """[]TaskIds, versions 0+."""
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        """[]TaskIds, versions 0+."""

    class TaskIds(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class KeyValue(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: str = ""
        """string, versions 0+."""

    class TopicInfo(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: int = 0
        """int32, versions 0+."""
        replication_factor: int = 0
        """int16, versions 0+."""
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ...
        """[]KeyValue, versions 0+."""

    class TopologyDescription(MessageStruct, kw_only=True):
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ...
        """[]TopologyDescriptionSubtopology, versions 1+."""
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ...
        """[]TopologyDescriptionGlobalStore, versions 1+."""

    class TopologyDescriptionSubtopology(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 1+."""
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ...
        """[]TopologyDescriptionNode, versions 1+."""

    class TopologyDescriptionNode(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 1+."""
        node_type: int = 0
        """int8, versions 1+."""
        source_topics: list[str] = ...
        """[]string, versions 1+."""
        sink_topic: str | None = None
        """string, versions 1+, nullable 1+."""
        stores: list[str] = ...
        """[]string, versions 1+."""
        successors: list[str] = ...
        """[]string, versions 1+."""

    class TopologyDescriptionGlobalStore(MessageStruct, kw_only=True):
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...
        """TopologyDescriptionNode, versions 1+."""
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...
        """TopologyDescriptionNode, versions 1+."""

    class DescribedGroup(MessageStruct, kw_only=True):
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""
        group_id: str = ""
        """string, versions 0+."""
        group_state: str = ""
        """string, versions 0+."""
        group_epoch: int = 0
        """int32, versions 0+."""
        assignment_epoch: int = 0
        """int32, versions 0+."""
        topology: StreamsGroupDescribeResponse.Topology | None = None
        """Topology, versions 0+, nullable 0+."""
        members: list[StreamsGroupDescribeResponse.Member] = ...
        """[]Member, versions 0+."""
        authorized_operations: int = ...
        """int32, versions 0+."""
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = None
        """TopologyDescription, versions 1+, nullable 1+."""
        topology_description_status: int = 0
        """int8, versions 1+."""
        assignor_name: str | None = None
        """string, versions 1+, nullable 1+, ignorable."""

    class Topology(MessageStruct, kw_only=True):
        epoch: int = 0
        """int32, versions 0+."""
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None
        """[]Subtopology, versions 0+, nullable 0+."""

    class Subtopology(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        source_topics: list[str] = ...
        """[]string, versions 0+."""
        repartition_sink_topics: list[str] = ...
        """[]string, versions 0+."""
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...
        """[]TopicInfo, versions 0+."""
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...
        """[]TopicInfo, versions 0+."""

    class Member(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        member_epoch: int = 0
        """int32, versions 0+."""
        instance_id: str | None = None
        """string, versions 0+, nullable 0+."""
        rack_id: str | None = None
        """string, versions 0+, nullable 0+."""
        client_id: str = ""
        """string, versions 0+."""
        client_host: str = ""
        """string, versions 0+."""
        topology_epoch: int = 0
        """int32, versions 0+."""
        process_id: str = ""
        """string, versions 0+."""
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None
        """Endpoint, versions 0+, nullable 0+."""
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ...
        """[]KeyValue, versions 0+."""
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...
        """[]TaskOffset, versions 0+."""
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...
        """[]TaskOffset, versions 0+."""
        assignment: StreamsGroupDescribeResponse.Assignment = ...
        """Assignment, versions 0+."""
        target_assignment: StreamsGroupDescribeResponse.Assignment = ...
        """Assignment, versions 0+."""
        is_classic: bool = False
        """bool, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ...
    """[]DescribedGroup, versions 0+."""

class StreamsGroupHeartbeatRequest(Message, kw_only=True):
    """Request, api key 88; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class KeyValue(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: str = ""
        """string, versions 0+."""

    class TopicInfo(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: int = 0
        """int32, versions 0+."""
        replication_factor: int = 0
        """int16, versions 0+."""
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ...
        """[]KeyValue, versions 0+."""

    class Endpoint(MessageStruct, kw_only=True):
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    class TaskOffset(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partition: int = 0
        """int32, versions 0+."""
        offset: int = 0
        """int64, versions 0+."""

    class TaskIds(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class Topology(MessageStruct, kw_only=True):
        epoch: int = 0
        """int32, versions 0+."""
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ...
        """[]Subtopology, versions 0+."""

    class Subtopology(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        source_topics: list[str] = ...
        """[]string, versions 0+."""
        source_topic_regex: list[str] = ...
        """[]string, versions 0+."""
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...
        """[]TopicInfo, versions 0+."""
        repartition_sink_topics: list[str] = ...
        """[]string, versions 0+."""
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...
        """[]TopicInfo, versions 0+."""
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...
        """[]CopartitionGroup, versions 0+."""

    class CopartitionGroup(MessageStruct, kw_only=True):
        source_topics: list[int] = ...
        """[]int16, versions 0+."""
        source_topic_regex: list[int] = ...
        """[]int16, versions 0+."""
        repartition_source_topics: list[int] = ...
        """[]int16, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    member_id: str = ""
    """string, versions 0+."""
    member_epoch: int = 0
    """int32, versions 0+."""
    endpoint_information_epoch: int = 0
    """int32, versions 0+."""
    instance_id: str | None = None
    """string, versions 0+, nullable 0+."""
    rack_id: str | None = None
    """string, versions 0+, nullable 0+."""
    rebalance_timeout_ms: int = -1
    """int32, versions 0+."""
    topology: StreamsGroupHeartbeatRequest.Topology | None = None
    """Topology, versions 0+, nullable 0+."""
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None
    """[]TaskIds, versions 0+, nullable 0+."""
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None
    """[]TaskIds, versions 0+, nullable 0+."""
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None
    """[]TaskIds, versions 0+, nullable 0+."""
    process_id: str | None = None
    """string, versions 0+, nullable 0+."""
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = None
    """Endpoint, versions 0+, nullable 0+."""
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = None
    """[]KeyValue, versions 0+, nullable 0+."""
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None
    """[]TaskOffset, versions 0+, nullable 0+."""
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None
    """[]TaskOffset, versions 0+, nullable 0+."""
    shutdown_application: bool = False
    """bool, versions 0+."""

class StreamsGroupHeartbeatResponse(Message, kw_only=True):
    """Response, api key 88; versions 0-1, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class Status(MessageStruct, kw_only=True):
        status_code: int = 0
        """int8, versions 0+."""
        status_detail: str = ""
        """string, versions 0+."""

    class TopicPartition(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class TaskIds(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    class Endpoint(MessageStruct, kw_only=True):
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    class EndpointToPartitions(MessageStruct, kw_only=True):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ...
        """Endpoint, versions 0+."""
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...
        """[]TopicPartition, versions 0+."""
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...
        """[]TopicPartition, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""
    member_id: str = ""
    """string, versions 0+."""
    member_epoch: int = 0
    """int32, versions 0+."""
    heartbeat_interval_ms: int = 0
    """int32, versions 0+."""
    acceptable_recovery_lag_legacy: int = 0
    """int32, versions 0."""
    task_offset_interval_ms: int = 0
    """int32, versions 0+."""
    acceptable_recovery_lag: int = -1
    """int64, versions 1+, ignorable."""
    status: list[StreamsGroupHeartbeatResponse.Status] | None = ...
    """[]Status, versions 0+, nullable 0+."""
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None
    """[]TaskIds, versions 0+, nullable 0+."""
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None
    """[]TaskIds, versions 0+, nullable 0+."""
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None
    """[]TaskIds, versions 0+, nullable 0+."""
    topology_description_required: bool = False
    """bool, versions 1+."""
    endpoint_information_epoch: int = 0
    """int32, versions 0+."""
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = None
    """[]EndpointToPartitions, versions 0+, nullable 0+."""

class StreamsGroupMemberMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 19; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""
    member_id: str = ""
    """string, versions 0."""

class StreamsGroupMemberMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 19; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class Endpoint(MessageStruct, kw_only=True):
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    class KeyValue(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: str = ""
        """string, versions 0+."""

    instance_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    rack_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    client_id: str = ""
    """string, versions 0+."""
    client_host: str = ""
    """string, versions 0+."""
    rebalance_timeout_ms: int = -1
    """int32, versions 0+."""
    topology_epoch: int = 0
    """int32, versions 0+."""
    process_id: str = ""
    """string, versions 0+."""
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = None
    """Endpoint, versions 0+, nullable 0+."""
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = ...
    """[]KeyValue, versions 0+."""

class StreamsGroupMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 17; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""

class StreamsGroupMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 17; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class LastAssignmentConfig(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: str = ""
        """string, versions 0+."""

    epoch: int = 0
    """int32, versions 0+."""
    metadata_hash: int = 0
    """int64, versions 0+."""
    validated_topology_epoch: int = -1
    """int32, versions 0+, tagged 0+ (tag 0)."""
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = ...
    """[]LastAssignmentConfig, versions 0+, tagged 0+ (tag 1), nullable 0+."""
    stored_description_topology_epoch: int = -1
    """int32, versions 0+, tagged 0+ (tag 2)."""
    failed_description_topology_epoch: int = -1
    """int32, versions 0+, tagged 0+ (tag 3)."""

class StreamsGroupTargetAssignmentMemberKey(Message, kw_only=True):
    """Coordinator-key, api key 21; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""
    member_id: str = ""
    """string, versions 0."""

class StreamsGroupTargetAssignmentMemberValue(Message, kw_only=True):
    """Coordinator-value, api key 21; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class TaskIds(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        partitions: list[int] = ...
        """[]int32, versions 0+."""

    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...
    """[]TaskIds, versions 0+."""

class StreamsGroupTargetAssignmentMetadataKey(Message, kw_only=True):
    """Coordinator-key, api key 20; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""

class StreamsGroupTargetAssignmentMetadataValue(Message, kw_only=True):
    """Coordinator-value, api key 20; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    assignment_epoch: int = 0
    """int32, versions 0+."""
    assignment_timestamp: int = 0
    """int64, versions 0+, tagged 0+ (tag 0), ignorable."""

class StreamsGroupTopologyDescriptionUpdateRequest(Message, kw_only=True):
    """Request, api key 93; versions 0, flexible 0+; in Kafka 4.4.0."""

    class TopologyDescription(MessageStruct, kw_only=True):
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ...
        """[]TopologyDescriptionSubtopology, versions 0+."""
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ...
        """[]TopologyDescriptionGlobalStore, versions 0+."""

    class TopologyDescriptionSubtopology(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ...
        """[]TopologyDescriptionNode, versions 0+."""

    class TopologyDescriptionNode(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        node_type: int = 0
        """int8, versions 0+."""
        source_topics: list[str] = ...
        """[]string, versions 0+."""
        sink_topic: str | None = None
        """string, versions 0+, nullable 0+."""
        stores: list[str] = ...
        """[]string, versions 0+."""
        successors: list[str] = ...
        """[]string, versions 0+."""

    class TopologyDescriptionGlobalStore(MessageStruct, kw_only=True):
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...
        """TopologyDescriptionNode, versions 0+."""
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...
        """TopologyDescriptionNode, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    member_id: str = ""
    """string, versions 0+."""
    topology_epoch: int = 0
    """int32, versions 0+."""
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ...
    """TopologyDescription, versions 0+."""

class StreamsGroupTopologyDescriptionUpdateResponse(Message, kw_only=True):
    """Response, api key 93; versions 0, flexible 0+; in Kafka 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = None
    """string, versions 0+, nullable 0+."""

class StreamsGroupTopologyKey(Message, kw_only=True):
    """Coordinator-key, api key 23; versions 0, not flexible; in Kafka 4.1.2 to 4.4.0."""

    group_id: str = ""
    """string, versions 0."""

class StreamsGroupTopologyValue(Message, kw_only=True):
    """Coordinator-value, api key 23; versions 0, flexible 0+; in Kafka 4.1.2 to 4.4.0."""

    class TopicConfig(MessageStruct, kw_only=True):
        key: str = ""
        """string, versions 0+."""
        value: str = ""
        """string, versions 0+."""

    class TopicInfo(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: int = 0
        """int32, versions 0+."""
        replication_factor: int = 0
        """int16, versions 0+."""
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = ...
        """[]TopicConfig, versions 0+."""

    class Subtopology(MessageStruct, kw_only=True):
        subtopology_id: str = ""
        """string, versions 0+."""
        source_topics: list[str] = ...
        """[]string, versions 0+."""
        source_topic_regex: list[str] = ...
        """[]string, versions 0+."""
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...
        """[]TopicInfo, versions 0+."""
        repartition_sink_topics: list[str] = ...
        """[]string, versions 0+."""
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...
        """[]TopicInfo, versions 0+."""
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = ...
        """[]CopartitionGroup, versions 0+."""

    class CopartitionGroup(MessageStruct, kw_only=True):
        source_topics: list[int] = ...
        """[]int16, versions 0+."""
        source_topic_regex: list[int] = ...
        """[]int16, versions 0+."""
        repartition_source_topics: list[int] = ...
        """[]int16, versions 0+."""

    epoch: int = 0
    """int32, versions 0+."""
    subtopologies: list[StreamsGroupTopologyValue.Subtopology] = ...
    """[]Subtopology, versions 0+."""

class SubscriptionInfo(Message, kw_only=True):
    """Data; versions 1-6, not flexible; in Kafka 2.5.1."""

    class TaskId(MessageStruct, kw_only=True):
        topic_group_id: int = 0
        """int32, versions 1+."""
        partition: int = 0
        """int32, versions 1+."""

    version: int = 0
    """int32, versions 1+."""
    latest_supported_version: int = -1
    """int32, versions 3+."""
    process_id: _uuid.UUID = ...
    """uuid, versions 1+."""
    prev_tasks: list[SubscriptionInfo.TaskId] = ...
    """[]TaskId, versions 1+."""
    standby_tasks: list[SubscriptionInfo.TaskId] = ...
    """[]TaskId, versions 1+."""
    user_end_point: bytes = b""
    """bytes, versions 2+."""

class SubscriptionInfoData(Message, kw_only=True):
    """Data; versions 1-11, not flexible; in Kafka 2.6.3 to 4.3.1."""

    class TaskId(MessageStruct, kw_only=True):
        topic_group_id: int = 0
        """int32, versions 1-6."""
        partition: int = 0
        """int32, versions 1-6."""

    class TaskOffsetSum(MessageStruct, kw_only=True):
        topic_group_id: int = 0
        """int32, versions 7+."""
        partition: int = 0
        """int32, versions 10+."""
        offset_sum: int = 0
        """int64, versions 10+."""
        named_topology: str | None = ""
        """string, versions 10+, nullable 10+."""
        partition_to_offset_sum: list[SubscriptionInfoData.PartitionToOffsetSum] = ...
        """[]PartitionToOffsetSum, versions 7-9."""

    class PartitionToOffsetSum(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 7-9."""
        offset_sum: int = 0
        """int64, versions 7-9."""

    class ClientTag(MessageStruct, kw_only=True):
        key: bytes = b""
        """bytes, versions 11+."""
        value: bytes = b""
        """bytes, versions 11+."""

    version: int = 0
    """int32, versions 1+."""
    latest_supported_version: int = -1
    """int32, versions 3+."""
    process_id: _uuid.UUID = ...
    """uuid, versions 1+."""
    prev_tasks: list[SubscriptionInfoData.TaskId] = ...
    """[]TaskId, versions 1-6."""
    standby_tasks: list[SubscriptionInfoData.TaskId] = ...
    """[]TaskId, versions 1-6."""
    user_end_point: bytes = b""
    """bytes, versions 2+."""
    task_offset_sums: list[SubscriptionInfoData.TaskOffsetSum] = ...
    """[]TaskOffsetSum, versions 7+."""
    unique_field: int = 0
    """int8, versions 8+."""
    error_code: int = 0
    """int32, versions 9+."""
    client_tags: list[SubscriptionInfoData.ClientTag] = ...
    """[]ClientTag, versions 11+."""

class SyncGroupRequest(Message, kw_only=True):
    """Request, api key 14; versions 0-5, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    class SyncGroupRequestAssignment(MessageStruct, kw_only=True):
        member_id: str = ""
        """string, versions 0+."""
        assignment: bytes = b""
        """bytes, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    generation_id: int = 0
    """int32, versions 0+."""
    member_id: str = ""
    """string, versions 0+."""
    group_instance_id: str | None = None
    """string, versions 3+, nullable 3+."""
    protocol_type: str | None = None
    """string, versions 5+, nullable 5+, ignorable."""
    protocol_name: str | None = None
    """string, versions 5+, nullable 5+, ignorable."""
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ...
    """[]SyncGroupRequestAssignment, versions 0+."""

class SyncGroupResponse(Message, kw_only=True):
    """Response, api key 14; versions 0-5, flexible 4+; in Kafka 2.4.1 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 1+, ignorable."""
    error_code: int = 0
    """int16, versions 0+."""
    protocol_type: str | None = None
    """string, versions 5+, nullable 5+, ignorable."""
    protocol_name: str | None = None
    """string, versions 5+, nullable 5+, ignorable."""
    assignment: bytes = b""
    """bytes, versions 0+."""

class TopicRecord(Message, kw_only=True):
    """Metadata record, api key 2; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    name: str = ""
    """string, versions 0+."""
    topic_id: _uuid.UUID = ...
    """uuid, versions 0+."""

class TransactionLogKey(Message, kw_only=True):
    """Coordinator-key, api key 0; versions 0, not flexible; in Kafka 2.8.2 to 4.4.0."""

    transactional_id: str = ""
    """string, versions 0."""

class TransactionLogValue(Message, kw_only=True):
    """Coordinator-value, api key 0; versions 0-1, flexible 1+; in Kafka 2.8.2 to 4.4.0."""

    class PartitionsSchema(MessageStruct, kw_only=True):
        topic: str = ""
        """string, versions 0+."""
        partition_ids: list[int] = ...
        """[]int32, versions 0+."""

    producer_id: int = 0
    """int64, versions 0+."""
    previous_producer_id: int = -1
    """int64, versions 1+, tagged 1+ (tag 0)."""
    next_producer_id: int = -1
    """int64, versions 1+, tagged 1+ (tag 1)."""
    producer_epoch: int = 0
    """int16, versions 0+."""
    next_producer_epoch: int = -1
    """int16, versions 1+, tagged 1+ (tag 3)."""
    transaction_timeout_ms: int = 0
    """int32, versions 0+."""
    transaction_status: int = 0
    """int8, versions 0+."""
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = ...
    """[]PartitionsSchema, versions 0+, nullable 0+."""
    transaction_last_update_timestamp_ms: int = 0
    """int64, versions 0+."""
    transaction_start_timestamp_ms: int = 0
    """int64, versions 0+."""
    client_transaction_version: int = 0
    """int16, versions 1+, tagged 1+ (tag 2)."""

class TxnOffsetCommitRequest(Message, kw_only=True):
    """Request, api key 28; versions 0-6, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class TxnOffsetCommitRequestTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-5, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 6+, ignorable."""
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...
        """[]TxnOffsetCommitRequestPartition, versions 0+."""

    class TxnOffsetCommitRequestPartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        committed_offset: int = 0
        """int64, versions 0+."""
        committed_leader_epoch: int = -1
        """int32, versions 2+, ignorable."""
        committed_metadata: str | None = ""
        """string, versions 0+, nullable 0+."""

    transactional_id: str = ""
    """string, versions 0+."""
    group_id: str = ""
    """string, versions 0+."""
    producer_id: int = 0
    """int64, versions 0+."""
    producer_epoch: int = 0
    """int16, versions 0+."""
    generation_id_or_member_epoch: int = -1
    """int32, versions 3+."""
    member_id: str = ""
    """string, versions 3+."""
    group_instance_id: str | None = None
    """string, versions 3+, nullable 3+."""
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ...
    """[]TxnOffsetCommitRequestTopic, versions 0+."""

class TxnOffsetCommitResponse(Message, kw_only=True):
    """Response, api key 28; versions 0-6, flexible 3+; in Kafka 2.4.1 to 4.4.0."""

    class TxnOffsetCommitResponseTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0-5, ignorable."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 6+, ignorable."""
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...
        """[]TxnOffsetCommitResponsePartition, versions 0+."""

    class TxnOffsetCommitResponsePartition(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...
    """[]TxnOffsetCommitResponseTopic, versions 0+."""

class UnfenceBrokerRecord(Message, kw_only=True):
    """Metadata record, api key 8; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    id: int = 0
    """int32, versions 0+."""
    epoch: int = 0
    """int64, versions 0+."""

class UnregisterBrokerRecord(Message, kw_only=True):
    """Metadata record, api key 1; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    broker_id: int = 0
    """int32, versions 0+."""
    broker_epoch: int = 0
    """int64, versions 0+."""

class UnregisterBrokerRequest(Message, kw_only=True):
    """Request, api key 64; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    broker_id: int = 0
    """int32, versions 0+."""

class UnregisterBrokerResponse(Message, kw_only=True):
    """Response, api key 64; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""

class UnregisterControllerRecord(Message, kw_only=True):
    """Metadata record, api key 29; versions 0, flexible 0+; in Kafka 4.4.0."""

    controller_id: int = 0
    """int32, versions 0+."""

class UnregisterControllerRequest(Message, kw_only=True):
    """Request, api key 94; versions 0, flexible 0+; in Kafka 4.4.0."""

    controller_id: int = 0
    """int32, versions 0+."""

class UnregisterControllerResponse(Message, kw_only=True):
    """Response, api key 94; versions 0, flexible 0+; in Kafka 4.4.0."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""

class UpdateFeaturesRequest(Message, kw_only=True):
    """Request, api key 57; versions 0-2, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class FeatureUpdateKey(MessageStruct, kw_only=True):
        feature: str = ""
        """string, versions 0+."""
        max_version_level: int = 0
        """int16, versions 0+."""
        allow_downgrade: bool = False
        """bool, versions 0."""
        upgrade_type: int = 1
        """int8, versions 1+."""

    timeout_ms: int = 60000
    """int32, versions 0+."""
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ...
    """[]FeatureUpdateKey, versions 0+."""
    validate_only: bool = False
    """bool, versions 1+."""

class UpdateFeaturesResponse(Message, kw_only=True):
    """Response, api key 57; versions 0-2, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class UpdatableFeatureResult(MessageStruct, kw_only=True):
        feature: str = ""
        """string, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = ""
        """string, versions 0+, nullable 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    error_message: str | None = ""
    """string, versions 0+, nullable 0+."""
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...
    """[]UpdatableFeatureResult, versions 0-1, ignorable."""

class UpdateMetadataRequest(Message, kw_only=True):
    """Request, api key 6; versions 0-8, flexible 6+; in Kafka 2.4.1 to 3.9.2."""

    class UpdateMetadataPartitionState(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0-4, ignorable."""
        partition_index: int = 0
        """int32, versions 0+."""
        controller_epoch: int = 0
        """int32, versions 0+."""
        leader: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        isr: list[int] = ...
        """[]int32, versions 0+."""
        zk_version: int = 0
        """int32, versions 0+."""
        replicas: list[int] = ...
        """[]int32, versions 0+."""
        offline_replicas: list[int] = ...
        """[]int32, versions 4+, ignorable."""

    class UpdateMetadataTopicState(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 5+."""
        topic_id: _uuid.UUID = ...
        """uuid, versions 7+, ignorable."""
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...
        """[]UpdateMetadataPartitionState, versions 5+."""

    class UpdateMetadataBroker(MessageStruct, kw_only=True):
        id: int = 0
        """int32, versions 0+."""
        v0_host: str = ""
        """string, versions 0, ignorable."""
        v0_port: int = 0
        """int32, versions 0, ignorable."""
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint] = ...
        """[]UpdateMetadataEndpoint, versions 1+, ignorable."""
        rack: str | None = ""
        """string, versions 2+, nullable 2+, ignorable."""

    class UpdateMetadataEndpoint(MessageStruct, kw_only=True):
        port: int = 0
        """int32, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        listener: str = ""
        """string, versions 3+, ignorable."""
        security_protocol: int = 0
        """int16, versions 1+."""

    controller_id: int = 0
    """int32, versions 0+."""
    is_k_raft_controller: bool = False
    """bool, versions 8+."""
    type: int = 0
    """int8, versions 8+, tagged 8+ (tag 0)."""
    controller_epoch: int = 0
    """int32, versions 0+."""
    broker_epoch: int = -1
    """int64, versions 5+, ignorable."""
    ungrouped_partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...
    """[]UpdateMetadataPartitionState, versions 0-4."""
    topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState] = ...
    """[]UpdateMetadataTopicState, versions 5+."""
    live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker] = ...
    """[]UpdateMetadataBroker, versions 0+."""

class UpdateMetadataResponse(Message, kw_only=True):
    """Response, api key 6; versions 0-8, flexible 6+; in Kafka 2.4.1 to 3.9.2."""

    error_code: int = 0
    """int16, versions 0+."""

class UpdateRaftVoterRequest(Message, kw_only=True):
    """Request, api key 82; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class Listener(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    class KRaftVersionFeature(MessageStruct, kw_only=True):
        min_supported_version: int = 0
        """int16, versions 0+."""
        max_supported_version: int = 0
        """int16, versions 0+."""

    cluster_id: str | None = ""
    """string, versions 0+, nullable 0+."""
    current_leader_epoch: int = 0
    """int32, versions 0+."""
    voter_id: int = 0
    """int32, versions 0+."""
    voter_directory_id: _uuid.UUID = ...
    """uuid, versions 0+."""
    listeners: list[UpdateRaftVoterRequest.Listener] = ...
    """[]Listener, versions 0+."""
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...
    """KRaftVersionFeature, versions 0+."""

class UpdateRaftVoterResponse(Message, kw_only=True):
    """Response, api key 82; versions 0, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class CurrentLeader(MessageStruct, kw_only=True):
        leader_id: int = -1
        """int32, versions 0+."""
        leader_epoch: int = -1
        """int32, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """int32, versions 0+."""

    throttle_time_ms: int = 0
    """int32, versions 0+."""
    error_code: int = 0
    """int16, versions 0+."""
    current_leader: UpdateRaftVoterResponse.CurrentLeader = ...
    """CurrentLeader, versions 0+, tagged 0+ (tag 0)."""

class UserScramCredentialRecord(Message, kw_only=True):
    """Metadata record, api key 11; versions 0, flexible 0+; in Kafka 2.8.2 to 4.4.0."""

    name: str = ""
    """string, versions 0+."""
    mechanism: int = 0
    """int8, versions 0+."""
    salt: bytes = b""
    """bytes, versions 0+."""
    stored_key: bytes = b""
    """bytes, versions 0+."""
    server_key: bytes = b""
    """bytes, versions 0+."""
    iterations: int = 0
    """int32, versions 0+."""

class VoteRequest(Message, kw_only=True):
    """Request, api key 52; versions 0-2, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[VoteRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        replica_epoch: int = 0
        """int32, versions 0+."""
        replica_id: int = 0
        """int32, versions 0+."""
        replica_directory_id: _uuid.UUID = ...
        """uuid, versions 1+, ignorable."""
        voter_directory_id: _uuid.UUID = ...
        """uuid, versions 1+, ignorable."""
        last_offset_epoch: int = 0
        """int32, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        pre_vote: bool = False
        """bool, versions 2+."""

    cluster_id: str | None = None
    """string, versions 0+, nullable 0+."""
    voter_id: int = -1
    """int32, versions 1+, ignorable."""
    topics: list[VoteRequest.TopicData] = ...
    """[]TopicData, versions 0+."""

class VoteResponse(Message, kw_only=True):
    """Response, api key 52; versions 0-2, flexible 0+; in Kafka 2.7.2 to 4.4.0."""

    class TopicData(MessageStruct, kw_only=True):
        topic_name: str = ""
        """string, versions 0+."""
        partitions: list[VoteResponse.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        leader_id: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        vote_granted: bool = False
        """bool, versions 0+."""

    class NodeEndpoint(MessageStruct, kw_only=True):
        node_id: int = 0
        """int32, versions 1+."""
        host: str = ""
        """string, versions 1+."""
        port: int = 0
        """uint16, versions 1+."""

    error_code: int = 0
    """int16, versions 0+."""
    topics: list[VoteResponse.TopicData] = ...
    """[]TopicData, versions 0+."""
    node_endpoints: list[VoteResponse.NodeEndpoint] = ...
    """[]NodeEndpoint, versions 1+, tagged 1+ (tag 0)."""

class VotersRecord(Message, kw_only=True):
    """Data; versions 0, flexible 0+; in Kafka 3.8.1 to 4.4.0."""

    class Voter(MessageStruct, kw_only=True):
        voter_id: int = 0
        """int32, versions 0+."""
        voter_directory_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        endpoints: list[VotersRecord.Endpoint] = ...
        """[]Endpoint, versions 0+."""
        k_raft_version_feature: VotersRecord.KRaftVersionFeature = ...
        """KRaftVersionFeature, versions 0+."""

    class Endpoint(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        host: str = ""
        """string, versions 0+."""
        port: int = 0
        """uint16, versions 0+."""

    class KRaftVersionFeature(MessageStruct, kw_only=True):
        min_supported_version: int = 0
        """int16, versions 0+."""
        max_supported_version: int = 0
        """int16, versions 0+."""

    version: int = 0
    """int16, versions 0+."""
    voters: list[VotersRecord.Voter] = ...
    """[]Voter, versions 0+."""

class WriteShareGroupStateRequest(Message, kw_only=True):
    """Request, api key 85; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class WriteStateData(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[WriteShareGroupStateRequest.PartitionData] = ...
        """[]PartitionData, versions 0+."""

    class PartitionData(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        state_epoch: int = 0
        """int32, versions 0+."""
        leader_epoch: int = 0
        """int32, versions 0+."""
        start_offset: int = 0
        """int64, versions 0+."""
        delivery_complete_count: int = -1
        """int32, versions 1+, ignorable."""
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = ...
        """[]StateBatch, versions 0+."""

    class StateBatch(MessageStruct, kw_only=True):
        first_offset: int = 0
        """int64, versions 0+."""
        last_offset: int = 0
        """int64, versions 0+."""
        delivery_state: int = 0
        """int8, versions 0+."""
        delivery_count: int = 0
        """int16, versions 0+."""

    group_id: str = ""
    """string, versions 0+."""
    topics: list[WriteShareGroupStateRequest.WriteStateData] = ...
    """[]WriteStateData, versions 0+."""

class WriteShareGroupStateResponse(Message, kw_only=True):
    """Response, api key 85; versions 0-1, flexible 0+; in Kafka 3.9.2 to 4.4.0."""

    class WriteStateResult(MessageStruct, kw_only=True):
        topic_id: _uuid.UUID = ...
        """uuid, versions 0+."""
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = ...
        """[]PartitionResult, versions 0+."""

    class PartitionResult(MessageStruct, kw_only=True):
        partition: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""
        error_message: str | None = None
        """string, versions 0+, nullable 0+."""

    results: list[WriteShareGroupStateResponse.WriteStateResult] = ...
    """[]WriteStateResult, versions 0+."""

class WriteTxnMarkersRequest(Message, kw_only=True):
    """Request, api key 27; versions 0-2, flexible 1+; in Kafka 2.4.1 to 4.4.0."""

    class WritableTxnMarker(MessageStruct, kw_only=True):
        producer_id: int = 0
        """int64, versions 0+."""
        producer_epoch: int = 0
        """int16, versions 0+."""
        transaction_result: bool = False
        """bool, versions 0+."""
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ...
        """[]WritableTxnMarkerTopic, versions 0+."""
        coordinator_epoch: int = 0
        """int32, versions 0+."""
        transaction_version: int = 0
        """int8, versions 2+, ignorable."""

    class WritableTxnMarkerTopic(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partition_indexes: list[int] = ...
        """[]int32, versions 0+."""

    markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...
    """[]WritableTxnMarker, versions 0+."""

class WriteTxnMarkersResponse(Message, kw_only=True):
    """Response, api key 27; versions 0-2, flexible 1+; in Kafka 2.4.1 to 4.4.0."""

    class WritableTxnMarkerResult(MessageStruct, kw_only=True):
        producer_id: int = 0
        """int64, versions 0+."""
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...
        """[]WritableTxnMarkerTopicResult, versions 0+."""

    class WritableTxnMarkerTopicResult(MessageStruct, kw_only=True):
        name: str = ""
        """string, versions 0+."""
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...
        """[]WritableTxnMarkerPartitionResult, versions 0+."""

    class WritableTxnMarkerPartitionResult(MessageStruct, kw_only=True):
        partition_index: int = 0
        """int32, versions 0+."""
        error_code: int = 0
        """int16, versions 0+."""

    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...
    """[]WritableTxnMarkerResult, versions 0+."""

class ZkMigrationStateRecord(Message, kw_only=True):
    """Metadata record, api key 21; versions 0, flexible 0+; in Kafka 3.4.1 to 4.4.0."""

    zk_migration_state: int = 0
    """int8, versions 0+."""

@overload
def message(name: Literal["AbortTransactionRecord"], release: None = None) -> type[AbortTransactionRecord]: ...
@overload
def message(name: Literal["AbortedTxn"], release: None = None) -> type[AbortedTxn]: ...
@overload
def message(name: Literal["AccessControlEntryRecord"], release: None = None) -> type[AccessControlEntryRecord]: ...
@overload
def message(name: Literal["AccessControlRecord"], release: None = None) -> type[AccessControlRecord]: ...
@overload
def message(name: Literal["AddOffsetsToTxnRequest"], release: None = None) -> type[AddOffsetsToTxnRequest]: ...
@overload
def message(name: Literal["AddOffsetsToTxnResponse"], release: None = None) -> type[AddOffsetsToTxnResponse]: ...
@overload
def message(name: Literal["AddPartitionsToTxnRequest"], release: None = None) -> type[AddPartitionsToTxnRequest]: ...
@overload
def message(name: Literal["AddPartitionsToTxnResponse"], release: None = None) -> type[AddPartitionsToTxnResponse]: ...
@overload
def message(name: Literal["AddRaftVoterRequest"], release: None = None) -> type[AddRaftVoterRequest]: ...
@overload
def message(name: Literal["AddRaftVoterResponse"], release: None = None) -> type[AddRaftVoterResponse]: ...
@overload
def message(name: Literal["AllocateProducerIdsRequest"], release: None = None) -> type[AllocateProducerIdsRequest]: ...
@overload
def message(name: Literal["AllocateProducerIdsResponse"], release: None = None) -> type[AllocateProducerIdsResponse]: ...
@overload
def message(name: Literal["AlterClientQuotasRequest"], release: None = None) -> type[AlterClientQuotasRequest]: ...
@overload
def message(name: Literal["AlterClientQuotasResponse"], release: None = None) -> type[AlterClientQuotasResponse]: ...
@overload
def message(name: Literal["AlterConfigsRequest"], release: None = None) -> type[AlterConfigsRequest]: ...
@overload
def message(name: Literal["AlterConfigsResponse"], release: None = None) -> type[AlterConfigsResponse]: ...
@overload
def message(name: Literal["AlterIsrRequest"], release: None = None) -> type[AlterIsrRequest]: ...
@overload
def message(name: Literal["AlterIsrResponse"], release: None = None) -> type[AlterIsrResponse]: ...
@overload
def message(name: Literal["AlterPartitionReassignmentsRequest"], release: None = None) -> type[AlterPartitionReassignmentsRequest]: ...
@overload
def message(name: Literal["AlterPartitionReassignmentsResponse"], release: None = None) -> type[AlterPartitionReassignmentsResponse]: ...
@overload
def message(name: Literal["AlterPartitionRequest"], release: None = None) -> type[AlterPartitionRequest]: ...
@overload
def message(name: Literal["AlterPartitionResponse"], release: None = None) -> type[AlterPartitionResponse]: ...
@overload
def message(name: Literal["AlterReplicaLogDirsRequest"], release: None = None) -> type[AlterReplicaLogDirsRequest]: ...
@overload
def message(name: Literal["AlterReplicaLogDirsResponse"], release: None = None) -> type[AlterReplicaLogDirsResponse]: ...
@overload
def message(name: Literal["AlterShareGroupOffsetsRequest"], release: None = None) -> type[AlterShareGroupOffsetsRequest]: ...
@overload
def message(name: Literal["AlterShareGroupOffsetsResponse"], release: None = None) -> type[AlterShareGroupOffsetsResponse]: ...
@overload
def message(name: Literal["AlterUserScramCredentialsRequest"], release: None = None) -> type[AlterUserScramCredentialsRequest]: ...
@overload
def message(name: Literal["AlterUserScramCredentialsResponse"], release: None = None) -> type[AlterUserScramCredentialsResponse]: ...
@overload
def message(name: Literal["ApiVersionsRequest"], release: None = None) -> type[ApiVersionsRequest]: ...
@overload
def message(name: Literal["ApiVersionsResponse"], release: None = None) -> type[ApiVersionsResponse]: ...
@overload
def message(name: Literal["AssignReplicasToDirsRequest"], release: None = None) -> type[AssignReplicasToDirsRequest]: ...
@overload
def message(name: Literal["AssignReplicasToDirsResponse"], release: None = None) -> type[AssignReplicasToDirsResponse]: ...
@overload
def message(name: Literal["BeginQuorumEpochRequest"], release: None = None) -> type[BeginQuorumEpochRequest]: ...
@overload
def message(name: Literal["BeginQuorumEpochResponse"], release: None = None) -> type[BeginQuorumEpochResponse]: ...
@overload
def message(name: Literal["BeginTransactionRecord"], release: None = None) -> type[BeginTransactionRecord]: ...
@overload
def message(name: Literal["BrokerHeartbeatRequest"], release: None = None) -> type[BrokerHeartbeatRequest]: ...
@overload
def message(name: Literal["BrokerHeartbeatResponse"], release: None = None) -> type[BrokerHeartbeatResponse]: ...
@overload
def message(name: Literal["BrokerRegistrationChangeRecord"], release: None = None) -> type[BrokerRegistrationChangeRecord]: ...
@overload
def message(name: Literal["BrokerRegistrationRequest"], release: None = None) -> type[BrokerRegistrationRequest]: ...
@overload
def message(name: Literal["BrokerRegistrationResponse"], release: None = None) -> type[BrokerRegistrationResponse]: ...
@overload
def message(name: Literal["ClearElrRecord"], release: None = None) -> type[ClearElrRecord]: ...
@overload
def message(name: Literal["ClientQuotaRecord"], release: None = None) -> type[ClientQuotaRecord]: ...
@overload
def message(name: Literal["ConfigRecord"], release: None = None) -> type[ConfigRecord]: ...
@overload
def message(name: Literal["ConsumerGroupCurrentMemberAssignmentKey"], release: None = None) -> type[ConsumerGroupCurrentMemberAssignmentKey]: ...
@overload
def message(name: Literal["ConsumerGroupCurrentMemberAssignmentValue"], release: None = None) -> type[ConsumerGroupCurrentMemberAssignmentValue]: ...
@overload
def message(name: Literal["ConsumerGroupDescribeRequest"], release: None = None) -> type[ConsumerGroupDescribeRequest]: ...
@overload
def message(name: Literal["ConsumerGroupDescribeResponse"], release: None = None) -> type[ConsumerGroupDescribeResponse]: ...
@overload
def message(name: Literal["ConsumerGroupHeartbeatRequest"], release: None = None) -> type[ConsumerGroupHeartbeatRequest]: ...
@overload
def message(name: Literal["ConsumerGroupHeartbeatResponse"], release: None = None) -> type[ConsumerGroupHeartbeatResponse]: ...
@overload
def message(name: Literal["ConsumerGroupMemberMetadataKey"], release: None = None) -> type[ConsumerGroupMemberMetadataKey]: ...
@overload
def message(name: Literal["ConsumerGroupMemberMetadataValue"], release: None = None) -> type[ConsumerGroupMemberMetadataValue]: ...
@overload
def message(name: Literal["ConsumerGroupMetadataKey"], release: None = None) -> type[ConsumerGroupMetadataKey]: ...
@overload
def message(name: Literal["ConsumerGroupMetadataValue"], release: None = None) -> type[ConsumerGroupMetadataValue]: ...
@overload
def message(name: Literal["ConsumerGroupPartitionMetadataKey"], release: None = None) -> type[ConsumerGroupPartitionMetadataKey]: ...
@overload
def message(name: Literal["ConsumerGroupPartitionMetadataValue"], release: None = None) -> type[ConsumerGroupPartitionMetadataValue]: ...
@overload
def message(name: Literal["ConsumerGroupRegularExpressionKey"], release: None = None) -> type[ConsumerGroupRegularExpressionKey]: ...
@overload
def message(name: Literal["ConsumerGroupRegularExpressionValue"], release: None = None) -> type[ConsumerGroupRegularExpressionValue]: ...
@overload
def message(name: Literal["ConsumerGroupTargetAssignmentMemberKey"], release: None = None) -> type[ConsumerGroupTargetAssignmentMemberKey]: ...
@overload
def message(name: Literal["ConsumerGroupTargetAssignmentMemberValue"], release: None = None) -> type[ConsumerGroupTargetAssignmentMemberValue]: ...
@overload
def message(name: Literal["ConsumerGroupTargetAssignmentMetadataKey"], release: None = None) -> type[ConsumerGroupTargetAssignmentMetadataKey]: ...
@overload
def message(name: Literal["ConsumerGroupTargetAssignmentMetadataValue"], release: None = None) -> type[ConsumerGroupTargetAssignmentMetadataValue]: ...
@overload
def message(name: Literal["ConsumerProtocolAssignment"], release: None = None) -> type[ConsumerProtocolAssignment]: ...
@overload
def message(name: Literal["ConsumerProtocolSubscription"], release: None = None) -> type[ConsumerProtocolSubscription]: ...
@overload
def message(name: Literal["ControlRecordTypeSchema"], release: None = None) -> type[ControlRecordTypeSchema]: ...
@overload
def message(name: Literal["ControlledShutdownRequest"], release: None = None) -> type[ControlledShutdownRequest]: ...
@overload
def message(name: Literal["ControlledShutdownResponse"], release: None = None) -> type[ControlledShutdownResponse]: ...
@overload
def message(name: Literal["ControllerRegistrationRequest"], release: None = None) -> type[ControllerRegistrationRequest]: ...
@overload
def message(name: Literal["ControllerRegistrationResponse"], release: None = None) -> type[ControllerRegistrationResponse]: ...
@overload
def message(name: Literal["CreateAclsRequest"], release: None = None) -> type[CreateAclsRequest]: ...
@overload
def message(name: Literal["CreateAclsResponse"], release: None = None) -> type[CreateAclsResponse]: ...
@overload
def message(name: Literal["CreateDelegationTokenRequest"], release: None = None) -> type[CreateDelegationTokenRequest]: ...
@overload
def message(name: Literal["CreateDelegationTokenResponse"], release: None = None) -> type[CreateDelegationTokenResponse]: ...
@overload
def message(name: Literal["CreatePartitionsRequest"], release: None = None) -> type[CreatePartitionsRequest]: ...
@overload
def message(name: Literal["CreatePartitionsResponse"], release: None = None) -> type[CreatePartitionsResponse]: ...
@overload
def message(name: Literal["CreateTopicsRequest"], release: None = None) -> type[CreateTopicsRequest]: ...
@overload
def message(name: Literal["CreateTopicsResponse"], release: None = None) -> type[CreateTopicsResponse]: ...
@overload
def message(name: Literal["DefaultPrincipalData"], release: None = None) -> type[DefaultPrincipalData]: ...
@overload
def message(name: Literal["DelegationTokenRecord"], release: None = None) -> type[DelegationTokenRecord]: ...
@overload
def message(name: Literal["DeleteAclsRequest"], release: None = None) -> type[DeleteAclsRequest]: ...
@overload
def message(name: Literal["DeleteAclsResponse"], release: None = None) -> type[DeleteAclsResponse]: ...
@overload
def message(name: Literal["DeleteGroupsRequest"], release: None = None) -> type[DeleteGroupsRequest]: ...
@overload
def message(name: Literal["DeleteGroupsResponse"], release: None = None) -> type[DeleteGroupsResponse]: ...
@overload
def message(name: Literal["DeleteRecordsRequest"], release: None = None) -> type[DeleteRecordsRequest]: ...
@overload
def message(name: Literal["DeleteRecordsResponse"], release: None = None) -> type[DeleteRecordsResponse]: ...
@overload
def message(name: Literal["DeleteShareGroupOffsetsRequest"], release: None = None) -> type[DeleteShareGroupOffsetsRequest]: ...
@overload
def message(name: Literal["DeleteShareGroupOffsetsResponse"], release: None = None) -> type[DeleteShareGroupOffsetsResponse]: ...
@overload
def message(name: Literal["DeleteShareGroupStateRequest"], release: None = None) -> type[DeleteShareGroupStateRequest]: ...
@overload
def message(name: Literal["DeleteShareGroupStateResponse"], release: None = None) -> type[DeleteShareGroupStateResponse]: ...
@overload
def message(name: Literal["DeleteTopicsRequest"], release: None = None) -> type[DeleteTopicsRequest]: ...
@overload
def message(name: Literal["DeleteTopicsResponse"], release: None = None) -> type[DeleteTopicsResponse]: ...
@overload
def message(name: Literal["DescribeAclsRequest"], release: None = None) -> type[DescribeAclsRequest]: ...
@overload
def message(name: Literal["DescribeAclsResponse"], release: None = None) -> type[DescribeAclsResponse]: ...
@overload
def message(name: Literal["DescribeClientQuotasRequest"], release: None = None) -> type[DescribeClientQuotasRequest]: ...
@overload
def message(name: Literal["DescribeClientQuotasResponse"], release: None = None) -> type[DescribeClientQuotasResponse]: ...
@overload
def message(name: Literal["DescribeClusterRequest"], release: None = None) -> type[DescribeClusterRequest]: ...
@overload
def message(name: Literal["DescribeClusterResponse"], release: None = None) -> type[DescribeClusterResponse]: ...
@overload
def message(name: Literal["DescribeConfigsRequest"], release: None = None) -> type[DescribeConfigsRequest]: ...
@overload
def message(name: Literal["DescribeConfigsResponse"], release: None = None) -> type[DescribeConfigsResponse]: ...
@overload
def message(name: Literal["DescribeDelegationTokenRequest"], release: None = None) -> type[DescribeDelegationTokenRequest]: ...
@overload
def message(name: Literal["DescribeDelegationTokenResponse"], release: None = None) -> type[DescribeDelegationTokenResponse]: ...
@overload
def message(name: Literal["DescribeGroupsRequest"], release: None = None) -> type[DescribeGroupsRequest]: ...
@overload
def message(name: Literal["DescribeGroupsResponse"], release: None = None) -> type[DescribeGroupsResponse]: ...
@overload
def message(name: Literal["DescribeLogDirsRequest"], release: None = None) -> type[DescribeLogDirsRequest]: ...
@overload
def message(name: Literal["DescribeLogDirsResponse"], release: None = None) -> type[DescribeLogDirsResponse]: ...
@overload
def message(name: Literal["DescribeProducersRequest"], release: None = None) -> type[DescribeProducersRequest]: ...
@overload
def message(name: Literal["DescribeProducersResponse"], release: None = None) -> type[DescribeProducersResponse]: ...
@overload
def message(name: Literal["DescribeQuorumRequest"], release: None = None) -> type[DescribeQuorumRequest]: ...
@overload
def message(name: Literal["DescribeQuorumResponse"], release: None = None) -> type[DescribeQuorumResponse]: ...
@overload
def message(name: Literal["DescribeShareGroupOffsetsRequest"], release: None = None) -> type[DescribeShareGroupOffsetsRequest]: ...
@overload
def message(name: Literal["DescribeShareGroupOffsetsResponse"], release: None = None) -> type[DescribeShareGroupOffsetsResponse]: ...
@overload
def message(name: Literal["DescribeTopicPartitionsRequest"], release: None = None) -> type[DescribeTopicPartitionsRequest]: ...
@overload
def message(name: Literal["DescribeTopicPartitionsResponse"], release: None = None) -> type[DescribeTopicPartitionsResponse]: ...
@overload
def message(name: Literal["DescribeTransactionsRequest"], release: None = None) -> type[DescribeTransactionsRequest]: ...
@overload
def message(name: Literal["DescribeTransactionsResponse"], release: None = None) -> type[DescribeTransactionsResponse]: ...
@overload
def message(name: Literal["DescribeUserScramCredentialsRequest"], release: None = None) -> type[DescribeUserScramCredentialsRequest]: ...
@overload
def message(name: Literal["DescribeUserScramCredentialsResponse"], release: None = None) -> type[DescribeUserScramCredentialsResponse]: ...
@overload
def message(name: Literal["ElectLeadersRequest"], release: None = None) -> type[ElectLeadersRequest]: ...
@overload
def message(name: Literal["ElectLeadersResponse"], release: None = None) -> type[ElectLeadersResponse]: ...
@overload
def message(name: Literal["EndQuorumEpochRequest"], release: None = None) -> type[EndQuorumEpochRequest]: ...
@overload
def message(name: Literal["EndQuorumEpochResponse"], release: None = None) -> type[EndQuorumEpochResponse]: ...
@overload
def message(name: Literal["EndTransactionRecord"], release: None = None) -> type[EndTransactionRecord]: ...
@overload
def message(name: Literal["EndTxnMarker"], release: None = None) -> type[EndTxnMarker]: ...
@overload
def message(name: Literal["EndTxnRequest"], release: None = None) -> type[EndTxnRequest]: ...
@overload
def message(name: Literal["EndTxnResponse"], release: None = None) -> type[EndTxnResponse]: ...
@overload
def message(name: Literal["EnvelopeRequest"], release: None = None) -> type[EnvelopeRequest]: ...
@overload
def message(name: Literal["EnvelopeResponse"], release: None = None) -> type[EnvelopeResponse]: ...
@overload
def message(name: Literal["ExpireDelegationTokenRequest"], release: None = None) -> type[ExpireDelegationTokenRequest]: ...
@overload
def message(name: Literal["ExpireDelegationTokenResponse"], release: None = None) -> type[ExpireDelegationTokenResponse]: ...
@overload
def message(name: Literal["FeatureLevelRecord"], release: None = None) -> type[FeatureLevelRecord]: ...
@overload
def message(name: Literal["FenceBrokerRecord"], release: None = None) -> type[FenceBrokerRecord]: ...
@overload
def message(name: Literal["FetchRequest"], release: None = None) -> type[FetchRequest]: ...
@overload
def message(name: Literal["FetchResponse"], release: None = None) -> type[FetchResponse]: ...
@overload
def message(name: Literal["FetchSnapshotRequest"], release: None = None) -> type[FetchSnapshotRequest]: ...
@overload
def message(name: Literal["FetchSnapshotResponse"], release: None = None) -> type[FetchSnapshotResponse]: ...
@overload
def message(name: Literal["FindCoordinatorRequest"], release: None = None) -> type[FindCoordinatorRequest]: ...
@overload
def message(name: Literal["FindCoordinatorResponse"], release: None = None) -> type[FindCoordinatorResponse]: ...
@overload
def message(name: Literal["GetTelemetrySubscriptionsRequest"], release: None = None) -> type[GetTelemetrySubscriptionsRequest]: ...
@overload
def message(name: Literal["GetTelemetrySubscriptionsResponse"], release: None = None) -> type[GetTelemetrySubscriptionsResponse]: ...
@overload
def message(name: Literal["GroupMetadataKey"], release: None = None) -> type[GroupMetadataKey]: ...
@overload
def message(name: Literal["GroupMetadataValue"], release: None = None) -> type[GroupMetadataValue]: ...
@overload
def message(name: Literal["HeartbeatRequest"], release: None = None) -> type[HeartbeatRequest]: ...
@overload
def message(name: Literal["HeartbeatResponse"], release: None = None) -> type[HeartbeatResponse]: ...
@overload
def message(name: Literal["IncrementalAlterConfigsRequest"], release: None = None) -> type[IncrementalAlterConfigsRequest]: ...
@overload
def message(name: Literal["IncrementalAlterConfigsResponse"], release: None = None) -> type[IncrementalAlterConfigsResponse]: ...
@overload
def message(name: Literal["InitProducerIdRequest"], release: None = None) -> type[InitProducerIdRequest]: ...
@overload
def message(name: Literal["InitProducerIdResponse"], release: None = None) -> type[InitProducerIdResponse]: ...
@overload
def message(name: Literal["InitializeShareGroupStateRequest"], release: None = None) -> type[InitializeShareGroupStateRequest]: ...
@overload
def message(name: Literal["InitializeShareGroupStateResponse"], release: None = None) -> type[InitializeShareGroupStateResponse]: ...
@overload
def message(name: Literal["JoinGroupRequest"], release: None = None) -> type[JoinGroupRequest]: ...
@overload
def message(name: Literal["JoinGroupResponse"], release: None = None) -> type[JoinGroupResponse]: ...
@overload
def message(name: Literal["KRaftVersionRecord"], release: None = None) -> type[KRaftVersionRecord]: ...
@overload
def message(name: Literal["LeaderAndIsrRequest"], release: None = None) -> type[LeaderAndIsrRequest]: ...
@overload
def message(name: Literal["LeaderAndIsrResponse"], release: None = None) -> type[LeaderAndIsrResponse]: ...
@overload
def message(name: Literal["LeaderChangeMessage"], release: None = None) -> type[LeaderChangeMessage]: ...
@overload
def message(name: Literal["LeaveGroupRequest"], release: None = None) -> type[LeaveGroupRequest]: ...
@overload
def message(name: Literal["LeaveGroupResponse"], release: None = None) -> type[LeaveGroupResponse]: ...
@overload
def message(name: Literal["LegacyOffsetCommitKey"], release: None = None) -> type[LegacyOffsetCommitKey]: ...
@overload
def message(name: Literal["LegacyOffsetCommitValue"], release: None = None) -> type[LegacyOffsetCommitValue]: ...
@overload
def message(name: Literal["ListClientMetricsResourcesRequest"], release: None = None) -> type[ListClientMetricsResourcesRequest]: ...
@overload
def message(name: Literal["ListClientMetricsResourcesResponse"], release: None = None) -> type[ListClientMetricsResourcesResponse]: ...
@overload
def message(name: Literal["ListConfigResourcesRequest"], release: None = None) -> type[ListConfigResourcesRequest]: ...
@overload
def message(name: Literal["ListConfigResourcesResponse"], release: None = None) -> type[ListConfigResourcesResponse]: ...
@overload
def message(name: Literal["ListGroupsRequest"], release: None = None) -> type[ListGroupsRequest]: ...
@overload
def message(name: Literal["ListGroupsResponse"], release: None = None) -> type[ListGroupsResponse]: ...
@overload
def message(name: Literal["ListOffsetRequest"], release: None = None) -> type[ListOffsetRequest]: ...
@overload
def message(name: Literal["ListOffsetResponse"], release: None = None) -> type[ListOffsetResponse]: ...
@overload
def message(name: Literal["ListOffsetsRequest"], release: None = None) -> type[ListOffsetsRequest]: ...
@overload
def message(name: Literal["ListOffsetsResponse"], release: None = None) -> type[ListOffsetsResponse]: ...
@overload
def message(name: Literal["ListPartitionReassignmentsRequest"], release: None = None) -> type[ListPartitionReassignmentsRequest]: ...
@overload
def message(name: Literal["ListPartitionReassignmentsResponse"], release: None = None) -> type[ListPartitionReassignmentsResponse]: ...
@overload
def message(name: Literal["ListTransactionsRequest"], release: None = None) -> type[ListTransactionsRequest]: ...
@overload
def message(name: Literal["ListTransactionsResponse"], release: None = None) -> type[ListTransactionsResponse]: ...
@overload
def message(name: Literal["MetadataRequest"], release: None = None) -> type[MetadataRequest]: ...
@overload
def message(name: Literal["MetadataResponse"], release: None = None) -> type[MetadataResponse]: ...
@overload
def message(name: Literal["NoOpRecord"], release: None = None) -> type[NoOpRecord]: ...
@overload
def message(name: Literal["OffsetCommitKey"], release: None = None) -> type[OffsetCommitKey]: ...
@overload
def message(name: Literal["OffsetCommitRequest"], release: None = None) -> type[OffsetCommitRequest]: ...
@overload
def message(name: Literal["OffsetCommitResponse"], release: None = None) -> type[OffsetCommitResponse]: ...
@overload
def message(name: Literal["OffsetCommitValue"], release: None = None) -> type[OffsetCommitValue]: ...
@overload
def message(name: Literal["OffsetDeleteRequest"], release: None = None) -> type[OffsetDeleteRequest]: ...
@overload
def message(name: Literal["OffsetDeleteResponse"], release: None = None) -> type[OffsetDeleteResponse]: ...
@overload
def message(name: Literal["OffsetFetchRequest"], release: None = None) -> type[OffsetFetchRequest]: ...
@overload
def message(name: Literal["OffsetFetchResponse"], release: None = None) -> type[OffsetFetchResponse]: ...
@overload
def message(name: Literal["OffsetForLeaderEpochRequest"], release: None = None) -> type[OffsetForLeaderEpochRequest]: ...
@overload
def message(name: Literal["OffsetForLeaderEpochResponse"], release: None = None) -> type[OffsetForLeaderEpochResponse]: ...
@overload
def message(name: Literal["PartitionChangeRecord"], release: None = None) -> type[PartitionChangeRecord]: ...
@overload
def message(name: Literal["PartitionRecord"], release: None = None) -> type[PartitionRecord]: ...
@overload
def message(name: Literal["ProduceRequest"], release: None = None) -> type[ProduceRequest]: ...
@overload
def message(name: Literal["ProduceResponse"], release: None = None) -> type[ProduceResponse]: ...
@overload
def message(name: Literal["ProducerIdsRecord"], release: None = None) -> type[ProducerIdsRecord]: ...
@overload
def message(name: Literal["ProducerSnapshot"], release: None = None) -> type[ProducerSnapshot]: ...
@overload
def message(name: Literal["PushTelemetryRequest"], release: None = None) -> type[PushTelemetryRequest]: ...
@overload
def message(name: Literal["PushTelemetryResponse"], release: None = None) -> type[PushTelemetryResponse]: ...
@overload
def message(name: Literal["QuorumStateData"], release: None = None) -> type[QuorumStateData]: ...
@overload
def message(name: Literal["QuotaRecord"], release: None = None) -> type[QuotaRecord]: ...
@overload
def message(name: Literal["ReadShareGroupStateRequest"], release: None = None) -> type[ReadShareGroupStateRequest]: ...
@overload
def message(name: Literal["ReadShareGroupStateResponse"], release: None = None) -> type[ReadShareGroupStateResponse]: ...
@overload
def message(name: Literal["ReadShareGroupStateSummaryRequest"], release: None = None) -> type[ReadShareGroupStateSummaryRequest]: ...
@overload
def message(name: Literal["ReadShareGroupStateSummaryResponse"], release: None = None) -> type[ReadShareGroupStateSummaryResponse]: ...
@overload
def message(name: Literal["RegisterBrokerRecord"], release: None = None) -> type[RegisterBrokerRecord]: ...
@overload
def message(name: Literal["RegisterControllerRecord"], release: None = None) -> type[RegisterControllerRecord]: ...
@overload
def message(name: Literal["RemoteLogSegmentMetadataRecord"], release: None = None) -> type[RemoteLogSegmentMetadataRecord]: ...
@overload
def message(name: Literal["RemoteLogSegmentMetadataSnapshotRecord"], release: None = None) -> type[RemoteLogSegmentMetadataSnapshotRecord]: ...
@overload
def message(name: Literal["RemoteLogSegmentMetadataUpdateRecord"], release: None = None) -> type[RemoteLogSegmentMetadataUpdateRecord]: ...
@overload
def message(name: Literal["RemotePartitionDeleteMetadataRecord"], release: None = None) -> type[RemotePartitionDeleteMetadataRecord]: ...
@overload
def message(name: Literal["RemoveAccessControlEntryRecord"], release: None = None) -> type[RemoveAccessControlEntryRecord]: ...
@overload
def message(name: Literal["RemoveDelegationTokenRecord"], release: None = None) -> type[RemoveDelegationTokenRecord]: ...
@overload
def message(name: Literal["RemoveFeatureLevelRecord"], release: None = None) -> type[RemoveFeatureLevelRecord]: ...
@overload
def message(name: Literal["RemoveRaftVoterRequest"], release: None = None) -> type[RemoveRaftVoterRequest]: ...
@overload
def message(name: Literal["RemoveRaftVoterResponse"], release: None = None) -> type[RemoveRaftVoterResponse]: ...
@overload
def message(name: Literal["RemoveTopicRecord"], release: None = None) -> type[RemoveTopicRecord]: ...
@overload
def message(name: Literal["RemoveUserScramCredentialRecord"], release: None = None) -> type[RemoveUserScramCredentialRecord]: ...
@overload
def message(name: Literal["RenewDelegationTokenRequest"], release: None = None) -> type[RenewDelegationTokenRequest]: ...
@overload
def message(name: Literal["RenewDelegationTokenResponse"], release: None = None) -> type[RenewDelegationTokenResponse]: ...
@overload
def message(name: Literal["RequestHeader"], release: None = None) -> type[RequestHeader]: ...
@overload
def message(name: Literal["ResponseHeader"], release: None = None) -> type[ResponseHeader]: ...
@overload
def message(name: Literal["SaslAuthenticateRequest"], release: None = None) -> type[SaslAuthenticateRequest]: ...
@overload
def message(name: Literal["SaslAuthenticateResponse"], release: None = None) -> type[SaslAuthenticateResponse]: ...
@overload
def message(name: Literal["SaslHandshakeRequest"], release: None = None) -> type[SaslHandshakeRequest]: ...
@overload
def message(name: Literal["SaslHandshakeResponse"], release: None = None) -> type[SaslHandshakeResponse]: ...
@overload
def message(name: Literal["ShareAcknowledgeRequest"], release: None = None) -> type[ShareAcknowledgeRequest]: ...
@overload
def message(name: Literal["ShareAcknowledgeResponse"], release: None = None) -> type[ShareAcknowledgeResponse]: ...
@overload
def message(name: Literal["ShareFetchRequest"], release: None = None) -> type[ShareFetchRequest]: ...
@overload
def message(name: Literal["ShareFetchResponse"], release: None = None) -> type[ShareFetchResponse]: ...
@overload
def message(name: Literal["ShareGroupCurrentMemberAssignmentKey"], release: None = None) -> type[ShareGroupCurrentMemberAssignmentKey]: ...
@overload
def message(name: Literal["ShareGroupCurrentMemberAssignmentValue"], release: None = None) -> type[ShareGroupCurrentMemberAssignmentValue]: ...
@overload
def message(name: Literal["ShareGroupDescribeRequest"], release: None = None) -> type[ShareGroupDescribeRequest]: ...
@overload
def message(name: Literal["ShareGroupDescribeResponse"], release: None = None) -> type[ShareGroupDescribeResponse]: ...
@overload
def message(name: Literal["ShareGroupHeartbeatRequest"], release: None = None) -> type[ShareGroupHeartbeatRequest]: ...
@overload
def message(name: Literal["ShareGroupHeartbeatResponse"], release: None = None) -> type[ShareGroupHeartbeatResponse]: ...
@overload
def message(name: Literal["ShareGroupMemberMetadataKey"], release: None = None) -> type[ShareGroupMemberMetadataKey]: ...
@overload
def message(name: Literal["ShareGroupMemberMetadataValue"], release: None = None) -> type[ShareGroupMemberMetadataValue]: ...
@overload
def message(name: Literal["ShareGroupMetadataKey"], release: None = None) -> type[ShareGroupMetadataKey]: ...
@overload
def message(name: Literal["ShareGroupMetadataValue"], release: None = None) -> type[ShareGroupMetadataValue]: ...
@overload
def message(name: Literal["ShareGroupPartitionMetadataKey"], release: None = None) -> type[ShareGroupPartitionMetadataKey]: ...
@overload
def message(name: Literal["ShareGroupPartitionMetadataValue"], release: None = None) -> type[ShareGroupPartitionMetadataValue]: ...
@overload
def message(name: Literal["ShareGroupStatePartitionMetadataKey"], release: None = None) -> type[ShareGroupStatePartitionMetadataKey]: ...
@overload
def message(name: Literal["ShareGroupStatePartitionMetadataValue"], release: None = None) -> type[ShareGroupStatePartitionMetadataValue]: ...
@overload
def message(name: Literal["ShareGroupTargetAssignmentMemberKey"], release: None = None) -> type[ShareGroupTargetAssignmentMemberKey]: ...
@overload
def message(name: Literal["ShareGroupTargetAssignmentMemberValue"], release: None = None) -> type[ShareGroupTargetAssignmentMemberValue]: ...
@overload
def message(name: Literal["ShareGroupTargetAssignmentMetadataKey"], release: None = None) -> type[ShareGroupTargetAssignmentMetadataKey]: ...
@overload
def message(name: Literal["ShareGroupTargetAssignmentMetadataValue"], release: None = None) -> type[ShareGroupTargetAssignmentMetadataValue]: ...
@overload
def message(name: Literal["ShareSnapshotKey"], release: None = None) -> type[ShareSnapshotKey]: ...
@overload
def message(name: Literal["ShareSnapshotValue"], release: None = None) -> type[ShareSnapshotValue]: ...
@overload
def message(name: Literal["ShareUpdateKey"], release: None = None) -> type[ShareUpdateKey]: ...
@overload
def message(name: Literal["ShareUpdateValue"], release: None = None) -> type[ShareUpdateValue]: ...
@overload
def message(name: Literal["SnapshotFooterRecord"], release: None = None) -> type[SnapshotFooterRecord]: ...
@overload
def message(name: Literal["SnapshotHeaderRecord"], release: None = None) -> type[SnapshotHeaderRecord]: ...
@overload
def message(name: Literal["StopReplicaRequest"], release: None = None) -> type[StopReplicaRequest]: ...
@overload
def message(name: Literal["StopReplicaResponse"], release: None = None) -> type[StopReplicaResponse]: ...
@overload
def message(name: Literal["StreamsGroupCurrentMemberAssignmentKey"], release: None = None) -> type[StreamsGroupCurrentMemberAssignmentKey]: ...
@overload
def message(name: Literal["StreamsGroupCurrentMemberAssignmentValue"], release: None = None) -> type[StreamsGroupCurrentMemberAssignmentValue]: ...
@overload
def message(name: Literal["StreamsGroupDescribeRequest"], release: None = None) -> type[StreamsGroupDescribeRequest]: ...
@overload
def message(name: Literal["StreamsGroupDescribeResponse"], release: None = None) -> type[StreamsGroupDescribeResponse]: ...
@overload
def message(name: Literal["StreamsGroupHeartbeatRequest"], release: None = None) -> type[StreamsGroupHeartbeatRequest]: ...
@overload
def message(name: Literal["StreamsGroupHeartbeatResponse"], release: None = None) -> type[StreamsGroupHeartbeatResponse]: ...
@overload
def message(name: Literal["StreamsGroupMemberMetadataKey"], release: None = None) -> type[StreamsGroupMemberMetadataKey]: ...
@overload
def message(name: Literal["StreamsGroupMemberMetadataValue"], release: None = None) -> type[StreamsGroupMemberMetadataValue]: ...
@overload
def message(name: Literal["StreamsGroupMetadataKey"], release: None = None) -> type[StreamsGroupMetadataKey]: ...
@overload
def message(name: Literal["StreamsGroupMetadataValue"], release: None = None) -> type[StreamsGroupMetadataValue]: ...
@overload
def message(name: Literal["StreamsGroupTargetAssignmentMemberKey"], release: None = None) -> type[StreamsGroupTargetAssignmentMemberKey]: ...
@overload
def message(name: Literal["StreamsGroupTargetAssignmentMemberValue"], release: None = None) -> type[StreamsGroupTargetAssignmentMemberValue]: ...
@overload
def message(name: Literal["StreamsGroupTargetAssignmentMetadataKey"], release: None = None) -> type[StreamsGroupTargetAssignmentMetadataKey]: ...
@overload
def message(name: Literal["StreamsGroupTargetAssignmentMetadataValue"], release: None = None) -> type[StreamsGroupTargetAssignmentMetadataValue]: ...
@overload
def message(name: Literal["StreamsGroupTopologyDescriptionUpdateRequest"], release: None = None) -> type[StreamsGroupTopologyDescriptionUpdateRequest]: ...
@overload
def message(name: Literal["StreamsGroupTopologyDescriptionUpdateResponse"], release: None = None) -> type[StreamsGroupTopologyDescriptionUpdateResponse]: ...
@overload
def message(name: Literal["StreamsGroupTopologyKey"], release: None = None) -> type[StreamsGroupTopologyKey]: ...
@overload
def message(name: Literal["StreamsGroupTopologyValue"], release: None = None) -> type[StreamsGroupTopologyValue]: ...
@overload
def message(name: Literal["SubscriptionInfo"], release: None = None) -> type[SubscriptionInfo]: ...
@overload
def message(name: Literal["SubscriptionInfoData"], release: None = None) -> type[SubscriptionInfoData]: ...
@overload
def message(name: Literal["SyncGroupRequest"], release: None = None) -> type[SyncGroupRequest]: ...
@overload
def message(name: Literal["SyncGroupResponse"], release: None = None) -> type[SyncGroupResponse]: ...
@overload
def message(name: Literal["TopicRecord"], release: None = None) -> type[TopicRecord]: ...
@overload
def message(name: Literal["TransactionLogKey"], release: None = None) -> type[TransactionLogKey]: ...
@overload
def message(name: Literal["TransactionLogValue"], release: None = None) -> type[TransactionLogValue]: ...
@overload
def message(name: Literal["TxnOffsetCommitRequest"], release: None = None) -> type[TxnOffsetCommitRequest]: ...
@overload
def message(name: Literal["TxnOffsetCommitResponse"], release: None = None) -> type[TxnOffsetCommitResponse]: ...
@overload
def message(name: Literal["UnfenceBrokerRecord"], release: None = None) -> type[UnfenceBrokerRecord]: ...
@overload
def message(name: Literal["UnregisterBrokerRecord"], release: None = None) -> type[UnregisterBrokerRecord]: ...
@overload
def message(name: Literal["UnregisterBrokerRequest"], release: None = None) -> type[UnregisterBrokerRequest]: ...
@overload
def message(name: Literal["UnregisterBrokerResponse"], release: None = None) -> type[UnregisterBrokerResponse]: ...
@overload
def message(name: Literal["UnregisterControllerRecord"], release: None = None) -> type[UnregisterControllerRecord]: ...
@overload
def message(name: Literal["UnregisterControllerRequest"], release: None = None) -> type[UnregisterControllerRequest]: ...
@overload
def message(name: Literal["UnregisterControllerResponse"], release: None = None) -> type[UnregisterControllerResponse]: ...
@overload
def message(name: Literal["UpdateFeaturesRequest"], release: None = None) -> type[UpdateFeaturesRequest]: ...
@overload
def message(name: Literal["UpdateFeaturesResponse"], release: None = None) -> type[UpdateFeaturesResponse]: ...
@overload
def message(name: Literal["UpdateMetadataRequest"], release: None = None) -> type[UpdateMetadataRequest]: ...
@overload
def message(name: Literal["UpdateMetadataResponse"], release: None = None) -> type[UpdateMetadataResponse]: ...
@overload
def message(name: Literal["UpdateRaftVoterRequest"], release: None = None) -> type[UpdateRaftVoterRequest]: ...
@overload
def message(name: Literal["UpdateRaftVoterResponse"], release: None = None) -> type[UpdateRaftVoterResponse]: ...
@overload
def message(name: Literal["UserScramCredentialRecord"], release: None = None) -> type[UserScramCredentialRecord]: ...
@overload
def message(name: Literal["VoteRequest"], release: None = None) -> type[VoteRequest]: ...
@overload
def message(name: Literal["VoteResponse"], release: None = None) -> type[VoteResponse]: ...
@overload
def message(name: Literal["VotersRecord"], release: None = None) -> type[VotersRecord]: ...
@overload
def message(name: Literal["WriteShareGroupStateRequest"], release: None = None) -> type[WriteShareGroupStateRequest]: ...
@overload
def message(name: Literal["WriteShareGroupStateResponse"], release: None = None) -> type[WriteShareGroupStateResponse]: ...
@overload
def message(name: Literal["WriteTxnMarkersRequest"], release: None = None) -> type[WriteTxnMarkersRequest]: ...
@overload
def message(name: Literal["WriteTxnMarkersResponse"], release: None = None) -> type[WriteTxnMarkersResponse]: ...
@overload
def message(name: Literal["ZkMigrationStateRecord"], release: None = None) -> type[ZkMigrationStateRecord]: ...
@overload
def message(name: str, release: str | None = None) -> type[Message]: ...
