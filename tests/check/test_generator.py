"""The verdict on a spec agrees with Kafka's generator, except for documented decisions."""

from __future__ import annotations

import json
from pathlib import Path

from flexwire.specs.lint.config import LINT, Config
from flexwire.specs.lint.rule import Category
from flexwire.specs.lint.rules import rules
from tests.check.pages import findings
from tests.each import each

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "schema" / "spec-cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
# Everything that Kafka's generator reports about a single file.
VERDICT = frozenset(
    rule.id
    for rule in rules().values()
    if rule.category in {Category.SYNTAX, Category.GENERATOR} and rule.directory is None
)
DECIDED = {
    # Generators from 4.0 on accept it: a release marks a removed message in this way.
    ("valid-none", "GEN-FAIL"),
    # VERSIONS_BACKWARDS reports this anywhere; Kafka's generator checks only one place.
    ("validVersions=3-1", "GEN-FAIL"),
    # For these specs the generator writes Java that does not compile, or the generator crashes.
    ("def int8='0x-5'", "OK"),
    ("def uuid='00000000-0000-0000-0000-000000000001'", "OK"),
}
# Each spec occurs twice, with nullableVersions and without. Both recorded outcomes are of the same
# form; the facts and MessageDataGeneratorTest show of which one.
MIXED_UP = {
    "def string='null'": '"nullableVersions"',
    "def []int8='null'": '"versions": "0+", "default": "null"}',
}
# flexwire reports these too, although the generator does not check them.
BESIDES = {
    "structarr-nofields": {"STRUCT_WITHOUT_FIELDS"},
    "def Foo='{}'": {"STRUCT_WITHOUT_FIELDS"},
    "arr-bytes": {"BYTES_IN_ARRAY"},
    "fields-on-primarr": {"FIELDS_OF_PRIMITIVE_ARRAY"},
    "def uint32='3000000000'": {"DEFAULT_ABOVE_JAVA_INT"},
    "def string='a\"b'": {"DEFAULT_NOT_ESCAPED"},
    "def string='x\\\\y'": {"DEFAULT_NOT_ESCAPED"},
    "tag-future": {"FIELD_ABOVE_VALID"},
    "depr-outside": {"DEPRECATED_VERSIONS_OUTSIDE_VALID"},
    "validVersions=3-1": {"VERSIONS_BACKWARDS"},
}


@each("case", {case["case"]: case for case in CASES})
def test_the_verdict_is_the_generator_s(case: dict[str, str]) -> None:
    found = {one.rule for one in findings({"FooRequest.json": case["spec"]}, Config(VERDICT))}
    refused = case["outcome"] != "OK"
    if (case["case"], case["outcome"]) in DECIDED:
        refused = not refused
    if MIXED_UP.get(case["case"], "…") in case["spec"]:
        refused = not refused
    assert bool(found) is refused, found


@each("case", {case["case"]: case for case in CASES})
def test_what_else_is_told_is_known(case: dict[str, str]) -> None:
    of_one_file = {rule.id for rule in rules().values() if rule.directory is None}
    config = Config((LINT.defaults() & of_one_file) - VERDICT)
    found = {one.rule for one in findings({"FooRequest.json": case["spec"]}, config)}
    assert found == BESIDES.get(case["case"], set())


# The generator's 46 errors, in the order of its code, each with our rule. After them come the
# errors that Kafka 4.1 added with the types of coordinators' records.
ERRORS = """
1 KEY_UNKNOWN
2 TEXT_AFTER_SPEC
3 NAME_MISSING TYPE_MISSING
4 VERSIONS_MISSING
5 FLEXIBLE_VERSIONS_MISSING
6 FLEXIBLE_VERSIONS_CLOSED
7 LISTENERS_MISPLACED
8 UNSTABLE_MISPLACED
9 TAG_REPEATED
10 NAME_REPEATED
11 TAG_SKIPPED
12 NAME_INVALID
13 VERSIONS_MISSING
14 TYPE_INVALID
15 TYPE_NOT_NULLABLE
16 ENTITY_TYPE_MISMATCHED
17 TYPE_WITHOUT_FIELDS
18 NAME_REPEATED TAG_REPEATED TAG_SKIPPED
19 FLEXIBLE_OVERRIDE_MISPLACED
20 MAP_KEY_TAGGED
21 TAG_NEGATIVE
22 TAGGED_VERSIONS_MISSING
23 TAGGED_VERSIONS_PARTLY_NULLABLE
24 TAGGED_VERSIONS_CLOSED
25 TAGGED_VERSIONS_OUTSIDE_VERSIONS
26 TAG_MISSING
27 ZERO_COPY_MISPLACED
28 STRUCT_NAME_LOWERCASE
29 STRUCT_REPEATED
30 STRUCT_REPEATED
31 STRUCT_SHARED_INLINE STRUCT_REPEATED
32 COMMON_STRUCT_INCOMPLETE
33 VALID_VERSIONS_OPEN
34 MAP_KEY_MISPLACED
35 TAGGED_VERSIONS_NOT_FLEXIBLE
36 FLEXIBLE_OVERRIDE_OUTSIDE_MESSAGE
37 STRUCT_NEVER_PRESENT
38 RECORDS_IN_ARRAY
39 RECORDS_TAGGED
40 DEFAULT_INVALID
41 DEFAULT_NULL_MISPLACED
42 COMMON_STRUCT_ABSENT STRUCT_CONTAINS_ITSELF
43 API_KEY_REPEATED
44 NAME_WITHOUT_SUFFIX
45 API_KEY_MISSING PARTNER_MISSING
46 API_KEY_REPEATED
47 API_KEY_MISSING
48 COORDINATOR_KEY_VERSIONED
49 COORDINATOR_KEY_VERSIONED
50 API_KEY_MISSING
51 API_KEY_REPEATED
52 API_KEY_REPEATED
53 PARTNER_MISSING
54 PARTNER_MISSING
"""


def test_every_error_of_the_generator_has_its_rule() -> None:
    numbered = [line.split() for line in ERRORS.strip().splitlines()]
    assert [int(number) for number, *_ in numbered] == list(range(1, 55))
    named = {rule for _, *told in numbered for rule in told}
    own = {
        rule.id
        for rule in rules().values()
        if rule.category in {Category.SYNTAX, Category.GENERATOR}
    }
    # The generator of Kafka 4.5 reports errors in header versions, which the 2024 generator lacked.
    own = {rule for rule in own if not rule.startswith("HEADER_VERSION")}
    # Exceptions of Jackson and Java that precede the generator's own checks.
    assert own - named == {"TEXT_NOT_JSON", "VALUE_INVALID", "VERSIONS_INVALID"}
    assert named <= own
