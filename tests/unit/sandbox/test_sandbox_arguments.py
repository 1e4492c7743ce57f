"""The arguments of bubblewrap, without running it."""

from __future__ import annotations

import subprocess
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.sandbox.arguments import Content, Guarded, Hidden, HostFacts, HostPath, gate, plan
from pmagent.actors.sandbox.spec import Limits, SandboxRefused, SandboxSpec, within
from tests.support.cases import each

HOST = HostFacts(
    machine="x86_64", privileged=False, uid=1234, gid=1234, program="/usr/bin/ls",
    system=(("/usr", ""), ("/bin", "usr/bin")), etc=("/etc/ld.so.cache",),
)
ROOT = msgspec.structs.replace(HOST, privileged=True, uid=70000, gid=70001)


def spec(**more: Any) -> SandboxSpec:
    return SandboxSpec(**{"argv": ("ls", "-l"), "artifacts": "/srv/run/1", **more})


def words(sandbox_spec: SandboxSpec, host: HostFacts = HOST) -> list[str]:
    """Options as text; descriptors as ``<path>`` and ``{bytes}``."""
    options: list[str] = []
    for argument in plan(sandbox_spec, host).options:
        if isinstance(argument, HostPath):
            options.append(f"<{argument.path}>")
        else:
            options.append(f"{{{len(argument.data)}}}" if isinstance(argument, Content) else argument)
    return options


def test_the_arguments_are_exactly_these() -> None:
    found = plan(spec(allow_read=("/srv/data",), env={"B": "2", "A": "1"}, workdir="/srv/data"), HOST)
    options = words(spec(allow_read=("/srv/data",), env={"B": "2", "A": "1"}, workdir="/srv/data"))
    assert " ".join(options[:-1]) == (
        "--unshare-user --disable-userns --uid 1000 --gid 1000 "
        "--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net "
        "--new-session --cap-drop ALL --hostname sandbox --clearenv "
        "--setenv PATH /usr/local/bin:/usr/bin:/bin --setenv HOME /tmp --setenv TMPDIR /tmp "
        "--setenv ARTIFACTS /artifacts --setenv PROGRAM_ENV_A 1 --setenv PROGRAM_ENV_B 2 "
        "--ro-bind /usr /usr --symlink usr/bin /bin --perms 0755 --dir /etc "
        "--ro-bind /etc/ld.so.cache /etc/ld.so.cache "
        "--perms 0444 --file {41} /etc/passwd --perms 0444 --file {13} /etc/group "
        "--perms 0444 --file {34} /etc/hosts --perms 0444 --file {77} /etc/nsswitch.conf "
        "--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev --perms 1777 --size 67108864 --tmpfs /dev/shm "
        "--perms 1777 --size 67108864 --tmpfs /tmp --perms 1777 --size 1048576 --tmpfs /run "
        "--perms 0755 --dir /tmp/task "
        "--perms 0755 --dir /srv --ro-bind-fd </srv/data> /srv/data --bind-fd </srv/run/1> /artifacts "
        "--remount-ro /dev --remount-ro / --chdir /srv/data --seccomp"
    )
    assert found.command == (
        *gate(spec(env={"B": "2", "A": "1"})),
        "4194304", "268435456", "64", "524288", "256", "300", "301", "C.UTF-8", "/usr/bin/ls", "-l",
    )  # fmt: skip


def test_only_the_gate_gives_the_program_its_variables() -> None:
    """Nothing that runs before it, as root, obeys them; and each arrives as it is, whatever its name and value."""
    names = ("LD_PRELOAD", "IFS", "ENV", "PROGRAM_ENV_A", "PROGRAM_ENV_PROGRAM_ENV_A", "A", "PS4")
    env = {name: f"$(false) `false` '\\n\n\"{number}" for number, name in enumerate(names)} | {"PPID": "1"}
    sandbox_spec = spec(env=env | {"LD_PRELOAD": ""})
    options = plan(sandbox_spec, ROOT).options
    given = {str(options[at + 1]): str(options[at + 2]) for at, one in enumerate(options) if one == "--setenv"}
    assert not given.keys() & {"LD_PRELOAD", "IFS", "ENV", "PS4", "A"}
    limits = ["unlimited", "unlimited", "10000", "unlimited", "64", "1000", "1001"]
    command = (*gate(sandbox_spec), *limits, "C", "/usr/bin/env", "-0")
    done = subprocess.run(command, input=b"go\n", env=given, capture_output=True, check=True)
    found = dict(one.split("=", 1) for one in done.stdout.decode().split("\0") if one)
    assert {name: found.get(name) for name in env if name != "PPID"} == {
        name: value for name, value in sandbox_spec.env.items() if name != "PPID"
    }
    assert not [name for name in found if name.startswith("PROGRAM_ENV_") and name not in env]


