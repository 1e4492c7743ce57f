"""Help: every command has it, it begins with examples, and the examples run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from examples.audited.make_report import make_report
from pmagent.cli.app import program
from pmagent.cli.frame import FORMAT, Command, Group
from pmagent.cli.topics import TOPICS
from pmagent.console.auth import operators
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import WORKSPACE, settings_table
from tests.conftest import fresh_example
from tests.support.audited import RUBRIC
from tests.support.cases import each
from tests.support.commands import invoke, owned, pmagent, spawn
from tests.support.sandboxes import OBSTACLE

ROOT = Path(__file__).resolve().parents[3]
ELSEWHERE = {
    "pmagent up", "pmagent cancel 5b0c7a52", "pmagent logs 5b0c7a52", "pmagent logs 5b0c7a52 history",
    "pmagent runs 5b0c7a52 --failed", "pmagent runs --watch", "pmagent run --follow 5b0c7a52", "pmagent apply 5b0c7a52",
    "pmagent apply 5b0c7a52 rewrite", "pmagent rerun 5b0c7a52", "pmagent rerun 5b0c7a52 --failed",
    "pmagent run 'Look around' --plan plan.yaml --detach", "pmagent audits 5b0c7a52",
    "pmagent audit diff 5b0c7a52 77e1d004 --format json", "pmagent audit --resume 5b0c7a52",
    "pmagent audit https://github.com/OWNER/NAME report.pdf",
    "pmagent audit git@github.com:OWNER/NAME.git report.pdf --model anthropic:NAME --format json",
    "pmagent pla practice", "pmagent pla practice --layout de", "pmagent pla firmware build board",
    "pmagent pla firmware flash", "pmagent pla firmware flash --line uart", "pmagent pla demo", "pmagent pla device",
    "pmagent pla device --format json", "pmagent pla arm", "pmagent pla end", "pmagent pla observe --frames frames",
    "pmagent pla observe --frames /dev/video0", "pmagent pla show", "pmagent pla show prop-5b0c --hexdump",
    "pmagent pla show prop-5b0c --document", "pmagent pla approve prop-5b0c",
    "pmagent pla approve prop-5b0c --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "pmagent pla approve --document decision.json", "pmagent pla reject prop-5b0c --reason 'the wrong window'",
    "pmagent pla propose 'type: ls -la'", "pmagent pla propose 'keys: ctrl+alt+t' --why 'a terminal is needed first'",
    "pmagent pla propose 'Open the log and read its end' --model anthropic:NAME --frames /dev/video0",
    "pmagent pla propose --document proposal.json", "pmagent console", "pmagent console --operator ada --format json",
    "pmagent log list postgresql://viewer@db1/pmagent", "pmagent notify test", "pmagent notify test --channel email",
    "pmagent handover 'two approvals wait; rack-3 is being repaired, do not arm it'",
    "pmagent alerts --ack 4711 --note 'looked at the screen: nothing was typed'",
    "pmagent operators passkeys ada --remove mV5x",
    "pmagent operators add eve --secret-stdin < secret.txt", "pmagent trust", "pmagent log adopt",
    "pmagent log adopt --yes", "pmagent log accept-restore", "pmagent log accept-restore --yes",
    "pmagent log prepare postgresql://db1/pmagent --writer lab --reader viewer --worker hands",
    "pmagent worker --join postgresql://hands@db1,db2/pmagent?sslmode=verify-full", "pmagent worker check",
    "pmagent log copy . 'postgresql://db1,db2,db3/pmagent?sslmode=verify-full#lab'",
    "pmagent log copy . /mnt/backup --backup", "pmagent oa release 42 --holder claude-code", "pmagent guests 5b0c7a52",
    "pmagent guests tail", "pmagent guests tail -n 50 --session 5b0c7a52-1f0e-4f5e-9a53-3d0b8c1f2e77",
    "pmagent approvals show 4711", "pmagent approvals approve 4711",
    "pmagent approvals approve 4711 --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "pmagent approvals approve 4711 --rule 'Bash(npm run build *)' --for 2h --times 5",
    "pmagent approvals reject 4711 --reason 'not on a Friday'", "pmagent connect claude",
    "pmagent connect codex --enforce --yes", "pmagent connect claude --user", "pmagent disconnect claude",
    "pmagent disconnect codex --user --yes", "pmagent import claude", "pmagent import codex ~/.codex/sessions",
    "pmagent what-if --policy stricter.yaml --since 30d", "pmagent guest run --login -- claude",
    "pmagent guest run --net docs.python.org -- codex exec 'run the tests'", "pmagent exec -- make deploy",
    "pmagent exec --enforce --wait 120 -- git push origin main", "pmagent policy check other.yaml",
    "pmagent policy explain 'git push'", "pmagent policy explain --tool Read src/app.py",
    "pmagent policy import claude > .pmagent/policy.yaml",
    "pmagent policy import codex my.rules", "pmagent approvals show 4711 --rule 'Bash(npm run build *)'",
}
"""Commands that run for ever, or need a network, a daemon, a device, a session, an agent, or a job of this name: their
own tests run the like."""
PLAN = "- {task_id: look, intent: look around, tools: [ls], inputs: {args: [share]}}\n"


def all_commands(group: Group = program, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups included."""
    for name in group.entries:
        yield (*path, name)
        command = found((*path, name))
        if isinstance(command, Group):
            yield from all_commands(command, (*path, name))


def found(words: tuple[str, ...]) -> click.Command:
    """The command that the words name."""
    command: click.Command = program
    for word in words:
        assert isinstance(command, Group)
        inner = command.get_command(click.Context(command), word)
        assert inner is not None
        command = inner
    return command


