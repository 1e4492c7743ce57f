"""Resources that no kernel limit bounds are watched during a run, and too much use of one ends it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import anyio
import pytest

from pmagent.actors.sandbox import monitor as watch
from pmagent.actors.sandbox.artifacts import remove
from pmagent.actors.sandbox.monitor import Monitor
from pmagent.actors.sandbox.pid_namespace import PidNamespace
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import TASK, Limits, Outcome, SandboxSpec
from tests.support.cases import each
from tests.support.held_clock import timed_out
from tests.support.sandboxes import as_ordinary_user, by_root, needs_sandbox, output_of, sandboxed, spec_for

pytestmark = needs_sandbox

SLEEP = "import time; time.sleep(600)"


def flooded(tmp_path: Path, code: str, **limits: int) -> Outcome:
    """A run that must not end by its time; its artifacts lie in ``tmp_path``/artifacts."""
    outcome = sandboxed(tmp_path, code, limits=Limits(seconds=60, **limits))
    assert (outcome.exit_code, outcome.signal, outcome.timed_out) == (None, signal.SIGKILL, False), outcome
    return outcome


EMPTY_FILES = "import os, itertools\nfor n in itertools.count(): os.close(os.open(f'{}/{{n}}', os.O_CREAT))"
SHARED = "import mmap\nkept = []\nwhile True:\n    kept.append(mmap.mmap(-1, 2**24)); kept[-1].write(b'x' * 2**24)"
FORKED = f"import os\nfor _ in range(4): os.fork()\nheld = bytearray(b'x') * 2**25\n{SLEEP}"
PAGE_TABLES = f"""
import mmap  # each page of zeros that is read costs its place in a table, 4 KiB for 2 MiB of addresses
space = mmap.mmap(-1, 128 * 2**30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
for at in range(0, len(space), 2**21): space[at]
{SLEEP}
"""
MEMORY_FOLDERS = "/tmp, /dev/shm, /run"
MEMORY = f"more than {2**28} bytes of memory by all processes"


@each("code, limits, exceeded", [
    *(
        (EMPTY_FILES.format(folder), {"tmp_entries": 3000}, f"more than 3000 files and folders in {MEMORY_FOLDERS}")
        for folder in MEMORY_FOLDERS.split(", ")
    ),
    (SHARED, {"total_memory_bytes": 2**28, "memory_bytes": 2**27}, MEMORY),
    (FORKED, {"total_memory_bytes": 2**28, "memory_bytes": 2**27}, MEMORY),
    (PAGE_TABLES, {"total_memory_bytes": 2**28}, MEMORY),
    (SLEEP, {"free_bytes": 2**61}, f"less than {2**61} bytes are left on the disk"),
])
def test_too_much_of_what_the_kernel_does_not_bound_ends_the_run(
    tmp_path: Path, code: str, limits: dict[str, int], exceeded: str
) -> None:
    assert flooded(tmp_path, code, **limits).exceeded == exceeded


def test_a_flood_of_files_among_the_artifacts_is_ended_and_cleared_away_by_the_caller(tmp_path: Path) -> None:
    code = """
import os, itertools
for n in itertools.count():
    os.mkdir(f"/artifacts/{n}")
    for m in range(50): os.close(os.open(f"/artifacts/{n}/{m}", os.O_CREAT))
"""
    assert flooded(tmp_path, code, artifact_entries=1000).exceeded == "more than 1000 files and folders in /artifacts"
    assert sum(len(files) + len(folders) for _, folders, files in os.walk(tmp_path / "artifacts")) > 1000


def test_a_file_that_grows_to_ten_gigabytes_is_ended_on_the_way(tmp_path: Path) -> None:
    code = """
with open("/artifacts/x", "wb", buffering=0) as file:
    for _ in range(10 * 2**10): file.write(bytes(2**20))
"""
    outcome = flooded(tmp_path, code, artifact_bytes=2**23, file_bytes=20 * 2**30)
    assert outcome.exceeded == f"more than {2**23} bytes in /artifacts"
    assert 2**23 < (tmp_path / "artifacts" / "x").stat().st_size < 10 * 2**30


@pytest.mark.slow
def test_a_hole_of_ten_gigabytes_is_larger_than_a_file_may_be_and_takes_no_room_where_it_may(tmp_path: Path) -> None:
    code = """
import os, signal, sys, time
signal.signal(25, signal.SIG_IGN)
try: os.truncate(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), 10 * 2**30)
except OSError as error: print(error.strerror)
time.sleep(1)
"""
    assert output_of(tmp_path, code, "/artifacts/small") == "File too large"
    limits = Limits(seconds=20, artifact_bytes=2**23, file_bytes=20 * 2**30)
    assert output_of(tmp_path, code, "/artifacts/large", limits=limits) == ""
    assert (tmp_path / "artifacts" / "large").stat().st_size == 10 * 2**30


@pytest.mark.slow
def test_a_file_with_many_names_takes_its_room_once(tmp_path: Path) -> None:
    code = """
