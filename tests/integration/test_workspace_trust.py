"""Nothing of a workspace is run before this user has accepted what its configuration lets be done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pmagent.console.auth import operators
from pmagent.console.paths import ConsolePaths
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.service.operations import call
from pmagent.service.wire import RemoteError
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import LINES_MAX, NotAccepted, accept, is_accepted
from pmagent.workspace.user_registry import Registry
from tests.conftest import EXAMPLE
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, Ran, clean_environment, invoke
from tests.support.daemons import running
from tests.support.orchestra import RUN
from tests.support.shipped import git
from tests.support.started import QUICK
from tests.support.terminals import Terminal, open_pty

SECURITY = 7
WIDE = """\
version: "1.0"
whitelist_tools: [echo, cat, sh, curl]
policies: {allow_network: true}
security: {fs: {allow_write: [./runs, /srv/elsewhere]}, net: {allow_domains: [evil.example]}}
"""


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A repository with surfaces and a configuration, that this user has accepted nothing of."""
    folder = tmp_path / "stranger"
    shutil.copytree(EXAMPLE, folder)
    (folder / "orchestra.config.yaml").write_text(WIDE)
    (folder / ".pmagent").mkdir(mode=0o700)
    (folder / ".pmagent/config.toml").write_text('[checks]\n"Unit Tests" = ["touch", "/tmp/ran"]\n')
    (folder / "plan.yaml").write_text(QUICK)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "x")
    return folder


def pmagent(workspace: Path, *arguments: str) -> Ran:
    """A command, with nothing accepted beforehand."""
    return invoke(*arguments, environ={"PMAGENT_WORKSPACE": str(workspace)})


ACTING = [
    ["up"], ["oa", "snapshot"], ["boot", "oa"], ["pause"], ["resume"], ["kernel", "refresh"], ["oa", "decision", "x"],
    ["audit", ".", "report.pdf"], ["pla", "mode", "SUGGEST"],
]


@each("words", ACTING)
def test_what_acts_is_refused_before_it_is_accepted(stranger: Path, words: list[str]) -> None:
    (stranger / "report.pdf").write_bytes(b"%PDF-1.4")
    words = [str(stranger) if word == "." else str(stranger / word) if "pdf" in word else word for word in words]
    ran = pmagent(stranger, *words)
    assert ran.code == SECURITY, ran
    assert "pmagent trust" in ran.errors
    assert not (stranger / ".pmagent/log").exists()


def test_a_run_is_refused_before_it_is_accepted(stranger: Path) -> None:
    assert pmagent(stranger, "run", "x", "--plan", str(stranger / "plan.yaml")).code == SECURITY
    assert not (stranger / "runs").exists()


@each(
    "words",
    [["status"], ["doctor"], ["trust", "--help"], ["help", "exit-codes"], ["sim", "--seed", "7"], ["log", "tail"],
     ["contracts", "list"]],
)
def test_what_only_looks_works_without(stranger: Path, words: list[str]) -> None:
    assert pmagent(stranger, *words).code in (0, 1)


def test_trust_shows_it_in_few_lines_and_asks(stranger: Path) -> None:
    assert pmagent(stranger, "trust").code == 2
    assert not is_accepted(stranger)
    ran = pmagent(stranger, "trust", "--yes")
    assert ran.code == 0
    for told in ("curl", "/srv/elsewhere", "evil.example", "touch /tmp/ran", "tasks may reach the network"):
        assert told in ran.errors
    assert len(ran.errors.splitlines()) <= LINES_MAX
    assert is_accepted(stranger)
    assert pmagent(stranger, "oa", "snapshot").code == 0
    document = pmagent(stranger, "trust", "--yes", "--format", "json").document
    assert "program: curl" in document["items"]


def test_init_accepts_and_shows_what_was_there(stranger: Path) -> None:
    ran = pmagent(stranger, "init")
    assert ran.code == 0
    assert "curl" in ran.errors
    assert is_accepted(stranger)
    assert pmagent(stranger, "oa", "snapshot").code == 0


