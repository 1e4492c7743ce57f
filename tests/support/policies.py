"""A project with a policy, and what is decided there of command lines."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.guests.judge import judge
from pmagent.contracts.guest_calls import Call, Layer, Policy, Situation, Verdict
from pmagent.guests.facts import look
from pmagent.guests.policy import built_in, policy_of, rules_of, template
from pmagent.workspace.trust import accept_policy

FILES = {
    ".env": "KEY=secret\n", ".gitignore": ".env\nbuild/\n.venv/\n", "README.md": "# x\n", "notes.md": "",
    "app.log": "", "src/app.py": "def main(): ...\n", "src/util.py": "", "src/app.test.ts": "", "src/old.orig": "",
    "tests/test_app.py": "", "tests/empty/.keep": "", "config/app.ini": "a=b\n", "data/rows.csv": "a,b\n",
    "data/a.txt": "", "data/b.txt": "", "docs/index.md": "", "build/out.txt": "", "build/sums.txt": "",
    "scripts/run.sh": "ls\n", "scripts/build.py": "", "scripts/build.js": "", "package.json": "{}", "Cargo.toml": "",
    "pyproject.toml": "", "requirements.txt": "", "tsconfig.json": "{}", ".venv/bin/python": "",
    ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "", "secrets/token.txt": "t", "vendor/lib.js": "",
    "src/a.js": "", "a.py": "", "x": "", "list": "x", ".git/hooks/pre-commit": "", ".pmagent/data/key": "k",
    ".pmagent/config.toml": "", ".claude/settings.json": "{}",
}  # fmt: skip
NORMAL = Situation(mode="NORMAL", time="2026-11-26T12:00:00.000000Z")
KINDS = ("python", "node", "rust")


class Project:
    """A project's folder, a home beside it, and the policy that the templates make."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = self.home / "project"
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in (".ssh/id_rsa", ".aws/credentials", ".claude/settings.json"):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text("secret")
        for name, target in (("innocent", ".env"), ("linked", "secrets")):
            (self.root / name).symlink_to(target)
        (self.root / "hard").hardlink_to(self.root / ".env")
        self.policy = self.with_rules(template(KINDS))

    def with_rules(self, text: str) -> Policy:
        """The policy of pmagent's own rules and these."""
        own = built_in({"HOME": str(self.home)}, self.root)
        return policy_of([own, Layer(name="user"), rules_of(text, "project", "policy.yaml", str(self.home))])

    def call(self, tool: str, **tool_input: Any) -> Call:
        """The call of a tool in the project's folder."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(self.home))
            return look("claude", "s", "", "", tool, tool_input, "", str(self.root), str(self.root),
                        datetime(2026, 11, 26, 12).astimezone())  # fmt: skip

    def shell(self, line: str, policy: Policy | None = None, situation: Situation = NORMAL) -> Verdict:
        """The verdict on a command line."""
        return judge(self.call("Bash", command=line), policy or self.policy, situation)


def write_policy(workspace: Path, text: str) -> None:
    """Write the workspace's policy; its user has accepted it, so no daemon reads it unaccepted."""
    accept_policy(workspace.resolve(), text.encode())
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent" / "policy.yaml").write_text(text)