import os, time
open("/artifacts/x", "wb").write(bytes(2**22))
for n in range(20): os.link("/artifacts/x", f"/artifacts/{n}")
time.sleep(1)
"""
    assert sandboxed(tmp_path, code, limits=Limits(seconds=20, artifact_bytes=2**23)).exceeded == ""


@pytest.mark.slow
def test_folders_in_each_other_without_end_are_ended(tmp_path: Path) -> None:
    code = f"""
import os
os.chdir("/artifacts")
for _ in range(2000): os.mkdir("d"); os.chdir("d")
{SLEEP}
"""
    try:
        assert flooded(tmp_path, code).exceeded == f"more than {watch.DEPTH_MAX} folders in each other in /artifacts"
    finally:
        remove(str(tmp_path / "artifacts"))  # what cleans up after tests cannot


@pytest.mark.slow
def test_the_time_to_clean_up_is_watched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"""
import itertools, os, signal
def flood(*_):
    for n in itertools.count(): os.mkdir(f"/artifacts/{{n}}")
signal.signal(signal.SIGTERM, flood)
print("ready", flush=True)
{SLEEP}
"""
    limits = Limits(seconds=0.75, grace_seconds=60, artifact_entries=100)
    outcome = timed_out(monkeypatch, tmp_path, code, limits)
    assert outcome.exceeded == "more than 100 files and folders in /artifacts"
    assert outcome.seconds < 60, "and not when its grace was over"


def test_too_few_files_left_on_a_disk_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.statvfs(tmp_path)
    if not found.f_files:
        pytest.skip("this file system has no number of files")
    monkeypatch.setattr(watch, "FREE_ENTRIES_MIN", found.f_files)
    assert flooded(tmp_path, SLEEP).exceeded == f"less than {found.f_files} files are left on the disk"


def test_an_artifact_folder_that_goes_away_ends_the_run(tmp_path: Path) -> None:
    one = spec_for(tmp_path / "artifacts", f"print('up', flush=True)\n{SLEEP}", limits=Limits(seconds=60))
    outcome = anyio.run(run, one, lambda *_: (tmp_path / "artifacts").rmdir())
    assert outcome.exceeded == "what it uses cannot be looked at: No such file or directory"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_looking_counts_what_is_there_and_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of one look, to the entry and to the byte, in the middle of a real run."""
    firsts: list[int] = []
    of = PidNamespace.of

    def noted(first: int) -> PidNamespace | None:
        firsts.append(first)
        return of(first)

    monkeypatch.setattr(PidNamespace, "of", noted)
    code = f"""
import os
for n in range(10): open(f"/tmp/{{n}}", "w").close(); open(f"/artifacts/{{n}}", "w").write("x" * 5000)
os.mkdir("/artifacts/d"); os.symlink("/", "/artifacts/d/root")
print("up", flush=True); {SLEEP}
"""
    size = 0

    def looks() -> None:
        inside = of(firsts[0])
        assert inside is not None
        handles = len(os.listdir("/proc/self/fd"))
        nonlocal size
        size = sum(path.lstat().st_blocks * 512 for path in (tmp_path / "artifacts").rglob("*"))
        seen = []
        for limits in (
            Limits(artifact_entries=12), Limits(artifact_entries=11), Limits(artifact_bytes=size),
            Limits(artifact_bytes=size - 1), Limits(tmp_entries=400), Limits(tmp_entries=9),
            Limits(total_memory_bytes=2**30), Limits(total_memory_bytes=2**20),
        ):  # fmt: skip
            looked = Monitor(limits, inside, str(tmp_path / "artifacts"), (str(tmp_path),))
            seen.append(looked.look() != "")
            looked.close()
        assert seen == [False, True] * 4
        assert len(os.listdir("/proc/self/fd")) == handles
        inside.close()
        scope.cancel()

    with anyio.CancelScope() as scope:
        await run(spec_for(tmp_path / "artifacts", code), lambda *_: looks())
    assert scope.cancelled_caught
    assert size > 50_000


