"""Run groups at brokers behind taps, and move their members to the consumer protocol."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.spark.java import find_java
from flexwire.tap import parse_host_port
from tests.kafka.asking import ask, until
from tests.kafka.driving import PROGRAMS, STREAMS
from tests.kafka.secured import tapping
from tests.kafka.trial.group_cases import BROKERS, CONNECT, OFF, RELEASE, TOPIC, GroupCase, Software
from tests.kafka.trial.group_rows import ALONE, AS_IT_IS, CLASSIC, CONSUMER, WITHOUT, Attempt
from tests.kafka.trial.trying import MOST_SECONDS, plain
from tools.broker import JAVA_OPTIONS, REQUEST_LOG, broker
from tools.clients.installing import Program
from tools.clients.members import Members
from tools.maven import Jars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from flexwire.tap import Tap

_CONNECT = Jars(
    "kafka-connect-4.3.1",
    ("org.apache.kafka:connect-runtime:4.3.1", "org.slf4j:slf4j-simple:1.7.36"),
)
_PARTITIONS = 4
# A member that a broker accepts joins within a second; after a failure, two seconds are enough.
_MOVE_SECONDS, _AFTER_FAILURE = 12, 2
_AT_ONCE = 6
_SAFE_DOWNGRADE = 2


class TriedBroker:
    """A broker behind a tap, and its own view of groups."""

    def __init__(self, name: str, address: str, tap: Tap) -> None:
        self.name, self.address, self.tap = name, address, tap
        admin: Any = AdminClient({"bootstrap.servers": address})
        for made in admin.create_topics([NewTopic(TOPIC, _PARTITIONS, 1)]).values():
            made.result(MOST_SECONDS)
        if name == OFF:
            feature = {"feature": "group.version", "maxVersionLevel": 0}
            self.ask(
                "UpdateFeatures", timeoutMs=10_000, validateOnly=False,
                featureUpdates=[{**feature, "upgradeType": _SAFE_DOWNGRADE}],
            )  # fmt: skip

    @property
    def through(self) -> str:
        """The address of the broker's tap."""
        return str(self.tap.listen_address)

    def ask(self, api: str, **form: Any) -> dict[str, Any]:
        """Ask the broker directly, without the tap."""
        return ask(self.address, api, RELEASE, **form)

    def type_of(self, group: str) -> str:
        """Return the type of a group, or an empty string if the group does not exist."""
        found = self.ask("ListGroups", statesFilter=[], typesFilter=[])["groups"]
        types: dict[str, str] = {one["groupId"]: one["groupType"].lower() for one in found}
        return types.get(group, "")

    def settled(self, group: str) -> int:
        """Return the number of members of a classic group, or -1 while the group rebalances."""
        form = {"groups": [group], "includeAuthorizedOperations": False}
        (found,) = self.ask("DescribeGroups", **form)["groups"]
        members = len(found["members"])
        return members if found["groupState"] in {"Stable", "Empty"} or not members else -1


@contextlib.contextmanager
def brokers(names: Sequence[str], place: Path) -> Iterator[dict[str, TriedBroker]]:
    """Start brokers by name, each behind a tap; the first broker logs its requests."""
    found = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            logging = {JAVA_OPTIONS: REQUEST_LOG} if name == names[0] else {}
            settings = {**BROKERS[name], **logging}
            address = stack.enter_context(broker(RELEASE, place / name, settings))
            tap = stack.enter_context(tapping(parse_host_port(address), place / f"tap-{name}"))
            found[name] = TriedBroker(name, address, tap)
        yield found


