"""Old module paths and old names, which work, with a warning, until the next release.

An old path returns the same module object as its new path. An old name returns the same object as
the new name. The tables contain only paths and names that were in the project's documentation or in
the `__all__` of a package. Any other path in a package that was moved raises an error that contains
the package's new name.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from types import ModuleType

__all__ = ["MOVED", "RENAMED", "install"]

_STATE: Final = "flexwire.answers.state"
_ANSWERS: Final = (
    "batches", "boundaries", "captured_internal_records", "chargeback", "client_metrics",
    "cluster_acls", "cluster_brokers", "cluster_configs", "cluster_credentials",
    "cluster_features", "cluster_gate", "cluster_history", "cluster_partitions", "cluster_quotas",
    "cluster_topics", "cluster_voters", "connections", "diverging_replicas", "errors",
    "group_members", "group_offsets", "group_state", "groups", "hanging_transactions",
    "header_tags", "headers", "lag", "latency", "savings", "share_deliveries", "share_state",
    "sizes", "storage", "tagged_fields", "throttling", "tiered_storage", "topic_readers",
    "unread_state", "unused_groups", "unused_topics",
)  # fmt: skip
MOVED: Final = {
    **{f"flexwire.spark.answers.{name}": f"flexwire.answers.{name}" for name in _ANSWERS},
    "flexwire.capture.assembly": "flexwire.capture.reassembly.assembly",
    "flexwire.capture.brokers": "flexwire.capture.reassembly.connections",
    "flexwire.capture.columns": "flexwire.capture.reassembly",
    "flexwire.capture.columns.flows": "flexwire.capture.reassembly.flows",
    "flexwire.capture.columns.merging": "flexwire.capture.reassembly.merging",
    "flexwire.capture.columns.packet_notes": "flexwire.capture.reassembly.packet_scan",
    "flexwire.capture.columns.segments": "flexwire.capture.reassembly.segments",
    "flexwire.capture.columns.turns": "flexwire.capture.pairing.pairing",
    "flexwire.capture.course": "flexwire.capture.reassembly.course",
    "flexwire.capture.evidence": "flexwire.capture.reassembly.connections",
    "flexwire.capture.filtering": "flexwire.capture.files.comments",
    "flexwire.capture.framing": "flexwire.capture.reassembly.framing",
    "flexwire.capture.log_index": "flexwire.logs.segments",
    "flexwire.capture.log_segment": "flexwire.logs.segments",
    "flexwire.capture.log_state": "flexwire.logs.segments",
    "flexwire.capture.logs": "flexwire.logs",
    "flexwire.capture.logs.columns": "flexwire.logs.records",
    "flexwire.capture.logs.finding": "flexwire.logs.discovery",
    "flexwire.capture.logs.following": "flexwire.logs.follower",
    "flexwire.capture.logs.planning": "flexwire.logs.pieces",
    "flexwire.capture.logs.query": "flexwire.logs.files",
    "flexwire.capture.logs.reading": "flexwire.logs.records",
    "flexwire.capture.metadata_log": "flexwire.logs.metadata",
    "flexwire.capture.model": "flexwire.capture.files.packets",
    "flexwire.capture.pcapng": "flexwire.capture.files.pcapng",
    "flexwire.capture.request_log": "flexwire.logs.request_log",
    "flexwire.capture.request_log.envelopes": "flexwire.logs.request_log.lines",
    "flexwire.capture.request_log.reading": "flexwire.logs.request_log.lines",
    "flexwire.capture.request_log.requests": "flexwire.logs.request_log.requests",
    "flexwire.capture.request_log.times": "flexwire.logs.request_log.times",
    "flexwire.capture.stamps": "flexwire.capture.files.comments",
    "flexwire.capture.streams": "flexwire.capture.reassembly.streams",
    "flexwire.check": "flexwire.specs.lint",
    "flexwire.check.allow": "flexwire.specs.allow_comments",
    "flexwire.check.breaking": "flexwire.specs.breaking",
    "flexwire.check.breaking.changes": "flexwire.specs.breaking.changes",
    "flexwire.check.breaking.matching": "flexwire.specs.breaking.changes",
    "flexwire.check.breaking.report": "flexwire.specs.breaking.report",
    "flexwire.check.breaking.rule": "flexwire.specs.breaking.rule",
    "flexwire.check.breaking.rules": "flexwire.specs.breaking.rules",
    "flexwire.check.breaking.unstable": "flexwire.specs.breaking.changes",
    "flexwire.check.config": "flexwire.specs.lint.config",
    "flexwire.check.finding": "flexwire.specs.finding",
    "flexwire.check.lint": "flexwire.specs.lint.lint",
    "flexwire.check.message": "flexwire.specs.lint.message",
    "flexwire.check.page": "flexwire.specs.finding",
    "flexwire.check.report": "flexwire.specs.finding",
    "flexwire.check.rule": "flexwire.specs.lint.rule",
    "flexwire.check.rules": "flexwire.specs.lint.rules",
    "flexwire.codec.explain_records": "flexwire.codec.record_explanation",
    "flexwire.columnar.record_schema": "flexwire.columnar.record_columns",
    "flexwire.cost": "flexwire.specs.cost",
    "flexwire.cost.carry": "flexwire.specs.cost.conversion",
    "flexwire.cost.columns": "flexwire.specs.cost.columns",
    "flexwire.cost.error_tags": "flexwire.specs.cost.sides",
    "flexwire.cost.fields": "flexwire.specs.cost.sizes",
    "flexwire.cost.machine": "flexwire.specs.cost.formats",
    "flexwire.cost.meter": "flexwire.specs.cost.meter",
    "flexwire.cost.newest": "flexwire.specs.cost.formats",
    "flexwire.cost.sampling": "flexwire.specs.cost.columns",
    "flexwire.cost.sizes": "flexwire.specs.cost.sizes",
    "flexwire.cost.specs": "flexwire.specs.cost.sides",
    "flexwire.cost.tagging": "flexwire.specs.cost.tagging",
    "flexwire.cost.text": "flexwire.specs.cost.formats",
    "flexwire.cost.vectors": "flexwire.specs.cost.vectors",
    "flexwire.guide": "flexwire.specs.guide",
    "flexwire.guide.changes": "flexwire.specs.guide.rows",
    "flexwire.guide.messages": "flexwire.specs.guide.messages",
    "flexwire.guide.pages": "flexwire.specs.guide.site",
    "flexwire.guide.rows": "flexwire.specs.guide.rows",
    "flexwire.guide.search": "flexwire.specs.guide.site",
    "flexwire.guide.site": "flexwire.specs.guide.site",
    "flexwire.guide.traffic": "flexwire.specs.guide.traffic",
    "flexwire.net": "flexwire.tap",
    "flexwire.net.brokers": "flexwire.tap.connections",
    "flexwire.net.calling": "flexwire.client",
    "flexwire.net.calling.answers": "flexwire.client.answers",
    "flexwire.net.calling.broker": "flexwire.client.broker",
    "flexwire.net.calling.client_config": "flexwire.client.config",
    "flexwire.net.calling.cluster": "flexwire.client.cluster",
    "flexwire.net.calling.connection": "flexwire.client.connection",
    "flexwire.net.calling.routes": "flexwire.client.cluster",
    "flexwire.net.calling.scram": "flexwire.client.security",
    "flexwire.net.calling.security": "flexwire.client.security",
    "flexwire.net.carrying": "flexwire.tap.connections",
    "flexwire.net.ends": "flexwire.tap.ends",
    "flexwire.net.filtering": "flexwire.tap.frame_filter",
    "flexwire.net.handshakes": "flexwire.client.tls",
    "flexwire.net.host_port": "flexwire.client.notation",
    "flexwire.net.limits": "flexwire.tap.limits",
    "flexwire.net.listeners": "flexwire.tap.listeners",
    "flexwire.net.memory": "flexwire.tap.worker",
    "flexwire.net.metrics": "flexwire.tap.metrics",
    "flexwire.net.processes": "flexwire.tap.processes",
    "flexwire.net.running": "flexwire.tap.tap",
    "flexwire.net.securing": "flexwire.tap.security",
    "flexwire.net.statistics": "flexwire.tap.metrics",
    "flexwire.net.tap": "flexwire.tap.tap",
    "flexwire.net.throwaway": "flexwire.tap.security",
    "flexwire.net.tls": "flexwire.client.tls",
    "flexwire.protocol.known_topics": "flexwire.protocol.software_topics",
    "flexwire.protocol.records_form": "flexwire.protocol.records_json",
    "flexwire.records.inflate": "flexwire.records.compression",
    "flexwire.report.answer_facts": "flexwire.facts.answers",
    "flexwire.report.audit_facts": "flexwire.facts.audit",
    "flexwire.report.bounding": "flexwire.report.limits",
    "flexwire.report.facts": "flexwire.facts.facts",
    "flexwire.report.units": "flexwire.facts.units",
    "flexwire.spark.answers.again": "flexwire.spark.answers.outputs",
    "flexwire.spark.answers.answer": "flexwire.answers.asking.answer",
    "flexwire.spark.answers.asking": "flexwire.answers.asking.results",
    "flexwire.spark.answers.carried": "flexwire.answers.asking.messages",
    "flexwire.spark.answers.clients": "flexwire.answers.asking.answer",
    "flexwire.spark.answers.error_codes": "flexwire.answers.asking.messages",
    "flexwire.spark.answers.exchanges": "flexwire.answers.asking.messages",
    "flexwire.spark.answers.internal_logs": "flexwire.answers.asking.internal_logs",
    "flexwire.spark.answers.labels": "flexwire.answers.asking.labels",
    "flexwire.spark.answers.nothing": "flexwire.answers.asking.answer",
    "flexwire.spark.answers.reading": "flexwire.spark.answers.outputs",
    "flexwire.spark.answers.reset_plan": "flexwire.answers.group_offsets",
    "flexwire.spark.answers.throttles": "flexwire.answers.asking.throttled",
    "flexwire.spark.answers.topic_names": "flexwire.answers.asking.messages",
    "flexwire.spark.answers.writing": "flexwire.spark.answers.outputs",
    "flexwire.spark.batches": "flexwire.spark.tables",
    "flexwire.spark.delta.reading": "flexwire.spark.delta.output",
    "flexwire.spark.formats": "flexwire.spark.sources",
    "flexwire.spark.formats.kafka_capture": "flexwire.spark.sources.kafka_capture",
    "flexwire.spark.formats.kafka_log": "flexwire.spark.sources.kafka_log",
    "flexwire.spark.internal_topics": "flexwire.answers.state",
    "flexwire.spark.internal_topics.as_of": "flexwire.answers.state.log",
    "flexwire.spark.internal_topics.cluster": "flexwire.answers.state.cluster",
    "flexwire.spark.internal_topics.cluster_acls": "flexwire.answers.cluster_acls",
    "flexwire.spark.internal_topics.cluster_brokers": "flexwire.answers.cluster_brokers",
    "flexwire.spark.internal_topics.cluster_configs": "flexwire.answers.cluster_configs",
    "flexwire.spark.internal_topics.cluster_controllers": "flexwire.answers.cluster_features",
    "flexwire.spark.internal_topics.cluster_features": "flexwire.answers.cluster_features",
    "flexwire.spark.internal_topics.cluster_folding": "flexwire.answers.state.cluster",
    "flexwire.spark.internal_topics.cluster_history": "flexwire.answers.cluster_history",
    "flexwire.spark.internal_topics.cluster_partitions": f"{_STATE}.cluster_partitions",
    "flexwire.spark.internal_topics.cluster_producer_ids": "flexwire.answers.state.cluster",
    "flexwire.spark.internal_topics.cluster_quotas": "flexwire.answers.cluster_quotas",
    "flexwire.spark.internal_topics.cluster_scram": "flexwire.answers.cluster_credentials",
    "flexwire.spark.internal_topics.cluster_tokens": "flexwire.answers.cluster_credentials",
    "flexwire.spark.internal_topics.cluster_topics": "flexwire.answers.cluster_topics",
    "flexwire.spark.internal_topics.cluster_voters": "flexwire.answers.cluster_voters",
    "flexwire.spark.internal_topics.times": "flexwire.answers.state.log",
    "flexwire.spark.paths": "flexwire.spark.inputs",
    "flexwire.spark.ranges": "flexwire.spark.capture_job",
    "flexwire.spark.reading": "flexwire.spark.dataframes",
    "flexwire.spark.stored": "flexwire.spark.dataframes",
    "flexwire.spark.sums": "flexwire.measures",
    "flexwire.spark.sums.audit": "flexwire.measures.audit",
    "flexwire.spark.sums.chosen_clients": "flexwire.measures.audit_rows",
    "flexwire.spark.unreadable": "flexwire.spark.inputs",
    "flexwire.storage.listing": "flexwire.storage.file_search",
    "flexwire.storage.place": "flexwire.storage.output_directory",
    "flexwire.tables.fold": "flexwire.survey.fold",
    "flexwire.tables.piece_survey": "flexwire.survey.piece_survey",
    "flexwire.tables.pieces": "flexwire.survey.pieces",
    "flexwire.tables.reading": "flexwire.tables.output",
    "flexwire.tables.survey": "flexwire.survey.survey",
    "flexwire.tap.filtering": "flexwire.tap.frame_filter",
    "flexwire.together": "flexwire.atomic_files",
}
"""The new path of each old path."""

RENAMED: Final[dict[str, dict[str, str]]] = {
    "flexwire.answers": {"KNOWN": "ANSWERS_BY_NAME"},
    "flexwire.answers.state.share_state": {"held_batches": "combined_batches"},
    "flexwire.client": {"Answer": "BrokerAnswer", "ErrorCode": "ErrorField"},
    "flexwire.client.answers": {"Answer": "BrokerAnswer", "ErrorCode": "ErrorField"},
    "flexwire.columnar": {"Permissive": "PermissiveResult", "Wanted": "RecordSelection"},
    "flexwire.columnar.records": {"Wanted": "RecordSelection"},
    "flexwire.columnar.reference": {"Permissive": "PermissiveResult"},
    "flexwire.logs": {"Damaged": "BatchDamage"},
    "flexwire.logs.records": {"Damaged": "BatchDamage"},
    "flexwire.logs.request_log": {
        "Kind": "BrokerLogKind",
        "LogPiece": "RequestLogPiece",
        "LogReader": "RequestLogReader",
    },
    "flexwire.logs.request_log.lines": {"LogPiece": "RequestLogPiece"},
    "flexwire.logs.request_log.recognition": {"Kind": "BrokerLogKind"},
    "flexwire.logs.request_log.requests": {"LogReader": "RequestLogReader"},
    "flexwire.protocol.audit": {
        "Asked": "NegotiationEvidence",
        "Configured": "ConfigurationUse",
        "Finding": "ClientFinding",
        "Named": "NameSample",
    },
    "flexwire.protocol.audit.cluster": {"Named": "NameSample"},
    "flexwire.protocol.audit.evidence": {
        "Asked": "NegotiationEvidence",
        "Configured": "ConfigurationUse",
        "Finding": "ClientFinding",
    },
    "flexwire.records.conventions": {"Evidence": "HeaderEvidence"},
    "flexwire.records.conventions.convention": {"Evidence": "HeaderEvidence"},
    "flexwire.records.kip82": {"Message": "Kip82Message"},
    "flexwire.records.kip82.message": {"Message": "Kip82Message"},
    "flexwire.spark.answers": {"KNOWN": "ANSWERS_BY_NAME"},
    "flexwire.specs.guide": {"given_messages": "own_messages"},
    "flexwire.specs.guide.messages": {"given_messages": "own_messages"},
    "flexwire.storage.file_search": {"list_sources": "list_captures"},
    "flexwire.storage.output_directory": {"Place": "OutputDirectory"},
    "flexwire.tap.security": {"make_throwaway": "make_throwaway_ca", "names_of": "listener_names"},
}
"""For each module, the new name of each old name, sorted by modules and old names.

