"""Compare what each decoder of the protocol supports, on the same messages.

The messages are vectors that Kafka's own Java wrote, one with plain and one with odd values for
every version of every request and response. Each library decodes and encodes each message. If
tshark is installed, it dissects a capture of them. The output is for docs/comparison.md.

    make bench once, which installs the rivals; then: .venv/bin/python benchmarks/comparison.py
"""

import collections
import gzip
import importlib
import inspect
import io
import json
import pkgutil
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version as version_of
from pathlib import Path

from kio.serial import entity_reader, entity_writer

import flexwire
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.protocol import request_header_version, response_header_version

VECTORS = Path(__file__).parents[1] / "tests" / "vectors" / "messages.jsonl.gz"
# Decodes bytes, and encodes what came of it.
Codec = Callable[[bytes], bytes]
TSHARK = shutil.which("tshark") or ""
MOST_BYTES = 4 * 1024**3


def vectors() -> list[dict]:
    """Return every request and response of the tests' vectors."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [one for one in lines if one["type"] in {"request", "response"}]


def of_flexwire(name: str, version: int, release: str | None = None) -> Codec | None:
    """Return flexwire's codec of a message."""
    one = flexwire.message(name, release)
    return lambda data: one.decode(data, version).encode(version)


def of_kio(name: str, version: int, _release: str | None = None) -> Codec | None:
    """Return kio's codec of a message: its modules have a class for each version."""
    api = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"(Request|Response)$", "", name)).lower()
    kind = "request" if name.endswith("Request") else "response"
    try:
        one = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), name)
    except ImportError:
        return None
    read, write = entity_reader(one), entity_writer(one)

    def both(data: bytes) -> bytes:
        out = io.BytesIO()
        write(out, read(data, 0)[0])
        return out.getvalue()

    return both


def classes_of(package: str) -> Iterator[tuple[str, type]]:
    """Yield the classes of a package's modules, by name."""
    room = importlib.import_module(package)
    for one in pkgutil.iter_modules(room.__path__):
        if one.name not in {"generate_stubs", "old"}:
            yield from inspect.getmembers(
                importlib.import_module(f"{package}.{one.name}"), inspect.isclass
            )


def of_kafka_python() -> Callable[[str, int], Codec | None]:
    """Return the maker of kafka-python's codecs, whose classes take the version as an argument."""
    rooms = ("admin", "consumer", "metadata", "producer", "sasl")
    found = {name: one for room in rooms for name, one in classes_of_room(f"kafka.protocol.{room}")}

    def codec(name: str, version: int, _release: str | None = None) -> Codec | None:
        one = found.get(name)
        if one is None or not one.min_version <= version <= one.max_version:
            return None

        def both(data: bytes) -> bytes:
            decoded = one.decode(data, version=version)
            # The library needs this attribute, which only its constructor sets.
            decoded._header = None  # noqa: SLF001 - see above
            return bytes(decoded.encode(version=version))

        return both

    return codec


def classes_of_room(name: str) -> Iterator[tuple[str, type]]:
    """Yield the classes of a module or of a package's modules."""
    room = importlib.import_module(name)
    yield from inspect.getmembers(room, inspect.isclass)
    if hasattr(room, "__path__"):
        yield from classes_of(name)


def of_aiokafka() -> Callable[[str, int], Codec | None]:
    """Return the maker of aiokafka's codecs, whose classes have the version in their names."""
    found = dict(classes_of("aiokafka.protocol"))
    older = {"ApiVersionsRequest": "ApiVersionRequest", "ApiVersionsResponse": "ApiVersionResponse"}

    def codec(name: str, version: int, _release: str | None = None) -> Codec | None:
        one = found.get(f"{older.get(name, name)}_v{version}")
        return None if one is None else lambda data: one.decode(io.BytesIO(data)).encode()

    return codec


def outcome(codec: Codec | None, data: bytes) -> str:
    """Return the outcome for one message: the same bytes, other bytes, an error, or unknown."""
    if codec is None:
        return "not known"
    try:
        return "same bytes" if codec(data) == data else "other bytes"
    except Exception as error:  # noqa: BLE001 - whatever a rival raises is what is counted
        return f"error: {type(error).__name__}"


def plain(one: dict) -> dict:
    """Return the message with everyday values: small numbers, no error, no unknown fields."""
    message = flexwire.message(one["message"], one["release"])
    built = message.from_json(everyday(one["json"]), one["version"])
    empty_bytes(built)
    return {**one, "hex": built.encode(one["version"]).hex()}


def empty_bytes(one: object) -> None:
    """Remove values of type bytes, whose content some decoders also parse."""
    for name in getattr(one, "__struct_fields__", ()):
        value = getattr(one, name)
        if isinstance(value, bytes):
            setattr(one, name, b"")
        for each in value if isinstance(value, list) else [value]:
            empty_bytes(each)