class TriedGroups:
    """Run the groups of cases, whose members stay until the end of the ``with`` block."""

    def __init__(
        self,
        cases: Sequence[GroupCase],
        at: Mapping[str, TriedBroker],
        place: Path,
        say: Callable[[str], None],
    ) -> None:
        self._cases, self._at, self._place, self._say = cases, at, place, say
        self._stack = contextlib.ExitStack()
        self._members: dict[Software, Members] = {}

    def __enter__(self) -> Self:
        """Start the programs of all libraries, and every group."""
        with contextlib.ExitStack() as stack:
            kinds = dict.fromkeys(one for case in self._cases for one, _ in case.movers)
            for software in kinds:
                program = software.way.bring()
                program = Program((*program.command, *software.arguments), program.environment)
                self._members[software] = stack.enter_context(
                    Members(program, self._place / f"{software}.log")
                )
            for case in self._cases:
                if case.application:
                    stack.enter_context(self._application(case))
            # The second member joins a settled group, so that assignors have a previous assignment.
            for number in range(max(len(case.members) for case in self._cases)):
                joining = [case for case in self._cases if number < len(case.members)]
                for case in joining:
                    self._start(case, number)
                self._wait(joining, number + 1)
            self._wait([case for case in self._cases if case.application], 0)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End all programs."""
        self._stack.close()

    def move_all(self) -> dict[str, tuple[Attempt, ...]]:
        """Move each group; return what happened to each group, without the brokers' error codes."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(
                zip((case.name for case in self._cases), pool.map(self._move, self._cases),
                    strict=True)
            )  # fmt: skip

    def _start(self, case: GroupCase, number: int) -> None:
        software, settings = case.members[number]
        name = f"{case.name}-{number}"
        self._members[software].start(
            name, self._at[case.broker].through, case.name, case.topic,
            [f"{software.client_id}={name}", *settings],
        )  # fmt: skip

    def _wait(self, cases: Sequence[GroupCase], number: int) -> None:
        """Wait until each group has this many members; 0 means all members of the case."""
        for case in cases:
            at, size = self._at[case.broker], number or case.size
            is_there = partial(_has_members, at, case.name, size)
            until(is_there, f"{case.name} does not have {size} members")

    @contextlib.contextmanager
    def _application(self, case: GroupCase) -> Iterator[None]:
        """Run Kafka Streams or a Connect worker."""
        is_connect = case.application is CONNECT
        jars = (_CONNECT if is_connect else STREAMS).bring()
        program = PROGRAMS / f"{'ConnectWorker' if is_connect else 'ClassicStreams'}.java"
        given = [self._at[case.broker].through, case.name]
        if not is_connect:
            given += [TOPIC, str(self._place / "streams")]
        command = [str(find_java() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", f"{jars}/*", str(program), *given]
        with (
            self._place.joinpath(f"{case.name}.log").open("wb") as log,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as process,
        ):
            try:
                yield
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(MOST_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _move(self, case: GroupCase) -> tuple[Attempt, ...]:
        attempts: list[Attempt] = []
        for software, settings in case.movers:
            attempts.append(self._attempt(case, software, settings, AS_IT_IS, len(attempts)))
            kept = tuple(one for one in settings if one.split("=")[0] in software.kept)
            if attempts[-1].type != CONSUMER and kept != settings:
                attempts.append(self._attempt(case, software, kept, WITHOUT, len(attempts)))
        if case.empties:
            for number, (software, _) in enumerate(case.members):
                self._members[software].leave(f"{case.name}-{number}")
            attempts.append(self._attempt(case, software, kept, ALONE, len(attempts)))
        self._say(f"  {case.name}: {', '.join(f'{one.how}: {one.type}' for one in attempts)}")
        return tuple(attempts)

    def _attempt(
        self, case: GroupCase, software: Software, settings: tuple[str, ...], how: str, number: int
    ) -> Attempt:
        """Make a member join, and leave again when the broker has reacted."""
        at, members, name = self._at[case.broker], self._members[software], mover(case, number)
        # If members do not announce that they leave, their sessions must time out.
        until(
            lambda: at.settled(case.name) == 0 if how == ALONE else at.settled(case.name) >= 0,
            f"{case.name} does not settle",
        )
        before = at.settled(case.name)
        told = (*software.protocol, *settings, *case.also)
        members.start(
            name, at.through, case.name, case.topic, [f"{software.client_id}={name}", *told]
        )
        end = time.monotonic() + _MOVE_SECONDS
        kind = ""
        while time.monotonic() < end:
            kind = at.type_of(case.name)
            if kind == CONSUMER or (kind == CLASSIC and at.settled(case.name) == before + 1):
                break
            if members.failure(name):
                end = min(end, time.monotonic() + _AFTER_FAILURE)
            time.sleep(0.3)
        said = plain(members.failure(name))
        members.leave(name)
        return Attempt(str(software), how, told, None, kind, said)


def _has_members(at: TriedBroker, group: str, size: int) -> bool:
    return at.settled(group) == size


def mover(case: GroupCase, number: int) -> str:
    """Return the client id of a member that joins a group."""
    return f"{case.name}-mover-{number}"


def copy_captures(at: Mapping[str, TriedBroker], place: Path) -> list[Path]:
    """Copy what the taps have captured so far."""
    place.mkdir()
    copies = []
    for name, one in at.items():
        for path in one.tap.capture_paths:
            copies.append(place / f"{name}-{path.name}")
            shutil.copy(path, copies[-1])
    return copies
