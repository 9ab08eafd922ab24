"""What an analysis found, as one JSON object: where all of it is, and the figures of its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexwire.report.facts import Facts
    from flexwire.report.log_facts import LogFacts
    from flexwire.report.request_log_facts import RequestLogFacts
    from flexwire.spark.analyze import Analysis


def analysis_form(done: Analysis) -> dict[str, Any]:
    """Give the object; ``isNew`` is false where all input was in the tables before.

    What has no traffic, as logs alone, has null for it; ``bytes`` is null where request logs are
    among the input, which do not say sizes. The whole of the facts is in the file ``facts``.
    """
    facts = done.facts
    return {
        "isNew": done.is_new,
        "tables": done.output.where("tables"),
        "report": done.output.where("report.html"),
        "facts": done.output.where("facts.json"),
        "traffic": _traffic(facts) if facts.has_traffic else None,
        "logs": None if facts.logs is None else _logs(facts.logs),
        "requestLogs": None if facts.request_logs is None else _request_logs(facts.request_logs),
        "unreadableFiles": facts.unreadable_files,
        "audit": _audit(facts) if facts.has_traffic else [],
        "unanswered": [{"name": one.name, "reason": one.reason} for one in facts.unanswered],
        "notes": list(done.notes),
    }


def _traffic(facts: Facts) -> dict[str, Any]:
    totals = facts.totals
    return {
        "frames": totals.frames,
        "connections": totals.connections,
        "bytes": None if facts.request_logs is not None else totals.bytes,
        "decodeFailures": totals.decode_failures,
        "lenientFrames": totals.lenient_frames,
        "batchesBeyondBounds": totals.batches_beyond_bounds,
        "notKafkaConnections": facts.connections.not_kafka,
        "notKafkaBytes": facts.connections.not_kafka_bytes,
    }


def _logs(logs: LogFacts) -> dict[str, Any]:
    return {
        "partitions": logs.partitions,
        "batches": logs.batches,
        "records": logs.records,
        "bytes": logs.bytes,
        "damagedPlaces": logs.damaged,
        "placesBeyondBounds": logs.beyond_bounds,
        "knownPartitions": logs.known_partitions,
        "gonePartitions": logs.gone_partitions,
        "behindPartitions": logs.behind_count,
        "leftOutDirectories": logs.left_out_count,
    }


def _request_logs(logs: RequestLogFacts) -> dict[str, Any]:
    return {
        "lines": logs.lines,
        "requests": logs.requests,
        "forwarded": logs.forwarded,
        "refused": logs.refused,
        "cut": logs.cut,
        "text": logs.text,
        "unused": logs.unused,
        "onlyDeprecated": logs.only_deprecated,
    }


def _audit(facts: Facts) -> list[dict[str, Any]]:
    from flexwire.report.audit import sentences
    from flexwire.report.cluster import cluster_sentences

    return [
        {
            "release": release,
            "says": [{"verdict": verdict, "sentence": sentence} for verdict, sentence in told],
            "cluster": [
                {"verdict": verdict, "sentence": sentence}
                for verdict, sentence in cluster_sentences(facts.audit, release)
            ],
        }
        for release, told in sentences(facts)
    ]
