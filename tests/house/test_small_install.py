"""flexwire without extras is small, and runs without kernels and without Unix-only modules."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from flexwire.errors import MissingExtraError
from flexwire.extras import EXTRAS, MissingModule, import_optional
from tests.each import each
from tests.house import portable
from tests.net.answering import Answers, answering
from tools.package.small import MOST_BYTES, installed_size

ROOT = Path(__file__).parents[2]
# The modules that Windows lacks, and the names that other modules lack on Windows.
UNIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
LACKING = {
    "os": (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod", "fchown"),
        *("fdatasync", "fork", "geteuid", "getpgid", "getuid", "killpg", "mkfifo", "nice", "pipe2"),
        *("posix_fadvise", "posix_fallocate", "pread", "preadv", "pwrite", "register_at_fork"),
        *("sched_getaffinity", "sendfile", "setsid", "statvfs", "sysconf", "wait"),
    ),
    "signal": (
        *("ITIMER_PROF", "ITIMER_REAL", "SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGPROF"),
        *("SIGQUIT", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer", "sigwait"),
    ),
    "_socket": ("AF_UNIX", "MSG_DONTWAIT", "MSG_NOSIGNAL", "SCM_RIGHTS", "SO_REUSEPORT"),
    "select": ("epoll", "poll"),
    "time": ("CLOCK_MONOTONIC", "clock_gettime", "pthread_getcpuclockid"),
}
# The modules that must work on Windows: the codec, records, columns, schemas and calls.
ON_WINDOWS = (
    "flexwire",
    "flexwire.cli",
    "flexwire.client",
    "flexwire.codec",
    "flexwire.columnar",
    "flexwire.messages",
    "flexwire.protocol",
    "flexwire.records",
    "flexwire.schema.catalog",
    "flexwire.specs.breaking",
    "flexwire.specs.lint",
)
COMMANDS = (
    ("decode", "MetadataRequest", "00010000", "--version", "12"),
    ("explain", "MetadataRequest", "00010000", "--version", "12"),
    ("encode", "ApiVersionsRequest", "{}", "--version", "0"),
    ("schema", "list", "fetchrequest"),
    ("schema", "resolve", "FetchRequest", "--version", "12"),
    ("call", "--help"),
)
RUN = """
import json, sys
hidden, lacking, modules, arguments = json.loads(sys.argv[1])
for name in hidden:
    sys.modules[name] = None
import importlib
for name, attributes in lacking.items():
    module = importlib.import_module(name)
    for attribute in attributes:
        delattr(module, attribute)
for name in modules:
    module = importlib.import_module(name)
    if hasattr(module, "try_all"):
        module.try_all()
if arguments:
    sys.argv = ["flexwire", *arguments]
    from flexwire.cli import main
    main()
"""


def _run(
    hidden: set[str],
    modules: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    *,
    like_windows: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a process without some modules; ``like_windows`` also removes what Windows lacks."""
    lacking = LACKING if like_windows else {}
    names = sorted(hidden | ({*UNIX_ONLY} if like_windows else set()))
    given = json.dumps([names, lacking, modules, arguments])
    return subprocess.run(
        [sys.executable, "-c", RUN, given], capture_output=True, text=True, check=False, timeout=300
    )


def _kernels() -> set[str]:
    sources = (ROOT / "src" / "flexwire" / "kernels").rglob("*.pyx")
    names = {".".join(one.relative_to(ROOT / "src").with_suffix("").parts) for one in sources}
    assert len(names) > 10
    return {*names, "flexwire.kernels.shared"}


def _needed(name: str, seen: set[str]) -> set[str]:
    """Return the packages that a package needs without extras, directly or indirectly."""
    if name in seen:
        return seen
    seen.add(name)
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _needed(requirement.name, seen)
    return seen


