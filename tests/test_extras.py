"""If a package of an extra is missing, flexwire's own error names what to install."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import flexwire.logs
from flexwire.errors import FlexwireError, MissingExtraError
from flexwire.extras import EXTRAS, missing_extra, needed_by, require

ROOT = Path(__file__).parents[1]
# Modules whose names differ from the names of their packages.
_PACKAGES = {
    "vl_convert": "vl-convert-python",
    "zlib_ng": "zlib-ng",
    "opentelemetry": "opentelemetry-proto",
    "confluent_kafka": "confluent-kafka",
    "kafka": "kafka-python",
}
# Modules that are installed with another package of the same extra.
_BROUGHT = {"markupsafe": "jinja2", "py4j": "pyspark"}


def _run(program: str, *arguments: str, without: set[str]) -> subprocess.CompletedProcess[str]:
    hidden = f"import sys\nfor name in {sorted(without)}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", hidden + program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _packages(extra: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: set[str] = set()
    for line in project["optional-dependencies"][extra]:
        one = Requirement(line)
        if one.name == "flexwire":
            for inner in one.extras:
                found |= _packages(inner)
        else:
            found.add(one.name)
    return found


@pytest.mark.parametrize("module", EXTRAS)
def test_the_extra_that_is_named_brings_the_module(module: str) -> None:
    package = _BROUGHT.get(module, _PACKAGES.get(module, module))
    assert package in _packages(EXTRAS[module])


IMPORTS = [
    ("flexwire.columnar", "numpy", "columnar"),
    ("flexwire.columnar", "pyarrow", "columnar"),
    ("flexwire.columnar.decoding", "pyarrow", "columnar"),
    ("flexwire.capture.reassembly.flows", "numpy", "columnar"),
    ("flexwire.spark", "pyspark", "spark"),
    ("flexwire.spark", "pyarrow", "spark"),
    ("flexwire.spark", "pandas", "spark"),
    ("flexwire.spark.analyze", "pyspark", "spark"),
    ("flexwire.spark.functions", "pyspark", "spark"),
    ("flexwire.answers.state", "numpy", "spark"),
    ("flexwire.tap.authority", "cryptography", "tls"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "missing", "extra"), IMPORTS)
def test_an_import_says_what_to_install(module: str, missing: str, extra: str) -> None:
    program = (
        "import json, importlib\n"
        "from flexwire.errors import FlexwireError\n"
        "try:\n"
        f"    importlib.import_module({module!r})\n"
        "except FlexwireError as error:\n"
        "    print(json.dumps([isinstance(error, ImportError), error.name, str(error)]))\n"
    )
    done = _run(program, without={missing})
    assert done.stderr == ""
    is_import_error, name, text = json.loads(done.stdout)
    assert is_import_error
    assert name.partition(".")[0] == missing
    assert text.endswith(f", which is not installed: pip install 'flexwire[{extra}]'")


# All other modules can be imported without any extra. A directory stands for its modules.
NEED_EXTRAS = {
    "activity.growing", "activity.growing_logs", "activity.live", "activity.logged",
    "activity.sources", "answers", "columnar", "kernels", "measures", "scan", "spark", "survey",
    "tables", "tasks",
    "capture.files.blocks", "capture.pairing", "capture.reassembly.flows",
    "capture.reassembly.frames", "capture.reassembly.merging", "capture.reassembly.packet_scan",
    "capture.reassembly.segments", "demo.clients", "demo.run", "logs.discovery", "logs.divergence",
    "logs.follower", "logs.holes", "logs.metadata", "logs.pieces", "logs.positions",
    "logs.records", "logs.replicas", "logs.rows", "specs.cost.columns", "specs.guide.traffic",
    "cli.mcp.server", "cli.view.screen", "storage.arrow_files", "tap.authority", "testing",
    "__main__",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_what_needs_no_extra_is_imported_without_any() -> None:
    package = ROOT / "src" / "flexwire"
    paths = (one.relative_to(package).with_suffix("") for one in package.rglob("*.py"))
    every = {".".join(path.parts).removesuffix("__init__").rstrip(".") for path in paths}
    light = [
        f"flexwire.{one}".rstrip(".")
        for one in sorted(every)
        if not any(one == room or one.startswith(f"{room}.") for room in NEED_EXTRAS)
    ]
    assert "flexwire.tap.tap" in light
    done = _run("import " + ", ".join(light), without=set(EXTRAS))
    assert (done.returncode, done.stderr) == (0, "")


def test_no_module_is_said_to_need_an_extra_that_is_not_there() -> None:
    package = ROOT / "src" / "flexwire"
    for one in NEED_EXTRAS:
        path = package.joinpath(*one.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), one


def test_logs_in_columns_say_what_to_install() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'plans'"):
        _ = flexwire.logs.plans
    program = (
        "from flexwire.logs import LogQuery\n"
        "try:\n"
        "    from flexwire.logs import plan\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = _run(program, without={"numpy"})
    assert done.stderr == ""
    assert "flexwire.logs needs numpy" in done.stdout


COMMANDS = [
    (["analyze", "x.pcap", "--out", "out"], "spark"),
    (["answers", "out"], "spark"),
    (["demo", "--out", "out"], "demo"),
    (["who", "x.pcap"], "columnar"),
    (["mcp", "."], "mcp"),
    (["view", "x.pcap"], "view"),
    (["schema", "docs", "--out", "out"], "docs"),
    (["tap", "--listen", "ssl://localhost:0", "--upstream", "ssl://127.0.0.1:1",
      "--out", "cap", "--throwaway-ca", "try"], "tls"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "extra"), COMMANDS)
def test_a_command_says_what_to_install_in_one_line(
    arguments: list[str], extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = "from flexwire.cli import main\nsys.argv[0] = 'flexwire'\nmain()"
    done = _run(program, *arguments, without=set(EXTRAS))
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"pip install 'flexwire[{extra}]'" in done.stderr


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("missing", ["jinja2", "vl_convert"])
def test_an_analysis_says_so_before_it_begins(missing: str, tmp_path: Path) -> None:
    program = (
        "from flexwire.cli import main\n"
        f"sys.argv = ['flexwire', 'analyze', 'x.pcap', '--out', {str(tmp_path / 'out')!r}]\n"
        "main()"
    )
    done = _run(program, without={missing})
    assert done.returncode == 1
    assert done.stderr == (
        f"MissingExtraError: an analysis needs {missing}, which is not installed: "
        "pip install 'flexwire[spark]'\n"
    )


def test_a_command_whose_import_nobody_foresaw_says_it_too() -> None:
    program = (
        "from flexwire.cli import app, main\n"
        "@app.app.command()\n"
        "def unforeseen() -> None:\n"
        "    import pyarrow.parquet\n"
        "sys.argv = ['flexwire', 'unforeseen']\n"
        "main()"
    )
    done = _run(program, without={"pyarrow"})
    assert done.returncode == 1
    assert done.stderr == (
        "MissingExtraError: this command needs pyarrow.parquet, which is not installed: "
        "pip install 'flexwire[columnar]'\n"
    )


def test_a_module_that_no_extra_brings_is_a_defect_and_stays_one() -> None:
    assert missing_extra("it", ModuleNotFoundError(name="flexwire.nothing")) is None
    assert missing_extra("it", ModuleNotFoundError("unnamed")) is None
    for name in ("flexwire.nothing", "json.nothing", None):
        with pytest.raises(ModuleNotFoundError) as caught, needed_by("it", "spark"):
            raise ModuleNotFoundError("missing", name=name)
        assert not isinstance(caught.value, FlexwireError)


def test_the_outer_of_two_words_it() -> None:
    with (
        pytest.raises(MissingExtraError, match=r"^all needs numpy, .*\[spark\]"),
        needed_by("all", "spark"),
        needed_by("a part", "columnar"),
    ):
        raise ModuleNotFoundError(name="numpy")


def test_nothing_is_imported_by_asking() -> None:
    done = _run(
        "from flexwire.extras import require\n"
        "require('it', 'spark', 'pyarrow', 'numpy')\n"
        "print({'pyarrow', 'numpy'} & set(sys.modules))",
        without={"pandas"},
    )
    assert done.stdout == "set()\n"
    with pytest.raises(MissingExtraError, match="it needs no_such_module, which"):
        require("it", "spark", "numpy", "no_such_module")


def test_the_error_passes_between_processes() -> None:
    error = MissingExtraError("it", "numpy", "columnar")
    found = pickle.loads(pickle.dumps(error))  # noqa: S301 - the line above made the text
    assert (str(found), found.name, found.extra) == (str(error), "numpy", "columnar")


def test_the_readme_says_what_each_extra_is_for() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| what you want |")[2]
    named = set(
        re.findall(r"`(\w+)`", " ".join(re.findall(r"\|([^|\n]+)\|$", table, re.MULTILINE)))
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # These extras are for developing flexwire itself.
    assert set(project["optional-dependencies"]) - {"dev", "notebook"} <= named
    assert set(EXTRAS.values()) - {"notebook"} <= named
