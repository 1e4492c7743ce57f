"""Nobody behind bubblewrap can do these things: each is tried for real, inside the real sandbox, and works outside
where that matters. Each caller is tried on limits that all keep; the rest is about what tasks alone may have."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.callers import Caller, caller, callers
from tests.support.sandboxes import (
    TRY,
    as_ordinary_user,
    by_root,
    needs_sandbox,
    output_of,
    sandboxed,
    writable,
)

__all__ = ["caller"]

pytestmark = needs_sandbox

OPERATORS = "the planner is the operator's own program, with the operator's files"
SERVICES = "the planner's login may be kept by a service of this user"

CALL = (
    TRY
    + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) != -1: return "done"
    return errno.errorcode[ctypes.get_errno()]
"""
)


@callers(planner=OPERATORS)
def test_only_the_system_and_what_was_asked_for_is_visible(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir(mode=0o755)
    (tmp_path / "asked" / "file").write_text("shown")
    (tmp_path / "secret").write_text("hidden")
    code = TRY + f"""
import os
print(open("{tmp_path}/asked/file").read(), "asked" in os.listdir("{tmp_path}"), "secret" in os.listdir("{tmp_path}"))
for path in ("{tmp_path}/secret", "/etc/shadow", "/var/log", "/sys/kernel", "/root/.ssh", "/proc/kcore"):
    print(tried(lambda: os.stat(path) and open(path)))
"""
    lines = caller.said(code, [tmp_path / "asked"]).splitlines()
    assert lines[0] == "shown True False"
    assert set(lines[1:]) <= {"ENOENT", "EACCES", "EPERM"}


@callers(planner=OPERATORS)
def test_nothing_is_writable_but_tmp_and_artifacts(caller: Caller, tmp_path: Path) -> None:
    """A reader has neither, and writes nothing at all."""
    (tmp_path / "asked").mkdir(mode=0o777)
    code = TRY + f"""
import os
for folder in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/proc/sys/kernel", "{tmp_path}", "{tmp_path}/asked"):
    print(tried(lambda: open(folder + "/x", "w") and None))
sysctls = [top + "/" + name for top, _, files in os.walk("/proc/sys") for name in files]
print([path for path in sysctls if os.access(path, os.W_OK)])
for folder in ("/tmp", "/run", "/dev/shm", "/artifacts"):
    print(tried(lambda: open(folder + "/x", "w") and None))
"""
    before = sorted(path.name for path in tmp_path.iterdir())
    lines = caller.said(code, [tmp_path / "asked"]).splitlines()
    refusals = {"EROFS", "EACCES", "ENOENT", "EPERM"}
    assert {*lines[:7], lines[8]} <= refusals, lines
    assert lines[7] in {*refusals, "done"}, "the way to what was asked for may lie in the tool's own /tmp"
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "and not in ours"
    assert list((tmp_path / "asked").iterdir()) == []
    assert lines[9] == "[]"
    if caller.name == "reader":
        assert {*lines[10:]} <= refusals
    else:
        assert lines[10:] == ["done"] * 4
        assert (caller.folder / "artifacts" / "x").is_file()


@pytest.mark.parametrize("fs", ["read-only", "rw"])
def test_of_all_mounts_only_these_can_be_written_and_none_lends_rights(tmp_path: Path, fs: str) -> None:
    for name in ("r", "w", "i"):
        (tmp_path / name).mkdir()
    writable(tmp_path / "w")
    code = """
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    print(fields[4], "ro" if "ro" in fields[5].split(",") else "rw", "nosuid" if "nosuid" in fields[5] else "suid")
"""
    more = {"allow_read": (f"{tmp_path}/r",), "allow_write": (f"{tmp_path}/w",), "inputs": f"{tmp_path}/i"}
    mounts = [line.split() for line in output_of(tmp_path, code, fs=fs, **more).splitlines()]
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "pts", "console")}
    written = {path for path, access, _ in mounts if access == "rw"} - devices
    own = {"/proc", "/tmp", "/run", "/dev/shm", "/artifacts"}
    assert written == (own | {f"{tmp_path}/w"} if fs == "rw" else own)
    assert {rights for _, _, rights in mounts} == {"nosuid"}