def test_started_as_root_the_tool_becomes_somebody_else_and_gives_everything_up() -> None:
    found = plan(spec(), ROOT)
    assert "--unshare-user" not in found.options
    assert found.command[:7] == (
        "/usr/bin/setpriv", "--reuid=70000", "--regid=70001", "--clear-groups", "--inh-caps=-all",
        "--bounding-set=-all", "--no-new-privs",
    )  # fmt: skip
    assert found.command[8] == "/bin/sh"


def test_folders_are_mounted_parents_first_and_the_guards_last() -> None:
    guarded = (Guarded("/srv/w/a/b/.git", missing=False), Guarded("/srv/w/.git", missing=True))
    host = msgspec.structs.replace(HOST, guarded=guarded)
    found = words(spec(fs="rw", allow_read=("/srv/w/r",), allow_write=("/srv/w", "/tmp")), host)
    first = found.index("/srv") + 1
    assert " ".join(found[first : found.index("/artifacts", first)]) == (
        "--bind-fd </srv/w> /srv/w "
        "--perms 0555 --size 4096 --tmpfs /srv/w/.git --remount-ro /srv/w/.git "
        "--bind-fd </srv/w/a> /srv/w/a --bind-fd </srv/w/a/b> /srv/w/a/b "
        "--ro-bind-fd </srv/w/a/b/.git> /srv/w/a/b/.git "
        "--ro-bind-fd </srv/w/r> /srv/w/r --bind-fd </srv/run/1>"
    )


def test_files_are_written_below_the_folders_that_they_need_each_made_once() -> None:
    files = (("a/b/x", b"12"), ("a/y", b"345"), ("z", b""))
    for host, folder, file in ((HOST, "0755", "0644"), (ROOT, "0777", "0666")):
        found = " ".join(words(spec(files=files), host))
        assert (
            f"--perms {folder} --dir /tmp/task --perms {folder} --dir /tmp/task/a --perms {folder} --dir /tmp/task/a/b "
            f"--perms {file} --file {{2}} /tmp/task/a/b/x --perms {file} --file {{3}} /tmp/task/a/y "
            f"--perms {file} --file {{0}} /tmp/task/z --bind-fd"
        ) in found


def test_the_way_to_what_is_shown_of_etc_is_open_to_the_tool() -> None:
    """Folders that bubblewrap makes unasked are root's alone: TLS would find neither certificates nor settings."""
    host = msgspec.structs.replace(HOST, etc=("/etc/ssl/certs", "/etc/ssl/openssl.cnf"))
    found = " ".join(words(spec(), host))
    assert found.count("--perms 0755 --dir /etc/ssl --ro-bind /etc/ssl/certs /etc/ssl/certs") == 1


def test_inputs_are_mounted_readable_and_named() -> None:
    found = " ".join(words(spec(inputs="/srv/in")))
    assert "--setenv INPUTS /inputs" in found
    assert "--ro-bind-fd </srv/in> /inputs --bind-fd </srv/run/1> /artifacts" in found
    assert "INPUTS" not in words(spec())


def test_what_is_hidden_lies_over_what_is_shown_and_its_parents_cannot_be_swapped() -> None:
    hidden = (Hidden("/srv/w/a/.pmagent", folder=True), Hidden("/srv/w/a/key", folder=False))
    host = msgspec.structs.replace(HOST, hidden=hidden)
    masks = (
        "--perms 0555 --size 4096 --tmpfs /srv/w/a/.pmagent --remount-ro /srv/w/a/.pmagent "
        "--perms 0444 --ro-bind-data {0} /srv/w/a/key --bind-fd </srv/run/1>"
    )
    assert f"--ro-bind-fd </srv/w> /srv/w {masks}" in " ".join(words(spec(allow_read=("/srv/w",)), host))
    under_rw = " ".join(words(spec(fs="rw", allow_write=("/srv/w",)), host))
    assert f"--bind-fd </srv/w> /srv/w --bind-fd </srv/w/a> /srv/w/a {masks}" in under_rw


@given(st.lists(st.sampled_from(["/srv/a", "/srv/a/b", "/srv/ab", "/home/x", "/tmp", "/tmp/x"])))
def test_read_only_mounts_nothing_writable_but_the_artifacts(paths: list[str]) -> None:
    found = words(spec(allow_read=tuple(paths[::2]), allow_write=tuple(paths[1::2])))
    assert [found[at + 2] for at, word in enumerate(found) if word == "--bind-fd"] == ["/artifacts"]
    assert "--bind" not in found
    assert found == words(spec(allow_read=tuple(paths[::2]), allow_write=tuple(paths[1::2])))


