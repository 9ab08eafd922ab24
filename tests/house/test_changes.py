"""Each common change is made in at most two files.

Each patch in `tests/house/changes` makes one such change to the current tree: a zstd dictionary, a
column of ``frames``, a lint rule, a convention for record headers, an answer, an option of the tap,
a Kafka release, a corrected error message. If a patch no longer applies, make the change by hand,
and write the patch with ``git diff -U1 -- src``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATCHES = sorted((ROOT / "tests" / "house" / "changes").glob("*.patch"))
MOST_FILES = 2
# The effect of the change, as a Python expression that runs in the changed tree.
EFFECTS = {
    "answer": "'large_frames' in list(ANSWERS_BY_NAME)",
    "error_text": "'release of the catalog' in refused(lambda: apis.api_name(9999))",
    "frames_column": "'request_time' in [one.name for one in FRAMES]"
    " and 'request_time' in PAIRED.names",
    "header_convention": "'hex' in ConventionName().choices"
    " and read_headers([(b'a', b'00ff')], 'hex') == [('a', bytes([0, 255]))]"
    " and 'hexadecimal digits' in str(ANSWERS_BY_NAME['headers'].columns)",
    "kafka_release": "catalog().releases[-1] == '4.4.1'",
    "lint_rule": "'ABOUT_TOO_LONG' in rules()",
    "tap_option": "'most_connections' in [one.name for one in fields(TapConfig)]"
    " and '--most-connections' in told('tap')",
    "zstd_dictionary": "inflated_by_dictionary()",
}
RUN = """
import json, zstandard
from dataclasses import fields
from click.testing import CliRunner
from flexwire.answers import ANSWERS_BY_NAME
from flexwire.capture.pairing.rows import PAIRED
from flexwire.cli.app import app
from flexwire.cli.records_dump_options import ConventionName
from flexwire.protocol import apis
from flexwire.records import Compression, compression
from flexwire.records.conventions import read_headers
from flexwire.schema.catalog import catalog
from flexwire.specs.lint.rules import rules
from flexwire.tables.schema import FRAMES
from flexwire.tap.config import TapConfig

def told(command):
    return CliRunner().invoke(app, [command, "--help"]).output

def refused(ask):
    try:
        return ask()
    except Exception as error:
        return str(error)

def inflated_by_dictionary():
    data = b"".join(b"order %d is paid; " % (one * one) for one in range(5000))
    texts = [data[at : at + 500] for at in range(0, len(data), 500)]
    trained = zstandard.train_dictionary(2000, texts)
    frame = zstandard.ZstdCompressor(dict_data=trained).compress(texts[7])
    inflate = lambda: compression.inflate(Compression.ZSTD, frame, magic=2, limit=1 << 20)
    before = refused(inflate)
    compression.use_zstd_dictionary(trained.as_bytes())
    return before != texts[7] and inflate() == texts[7]

effects = json.loads(input())
print(json.dumps({name: refused(lambda: eval(done)) is True for name, done in effects.items()}))
"""


def changed(patch: Path) -> list[str]:
    """Return the paths of the files that a patch writes, relative to the root."""
    found = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(encoding="utf-8"), re.MULTILINE)
    return [str(one) for one in found]


def tree(place: Path, patches: list[Path]) -> Path:
    """Copy the package, with separate copies of the files that patches write."""
    written = {name for patch in patches for name in changed(patch)}
    for folder, folders, files in os.walk(ROOT / "src"):
        folders[:] = [one for one in folders if one != "__pycache__"]
        here = place / Path(folder).relative_to(ROOT)
        here.mkdir(parents=True)
        for name in files:
            of = Path(folder, name)
            if of.relative_to(ROOT).as_posix() in written:
                shutil.copy(of, here / name)
            else:
                (here / name).symlink_to(of)
    return place


def apply(patch: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """Apply a patch to files outside a git repository, as to a source tree."""
    nowhere = os.environ | {"GIT_CEILING_DIRECTORIES": str(place.parent)}
    command = ["git", "apply", str(patch)]
    return subprocess.run(
        command, cwd=place, env=nowhere, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("patch", PATCHES, ids=lambda one: one.stem)
def test_a_change_is_made_in_at_most_two_files(patch: Path, tmp_path: Path) -> None:
    files = changed(patch)
    assert files
    assert all(name.startswith("src/") for name in files)
    assert len(files) <= MOST_FILES
    assert patch.read_text(encoding="utf-8").count("\n@@ ") >= len(files)
    place = tmp_path / "tree"
    for name in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, place / name)
    done = apply(patch, place)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.slow
def test_every_change_does_what_it_is_for(tmp_path: Path) -> None:
    assert [one.stem for one in PATCHES] == sorted(EFFECTS)
    place = tree(tmp_path / "tree", PATCHES)
    for patch in PATCHES:
        assert apply(patch, place).returncode == 0, patch
    found = {}
    for path in (ROOT / "src", place / "src"):
        env = os.environ | {"PYTHONPATH": str(path), "FLEXWIRE_KERNELS": "off"}
        env |= {"PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", RUN],
            input=json.dumps(EFFECTS),
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        found[path] = json.loads(done.stdout)
    # Before the change, none of these expressions is true.
    assert found == {
        ROOT / "src": dict.fromkeys(EFFECTS, False),
        place / "src": dict.fromkeys(EFFECTS, True),
    }