@by_root
def test_an_ordinary_users_tools_are_watched_too() -> None:
    assert as_ordinary_user("limits") == [
        "a folder in /artifacts that cannot be looked into", "more than 500 files and folders in /tmp, /dev/shm, /run",
        "more than 67108864 bytes of memory by all processes",
    ]  # fmt: skip


def ran(tmp_path: Path, *argv: str, **more: object) -> Outcome:
    (tmp_path / "artifacts").mkdir()
    return anyio.run(run, SandboxSpec(argv=argv, artifacts=str(tmp_path / "artifacts"), workdir=TASK, **more))  # type: ignore[arg-type]


@pytest.mark.skipif(shutil.which("node", path="/usr/local/bin:/usr/bin:/bin") is None, reason="node is not installed")
def test_node_works_within_the_limits_that_nobody_changed_webassembly_included(tmp_path: Path) -> None:
    code = b"""
const memories = [1, 2, 3, 4].map(() => new WebAssembly.Memory({initial: 1, maximum: 65536}));
const held = Buffer.alloc(2 ** 29, 1);
fetch("http://127.0.0.1:1").catch(error => console.log(memories.length, held.length, error.message));
"""
    outcome = ran(tmp_path, "node", "a.js", files=(("a.js", code),))
    assert (outcome.exit_code, outcome.stdout) == (0, b"4 536870912 fetch failed\n"), outcome


@pytest.mark.skipif(shutil.which("git", path="/usr/local/bin:/usr/bin:/bin") is None, reason="git is not installed")
def test_git_works_within_the_limits_that_nobody_changed(tmp_path: Path) -> None:
    code = b"""set -e
mkdir repo; cd repo; git init -q -b main; cp ../a.sh .; git add .
git -c user.name=t -c user.email=t@example.org commit -qm one; git clone -q . ../other; git -C ../other log --format=%s
"""
    outcome = ran(tmp_path, "sh", "a.sh", files=(("a.sh", code),))
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, b"one\n", b""), outcome


def test_python_with_processes_and_threads_works_within_the_limits_that_nobody_changed(tmp_path: Path) -> None:
    code = """
import concurrent.futures as futures, multiprocessing, os
held = bytearray(b"x") * 2**29
with futures.ThreadPoolExecutor(16) as pool: print(sum(pool.map(len, [held] * 16)) == 2**33)
with multiprocessing.Pool(4) as pool: print(pool.map(abs, [-1, -2]))
"""
    outcome = sandboxed(tmp_path, code, limits=Limits())
    assert (outcome.exit_code, outcome.stdout) == (0, b"True\n[1, 2]\n"), outcome
