"""The rivals of flexwire behind one interface, and the content that all of them encode.

A case is one neutral description (dicts, lists and tuples, with Kafka's names in snake_case). An
`Adapter` turns it into its library's own objects, outside the measured time.

`messages.py` and `records.py` check that flexwire and its rivals write equal bytes, and time them
in turns, in one process. Another rival needs an adapter here, and a line in each of these files.
"""

from __future__ import annotations

import gc
import io
import statistics
import time
import uuid

# --------------------------------------------------------------------------
# Neutral content
# --------------------------------------------------------------------------
TS0 = 1_700_000_000_000


def n_metadata_response(version):
    return {
        "throttle_time_ms": 0,
        "brokers": [
            {
                "node_id": i,
                "host": f"broker-{i}.kafka.internal",
                "port": 9092,
                "rack": f"rack-{i % 3}",
            }
            for i in range(6)
        ],
        "cluster_id": "MkU3OEVBNTcwNTJENDM2Qg",
        "controller_id": 1,
        "topics": [
            {
                "error_code": 0,
                "name": f"orders.events.topic-{t:03d}",
                "topic_id": uuid.UUID(int=(0x1234 << 96) + t + 1),
                "is_internal": False,
                "partitions": [
                    {
                        "error_code": 0,
                        "partition_index": p,
                        "leader_id": (t + p) % 6,
                        "leader_epoch": 7,
                        "replica_nodes": [(t + p + k) % 6 for k in range(3)],
                        "isr_nodes": [(t + p + k) % 6 for k in range(3)],
                        "offline_replicas": [],
                    }
                    for p in range(10)
                ],
                "topic_authorized_operations": -2147483648,
            }
            for t in range(100)
        ],
    }


def n_fetch_request(version):
    return {
        "replica_id": -1,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 52428800,
        "isolation_level": 1,
        "session_id": 12345,
        "session_epoch": 3,
        "topics": [
            {
                "topic": f"orders.events.topic-{t:03d}",
                "partitions": [
                    {
                        "partition": p,
                        "current_leader_epoch": 7,
                        "fetch_offset": 1_000_000 + t * 1000 + p,
                        "last_fetched_epoch": -1,
                        "log_start_offset": -1,
                        "partition_max_bytes": 1048576,
                    }
                    for p in range(20)
                ],
            }
            for t in range(50)
        ],
        "forgotten_topics_data": [],
        "rack_id": "rack-1",
    }


def n_produce_request(version):
    # 10 topics x 5 partitions, 1 KiB of opaque record bytes each
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 30000,
        "topic_data": [
            {
                "name": f"orders.events.topic-{t:03d}",
                "partition_data": [
                    {"index": p, "records": bytes([t * 5 + p]) * 1024} for p in range(5)
                ],
            }
            for t in range(10)
        ],
    }


def n_api_versions_response(version):
    return {
        "error_code": 0,
        "api_keys": [
            {"api_key": k, "min_version": k % 3, "max_version": 3 + k % 11} for k in range(60)
        ],
        "throttle_time_ms": 0,
    }


def n_api_versions_response_tags(version):
    d = n_api_versions_response(version)
    d["supported_features"] = [
        {"name": "metadata.version", "min_version": 1, "max_version": 25},
        {"name": "transaction.version", "min_version": 0, "max_version": 2},
    ]
    d["finalized_features_epoch"] = 77
    d["finalized_features"] = [
        {"name": "metadata.version", "max_version_level": 25, "min_version_level": 25}
    ]
    return d


def n_request_header(version):
    return {
        "request_api_key": 3,
        "request_api_version": 12,
        "correlation_id": 4242,
        "client_id": "bench-client-1",
    }


CASES = {
    # name: (message, version, neutral builder)
    "metadata_response_v12": ("MetadataResponse", 12, n_metadata_response),
    "fetch_request_v12": ("FetchRequest", 12, n_fetch_request),
    "produce_request_v9": ("ProduceRequest", 9, n_produce_request),
    "api_versions_response_v3": ("ApiVersionsResponse", 3, n_api_versions_response),
    "api_versions_response_v3_tags": ("ApiVersionsResponse", 3, n_api_versions_response_tags),
    "request_header_v2": ("RequestHeader", 2, n_request_header),
    # non-flexible twins: the newest versions aiokafka also has
    "metadata_response_v5": ("MetadataResponse", 5, n_metadata_response),
    "fetch_request_v11": ("FetchRequest", 11, n_fetch_request),
    "produce_request_v8": ("ProduceRequest", 8, n_produce_request),
    "api_versions_response_v2": ("ApiVersionsResponse", 2, n_api_versions_response),
}