@callers()
def test_it_has_no_privilege_and_can_get_none(caller: Caller) -> None:
    """The bounding set means nothing without a way to gain from it, and there is none with NoNewPrivs."""
    code = """
import ctypes, os, struct
libc = ctypes.CDLL(None)
print(libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))  # PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP
held = ctypes.create_string_buffer(24)
assert libc.capget(struct.pack("Ii", 0x20080522, 0), held) == 0
print({*held.raw} == {0})
print(0 in os.getresuid() + os.getresgid() + tuple(os.getgroups()))
print(os.statvfs("/usr").f_flag & os.ST_NOSUID != 0)
"""
    privileges, none, root, nosuid = caller.said(code).splitlines()
    assert privileges == "1 2"
    if caller.name == "planner":  # it is the operator's own program, with the operator's rights
        return
    assert (none, nosuid) == ("True", "True")
    if caller.name != "reader":  # in a user namespace of its own, where whoever started it has no rights
        assert root == "False"


@callers(planner=OPERATORS)
def test_links_inside_what_is_shown_lead_nowhere_else(caller: Caller, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir(mode=0o755)
    (tmp_path / "secret").write_text("hidden")
    (shown / "link").symlink_to(tmp_path / "secret")
    (shown / "up").symlink_to("../secret")
    code = TRY + f"""
for name in ("link", "up", "../secret"):
    print(tried(lambda: open("{shown}/" + name).read()))
"""
    assert caller.said(code, [shown]).split() == ["ENOENT"] * 3


@callers(planner="it talks to its provider")
def test_no_network_of_any_kind(caller: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=120):
            pass  # outside it works
        code = TRY + f"""
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_INET, ("192.0.2.1", 80)),
                        (socket.AF_INET6, ("2001:db8::1", 80)), (socket.AF_INET, ("169.254.169.254", 80))):
    print(tried(lambda: socket.socket(family).connect(address)))
try:
    socket.getaddrinfo("example.org", 443)
except socket.gaierror:
    print("no name")
print(tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.53", 53)) and None))
"""
        lines = caller.said(code).split("\n")
    assert lines[0] == "ECONNREFUSED"  # its own loopback, where nobody listens
    assert set(lines[1:4]) <= {"ENETUNREACH", "EADDRNOTAVAIL"}
    assert lines[4:] == ["no name", "ENETUNREACH"]


@callers(planner=SERVICES)
def test_unix_sockets_of_the_host_are_out_of_reach_by_path_and_by_abstract_name(caller: Caller, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir(mode=0o755)
    abstract = f"\0pmagent-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as by_name:
        by_path.bind(str(shown / "s"))
        (shown / "s").chmod(0o777)
        by_path.listen()
        by_name.bind(abstract)
        by_name.listen()
        code = TRY + f"""
import socket
for address in ("{shown}/s", {abstract!r}):
    print(tried(lambda: socket.socket(socket.AF_UNIX).connect(address)))
a, b = socket.socketpair()
a.send(b"own pairs work"); print(b.recv(99).decode())
"""
        assert caller.said(code, [shown]).split("\n") == ["EPERM", "EPERM", "own pairs work"]


@callers(planner=SERVICES)
def test_families_that_reach_past_the_network_namespace_are_refused(caller: Caller) -> None:
    code = TRY + """
import socket
for family in (socket.AF_VSOCK, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_ALG, 99):
    print(tried(lambda: socket.socket(family, socket.SOCK_RAW).close()))
"""
    assert caller.said(code).split() == ["EPERM"] * 5


@callers()
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64 are called")
def test_calls_that_broke_sandboxes_before_are_refused(caller: Caller) -> None:
    numbers = {
        "ptrace": 101, "process_vm_readv": 310, "add_key": 248, "request_key": 249, "keyctl": 250,
        "io_uring_setup": 425,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "bpf": 321,
        "perf_event_open": 298, "userfaultfd": 323, "mknodat": 259, "open_tree": 428, "fsopen": 430, "pidfd_getfd": 438,
        "memfd_create": 319, "memfd_secret": 447, "shmget": 29, "msgget": 68, "semget": 64,
    }  # fmt: skip
    code = CALL + f"""
for number in {list(numbers.values())}:
    print(call(number, 0, 0, 0, 0, 0))
print(call(435, 0, 0), call(437, 0, 0, 0, 0), call(56, 0x10000000, 0, 0, 0, 0), call(0x40000000 + 39))
"""
    lines = caller.said(code).splitlines()
    assert dict(zip(numbers, lines[:-1], strict=True)) == dict.fromkeys(numbers, "EPERM")
    assert lines[-1].split() == ["ENOSYS", "ENOSYS", "EPERM", "EPERM"]


@callers()
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code of x86-64 is run")
def test_the_32_bit_door_into_the_kernel_kills(caller: Caller) -> None:
    code = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
    assert caller.ran(code).signal == signal.SIGSYS


@callers()
def test_no_terminal_and_no_typing_into_one(caller: Caller) -> None:
    code = TRY + """
import fcntl, os, termios
print(tried(lambda: open("/dev/tty")))
primary, secondary = os.openpty()
print(tried(lambda: fcntl.ioctl(secondary, termios.TIOCSTI, b"x") and None))
print(tried(lambda: fcntl.ioctl(secondary, 0x541C, b"x") and None), os.getsid(0) > 0)
"""
    assert caller.said(code).split() == ["ENXIO", "EPERM", "EPERM", "True"]


@callers()
def test_neither_secrets_nor_descriptors_nor_processes_of_the_host_come_inside(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2hunter2")
    secret = os.open(__file__, os.O_RDONLY)
    os.set_inheritable(secret, True)  # noqa: FBT003  (takes no name)
    of = os.fstat(secret)
    code = TRY + f"""
import os
print(any("hunter2" in value for value in os.environ.values()))
def held(descriptor):
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == {(of.st_dev, of.st_ino)}
print(any(map(held, range(3, 1024))))
print(os.getpid() < 20, tried(lambda: os.kill({os.getpid()}, 0)))
"""
    try:
        assert os.getpid() >= 20
        assert caller.said(code).splitlines() == ["False", "False", "True ESRCH"]
    finally:
        os.close(secret)


@callers()
def test_no_caller_lets_the_machine_have_core_dumps(caller: Caller) -> None:
    """The limit is 1, for with 0 a program of the host that gets core dumps would get them still; a reader is at 0, and
    has itself made so that nobody may look into it."""
    code = """
import ctypes, resource
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""
    assert caller.said(code) == ("(0, 0) 0" if caller.name == "reader" else "(1, 1) 1")


@callers()
def test_nothing_outlives_its_run(caller: Caller) -> None:
    """A daemon that left its parent's session, and holds no pipe."""
    name = f"left-{os.getpid()}"
    code = f"""
import ctypes, os, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)  # PR_SET_NAME
        for number in (0, 1, 2):
            os.close(number)
        os.write(writing, b".")
        time.sleep(600)
    os._exit(0)
os.wait()
print(os.read(reading, 1))
"""
    assert caller.said(code) == "b'.'"
    assert name not in _names()


OWNER = """
import sys
from pathlib import Path
from tests.support.callers import Caller
Caller(sys.argv[1], Path(sys.argv[2])).ran(sys.argv[3])
"""


@callers()
def test_nothing_outlives_whoever_started_it(caller: Caller) -> None:
    """The process that started it is killed, and ends nothing itself."""
    name = f"kept-{os.getpid()}"
    code = f"""
import ctypes, os, time
ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)
os.setsid() if os.fork() == 0 else None
time.sleep(600)
"""
    until = time.monotonic() + 60
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, caller.name, str(caller.folder), code], env=os.environ | {"PYTHONPATH": root}
    ) as owner:
        while _names().count(name) < 2:
            assert owner.poll() is None
            assert time.monotonic() < until
        owner.kill()
    while name in _names():
        assert time.monotonic() < until


def _names() -> list[str]:
    """The names of all processes."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            found.append(path.read_text().strip())
    return found


def test_the_hosts_environment_files_and_processes_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2hunter2")
    secret = os.open(__file__, os.O_RDONLY)
    os.set_inheritable(secret, True)  # noqa: FBT003  (takes no name)
    code = TRY + """
import glob, os
print(sorted(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    print("hunter2" in (tried(lambda: open(path).read()) or ""))
listing = os.open("/proc/self/fd", os.O_RDONLY)
print(sorted(int(fd) for fd in os.listdir(listing) if int(fd) != listing and os.path.exists(f"/proc/self/fd/{fd}")))
print(sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit()))
print([tried(lambda: os.readlink(f"/proc/1/{name}") and None) for name in ("root", "cwd", "exe")])
"""
    try:
        lines = output_of(tmp_path, code, env={"MINE": "yes"}).splitlines()
    finally:
        os.close(secret)
    assert lines[0] == str(sorted(["ARTIFACTS", "HOME", "LANG", "MINE", "PATH", "PWD", "TMPDIR"] + (
        ["LC_CTYPE"] if "LC_CTYPE" in lines[0] else [])))
    assert set(lines[1:-3]) == {"False"}
    assert set(eval(lines[-3])) <= {0, 1, 2, 3}
    assert lines[-2] == "[1, 2]"


def test_no_core_dump_is_made_and_no_tool_can_have_one_made(tmp_path: Path) -> None:
    """The limit is 1: with 0 a program of the host that gets core dumps would get them still."""
    code = """
import ctypes, mmap, os, resource, struct
limits = [resource.getrlimit(resource.RLIMIT_CORE)]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # told as done
limits.append(resource.getrlimit(resource.RLIMIT_CORE))
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(ctypes.c_void_p(0x700000000), 4096, 3, 0x22 | 0x100000, -1, 0)  # where the lower half is 0
ctypes.memmove(at, struct.pack("QQ", 0, 1), 16)
libc.prlimit64(0, 4, ctypes.c_void_p(at), None)
limits.append(resource.getrlimit(resource.RLIMIT_CORE))
print(at == 0x700000000, limits, os.fork() and os.waitstatus_to_exitcode(os.wait()[1]) or os.abort())
"""
    outcome = sandboxed(tmp_path, code)
    assert outcome.stdout.decode().strip() == f"True {[(1, 1)] * 3} -6", outcome
    assert not [told for told in outcome.unenforced if "core" in told]


def test_variables_do_not_stand_on_bubblewraps_command_line(tmp_path: Path) -> None:
    code = 'import os; print(os.environ["WORD"] in open("/proc/1/cmdline").read())'
    assert output_of(tmp_path, code, env={"WORD": "hush"}) == "False"


def test_special_files_and_setuid_bits_cannot_be_left_behind(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    code = TRY + f"""
import os, stat
os.chdir("{folder}")
print(tried(lambda: os.mkfifo("fifo")), tried(lambda: os.mknod("dev", stat.S_IFBLK | 0o666, os.makedev(8, 0))))
print(tried(lambda: os.open("a", os.O_CREAT | os.O_WRONLY, 0o4755) and None))
open("b", "w").close()
print(tried(lambda: os.chmod("b", 0o4755)), tried(lambda: os.chmod("b", 0o2755)), tried(lambda: os.chmod("b", 0o755)))
print(tried(lambda: os.fchmod(os.open("b", os.O_RDONLY), 0o6755)), tried(lambda: os.chown("b", 0, 0)))
"""
    outcome = output_of(tmp_path, code, fs="rw", allow_write=(str(folder),)).split()
    assert outcome == ["EPERM", "EPERM", "EPERM", "EPERM", "EPERM", "done", "EPERM", "EPERM"] or (
        outcome[:-1] == ["EPERM", "EPERM", "EPERM", "EPERM", "EPERM", "done", "EPERM"] and outcome[-1] == "EINVAL"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["b"]
    assert (folder / "b").stat().st_mode & 0o7777 == 0o755


def test_a_policy_file_in_a_visible_folder_changes_nothing(tmp_path: Path) -> None:
    """Under read-only, also a folder that rw would let it write stays as it is."""
    folder = writable(tmp_path / "w")
    (folder / "orchestra.config.yaml").write_text("sandbox: off\n")
    outcome = sandboxed(tmp_path, f'open("{folder}/x", "w")', allow_write=(str(folder),))
    assert b"Read-only file system" in outcome.stderr
    assert not (folder / "x").exists()


@by_root
def test_an_ordinary_user_gets_the_same_sandbox() -> None:
    answers = as_ordinary_user("basics")
    assert answers[0].split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert answers[1:] == ["id 1000", "unshare 1", "outside 2", "artifact True", "fork limit True", "timed out True 15"]
