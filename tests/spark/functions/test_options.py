from __future__ import annotations

import pytest

from flexwire.errors import AnalysisError, ArgumentError
from flexwire.spark.functions.columns import check_version
from flexwire.spark.functions.messages import CORRUPT, MODE, read_options
from flexwire.wire.encoding import Encoding
from tests.spark.functions.chosen import chosen


def test_what_is_not_said_is_as_in_from_protobuf() -> None:
    options = read_options(None, MODE)
    assert (options.mode, options.corrupt) == ("FAILFAST", "_corrupt_record")
    assert (options.encoding, options.absent, options.has_prefix) == (Encoding.KAFKA, "null", True)


def test_names_and_words_are_in_upper_or_lower_case() -> None:
    options = read_options(
        {"MODE": "permissive", "columnnameofcorruptrecord": "Why"}, MODE, CORRUPT
    )
    assert options.is_permissive
    assert options.corrupt == "Why"
    assert chosen(encoding="FIXED").encoding is Encoding.FIXED


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mood": "FAILFAST"}, "options: expected names of mode, columnNameOfCorruptRecord"),
        ({"encoding": "kafka"}, "options: expected names of mode"),
        ({"mode": "DROPMALFORMED"}, "mode: expected 'FAILFAST' or 'PERMISSIVE'"),
        ({"mode": True}, "mode: expected a str"),
        ({1: "x"}, "options: expected a str"),
        ("mode", "options: expected a dict"),
    ],
)
def test_what_a_function_does_not_know_is_refused(given: object, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        read_options(given, MODE, CORRUPT)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("version", ["4.0.0", "4.0.1", "3.5.6"])
def test_an_old_pyspark_gets_an_error_that_says_so(version: str) -> None:
    with pytest.raises(AnalysisError, match=rf"header needs PySpark 4.1 or later, got {version}"):
        check_version("header", version)


@pytest.mark.parametrize("version", ["4.1.0", "4.10.0.dev0", "5.0.0"])
def test_later_ones_are_taken(version: str) -> None:
    check_version("header", version)
