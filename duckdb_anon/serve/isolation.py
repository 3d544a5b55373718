"""What the worker of an endpoint is kept from, whatever a statement makes of it: networks, files, the user's rights.

Where the system allows it, the worker starts in a network namespace of its own. There it reaches itself alone; clients
come through one listening socket that the supervisor opened outside and handed over. Once the database is open, a
worker that was started by root becomes nobody, and no file can be written and no core dumped any more.
Guarantee: what holds is reported, and what does not is, too. Source: unshare(1), netdevice(7), setrlimit(2).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path

from duckdb_anon.serve.limits import LOOPBACK

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS of netdevice(7)
_UP = 0x1 | 0x40  # IFF_UP and IFF_RUNNING
_CHUNK = 64 << 10
_SLACK = 128 << 20  # what a query may take beyond DuckDB's accounting: threads, the answer on its way out


def without_network() -> list[str]:
    """The command that starts another one in a network namespace of its own; empty where the system has none."""
    unshare = shutil.which("unshare") if sys.platform == "linux" else None
    if unshare is None:
        return []
    command = [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--user", "--map-root-user", "--net"]
    found = subprocess.run([*command, "true"], capture_output=True, check=False)  # noqa: S603 - a fixed command
    return [*command, "--"] if found.returncode == 0 else []


def pass_on(listening: socket.socket, port: int) -> None:
    """Pass clients of a socket from outside of the namespace to `port` inside of it, from now on."""
    import fcntl

    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", _UP))

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one of the two is gone
        finally:
            writer.close()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(LOOPBACK, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    async def serve() -> None:
        server = await asyncio.start_server(client, sock=listening)
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()


def bound_this_process(memory: int) -> bool:
    """Let this process take `memory` bytes more than it holds now; whether the system (Linux alone) enforces it.

    Private data is what counts (RLIMIT_DATA, which Linux applies to heaps and anonymous maps alike): an
    allocation of any size fails at once, whoever makes it, DuckDB's accounting or not.
    """
    if sys.platform != "linux":
        return False
    import resource

    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    in_use = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (in_use + memory + _SLACK,) * 2)
    return True


def give_up_rights(has_network: bool, by_root: bool, writes: bool) -> str:
    """Give up what serving does not need; what holds afterwards, and what does not, in a line.

    The worker may share the network of the machine (`has_network`), root may have started the endpoint (`by_root`), and
    it may have to write its database (`writes`).
    """
    found = {"no network": not has_network, "no files written": _write_nothing(writes)}
    if by_root:
        found["runs as an unprivileged user"] = not writes and _become_nobody()
    holds, missing = (", ".join(what for what, is_so in found.items() if is_so == wanted) for wanted in (True, False))
    return f"isolation of the worker: {holds or 'none'}{f'; not: {missing}' if missing else ''}"


def _write_nothing(writes: bool) -> bool:
    try:
        import resource
    except ModuleNotFoundError:
        return False
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if writes or stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode):
        return False  # the database, or a log, which says why the worker ended
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return True


def _become_nobody() -> bool:
    """Run as nobody from now on, unless modules that are loaded later can be read by root alone."""
    import pwd

    parts = [Path(__file__).resolve(), *(Path(place).resolve() for place in sys.path if place)]
    folders = {folder for part in parts if part.exists() for folder in (part, *part.parents)}
    if not all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders if folder.is_dir()):
        return False
    try:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    except (KeyError, OSError):
        return False
    return True
