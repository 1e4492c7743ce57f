"""Records how each caller starts bubblewrap, by a bubblewrap that writes down what it is given and builds nothing.

    .venv/bin/python -m tests.support.recorded_launches

writes the records anew into ``tests/unit/sandbox/launches``; docs/threat-model.md names differences.
The machine is pinned, so that every machine gives the same.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import anyio
import msgspec
import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.actors.audit.sources.repository.repo_tools import analyze_graph_structure
from pmagent.actors.audit.sources.repository.survey import survey_repository
from pmagent.actors.checks.effects import check_spec
from pmagent.actors.core.actor import Io
from pmagent.actors.orchestra.planning import effects as planner
from pmagent.actors.orchestra.running.sandbox_spec import spec_of
from pmagent.actors.pla.frames import camera, ocr
from pmagent.actors.pla.frames.problem import NoFrame
from pmagent.actors.sandbox.bubblewrap import NEEDED
from pmagent.actors.sandbox.reader.arguments import NEEDED as READER_NEEDED
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import SandboxSpec, SandboxUnavailable
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.checks import CheckRunRequested
from pmagent.contracts.orchestra_events import PlannerFailed, TaskAssigned, TaskAttemptRequested
from tests.support.orchestra import RUN, config
from tests.support.planners import request
from tests.support.repositories import Made

FOLDER: Final = Path(__file__).parents[1] / "unit" / "sandbox" / "launches"
PROJECT: Final = str(Path(__file__).resolve().parents[2])
TASK_ID: Final = "00000000-0000-5000-8000-000000000001"

SYSTEM: Final = {"/usr": "", "/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
"""The pinned machine's system folders, and where those that are links lead."""
THERE: Final = frozenset((
    *SYSTEM, "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates.conf",
    "/etc/alternatives", "/etc/localtime", "/etc/nsswitch.conf", "/etc/mime.types",
    "/opt/python", "/opt/venv", "/opt/venv/lib/site-packages",
))  # fmt: skip
ABSENT: Final = frozenset(("/lib32", "/libx32"))
LIBRARIES: Final = "/opt/venv/lib/site-packages"
UMASK: Final = 0o037
_IDS: Final = range(0x7000_0000, 0x7800_0000)

_IS_RUN: Final = "main()"
"""Stands in the command of a reader, and not in that of the probe before it."""

STAND_IN: Final = r"""#!{python} -IS
import base64, json, os, sys
if sys.argv[1:] == ["--help"]:
    print({help!r})
    sys.exit(0)
if any("limits" in word and {run!r} not in word for word in sys.argv):
    sys.exit(0)
held = {{}}
for name in os.listdir("/proc/self/fd"):
    try:
        target, found = os.readlink("/proc/self/fd/" + name), os.fstat(int(name))
    except OSError:
        continue
    content = os.pread(int(name), 1 << 24, 0) if target.startswith("/memfd:") else b""
    held[name] = {{"target": target, "inode": found.st_ino, "content": base64.b64encode(content).decode()}}
with open("/proc/self/environ", encoding="utf-8") as file:
    environment = dict(line.split("=", 1) for line in file.read().split("\0") if line)
told = {{"program": sys.argv[0], "words": sys.argv[1:], "environment": environment, "cwd": os.getcwd(),
        "umask": os.umask(0), "leads": os.getsid(0) == os.getpid(), "held": held}}
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
number = len([name for name in os.listdir(folder) if name.startswith("launch-")])
with open(f"{{folder}}/launch-{{number}}.json", "x", encoding="utf-8") as file:
    json.dump(told, file)
sys.exit(1)
"""
"""It knows every option, builds the wall of the probe, and no other."""