N_RECORDS = 10_000
RECORDS = [
    (i, TS0 + i, None, (b"%010d" % i) * 10, [("trace-id", b"%016x" % i), ("source", b"bench-app")])
    for i in range(N_RECORDS)
]


# --------------------------------------------------------------------------
# Adapters
# --------------------------------------------------------------------------
class Adapter:
    name = "?"
    version = "?"

    def supports(self, msg, ver):
        return True

    def build(self, msg, ver, d):  # neutral -> native object (not timed)
        raise NotImplementedError

    def encoder(self, msg, ver):  # -> callable(native) -> bytes-like
        raise NotImplementedError

    def decoder(self, msg, ver):  # -> callable(bytes) -> native
        raise NotImplementedError

    # record batches (magic 2). None = unsupported
    rb_encode = None  # callable(records) -> bytes
    rb_decode = None  # callable(bytes) -> list of (offset, ts, key, value, headers)


class Kio(Adapter):
    name = "kio"

    def __init__(self):
        import importlib.metadata as md
        from kio.serial import entity_reader, entity_writer

        self.version = md.version("kio")
        self._reader, self._writer = entity_reader, entity_writer

    def _mod(self, msg, ver):
        import importlib

        name, kind = {
            "MetadataResponse": ("metadata", "response"),
            "FetchRequest": ("fetch", "request"),
            "ProduceRequest": ("produce", "request"),
            "ApiVersionsResponse": ("api_versions", "response"),
            "RequestHeader": ("request_header", "header"),
        }[msg]
        return importlib.import_module(f"kio.schema.{name}.v{ver}.{kind}")

    def supports(self, msg, ver):
        try:
            self._mod(msg, ver)
            return True
        except ImportError:
            return False

    def build(self, msg, ver, d):
        import datetime
        from dataclasses import fields, is_dataclass

        m = self._mod(msg, ver)
        ms = lambda v: datetime.timedelta(milliseconds=v)  # noqa: E731
        from kio.schema.errors import ErrorCode

        def mk(cls, **kw):
            names = {f.name for f in fields(cls)}
            return cls(**{k: v for k, v in kw.items() if k in names})

        if msg == "MetadataResponse":
            return mk(
                m.MetadataResponse,
                throttle_time=ms(d["throttle_time_ms"]),
                brokers=tuple(mk(m.MetadataResponseBroker, **b) for b in d["brokers"]),
                cluster_id=d["cluster_id"],
                controller_id=d["controller_id"],
                topics=tuple(
                    mk(
                        m.MetadataResponseTopic,
                        error_code=ErrorCode(t["error_code"]),
                        name=t["name"],
                        topic_id=t["topic_id"],
                        is_internal=t["is_internal"],
                        partitions=tuple(
                            mk(
                                m.MetadataResponsePartition,
                                **{
                                    **p,
                                    "error_code": ErrorCode(p["error_code"]),
                                    "replica_nodes": tuple(p["replica_nodes"]),
                                    "isr_nodes": tuple(p["isr_nodes"]),
                                    "offline_replicas": tuple(p["offline_replicas"]),
                                },
                            )
                            for p in t["partitions"]
                        ),
                        topic_authorized_operations=t["topic_authorized_operations"],
                    )
                    for t in d["topics"]
                ),
            )
        if msg == "FetchRequest":
            return mk(
                m.FetchRequest,
                **{
                    k: d[k]
                    for k in (
                        "replica_id",
                        "min_bytes",
                        "max_bytes",
                        "isolation_level",
                        "session_id",
                        "session_epoch",
                        "rack_id",
                    )
                },
                max_wait=ms(d["max_wait_ms"]),
                topics=tuple(
                    mk(
                        m.FetchTopic,
                        topic=t["topic"],
                        partitions=tuple(mk(m.FetchPartition, **p) for p in t["partitions"]),
                    )
                    for t in d["topics"]
                ),
                forgotten_topics_data=(),
            )
        if msg == "ProduceRequest":
            return mk(
                m.ProduceRequest,
                transactional_id=d["transactional_id"],
                acks=d["acks"],
                timeout=ms(d["timeout_ms"]),
                topic_data=tuple(
                    mk(
                        m.TopicProduceData,
                        name=t["name"],
                        partition_data=tuple(
                            mk(m.PartitionProduceData, **p) for p in t["partition_data"]
                        ),
                    )
                    for t in d["topic_data"]
                ),
            )
        if msg == "ApiVersionsResponse":
            kw = {}
            if "supported_features" in d:
                kw["supported_features"] = tuple(
                    mk(m.SupportedFeatureKey, **f) for f in d["supported_features"]
                )
                kw["finalized_features_epoch"] = d["finalized_features_epoch"]
                kw["finalized_features"] = tuple(
                    mk(m.FinalizedFeatureKey, **f) for f in d["finalized_features"]
                )
            elif ver >= 3:
                kw["supported_features"] = ()
                kw["finalized_features"] = ()
            return mk(
                m.ApiVersionsResponse,
                error_code=ErrorCode(0),
                api_keys=tuple(mk(m.ApiVersion, **k) for k in d["api_keys"]),
                throttle_time=ms(d["throttle_time_ms"]),
                **kw,
            )
        if msg == "RequestHeader":
            return mk(m.RequestHeader, **d)
        raise KeyError(msg)

    def _cls(self, msg, ver):
        return getattr(self._mod(msg, ver), msg)

    def encoder(self, msg, ver):
        w = self._writer(self._cls(msg, ver))
        BytesIO = io.BytesIO

        def enc(obj):
            b = BytesIO()
            w(b, obj)
            return b.getvalue()

        return enc

    def decoder(self, msg, ver):
        r = self._reader(self._cls(msg, ver))
        return lambda data: r(data, 0)[0]

    def rb_build(self, records):
        import datetime
        from kio.records.schema import NewRecordBatch, Record, RecordHeader

        return NewRecordBatch(
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            attributes=0,
            records=tuple(
                Record(
                    attributes=0,
                    timestamp=datetime.datetime.fromtimestamp(ts / 1000, datetime.UTC),
                    offset=o,
                    key=k,
                    value=v,
                    headers=tuple(RecordHeader(key=hk.encode(), value=hv) for hk, hv in h),
                )
                for o, ts, k, v, h in records
            ),
        )

    def rb_encode(self, batch):
        from kio.records.writers import write_batch

        b = io.BytesIO()
        write_batch(b, batch)
        return b.getvalue()

    def rb_decode(self, data):
        from kio.records.readers import read_batch

        return read_batch(data, 0)[0].records

    def rb_tuple(self, r):
        return (
            r.offset,
            int(r.timestamp.timestamp() * 1000),
            r.key,
            r.value,
            [(h.key.decode(), h.value) for h in r.headers],
        )