A class that a package's `__init__` also exports has one entry for the package and one for the
class's own module.
"""

_ROOMS: Final = (
    "flexwire.capture.columns",
    "flexwire.capture.logs",
    "flexwire.capture.request_log",
    "flexwire.check",
    "flexwire.cost",
    "flexwire.guide",
    "flexwire.net",
    "flexwire.spark.internal_topics",
    "flexwire.spark.sums",
)


class _Finder:
    """Find modules under their old paths."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol of finders requires this argument
    ) -> ModuleSpec | None:
        """Return the spec of an old path or of a module with old names.

        Return None for all other modules.
        """
        if fullname in RENAMED:
            return _with_old_names(fullname, path)
        if fullname in MOVED:
            return ModuleSpec(fullname, cast("Loader", _Loader(MOVED[fullname])))
        room = next((name for name in _ROOMS if fullname.startswith(f"{name}.")), None)
        if room is None:
            return None
        # Otherwise the module would be found in the new package and loaded a second time under
        # another name.
        raise ModuleNotFoundError(
            f"{fullname} has moved: the package {room} is now {MOVED[room]}", name=fullname
        )


class _Loader:
    """Return the module at the new path.

    The class has no base class from `importlib.abc`, because importing that module would make each
    start 5 ms longer.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module, loaded by its new path."""
        warnings.warn(
            f"{spec.name} has moved to {self._path}; the old path will be removed "
            "in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        module = import_module(self._path)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the import system has already set the spec of the old path."""
        module.__spec__ = self._spec


def _with_old_names(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Return a module's own spec, with a loader that adds the module's old names."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is None or spec.loader is None:
        return spec
    execute = spec.loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        own = module.__dict__.get("__getattr__")
        module.__dict__["__getattr__"] = _old_names(module, own)

    # The loader belongs only to this spec, so the new method is not used for other modules.
    spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def _old_names(module: ModuleType, own: Callable[[str], object] | None) -> Callable[[str], object]:
    """Return a `__getattr__` for a module that finds old names in addition to its own names."""
    renamed = RENAMED[module.__name__]

    def find(name: str) -> object:
        if name in renamed:
            warnings.warn(
                f"{module.__name__}.{name} is now {renamed[name]}; "
                "the old name will be removed in the next release",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(module, renamed[name])
        if own is not None:
            return own(name)
        raise AttributeError(
            f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module
        )

    return find


def install() -> None:
    """Make old module paths, and old names in modules, available in this process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