def test_an_installation_without_extras_is_small() -> None:
    """This is the size of the files that pip unpacks; pip compiles bytecode later, or never."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed: set[str] = set()
    for line in project["dependencies"]:
        _needed(Requirement(line).name, needed)
    assert needed == {"click", "google-crc32c", "msgspec"}
    packages = {name: installed_size(distribution(name)) for name in needed}
    ours = sum(
        one.stat().st_size
        for one in (ROOT / "src" / "flexwire").rglob("*")
        if one.is_file() and one.suffix not in {".pyx", ".pxd", ".h", ".c", ".pyc"}
    )
    assert ours > 3_000_000
    assert sum(packages.values()) + ours < MOST_BYTES, (packages, ours)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_runs_without_kernels_and_without_extras(arguments: tuple[str, ...]) -> None:
    whole = _run(set(), arguments=arguments)
    assert whole.returncode == 0, whole.stderr
    small = _run(_kernels() | set(EXTRAS), arguments=arguments)
    assert (small.returncode, small.stdout, small.stderr) == (0, whole.stdout, whole.stderr)


@pytest.mark.slow
def test_what_windows_gets_is_imported_without_what_only_unix_has() -> None:
    done = _run(set(), ON_WINDOWS, like_windows=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.slow
@each("without", [set(), _kernels()])
def test_what_windows_gets_works_without_what_only_unix_has(without: set[str]) -> None:
    done = _run(without, ("tests.house.portable",), like_windows=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == portable.done()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_runs_without_what_only_unix_has(arguments: tuple[str, ...]) -> None:
    whole = _run(set(), arguments=arguments)
    done = _run(set(), arguments=arguments, like_windows=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, whole.stdout, whole.stderr)


@pytest.mark.slow
def test_a_call_works_without_what_only_unix_has() -> None:
    with answering(Answers()) as (address, _):
        call = ("call", address, "Metadata", '{"topics": null}', "--version", "12")
        done = _run(set(), arguments=call, like_windows=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["brokers"] == []


# Without a wheel for the platform, google-crc32c contains only its slow Python code.
FAST_CRC = {"google_crc32c.cext"}


@pytest.mark.long
@pytest.mark.slow
@each("without", [set(), _kernels()])
def test_records_work_and_warn_of_nothing_where_crcs_are_slow(without: set[str]) -> None:
    done = _run(FAST_CRC | without, ("tests.house.portable",))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == portable.done()


RECORDS = """
from flexwire.records import Record, decode_records, encode_batch
from flexwire.errors import MissingExtraError, RecordError
record = Record(value=b"x" * 100, key=None, offset=0, timestamp=1)
whole = encode_batch([record], compression="gzip", base_offset=0)
assert [one.value for one in decode_records(whole)] == [record.value]
damaged = bytearray(whole)
damaged[-9] ^= 255
damaged[17:21] = __import__("google_crc32c").value(bytes(damaged[21:])).to_bytes(4, "big")
for compression in ("gzip", "snappy", "lz4", "zstd"):
    try:
        if compression == "gzip":
            list(decode_records(bytes(damaged)))
        else:
            encode_batch([record], compression=compression, base_offset=0)
    except (MissingExtraError, RecordError) as error:
        print(type(error).__name__, getattr(error, "extra", "the gzip data"))
"""


@pytest.mark.slow
def test_without_the_extra_records_only_their_compression_is_missing() -> None:
    program = f"import sys\nsys.modules['cramjam'] = None\n{RECORDS}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "RecordError the gzip data",
        *["MissingExtraError records"] * 3,
    ]


def test_a_missing_module_is_told_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = import_optional("it", "records", "no_such_module")
    assert isinstance(missing, MissingModule)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'flexwire[records]'")):
        _ = missing.zstd
    assert import_optional("it", "records", "json") is json
    # Only an installed module that lacks another module is broken; missing extras do not matter.
    (tmp_path / "broken_inside.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError) as caught:
        import_optional("it", "records", "broken_inside")
    assert caught.value.name == "no_such_module"