WORDS = list(all_commands())
EXAMPLES = [(words, example) for words in WORDS for example in getattr(found(words), "examples", ())]

RUN_HERE = [(words, example) for words, example in EXAMPLES if example not in ELSEWHERE]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example workspace, in git, with a plan and an operator, after its first snapshot and session. Only copied."""
    workspace = fresh_example(tmp_path_factory.mktemp("life") / "workspace")
    (workspace / "plan.yaml").write_text(PLAN)
    subprocess.run(["git", "-C", str(workspace), "init", "-q", "-b", "main"], check=True)
    assert pmagent(workspace, "oa", "snapshot").code == 0
    assert pmagent(workspace, "boot", "oa").code == 0
    operators.add(Layout(workspace).home / "operators.json", "ada", "view", None)
    return workspace


@pytest.fixture
def lived_in(life: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of such a workspace, as the current directory."""
    monkeypatch.chdir(owned(shutil.copytree(life, tmp_path / "workspace")))
    monkeypatch.delenv("PMAGENT_WORKSPACE", raising=False)


def make_audited() -> None:
    """The current directory with a commit, a report and a rubric."""
    make_report(Path("report.pdf"))
    Path("rubric.json").write_text(json.dumps(RUBRIC))
    named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["add", "README.md"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *named, *words], check=True)


@each("words", WORDS)
def test_commands_have_help(words: tuple[str, ...]) -> None:
    done = invoke(*words, "--help")
    assert (done.code, done.err) == (0, b"")
    assert invoke(*words, "-h").out == done.out
    command = found(words)
    assert command.help, "what it does"
    if isinstance(command, Group):
        assert "Commands:" in done.text
        return
    assert isinstance(command, Command)
    assert done.text.startswith("Example:\n  $ pmagent " + " ".join(words))
    assert all(option.help for option in command.params if isinstance(option, click.Option)), "each option is explained"
    assert invoke("help", *words).out == done.out


def test_help_as_a_command_shows_both_help_options_in_a_process_of_its_own(tmp_path: Path) -> None:
    told = spawn("help", "replay", cwd=tmp_path)
    assert told.code == 0
    assert "-h, --help" in told.text


@each("words", WORDS)
def test_every_command_takes_the_shared_options(words: tuple[str, ...]) -> None:
    told = invoke(*words, "--help").text
    assert "--workspace DIR" in told
    assert "--debug" in told


def test_examples_are_of_the_command_that_shows_them() -> None:
    for words, example in EXAMPLES:
        named = " ".join(words).split()
        assert shlex.split(example)[: len(named) + 1] == ["pmagent", *named], example
    assert {example for _, example in EXAMPLES} >= ELSEWHERE


@pytest.mark.usefixtures("lived_in")
@pytest.mark.parametrize(("words", "example"), RUN_HERE, ids=[example for _, example in RUN_HERE])
def test_examples_run(words: tuple[str, ...], example: str) -> None:
    _, *arguments = shlex.split(example)
    if words == ("run",) and not {"--plan-only", "--dry-run"} & {*arguments} and OBSTACLE:
        pytest.skip(OBSTACLE)
    if words[0] in ("audit", "rubric"):
        make_audited()
    done = invoke(*arguments)
    if words[0] in ("up", "restart"):
        assert invoke("down").code == 0, "no daemon outlives its test"
    assert done.code == 0, done.errors
    assert done.out or "-o" in arguments


def test_every_line_of_a_list_of_commands_fits() -> None:
    for line in invoke("--help").text.splitlines():
        assert len(line) <= 120


def test_the_program_without_a_command_shows_its_help() -> None:
    done = invoke()
    assert done.code == 0
    assert "Commands:" in done.text


def test_a_group_without_a_command_is_a_usage_error_that_shows_the_commands() -> None:
    for words in WORDS:
        if isinstance(found(words), Group):
            done = invoke(*words)
            assert done.code == 2
            assert "Commands:" in done.text + done.errors


@each("topic", TOPICS)
def test_topics_are_listed_and_have_text(topic: str) -> None:
    assert f"  {topic} " in invoke("help").text
    assert len(invoke("help", topic).text.splitlines()) > 5


def test_an_unknown_topic_names_those_there_are() -> None:
    done = invoke("help", "everything")
    assert done.code == 2
    assert all(topic in done.errors for topic in TOPICS)


def test_the_nearest_command_is_named() -> None:
    assert "did you mean tail?" in invoke("log", "tial").errors
    assert "did you mean status?" in invoke("statsu").errors


def test_every_setting_is_in_the_help_and_in_the_example_of_an_environment() -> None:
    named = {WORKSPACE, FORMAT, *(setting.variable for setting in settings_table() if setting.variable)}
    told = invoke("help", "environment").text
    assert all(name in told for name in named)
    example = (ROOT / ".env.example").read_text("utf-8")
    assert set(re.findall(r"^#?(PMAGENT_[A-Z_]+)=", example, re.MULTILINE)) == named
    assert not re.search(r"^[^#\n]", example, re.MULTILINE), "an example sets nothing by itself"


def test_a_default_in_the_help_is_written_as_the_environment_takes_it() -> None:
    told = invoke("help", "environment").text
    shown = {line.split()[0]: line.rpartition("[")[2].rstrip("]") for line in told.splitlines() if line.endswith("]")}
    for setting in filter(lambda setting: setting.variable, settings_table()):
        default = setting.default
        as_text = str(default).lower() if isinstance(default, bool) else str(default)
        assert shown[setting.variable] == ("none" if default in (None, "") else as_text)


@each("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_names_the_program_and_its_variable(shell: str) -> None:
    done = invoke("completion", shell)
    assert done.code == 0
    assert "_PMAGENT_COMPLETE" in done.text