def stand_ins(folder: Path) -> None:
    """Put programs into ``folder`` that write down how they were started: bubblewrap, and what callers look for."""
    folder.mkdir(parents=True)
    text = STAND_IN.format(python=sys.executable, help=" ".join(NEEDED | READER_NEEDED), run=_IS_RUN)
    for name in ("bwrap", "python", "claude", "tesseract", "ffmpeg"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def surrounded(patch: pytest.MonkeyPatch, place: Path, programs: Path) -> None:
    """Find these programs, and little of our environment."""
    for name in [*os.environ]:
        if name.startswith(("ANTHROPIC_", "CLAUDE_")) or name.lower().endswith("_proxy") or name in {"LANG", "HOME"}:
            patch.delenv(name)
    patch.setenv("PATH", f"{programs}:/usr/local/bin:/usr/bin:/bin")
    patch.setattr(tempfile, "tempdir", str(place))


def pinned(patch: pytest.MonkeyPatch, place: Path, *, root: bool) -> None:
    """Make this machine look like the one of the records. ``root``: it is root who asks, and owns ``place``."""
    exists, islink, readlink, lstat = os.path.exists, os.path.islink, os.readlink, os.lstat
    patch.setattr(os.path, "exists", lambda path: path in THERE or (path not in ABSENT and exists(path)))
    patch.setattr(os.path, "islink", lambda path: bool(SYSTEM[path]) if path in SYSTEM else islink(path))
    patch.setattr(os, "readlink", lambda path, **more: SYSTEM.get(path) or readlink(path, **more))
    patch.setattr(platform, "machine", lambda: "x86_64")
    patch.setattr(os, "geteuid", lambda: 0 if root else 1234)
    patch.setattr(os, "getegid", lambda: 0 if root else 1234)
    patch.setattr(os, "chown", lambda *_, **__: None)

    def roots(path: Any, **more: Any) -> os.stat_result:
        found = lstat(path, **more)
        ours = isinstance(path, str) and path.startswith(str(place))
        return os.stat_result((*found[:4], 0, 0, *found[6:10])) if ours else found

    if root:
        patch.setattr(os, "lstat", roots)


def interpreted(patch: pytest.MonkeyPatch, place: Path, programs: Path) -> None:
    """Make this Python look like one that lies in /opt; it still finds what it imports."""
    path = [LIBRARIES]
    for number, at in enumerate(sys.path):
        other = place / f"libraries-{number}"
        if os.path.basename(at) in {"site-packages", "dist-packages"}:
            other.symlink_to(at)
        path.append(str(other) if other.is_symlink() else at)
    patch.setattr(sys, "path", path)
    patch.setattr(sys, "executable", str(programs / "python"))
    for name, value in (("prefix", "/opt/venv"), ("exec_prefix", "/opt/venv"), ("base_prefix", "/opt/python")):
        patch.setattr(sys, name, value)
    patch.setattr(sysconfig, "get_path", lambda _: LIBRARIES)


# --- as text ---------------------------------------------------------------------------------------------------------


def as_text(told: dict[str, Any], named: dict[str, str]) -> str:
    """A record, one option or word a line; places of this run as ``named`` says."""
    held: dict[str, dict[str, Any]] = told["held"]
    words: list[str] = told["words"]
    lines = [
        f"program {told['program']}",
        *(f"environment {name}={value}" for name, value in sorted(told["environment"].items())), f"cwd {told['cwd']}",
        f"umask {'ours' if told['umask'] == UMASK else oct(told['umask'])}",
        f"session {'its own' if told['leads'] else 'ours'}", f"stdin {held['0']['target'].partition(':')[0]}",
    ]
    if os.path.basename(told["program"]) == "python":  # it becomes bubblewrap
        end = words.index("--") + 2
        lines += [f"first {word}" for word in words[:end]]
        words = words[end:]
    at = words.index("--args") if "--args" in words else -1
    lines += ["options on the command line" if at < 0 else "options in a file, but for those about it"]
    if at >= 0:
        file = base64.b64decode(held[words[at + 1]]["content"]).decode()
        words = [*words[:at], *file.split("\0")[:-1], *words[at + 2 :]]
    end = _command(words)
    options: list[list[str]] = []
    for word in words[:end]:
        if word.startswith("--") and not (options and _takes(options[-1])):
            options.append([])
        options[-1].append(_shown(options[-1], word, held))
    text = "\n".join([*lines, *_ordered(options, named), "--", *_handed(words[end + 1 :], held)]) + "\n"
    return _normal(text, named)


def _ordered(options: list[list[str]], named: dict[str, str]) -> Iterator[str]:
    """A line each; without the folders above this run's place, and the interpreter's in an order that does not depend
    on where the project lies."""
    place = next(path for path, name in named.items() if name == "<place>")
    pythons: list[str] = []
    for number, option in enumerate(options):
        following = options[min(number + 1, len(options) - 1)]
        if any(one[0] == "--dir" and place.startswith(one[1] + "/") for one in (option, following)):
            continue
        line = _normal(" ".join(option), named)
        if line.startswith(("--ro-bind /opt/", "--ro-bind <pro")):
            pythons.append(line)
            continue
        yield from sorted(pythons)
        pythons.clear()
        yield line


def _takes(option: list[str]) -> bool:
    """Whether the last word was a name for ``--setenv``, whose value may look like an option."""
    return option[0] == "--setenv" and len(option) < 3


def _command(words: list[str]) -> int:
    at = 0
    while words[at] != "--":
        at += 3 if words[at] == "--setenv" else 1
    return at


def _shown(option: list[str], word: str, held: dict[str, dict[str, Any]]) -> str:
    """A word of an option; a descriptor as what it is of."""
    takes = {"--seccomp", "--json-status-fd", "--block-fd", "--ro-bind-fd", "--bind-fd", "--ro-bind-data", "--file"}
    if not option or option[0] not in takes or len(option) > 1:
        return word if word != "" else "''"
    found = held[word]
    if option[0] == "--seccomp":
        return f"<filter {hashlib.sha256(base64.b64decode(found['content'])).hexdigest()[:16]}>"
    if found["target"].startswith("/memfd:"):
        return f"<{base64.b64decode(found['content']).decode()!r}>"
    if found["target"].startswith("pipe:"):
        return "<stdin>" if found["inode"] == held["0"]["inode"] else "<pipe>"
    return f"<{found['target']}>"


def _handed(words: list[str], held: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The command. A reader's ends with seconds that are left of its time, a descriptor, and its module."""
    reader = len(words) > 4 and words[-2] in held and held[words[-2]]["target"].startswith("pipe:")
    for number, word in enumerate(words, -len(words)):
        yield {-3: "<seconds>", -2: "<pipe>"}.get(number, word) if reader else word or "''"


def _normal(text: str, named: dict[str, str]) -> str:
    for place in sorted(named, key=len, reverse=True):
        text = text.replace(place, named[place])
    return re.sub(r"\b\d{10}\b", lambda found: "<id>" if int(found[0]) in _IDS else found[0], text)


# --- callers ---------------------------------------------------------------------------------------------------------


def _sandboxed(wished: SandboxSpec) -> None:
    with pytest.raises(SandboxUnavailable):
        anyio.run(run, wished)


def _workspace(place: Path) -> str:
    root = place / "workspace"
    for folder in (".git/hooks", ".pmagent", "share", "out/deep/.git", "jobs", "docs"):
        (root / folder).mkdir(parents=True)
    (root / "orchestra.config.yaml").write_text("")
    for folder in ("artifacts", "inputs"):
        (place / folder).mkdir()
    for path in (root, *root.rglob("*"), place / "inputs"):
        path.chmod(0o755)
    return str(root)


def _task(place: Path, sandbox: dict[str, str], text: str = "", **inputs: Any) -> None:
    root = _workspace(place)
    constraints = {"max_duration_sec": 30, "max_retries": 2, "sandbox": sandbox}
    assigned = msgspec.convert(
        {
            "run_id": RUN, "requested": 5, "permit": 11, "action": "feature_work", "name": "one", "worker": 1,
            "after": {}, "simulated": False, "backoff_base_sec": 2.0,
            "assignment": {"task_id": TASK_ID, "tools": ["cat"], "inputs": inputs, "constraints": constraints},
        },
        TaskAssigned,
    )
    asked = TaskAttemptRequested(
        permit=11, run_id=RUN, task_id=TASK_ID, requested=5, assigned=12, attempt=2, action="feature_work",
        seconds=30.0, simulated=False,
    )
    before = f"{place}/inputs" if sandbox else ""
    _sandboxed(spec_of(root, config(text), assigned, asked, f"{place}/artifacts", before, (f"{root}/docs",)))


_FILES: Final = [{"path": "a/b.txt", "content": "hello"}]
_NET: Final = """\
policies: {allow_network: true}
security: {net: {allow_domains: [example.org]}, fs: {allow_write: [out]}}
"""


def task(place: Path) -> None:
    """A task that may read."""
    _task(place, {}, args=["a b", "--x"], env={"MINE": "--yes"})


def task_rw_net(place: Path) -> None:
    """A task that may write, and reach a host."""
    _task(place, {"fs": "rw", "net": "allow"}, _NET, files=_FILES)


def check(place: Path) -> None:
    """A check of the workspace."""
    root = _workspace(place)
    asked = CheckRunRequested(
        permit=3, request=2, name="one", kind="check", argv=["true", "-v"], seconds=60.0, attempt=1
    )
    _sandboxed(check_spec(root, f"{place}/artifacts", asked))


def plan(place: Path) -> None:
    """A call of the planner."""
    del place
    assert isinstance(anyio.run(planner.ask, request(), cast(Io, None)), PlannerFailed)


def survey(place: Path) -> None:
    """Reading a repository's code."""
    made = Made(place / "repository")
    made.commit("one", {"a.py": "x = 1\n"})
    (place / "clone").mkdir()
    with pytest.raises(SourceFailed):
        survey_repository(str(made.path), AuditLimits(), str(place / "clone"))


def graph(place: Path) -> None:
    """Reading a repository's graphs."""
    (place / "project").mkdir()
    assert analyze_graph_structure(str(place / "project"))["error"]


def pdf(place: Path) -> None:
    """Reading a PDF."""
    (place / "report.pdf").write_bytes(b"%PDF-1.4\n")
    with pytest.raises(SourceFailed):
        read_pdf(str(place / "report.pdf"), [], AuditLimits())


def text_of_frame(place: Path) -> None:
    """Reading the text of a picture."""
    del place
    assert ocr.read(b"picture").notes


def frame(place: Path) -> None:
    """Taking a picture from a camera."""
    del place
    with pytest.raises(NoFrame):
        camera.taken("/dev/video9")


CALLERS: Final[dict[str, tuple[Callable[[Path], None], bool]]] = {
    "task": (task, False), "task-as-root": (task, True),
    "task-rw-net": (task_rw_net, False), "task-rw-net-as-root": (task_rw_net, True),
    "check": (check, False), "check-as-root": (check, True),
    "planner": (plan, False), "survey": (survey, False), "graph": (graph, False), "pdf": (pdf, False),
    "ocr": (text_of_frame, False), "camera": (frame, False),
}  # fmt: skip
"""Caller -> what makes it start bubblewrap, and whether it is started by root."""


def recorded(name: str, place: Path) -> str:
    """How this caller starts bubblewrap, as text. ``place`` is an empty folder."""
    act, root = CALLERS[name]
    place = place.resolve()
    programs = place / "programs"
    stand_ins(programs)
    mask = os.umask(UMASK)
    try:
        with pytest.MonkeyPatch.context() as patch:
            surrounded(patch, place, programs)
            pinned(patch, place, root=root)
            interpreted(patch, place, programs)
            act(place)
    finally:
        os.umask(mask)
    named = {str(programs): "<programs>", str(place): "<place>", PROJECT: "<project>"}
    made = re.compile(r"<place>/pmagent-planner-\w+")
    told = [json.loads((programs / f"launch-{at}.json").read_text()) for at in range(len(list(programs.iterdir())) - 5)]
    return "\n".join(dict.fromkeys(made.sub("<place>/<made>", as_text(one, named)) for one in told))


def main() -> None:
    """Write the records anew."""
    FOLDER.mkdir(exist_ok=True)
    for name in CALLERS:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            (FOLDER / f"{name}.txt").write_text(recorded(name, Path(folder)))


if __name__ == "__main__":
    main()