class KafkaPython(Adapter):
    name = "kafka-python"

    def __init__(self):
        import kafka
        from kafka.protocol.api_header import RequestHeader
        from kafka.protocol.consumer import FetchRequest
        from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse
        from kafka.protocol.producer import ProduceRequest

        self.version = kafka.__version__
        self.k = {
            c.__name__: c
            for c in (
                MetadataResponse,
                FetchRequest,
                ProduceRequest,
                ApiVersionsResponse,
                RequestHeader,
            )
        }

    def build(self, msg, ver, d):
        C = self.k[msg]
        if msg == "MetadataResponse":
            B, T = C.MetadataResponseBroker, C.MetadataResponseTopic
            P = T.MetadataResponsePartition
            return C(
                version=ver,
                throttle_time_ms=d["throttle_time_ms"],
                brokers=[B(version=ver, **b) for b in d["brokers"]],
                cluster_id=d["cluster_id"],
                controller_id=d["controller_id"],
                topics=[
                    T(
                        version=ver,
                        error_code=t["error_code"],
                        name=t["name"],
                        topic_id=t["topic_id"],
                        is_internal=t["is_internal"],
                        partitions=[P(version=ver, **p) for p in t["partitions"]],
                        authorized_operations=None,  # kafka-python patches this int32 into a bitfield; None == -2147483648
                    )
                    for t in d["topics"]
                ],
            )
        if msg == "FetchRequest":
            T = C.FetchTopic
            return C(
                version=ver,
                **{
                    k: d[k]
                    for k in (
                        "replica_id",
                        "max_wait_ms",
                        "min_bytes",
                        "max_bytes",
                        "isolation_level",
                        "session_id",
                        "session_epoch",
                        "rack_id",
                    )
                },
                topics=[
                    T(
                        version=ver,
                        topic=t["topic"],
                        partitions=[T.FetchPartition(version=ver, **p) for p in t["partitions"]],
                    )
                    for t in d["topics"]
                ],
                forgotten_topics_data=[],
            )
        if msg == "ProduceRequest":
            T = C.TopicProduceData
            return C(
                version=ver,
                transactional_id=d["transactional_id"],
                acks=d["acks"],
                timeout_ms=d["timeout_ms"],
                topic_data=[
                    T(
                        version=ver,
                        name=t["name"],
                        partition_data=[
                            T.PartitionProduceData(version=ver, **p) for p in t["partition_data"]
                        ],
                    )
                    for t in d["topic_data"]
                ],
            )
        if msg == "ApiVersionsResponse":
            kw = {}
            if "supported_features" in d:
                kw["supported_features"] = [
                    C.SupportedFeatureKey(version=ver, **f) for f in d["supported_features"]
                ]
                kw["finalized_features_epoch"] = d["finalized_features_epoch"]
                kw["finalized_features"] = [
                    C.FinalizedFeatureKey(version=ver, **f) for f in d["finalized_features"]
                ]
            return C(
                version=ver,
                error_code=0,
                api_keys=[C.ApiVersion(version=ver, **k) for k in d["api_keys"]],
                throttle_time_ms=d["throttle_time_ms"],
                **kw,
            )
        if msg == "RequestHeader":
            return C(**d)
        raise KeyError(msg)

    def encoder(self, msg, ver):
        if msg == "RequestHeader":
            return lambda o: o.encode(flexible=ver >= 2)
        return lambda o: o.encode()  # version is on the object; returns bytearray

    def decoder(self, msg, ver):
        C = self.k[msg]
        if msg == "RequestHeader":
            BytesIO = io.BytesIO
            return lambda data: C.decode(BytesIO(data), flexible=ver >= 2)
        return lambda data: C.decode(data, version=ver)

    def rb_build(self, records):
        return records

    def rb_encode(self, records):
        from kafka.record.default_records import DefaultRecordBatchBuilder

        b = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 30,
        )
        ap = b.append
        for o, ts, k, v, h in records:
            ap(o, ts, k, v, h)
        return b.build()

    def rb_decode(self, data):
        from kafka.record import MemoryRecords

        out = []
        mr = MemoryRecords(data)
        while mr.has_next():
            batch = mr.next_batch()
            if not batch.validate_crc():
                raise ValueError("crc")
            out.extend(batch)
        return out

    def rb_tuple(self, r):
        return (r.offset, r.timestamp, r.key, r.value, list(r.headers))


