"""The sentences that people read in help and in the most common errors, for one golden file.

    python -m tests.support.prose    writes tests/golden/prose.txt anew; its diff is what a change of wording changes

A line of the file is ``where | text``. Tests elsewhere hold facts: exit code, place, cause.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import click

from pmagent.cli.app import program
from pmagent.cli.frame import Group
from pmagent.cli.topics import TOPICS
from tests.conftest import fresh_example
from tests.support.commands import Ran, invoke, pmagent

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "prose.txt"

FILES = {
    "cycle.yaml": (
        "- {task_id: a, intent: x, tools: [ls], depends_on: [b]}\n"
        "- {task_id: b, intent: x, tools: [ls], depends_on: [a]}\n"
    ),
    "twice.yaml": "- {task_id: a, intent: x, tools: [ls]}\n- {task_id: a, intent: x, tools: [ls]}\n",
    "self.yaml": "- {task_id: a, intent: x, tools: [ls], depends_on: [a]}\n",
    "unknown.yaml": "- {task_id: a, intent: x, tools: [ls], depends_on: [z]}\n",
    "tool.yaml": "- {task_id: a, intent: x, tools: [rm]}\n",
    "net.yaml": "- {task_id: a, intent: x, tools: [ls], constraints: {sandbox: {net: allow}}}\n",
    "long.yaml": "- {task_id: a, intent: x, tools: [ls], constraints: {max_duration_sec: 999999}}\n",
    "key.yaml": "- {task_id: a, intent: x, tool: [ls]}\n",
    "empty.yaml": "[]\n",
    "text.yaml": "a: [\n",
    "good.yaml": "- {task_id: a, intent: x, tools: [ls]}\n",
    "config.yaml": "polices: {}\n",
    "rubric.json": '{"rubric_metadata": {}}\n',
    "report.pdf": "no PDF\n",
    "action_decision.json": '{"decision": "MAYBE"}\n',
}
"""Files of the workspace that the commands below read."""

NOWHERE = """
log tail; log show 1; log why 1; log verify; log export; log stat; log adopt --yes; replay; rebuild --check; oa snapshot
oa guard --mode STRICT; boot oa; runs 5b0c7a52; audits 5b0c7a52; cancel 5b0c7a52; pla list; pla show; pla verify-log
kernel refresh; resume; pause; console; run 'look' --plan good.yaml; oa decision 'x'
"""
"""Commands in a folder that is no workspace, as a person would type them."""

HERE = """
frobnicate; --frobnicate; log tial; log; log show; log show 999; log show zero; log show 0; log why 999; help nothing
log tail --since soonish; log tail --grep '('; log tail -n many; log tail --format xml; status --format xml
status extra; replay --actor nobody; replay --until never; diff . nowhere
completion fishy; sim --seed x; sim --count 0; lnav extra
runs ffffffff; runs zzz; audits ffffffff; audit diff zzz 0; audit diff 0 1; cancel ffffffff
cancel; run; run x --plan missing.yaml
run x --plan cycle.yaml; run x --plan twice.yaml; run x --plan self.yaml; run x --plan unknown.yaml
run x --plan tool.yaml; run x --plan net.yaml; run x --plan long.yaml
run x --plan key.yaml; run x --plan empty.yaml; run x --plan text.yaml
run x --plan good.yaml --concurrency 0; run x --plan good.yaml --config config.yaml
run x --plan good.yaml --config missing.yaml; run x --plan good.yaml --action mischief
audit; audit .; audit . missing.pdf; audit nowhere report.pdf; audit . report.pdf --rubric rubric.json
audit . report.pdf --rubric missing.json; audit . report.pdf
pla mode FOO; pla mode EXECUTE; pla propose; pla propose 'keys: control+c'; pla propose 'type: ä'; pla propose 'type:'
pla propose 'click: twice'; pla propose 'type: ls'; pla show prop-1; pla approve prop-1; pla reject prop-1
pla reject prop-1 --reason no; pla arm; pla list --stands nowhere; pla end; pla device --seconds x
oa guard --name nobody; oa guard --mode LOOSE; oa decision --input missing.json
contracts check missing.json; contracts check action_decision.json; contracts check --contract nothing report.pdf
operators add 'a b'; operators role nobody view; operators role nobody king; operators remove nobody
operators secret nobody --none; trust extra; kernel; kernel read; rebuild extra; init extra; up extra; boot; boot pla
"""
"""Commands in a workspace."""

_HIDDEN = ((re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| UTC)?"), "TIME"), (re.compile(r"[0-9a-f]{32,64}"), "HASH"))


def commands(group: Group = program, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups included."""
    for name in group.entries:
        yield (*path, name)
        inner = group.get_command(click.Context(group), name)
        if isinstance(inner, Group):
            yield from commands(inner, (*path, name))


def helped() -> Iterator[str]:
    """The lines of help of every command and topic."""
    for words in ((), *commands()):
        for line in invoke(*words, "--help").text.splitlines():
            if line.strip():
                yield f"{' '.join((*words, '--help'))} | {line.rstrip()}"
    for topic in TOPICS:
        for line in invoke("help", topic).text.splitlines():
            if line.strip():
                yield f"help {topic} | {line.rstrip()}"


def refused(workspace: Path, typed: str) -> Iterator[str]:
    """The exit code and the errors of commands on ``workspace``, each separated by a semicolon or a line's end."""
    for command in filter(None, (one.strip() for one in re.split(r";\s|\n", typed))):
        done = pmagent(workspace, *shlex.split(command))
        yield f"{command} | exit {done.code}"
        for line in _shown(done, workspace):
            yield f"{command} | {line}"


def prose() -> str:
    """The golden file's content, for a terminal of 80 columns. Changes the current directory while it works."""
    with patch.dict(os.environ, COLUMNS="80"):
        return "".join(f"{line}\n" for line in (*helped(), *all_refused()))


def all_refused() -> Iterator[str]:
    """The answers of all commands above."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="prose-") as made:
        for name, typed in (("nowhere", NOWHERE), ("here", HERE)):
            workspace = Path(made) / name
            if name == "here":
                fresh_example(workspace)
                subprocess.run(["git", "-C", str(workspace), "init", "-q", "-b", "main"], check=True)
            else:
                workspace.mkdir()
            for file, text in FILES.items():
                (workspace / file).write_text(text)
            if name == "here":
                pmagent(workspace, "boot", "oa")
            os.chdir(workspace)
            try:
                yield from refused(workspace, typed)
            finally:
                os.chdir(before)


def _shown(done: Ran, workspace: Path) -> Iterator[str]:
    """The lines on stderr, without anything that differs from run to run."""
    for line in done.errors.splitlines():
        text = line.rstrip().replace(str(workspace), "WORKSPACE").replace(os.path.realpath(workspace), "WORKSPACE")
        for pattern, mask in _HIDDEN:
            text = pattern.sub(mask, text)
        if text:
            yield text


def main() -> None:
    """Write the golden file."""
    with tempfile.TemporaryDirectory(prefix="prose-state-") as state:
        os.environ["XDG_STATE_HOME"] = state
        GOLDEN.write_text(prose(), "utf-8")


if __name__ == "__main__":
    main()