def everyday(value: object, name: str = "") -> object:
    """Return a value of the JSON form, with 1 for a number and 0 for an error code."""
    if isinstance(value, dict):
        return {key: everyday(each, key) for key, each in value.items() if key[0] != "_"}
    if isinstance(value, list):
        return [everyday(each, name) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 if name.lower().endswith("errorcode") else 1
    return value


def with_tag(one: dict) -> dict | None:
    """Add a tagged field that no spec has; return None if the version has no tagged fields."""
    message = flexwire.message(one["message"], one["release"])
    decoded = message.decode(bytes.fromhex(one["hex"]), one["version"])
    decoded.unknown_tagged_fields[20_000] = b"traced"
    try:
        return {**one, "hex": decoded.encode(one["version"]).hex()}
    except flexwire.errors.EncodeError:
        return None


def by_libraries(messages: list[dict]) -> dict[str, collections.Counter]:
    """Return for each library how many message versions have each outcome."""
    codecs = {
        f"flexwire {flexwire.__version__}": of_flexwire,
        f"kio {version_of('kio')}": of_kio,
        f"kafka-python {version_of('kafka-python')}": of_kafka_python(),
        f"aiokafka {version_of('aiokafka')}": of_aiokafka(),
    }
    found = {}
    for name, codec_of in codecs.items():
        worst: dict[tuple[str, int], str] = {}
        for one in messages:
            key = one["message"], one["version"]
            told = outcome(codec_of(*key, one["release"]), bytes.fromhex(one["hex"]))
            if worst.get(key, "same bytes") == "same bytes":
                worst[key] = told
        found[name] = collections.Counter(worst.values())
    return found


def frame(payload: bytes) -> bytes:
    """Return the payload with its length in front."""
    return len(payload).to_bytes(4, "big") + payload


BROKER = "10.9.9.9"


def capture_of(messages: list[dict], directory: Path) -> list[str]:
    """Write each pair of a version as an exchange on a separate connection; return the clients."""
    pairs: dict[tuple, dict[str, list[dict]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    for one in messages:
        api = flexwire.message(one["message"]).entry.api_key
        pairs[api, one["version"]][one["type"]].append(one)
    clients = []
    with PcapngWriter(directory) as writer:
        for number, ((api, version), both) in enumerate(sorted(pairs.items())):
            clients.append(f"10.0.{number // 200}.{number % 200 + 1}")
            connection = writer.open_connection((clients[-1], 50000), (BROKER, 9092))
            for index, (asked, told) in enumerate(
                zip(both["request"], both["response"], strict=True)
            ):
                header = flexwire.message("RequestHeader")(
                    request_api_key=api, request_api_version=version, correlation_id=index
                )
                written = header.encode(request_header_version(api, version))
                connection.send("request", frame(written + bytes.fromhex(asked["hex"])))
                answer = flexwire.message("ResponseHeader")(correlation_id=index)
                written = answer.encode(response_header_version(api, version))
                connection.send("response", frame(written + bytes.fromhex(told["hex"])))
            connection.close()
    return clients


def by_tshark(messages: list[dict]) -> collections.Counter:
    """Return how many versions of requests and responses tshark dissects without a complaint."""
    complaints = ["kafka.unsupported_api_version", "kafka.unknown_api_key", "_ws.malformed"]
    wanted = [part for one in ("ip.src", "ip.dst", *complaints) for part in ("-e", one)]
    with tempfile.TemporaryDirectory() as place:
        clients = capture_of(messages, Path(place))
        (path,) = Path(place).glob("*.pcapng")
        answer = subprocess.run(  # noqa: S603 - our own command
            [TSHARK, "-r", str(path), "-Y", "kafka", "-T", "fields", *wanted],
            capture_output=True,
            text=True,
            check=True,
        )
    told = {(one, kind): "not seen" for one in clients for kind in ("request", "response")}
    for line in answer.stdout.splitlines():
        source, target, unsupported, unknown, malformed = line.split("\t")
        key = (source, "request") if target == BROKER else (target, "response")
        if told[key] in {"not seen", "dissected"}:
            told[key] = (
                "not known" if unsupported or unknown else "malformed" if malformed else "dissected"
            )
    return collections.Counter(told.values())


def lying_counts() -> dict[str, str]:
    """Decode twelve bytes that claim two thousand million topics, with each library."""
    return {name: in_a_process(name) for name in ("flexwire", "kio", "kafka-python", "aiokafka")}


def in_a_process(name: str) -> str:
    """Try one library with these bytes, in a separate process with 4 GiB and a minute."""
    asked = [sys.executable, __file__, "--lying", name]
    try:
        answer = subprocess.run(  # noqa: S603 - this file
            asked, capture_output=True, text=True, check=False, timeout=60
        )
    except subprocess.TimeoutExpired:
        return "not done after a minute"
    if answer.returncode < 0:
        return f"the process dies of {signal.Signals(-answer.returncode).name}"
    return answer.stdout.strip()


def lying(name: str) -> None:
    """Decode the bytes, and print what happened and the cost."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    codec_of = {
        "flexwire": lambda: of_flexwire,
        "kio": lambda: of_kio,
        "kafka-python": of_kafka_python,
        "aiokafka": of_aiokafka,
    }[name]()
    codec = codec_of("MetadataRequest", 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = outcome(codec, bytes.fromhex("7fffffff" + "00" * 8))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{told}; {peak // 1024:,} MiB more")


def show(title: str, messages: list[dict]) -> None:
    """Print each library's outcomes for these messages."""
    versions = len({(one["message"], one["version"]) for one in messages})
    print(f"{title}: {versions} versions of requests and responses")
    for name, counts in by_libraries(messages).items():
        print(f"  {name:20}", ", ".join(f"{told} {n}" for told, n in counts.most_common()))


def main() -> None:
    """Print what each library supports."""
    messages = vectors()
    everydays = [plain(one) for one in messages]
    show("everyday values", everydays)
    show("the same with an unknown tagged field", [one for one in map(with_tag, everydays) if one])
    show("any values that the types allow", messages)
    print("a count of 2,147,483,647 topics in 12 bytes")
    for name, told in lying_counts().items():
        print(f"  {name:20}", told)
    if TSHARK:
        told = subprocess.run(  # noqa: S603 - our own command
            [TSHARK, "--version"], capture_output=True, text=True, check=True
        )
        print(f"{told.stdout.splitlines()[0]}: everyday values")
        counts = by_tshark(everydays)
        print(" ", ", ".join(f"{one} {n}" for one, n in counts.most_common()))
    else:
        print("tshark is missing: install it (Debian: apt-get install tshark)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--lying"]:
        lying(sys.argv[2])
    else:
        main()