@each("wrong, reason", [
    ({"net": "allow"}, "no host is allowed"),
    ({"net": "allow", "allow_domains": ("127.0.0.1",)}, "an IP address"),
    ({"net": "allow", "allow_domains": ("*.example.org",)}, "no exact host name"),
    ({"net": "allow", "allow_domains": ("a.example",), "trace": ("Host", "x")}, "cannot carry the trace id"),
    ({"net": "allow", "allow_domains": ("a.example",), "trace": ("X-T", "a\r\nb: c")}, "trace id does not fit"),
    ({"net": "allow", "allow_domains": ("a.example",), "env": {"no_proxy": "*"}}, "cannot be set"),
    ({"net": "allow", "allow_domains": ("a.example",), "env": {"HTTPS_PROXY": "x"}}, "cannot be set"),
    ({"argv": ()}, "no program"),
    ({"argv": ("",)}, "no program"),
    ({"argv": ("ls", "a\0b")}, "NUL"),
    ({"argv": ("ls", "x" * 200_000)}, "longer than"),
    ({"env": {"A=B": "x"}}, "cannot be set"),
    ({"env": {"PATH": "/x"}}, "cannot be set"),
    ({"env": {"": "x"}}, "cannot be set"),
    ({"allow_read": ("relative",)}, "absolute"),
    ({"allow_read": ("/srv/../etc",)}, "absolute"),
    ({"allow_read": ("/srv/",)}, "absolute"),
    ({"allow_read": ("//srv",)}, "absolute"),
    ({"allow_read": ("/",)}, "the system's"),
    ({"allow_read": ("/var",)}, "the system's"),
    ({"allow_read": ("/proc/1",)}, "the system's"),
    ({"allow_write": ("/usr/local",)}, "the system's"),
    ({"allow_write": ("/etc",)}, "the system's"),
    ({"allow_write": ("/run/user",)}, "the system's"),
    ({"allow_write": ("/srv/w/.git",)}, "protected"),
    ({"allow_write": ("/srv/w/.GIT",)}, "protected"),
    ({"allow_write": ("/srv/w/.pmagent/log",)}, "protected"),
    ({"allow_write": ("/srv/w/share",), "protect": ("/srv/w/share",)}, "protected"),
    ({"allow_read": ("/inputs",)}, "the system's"),
    ({"allow_read": ("/tmp/task/x",)}, "task's own folder"),
    ({"allow_read": ("/srv/\ud800",)}, "half a character"),
    ({"argv": ("ls", "\ud800")}, "half a character"),
    ({"env": {"INPUTS": "/x"}}, "cannot be set"),
    ({"inputs": "in"}, "absolute"),
    ({"hide": ("../x",)}, "absolute"),
    ({"hide": ("/srv/w",), "allow_read": ("/srv/w",)}, "hidden from tools"),
    ({"hide": ("/srv/w",), "fs": "rw", "allow_write": ("/srv/w/x",)}, "hidden from tools"),
    ({"hide": ("/srv/w/x",), "allow_read": ("/srv/w",), "workdir": "/srv/w/x/y"}, "hidden from tools"),
    *(({"files": ((path, b""),)}, "no path below") for path in ("", "/a", "a/", "a//b", "a/../../b", ".", "a\0")),
    ({"files": (("a", b""), ("a", b"x"))}, "given twice"),
    ({"files": (("a/b", b""), ("a", b"x"))}, "given twice"),
    ({"files": (("a" * 256, b""),)}, "too long"),
    ({"files": (("ü" * 128, b""),)}, "too long"),
    ({"files": (("/".join(["a"] * 600), b""),)}, "too long"),
    ({"files": tuple((f"{n}", b"") for n in range(513))}, "too many"),
    ({"files": (("a", bytes(8000)), ("b", b"1")), "limits": Limits(tmp_bytes=8192)}, "take 12288 bytes"),
    ({"limits": Limits(seconds=0)}, "limit seconds"),
    ({"limits": Limits(processes=-1)}, "limit processes"),
    ({"limits": Limits(seconds=float("nan"))}, "limit seconds"),
    ({"limits": Limits(seconds=float("inf"))}, "limit seconds"),
])
def test_what_is_never_granted_is_refused_with_the_reason(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(SandboxRefused, match=reason) as caught:
        plan(spec(**wrong), HOST)
    assert caught.value.hint
    assert caught.value.exit_code == 7


@each("ids", [(0, 1), (1, 0), (-1, 5)])
def test_no_host_makes_a_tool_root(ids: tuple[int, int]) -> None:
    with pytest.raises(SandboxRefused, match="never run as root"):
        plan(spec(), msgspec.structs.replace(ROOT, uid=ids[0], gid=ids[1]))


def test_a_folder_holds_what_lies_in_it_and_not_what_begins_alike() -> None:
    assert within("/tmp", "/tmp")
    assert within("/tmp/x", "/tmp")
    assert not within("/tmpevil", "/tmp")
    assert within("/x", "/")
