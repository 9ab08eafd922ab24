"""Run MIT's Kerberos KDC on loopback until its caller ends.

``python -m tools.kdc DIRECTORY`` prints the KDC's address when the KDC listens, and stops the KDC
at the end of standard input. Its output is written to ``DIRECTORY/kdc.log``, and its database is in
``DIRECTORY`` too. The machine's own Kerberos configuration is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.companions import MOST_SECONDS, accompany, companion
from tools.debian import Programs, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

REALM = "FLEXWIRE.TEST"
# The KDC and its clients, librdkafka with GSSAPI, and names that only one process knows.
PROGRAMS = Programs(
    "kerberos",
    (
        "krb5-kdc",
        "krb5-admin-server",
        "krb5-user",
        "kcat",
        "libsasl2-modules-gssapi-mit",
        "libnss-wrapper",
    ),
)
MOST_TRIES = 4
# Tickets are for the name as requested, and with TCP nothing is sent twice.
_CONFIG = """[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = {address}
 }}
[domain_realm]
 .test = {realm}
"""
_KDC_CONFIG = """[kdcdefaults]
 kdc_listen = {address}
 kdc_tcp_listen = {address}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
 }}
[dbmodules]
 db_module_dir = {modules}
[logging]
 kdc = FILE:{directory}/kdc.log
"""


@dataclass(frozen=True)
class Kdc:
    """A realm: its directory, and the directory of Kerberos programs."""

    directory: Path
    programs: Path

    @property
    def config(self) -> Path:
        """Return the file that the realm's clients and servers read, both MIT's and Java's."""
        return self.directory / "krb5.conf"

    def environment(self) -> dict[str, str]:
        """Return the environment for a program that must know only this realm."""
        return {
            **environment(self.programs),
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.directory / 'tickets'}",
            "KRB5RCACHEDIR": str(self.directory),
        }

    def create(self) -> None:
        """Create the realm's database."""
        self._run("kdb5_util", "-r", REALM, "create", "-s", "-P", "of a test")

    def keytab(self, principal: str) -> Path:
        """Return a file with the keys of a principal, which is created if it does not exist."""
        keytab = self.directory / f"{principal.replace('/', '-')}.keytab"
        if not keytab.exists():
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
            self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(keytab), principal)
        return keytab

    def _run(self, *command: str) -> None:
        ran = subprocess.run(
            command,
            env=self.environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
        )
        if ran.returncode:
            raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip()}")


@contextlib.contextmanager
def kdc(directory: Path) -> Iterator[Kdc]:
    """Run a KDC while the block runs; raise `SystemExit` if its programs are not available."""
    found = Kdc(directory, PROGRAMS.bring())
    with companion("tools.kdc", [str(directory)], directory / "kdc.log"):
        yield found


def main(where: str) -> None:
    """Run a KDC until standard input ends."""
    directory = Path(where).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    found = Kdc(directory, PROGRAMS.bring())
    for _ in range(MOST_TRIES):
        address = _configure(found)
        if not (directory / "principal").exists():
            found.create()
        program = str(found.programs / "usr" / "sbin" / "krb5kdc")
        with (directory / "said.log").open("wb") as said:
            out: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said}
            process = subprocess.Popen([program, "-n"], env=found.environment(), **out)
        if _answers(process, address):
            accompany(process, f"{address[0]}:{address[1]}")
            return
    sys.exit(f"error: the KDC did not start: see {directory}")


def _configure(found: Kdc) -> tuple[str, int]:
    """Write the KDC's files, for a free port."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        address: tuple[str, int] = one.getsockname()
    (modules,) = found.programs.glob("**/krb5/plugins/kdb")
    told = {"address": "{}:{}".format(*address), "realm": REALM}
    found.config.write_text(_CONFIG.format(**told), encoding="utf-8")
    own = _KDC_CONFIG.format(**told, directory=found.directory, modules=modules)
    (found.directory / "kdc.conf").write_text(own, encoding="utf-8")
    return address


def _answers(process: subprocess.Popen[bytes], address: tuple[str, int]) -> bool:
    """Return whether the KDC listens; it does not if another process took the port meanwhile."""
    end = time.monotonic() + MOST_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(address, 5).close()
            return True
        time.sleep(0.05)
    process.kill()
    process.wait()
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
