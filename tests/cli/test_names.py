"""If a name is mistyped, every command suggests the closest name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.cli.app import _every_command, app
from flexwire.protocol.error_codes import ERROR_NAMES
from flexwire.schema.catalog import catalog
from tests.cli.test_messages import Run, run
from tests.each import each

if TYPE_CHECKING:
    import click

__all__ = ["run"]

SPEC = str(Path(__file__).parents[2] / "src/flexwire/schema/bundled/clients/FetchRequest.json")

# For each command and parameter: arguments with a mistake in this name, and the suggestion.
SLIPS: dict[tuple[str, str], tuple[list[str], str]] = {
    ("decode", "words"): (["decode", "FetchRequst", "00", "-V", "4"], "FetchRequest"),
    ("decode", "api"): (["decode", "--api", "Metadta", "00", "-V", "4"], "'Metadata'"),
    ("decode", "release"): (["decode", "FetchRequest", "00", "-V4", "--release", "4.9"], "4.4.0"),
    ("explain", "words"): (["explain", "Metadta", "00", "-V", "4"], "MetadataRequest"),
    ("explain", "api"): (["explain", "--api", "Metadta", "00", "-V", "4"], "'Metadata'"),
    ("explain", "release"): (["explain", "FetchRequest", "00", "-V4", "--release", "4.9"], "4.4.0"),
    ("encode", "message"): (["encode", "Metadta", "{}", "-V", "4"], "MetadataRequest"),
    ("encode", "release"): (["encode", "FetchRequest", "{}", "-V4", "--release", "4.9"], "4.4.0"),
    ("generate", "message"): (["generate", "Metadta", "-V", "4"], "MetadataRequest"),
    ("generate", "release"): (["generate", "FetchRequest", "-V4", "--release", "4.9"], "4.4.0"),
    ("call", "message"): (["call", "localhost:1", "Metadta"], "'Metadata'"),
    ("conform", "apis"): (["conform", "localhost:1", "--apis", "Fetch,Metadta"], "'Metadata'"),
    ("conform", "release"): (["conform", "localhost:1", "--release", "4.9"], "4.4.0"),
    ("tap", "only_apis"): (
        ["tap", "--upstream", "localhost:1", "--out", "no-such", "--only-api", "Metadta"],
        "'Metadata'",
    ),
    ("tap", "pretend"): (
        ["tap", "--upstream", "localhost:1", "--out", "no-such", "--pretend", "4.9"],
        "4.4.0",
    ),
    ("tap", "faults"): (
        ["tap", "--upstream", "localhost:1", "--out", "no-such", "--fault", "Metadta close"],
        "'Metadata'",
    ),
    ("answers", "names"): (["answers", "no-such", "chargebak"], "'chargeback'"),
    ("analyze", "answers"): (
        ["analyze", "no-such", "--out", "no-such-too", "--answers", "chargebak"],
        "'chargeback'",
    ),
    ("schema list", "name"): (["schema", "list", "Ftech"], "FetchRequest"),
    ("schema list", "module"): (["schema", "list", "--module", "metadat"], "'metadata'"),
    ("schema list", "release"): (["schema", "list", "--release", "4.9"], "4.4.0"),
    ("schema resolve", "message"): (["schema", "resolve", "Metadta", "-V", "4"], "MetadataRequest"),
    ("schema resolve", "release"): (
        ["schema", "resolve", "FetchRequest", "-V", "4", "--release", "4.9"],
        "4.4.0",
    ),
    ("schema errors", "text"): (["schema", "errors", "NOT_LEADR"], "6 NOT_LEADER_OR_FOLLOWER"),
    ("schema lint", "explain"): (
        ["schema", "lint", "--explain", "ABOUT_MISING"],
        "'ABOUT_MISSING'",
    ),
    ("schema lint", "use"): (["schema", "lint", SPEC, "--use", "ABOUT_MISING"], "'ABOUT_MISSING'"),
    ("schema lint", "leave_out"): (
        ["schema", "lint", SPEC, "--except", "ABOUT_MISING"],
        "'ABOUT_MISSING'",
    ),
    ("schema breaking", "explain"): (
        ["schema", "breaking", "--explain", "TAG_REUSD"],
        "'TAG_REUSED'",
    ),
    ("view", "only_apis"): (["view", SPEC, "--only-api", "Metadta"], "'Metadata'"),
    ("records dump", "release"): (["records", "dump", SPEC, "--release", "4.9"], "4.4.0"),
}
# Parameters for free text: files, directories, addresses, patterns, names that users choose.
FREE = {
    "analysis",
    "source", "specs", "paths", "out", "captures", "vectors", "against", "config", "keys", "files",
    "offsets", "times", "header_type", "master", "memory", "worker_memory", "brokers", "labels",
    "timezone", "as_of", "upstream", "listen", "advertised_host", "only_client_ids", "only_topics",
    "ports", "metrics", "upstream_name", "header_tags", "address", "body", "version", "to",
    "requests", "user", "password_file", "client_id", "timeout", "request", "size", "sources",
    "drop", "capture", "data", "old", "new", "certificate", "key", "ca", "command_config",
    "share", "seconds", "live", "since", "until", "iceberg_catalog", "iceberg_properties",
    "register",
}  # fmt: skip


def _takes_a_name(parameter: click.Parameter) -> bool:
    return type(parameter.type).__name__ == "StringParamType" and parameter.name not in FREE


def test_every_name_that_a_command_takes_is_tried_with_a_slip() -> None:
    taken = {
        (name, str(parameter.name))
        for name, command in _every_command(app)
        for parameter in command.params
        if _takes_a_name(parameter)
    }
    known = {
        # The judged releases are found by the same function, after Spark or a broker has answered.
        ("analyze", "releases"), ("analyze", "captured_release"), ("call", "release"),
        # The names of a release that is imported.
        ("schema import", "release"),
        # These names are found by the same function as for lint.
        ("schema breaking", "use"), ("schema breaking", "leave_out"),
        # These accept any pattern for case names, and any program.
        ("vectors check", "cases"), ("vectors check", "codec"),
        # This accepts any text that a capture may contain.
        ("who", "filters"),
    }  # fmt: skip
    assert taken - known == set(SLIPS)


@pytest.mark.parametrize(
    ("arguments", "told"), SLIPS.values(), ids=[" ".join(one) for one in SLIPS]
)
def test_a_slip_is_answered_with_the_nearest_name(
    run: Run, arguments: list[str], told: str
) -> None:
    ran = run(*arguments)
    assert ran.code in {1, 2}
    assert ran.out == ""
    assert told in ran.err


@pytest.mark.long
@pytest.mark.slow
@each("seed", range(3))
def test_every_name_with_a_letter_less_suggests_that_name(run: Run, seed: int) -> None:
    for name in list(ERROR_NAMES.values())[seed::9]:
        slip = name[: len(name) // 2] + name[len(name) // 2 + 1 :]
        if any(slip in other for other in ERROR_NAMES.values()):
            continue
        assert name in run("schema", "errors", slip).err
    for name in catalog().names()[seed::40]:
        assert name in run("schema", "list", name[:-2] + name[-1]).err


@pytest.mark.parametrize("given", ["9999", "-7", "137", "+999999999"])
def test_a_code_that_no_error_has_suggests_the_nearest(run: Run, given: str) -> None:
    ran = run("schema", "errors", given)
    nearest = min(ERROR_NAMES, key=lambda code: abs(code - int(given)))
    assert (ran.code, ran.out) == (1, "")
    assert f"{nearest} {ERROR_NAMES[nearest]}?" in ran.err
    assert run("schema", "errors", "-1").code == 0


def test_the_name_of_an_api_is_that_of_its_request(run: Run) -> None:
    ran = run("decode", "Metadata", "ffffffff00", "-V", "4", "--compact")
    assert (ran.code, ran.out) == (0, '{"topics": null, "allowAutoTopicCreation": false}\n')
    assert (
        ran.err
        == "Metadata is read as MetadataRequest; to read its response, give MetadataResponse\n"
    )
    assert run("explain", "Metadata", "ffffffff00", "-V", "4", "-q").err == ""
    assert run("encode", "Metadata", '{"topics": null}', "-V", "1").out == "ffffffff\n"