class AioKafka(Adapter):
    name = "aiokafka"

    def __init__(self):
        import aiokafka
        import aiokafka.record.default_records as dr
        from aiokafka.protocol import api, fetch, metadata, produce
        from aiokafka.protocol import admin

        self.version = aiokafka.__version__
        ext = (
            "cython" if "_crecords" in getattr(dr.DefaultRecordBatch, "__module__", "") else "pure"
        )
        self.version += f" ({ext} records)"
        self.mods = {
            "MetadataResponse": metadata,
            "FetchRequest": fetch,
            "ProduceRequest": produce,
            "ApiVersionsResponse": admin,
        }
        self.api = api

    def _cls(self, msg, ver):
        if msg == "RequestHeader":
            return getattr(self.api, f"RequestHeader_v{ver}", None)
        name = {"ApiVersionsResponse": "ApiVersionResponse"}.get(msg, msg)
        return getattr(self.mods[msg], f"{name}_v{ver}", None)

    def supports(self, msg, ver):
        return self._cls(msg, ver) is not None

    def build(self, msg, ver, d):
        C = self._cls(msg, ver)
        if msg == "MetadataResponse":
            return C(
                d["throttle_time_ms"],
                [(b["node_id"], b["host"], b["port"], b["rack"]) for b in d["brokers"]],
                d["cluster_id"],
                d["controller_id"],
                [
                    (
                        t["error_code"],
                        t["name"],
                        t["is_internal"],
                        [
                            (
                                p["error_code"],
                                p["partition_index"],
                                p["leader_id"],
                                p["replica_nodes"],
                                p["isr_nodes"],
                                p["offline_replicas"],
                            )
                            for p in t["partitions"]
                        ],
                    )
                    for t in d["topics"]
                ],
            )
        if msg == "FetchRequest":
            return C(
                d["replica_id"],
                d["max_wait_ms"],
                d["min_bytes"],
                d["max_bytes"],
                d["isolation_level"],
                d["session_id"],
                d["session_epoch"],
                [
                    (
                        t["topic"],
                        [
                            (
                                p["partition"],
                                p["current_leader_epoch"],
                                p["fetch_offset"],
                                p["log_start_offset"],
                                p["partition_max_bytes"],
                            )
                            for p in t["partitions"]
                        ],
                    )
                    for t in d["topics"]
                ],
                [],
                d["rack_id"],
            )
        if msg == "ProduceRequest":
            return C(
                d["transactional_id"],
                d["acks"],
                d["timeout_ms"],
                [
                    (t["name"], [(p["index"], p["records"]) for p in t["partition_data"]])
                    for t in d["topic_data"]
                ],
            )
        if msg == "ApiVersionsResponse":
            return C(
                d["error_code"],
                [(k["api_key"], k["min_version"], k["max_version"]) for k in d["api_keys"]],
                d["throttle_time_ms"],
            )
        if msg == "RequestHeader":

            class R:
                API_KEY, API_VERSION = d["request_api_key"], d["request_api_version"]

            return C(R, correlation_id=d["correlation_id"], client_id=d["client_id"])
        raise KeyError(msg)

    def encoder(self, msg, ver):
        return lambda o: o.encode()

    def decoder(self, msg, ver):
        if msg == "RequestHeader":
            return None  # Struct.decode() cannot rebuild RequestHeader_vN (its __init__ takes a request)
        return self._cls(msg, ver).decode

    def rb_build(self, records):
        return records

    def rb_encode(self, records):
        from aiokafka.record.default_records import DefaultRecordBatchBuilder

        b = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 30,
        )
        ap = b.append
        for o, ts, k, v, h in records:
            ap(o, timestamp=ts, key=k, value=v, headers=h)
        return b.build()

    def rb_decode(self, data):
        from aiokafka.record import MemoryRecords

        out = []
        mr = MemoryRecords(data)
        while mr.has_next():
            batch = mr.next_batch()
            if not batch.validate_crc():
                raise ValueError("crc")
            out.extend(batch)
        return out

    def rb_tuple(self, r):
        return (r.offset, r.timestamp, r.key, r.value, list(r.headers))


# --------------------------------------------------------------------------
# Timing
# --------------------------------------------------------------------------
def calibrate(fn, min_time):
    n = 1
    while True:
        t = time.perf_counter()
        for _ in range(n):
            fn()
        dt = time.perf_counter() - t
        if dt >= min_time or n >= 1 << 24:
            return n
        n = max(n + 1, int(n * min(10, 1.2 * min_time / max(dt, 1e-9))))


def time_interleaved(fns, repeats, min_time, clock):
    """fns: {label: zero-arg callable} -> {label: [seconds per call, ...]}"""
    counts = {}
    for k, f in fns.items():
        f()  # warm: first-call compilation is not measured
        counts[k] = calibrate(f, min_time)
    out = {k: [] for k in fns}
    gc.collect()
    for _ in range(repeats):
        for k, f in fns.items():
            r = range(counts[k])
            t = clock()
            for _ in r:
                f()
            out[k].append((clock() - t) / counts[k])
    return out


def summarize(samples):
    med = statistics.median(samples)
    return {
        "median_s": med,
        "min_s": min(samples),
        "max_s": max(samples),
        "spread": (max(samples) - min(samples)) / med,
        "n": len(samples),
    }
