"""The plan of a tap from the options of `flexwire tap`: a rehearsal or faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.cli.options import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.tap.fault_rules import Fault, FaultPlan
    from flexwire.tap.rehearsal import RehearsalPlan


def to_faults(parameters: dict[str, Any]) -> FaultPlan | None:
    """Return the faults in the options, or None if there are none. Raises `InputError`."""
    from flexwire.errors import ArgumentError
    from flexwire.tap.fault_rules import FaultPlan, parse_fault

    texts, path, seed = (parameters[name] for name in ("faults", "fault_file", "fault_seed"))
    if not texts and path is None:
        if seed is not None:
            raise InputError("--fault-seed needs --fault or --fault-file")
        return None
    for name, option in (("pretend", "--pretend"), ("header_tags", "--header-tag")):
        if parameters[name]:
            raise InputError(f"give either --fault or {option}, not both")
    if parameters["processes"] > 1:
        raise InputError("--fault counts requests in one process, so leave out --processes")
    try:
        faults = tuple(map(parse_fault, texts))
        return FaultPlan((*faults, *(_read_faults(path) if path else ())), seed)
    except ArgumentError as error:
        raise InputError(f"--fault: {error}") from None


def _read_faults(path: Path) -> tuple[Fault, ...]:
    from flexwire.errors import ArgumentError
    from flexwire.tap.fault_rules import parse_faults

    try:
        return parse_faults(path.read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected text in UTF-8") from None
    except ArgumentError as error:
        raise InputError(f"{path}: {error}") from None


def to_rehearsal(parameters: dict[str, Any]) -> RehearsalPlan | None:
    """Return the rehearsal in the options, or None if there is none. Raises `InputError`."""
    from flexwire.errors import ArgumentError
    from flexwire.tap.rehearsal import RehearsalPlan

    release, share = parameters["pretend"], parameters["share"]
    if release is None:
        for name in ("share", "seconds", "most_failed"):
            if parameters[name] is not None:
                option = "--for" if name == "seconds" else f"--{name.replace('_', '-')}"
                raise InputError(f"{option} needs --pretend")
        return None
    if parameters["header_tags"]:
        raise InputError("give either --pretend or --header-tag, not both")
    try:
        return RehearsalPlan(
            release,
            share=1.0 if share is None else share,
            seconds=parameters["seconds"],
            most_failed=parameters["most_failed"],
        )
    except ArgumentError as error:
        raise InputError(f"--pretend: {error}") from None