def test_init_of_a_fresh_repository_just_works(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert pmagent(tmp_path, "init").code == 0
    assert pmagent(tmp_path, "oa", "snapshot").code == 0


def test_a_script_says_it_with_the_command(stranger: Path) -> None:
    ran = pmagent(stranger, "run", "x", "--plan", str(stranger / "plan.yaml"), "--dry-run", "--trust-workspace")
    assert ran.code == 0
    assert is_accepted(stranger)


def test_no_variable_accepts_anything(stranger: Path) -> None:
    given = {f"PMAGENT_{name}": "1" for name in ("TRUST", "TRUST_WORKSPACE", "TRUSTED", "YES")}
    assert invoke("oa", "snapshot", environ={"PMAGENT_WORKSPACE": str(stranger), **given}).code == SECURITY


def narrow(stranger: Path) -> None:
    """Accept the defaults."""
    (stranger / "orchestra.config.yaml").unlink()
    (stranger / ".pmagent/config.toml").write_text("")
    accept(stranger)


def test_what_is_widened_later_is_refused_by_name(stranger: Path) -> None:
    narrow(stranger)
    assert pmagent(stranger, "oa", "snapshot").code == 0
    (stranger / "orchestra.config.yaml").write_text(WIDE)
    ran = pmagent(stranger, "oa", "snapshot")
    assert ran.code == SECURITY
    for told in ("curl", "/srv/elsewhere", "evil.example"):
        assert told in ran.errors
    assert "echo" not in ran.errors
    assert pmagent(stranger, "status", "--format", "json").document["unaccepted"]
    assert pmagent(stranger, "pause").code == 0  # who stops something is kept by nothing
    assert pmagent(stranger, "resume").code == SECURITY


@pytest.fixture
def daemon(stranger: Path) -> Iterator[Path]:
    """A daemon on defaults that are accepted; then the files are widened."""
    narrow(stranger)
    with running(stranger):
        (stranger / "orchestra.config.yaml").write_text(WIDE)
        (stranger / ".pmagent/config.toml").write_text('[checks]\n"Unit Tests" = ["touch", "/tmp/ran"]\n')
        yield stranger


def test_a_running_daemon_goes_on_under_what_was_accepted(daemon: Path) -> None:
    run = ["run", "x", "--plan", str(daemon / "plan.yaml"), "--dry-run"]
    assert pmagent(daemon, *run).code == SECURITY
    assert pmagent(daemon, "kernel", "refresh").code == SECURITY
    with pytest.raises(RemoteError) as caught:
        call(daemon, "kernel.checks", {"kind": "check", "names": ["Unit Tests"], "seconds": 5})
    assert (caught.value.kind, caught.value.exit_code) == (NotAccepted.__name__, SECURITY)
    assert pmagent(daemon, "oa", "snapshot").code == 0
    assert pmagent(daemon, "pause").code == 0
    assert pmagent(daemon, "resume").code == 0
    assert pmagent(daemon, "trust", "--yes").code == 0
    assert pmagent(daemon, *run).code == 0


def test_who_speaks_to_the_daemon_itself_widens_nothing(daemon: Path) -> None:
    (daemon / "orchestra.config.yaml").unlink()
    (daemon / ".pmagent/config.toml").write_text("")
    config = OrchestraConfig(version="1.0", whitelist_tools=["sh"])
    asked = RunRequested(run_id=RUN, intent="x", config=config, plan=None, source="x", dry_run=True)
    with pytest.raises(RemoteError) as caught:
        call(daemon, "orchestra.run", {"request": RUN, **msgspec.to_builtins(asked)})
    assert (caught.value.kind, "sh" in caught.value.message) == (NotAccepted.__name__, True)


def test_a_configuration_that_a_command_names_is_accepted_like_any_other(stranger: Path, tmp_path: Path) -> None:
    narrow(stranger)
    (tmp_path / "mine.yaml").write_text(WIDE)
    run = ["run", "x", "--plan", str(stranger / "plan.yaml"), "--dry-run", "--config", str(tmp_path / "mine.yaml")]
    refused = pmagent(stranger, *run)
    assert (refused.code, "curl" in refused.errors) == (SECURITY, True)
    assert pmagent(stranger, *run, "--trust-workspace").code == 0
    assert pmagent(stranger, *run).code == 0


def test_an_audit_of_an_address_obeys_no_configuration_of_a_stranger(stranger: Path, tmp_path: Path) -> None:
    audited = tmp_path / "audited"
    audited.mkdir()
    git(audited, "init", "--quiet")
    (audited / "a.py").write_text("x = 1\n")
    git(audited, "add", ".")
    git(audited, "commit", "--quiet", "--message", "x")
    (stranger / ".pmagent/config.toml").write_text('[audit]\nmodel = "anthropic:x"\nrubric = "evil.json"\n')
    (stranger / "evil.json").write_text("{}")
    report = tmp_path / "report.pdf"
    subprocess.run(
        [PMAGENT[0], "-I", "examples/audited/make_report.py", str(report)], check=True, capture_output=True,
        cwd=EXAMPLE.parents[1],
    )
    assert pmagent(stranger, "audit", str(audited), str(report)).code == SECURITY
    assert pmagent(stranger, "audit", f"file://{stranger}", str(report)).code == SECURITY
    ran = pmagent(stranger, "audit", f"file://{audited}", str(report), "--format", "json")
    assert ran.code == 0, ran
    assert pmagent(stranger, "oa", "snapshot").code == SECURITY


def test_what_was_shown_is_what_is_accepted(stranger: Path) -> None:
    """Between the question and the answer the file is widened: the answer is not for that."""
    narrow(stranger)
    (stranger / "orchestra.config.yaml").write_text(WIDE.replace("curl", "wget"))
    screen, said = Terminal(120, 40), b""
    ours, theirs = open_pty(120, 40)
    process = subprocess.Popen(
        ["setsid", "--ctty", *PMAGENT, "oa", "snapshot"], cwd=stranger, stdin=theirs, stdout=subprocess.PIPE,
        stderr=theirs, env=clean_environment(TERM="xterm"),
    )
    os.close(theirs)
    deadline = time.monotonic() + SECONDS
    while "type yes" not in screen.text and time.monotonic() < deadline:
        said = os.read(ours, 65536)
        screen.feed(said)
    assert "wget" in screen.text
    (stranger / "orchestra.config.yaml").write_text(WIDE)
    os.write(ours, b"yes\n")
    process.communicate(timeout=SECONDS)
    os.close(ours)
    assert process.returncode == SECURITY
    assert not is_accepted(stranger)
    (stranger / "orchestra.config.yaml").write_text(WIDE.replace("curl", "wget"))
    assert is_accepted(stranger)


def test_a_damaged_record_refuses_and_says_where_it_lies(stranger: Path) -> None:
    accept(stranger)
    [entry] = [
        path for path in (Registry().folder / "accepted").glob("[!.]*")
        if json.loads(path.read_bytes())["workspace"] == str(stranger)
    ]
    entry.write_bytes(b"{")
    ran = pmagent(stranger, "oa", "snapshot")
    assert (ran.code, "damaged" in ran.errors, "accepted" in ran.errors) == (SECURITY, True, True)
    assert pmagent(stranger, "status").code == 0
    entry.unlink()
    assert pmagent(stranger, "trust", "--yes").code == 0


def test_a_registry_that_cannot_be_written_lets_nothing_begin(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert pmagent(stranger, "init").code in (1, SECURITY)
    assert pmagent(stranger, "oa", "snapshot").code in (1, SECURITY)
    assert not (stranger / ".pmagent/log").exists()


@pytest.mark.parametrize("way", ["came along", "edited", "another list"])
def test_a_list_of_operators_that_came_from_elsewhere_lets_nobody_in_before_it_is_accepted(
    way: str, stranger: Path, tmp_path: Path
) -> None:
    """An archive keeps the mode 0600, so that the mode alone tells nothing."""
    home, other = ConsolePaths(Layout(stranger)), ConsolePaths(Layout(tmp_path / "other"))
    for paths in (home, other):
        paths.operators.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    operators.add(other.operators, "mallory", "approve", "a secret of hers alone")
    content = other.operators.read_bytes()
    if way != "came along":
        operators.add(home.operators, "ada", "view", None)
        content = home.operators.read_bytes().replace(b'"view"', b'"approve"') if way == "edited" else content
    home.operators.write_bytes(content)
    home.operators.chmod(0o600)
    with pytest.raises(operators.BadOperators, match="came from elsewhere"):
        operators.read(home.operators)
    assert pmagent(stranger, "operators", "list").code == SECURITY
    ran = pmagent(stranger, "trust", "--yes")
    assert ran.code == 0
    assert ("ada (approve)" if way == "edited" else "mallory (approve)") in ran.errors
    assert list(operators.read(home.operators)) == (["ada"] if way == "edited" else ["mallory"])
