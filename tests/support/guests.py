"""Real agents for tests, as ``make guests`` installs them, a model server that tells them what to do, and a workspace
whose daemon they are connected to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from pmagent.guests import connect as connecting
from pmagent.guests.harnesses import Mode, Scope
from pmagent.workspace.layout import Layout
from tests.support.commands import SECONDS, spawn
from tests.support.daemons import Daemon
from tests.support.guest_models import Models, Turn, models, prompt
from tests.support.logged import history
from tests.support.policies import write_policy

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "pmagent/guests"
PROGRAMS = Path(os.environ.get("PMAGENT_GUESTS") or _CACHE.expanduser()) / "bin"
VERSIONS = {"claude": "2.1.330", "codex": "0.169.0", "gemini": "0.61.0", "opencode": "1.18.33"}



def of(*harnesses: str) -> pytest.MarkDecorator:
    """The test, for each of these; one that is not published for this machine is left out."""
    return pytest.mark.parametrize("harness", [
        pytest.param(name, marks=pytest.mark.skipif(not (PROGRAMS / name).exists(), reason=f"{name} is not here"))
        for name in harnesses
    ])  # fmt: skip


installed = pytest.mark.skipif(not (PROGRAMS.parent / "stamp").exists(), reason="make guests installs them")


class Ran(NamedTuple):
    """How an agent ended: its exit code, stdout and stderr, and what its tools returned to the model."""

    code: int
    out: str
    err: str
    results: list[str]


class Place:
    """A workspace, its daemon, and a home in which an agent lives."""

    def __init__(self, folder: Path, served: Models) -> None:
        self.workspace = folder / "w"
        self.home = folder / "home"
        self.models = served
        self.daemon: Daemon | None = None
        for made in (self.workspace, self.home, folder / "tmp"):
            made.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.workspace)], check=True)
        assert spawn("init", "--minimal", cwd=self.workspace).code == 0
        self.layout = Layout(self.workspace)
        self.environ = {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(self.home), "TMPDIR": str(folder / "tmp"),
            "ANTHROPIC_BASE_URL": served.url, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1", "FAKE_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1", "GOOGLE_GEMINI_BASE_URL": served.url, "GEMINI_API_KEY": "none",
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "npm_config_registry": "http://127.0.0.1:9/",
            "npm_config_fetch_retries": "0",
        }  # fmt: skip
        codex = self.home / ".codex"
        codex.mkdir()
        (codex / "config.toml").write_text(
            'model = "any"\nmodel_provider = "fake"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.fake]\nname = "fake"\nbase_url = "{served.url}/v1"\nwire_api = "responses"\n'
            'env_key = "FAKE_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n'
            "[analytics]\nenabled = false\n"
        )
        self._configured(".gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        })  # fmt: skip
        options = {"baseURL": f"{served.url}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"any": {}}}
        self._configured(".config/opencode/opencode.json", {
            "model": "fake/any", "small_model": "fake/any", "autoupdate": False, "share": "disabled",
            "provider": {"fake": provider},
        })  # fmt: skip

    def _configured(self, path: str, document: Any) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(document))

    def policy(self, *rules: str) -> None:
        """Write the project's policy: ``allow Bash(ls *)`` and so on."""
        lines = ["version: 1"]
        for answer in ("deny", "ask", "allow"):
            found = [rule.removeprefix(f"{answer} ") for rule in rules if rule.startswith(f"{answer} ")]
            lines.append(f"{answer}: {json.dumps(found)}")
        write_policy(self.workspace, "\n".join([*lines, ""]))

    def decide(self, decision: str, number: int) -> Any:
        """An operator's answer to what waits as ``number``."""
        shown = self.document("approvals", "show", str(number))
        digest = ["--digest", shown["digest"]] if decision == "approve" else []
        words = ("approvals", decision, str(number), *digest, "--operator", "ann", "--format", "json")
        done = spawn(*words, cwd=self.workspace)
        assert done.code == 0, done
        return done.document

    def start(self) -> None:
        """Start the daemon."""
        self.daemon = Daemon(self.workspace)
        self.daemon.wait_ready()

    def kill(self) -> None:
        """Kill the daemon, as a crash would."""
        assert self.daemon is not None
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.communicate(timeout=SECONDS)
        self.daemon = None

    def connect(self, harness: str, mode: Mode = "enforce", scope: Scope = "user", wait: int = 0) -> Path:
        """Connect a harness; its settings file."""
        plan, version = connecting.plan_connect(self.layout, harness, scope, mode, wait, self.environ)
        assert version == VERSIONS[harness]
        assert connecting.connect(self.layout, harness, scope, mode, wait, plan, version, self.environ) == []
        return plan.path

    def command(self, harness: str, *turns: Turn, flags: tuple[str, ...] = ()) -> list[str]:
        """The command line that lets an agent do what the turns say, unasked."""
        if harness == "claude":
            mode = ("--permission-mode", "bypassPermissions", "--output-format", "json")
            return ["claude", "-p", prompt(*turns), *mode, *flags]
        if harness == "gemini":
            said = ("-p", prompt(*turns), "-o", "json", "-m", "gemini-2.5-flash")
            return ["gemini", *said, "-y", "--skip-trust", *flags]
        if harness == "opencode":
            word = prompt(*turns).replace(" ", "\\u0020")  # it quotes what is more than one word
            return ["opencode", "run", "--format", "json", *flags, word]
        unasked = "--dangerously-bypass-approvals-and-sandbox"
        return ["codex", "exec", "--json", "--skip-git-repo-check", unasked, *flags, prompt(*turns)]

    def run(self, harness: str, *turns: Turn, flags: tuple[str, ...] = (), environ: Mapping[str, str] = {}) -> Ran:
        """Let an agent do that."""
        words = self.command(harness, *turns, flags=flags)
        done = subprocess.run(
            [str(PROGRAMS / words[0]), *words[1:]], cwd=self.workspace, env={**self.environ, **environ},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr, self.models.results)

    def resume(self, session: str) -> Ran:
        """Let a session of ``claude -p`` go on."""
        words = ["-p", "--resume", session, "--permission-mode", "bypassPermissions", "--output-format", "json"]
        done = subprocess.run(
            [str(PROGRAMS / "claude"), *words], cwd=self.workspace, env=self.environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr, self.models.results)

    def shell(self, harness: str, line: str) -> list[Any]:
        """A call of the harness's shell."""
        return {
            "claude": ["Bash", {"command": line}], "codex": ["exec_command", {"cmd": line}],
            "gemini": ["run_shell_command", {"command": line}],
            "opencode": ["bash", {"command": line, "description": "d"}],
        }[harness]  # fmt: skip

    def events(self, *types: str) -> list[Any]:
        """The payloads of the log's events of these types, in order."""
        return [event.data for event in history(self.workspace, "guest.") if event.type in types]

    def document(self, *arguments: str) -> Any:
        """A command's document in JSON."""
        return msgspec.json.decode(spawn(*arguments, "--format", "json", cwd=self.workspace).out)


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """A place with a running daemon."""
    with models() as served:
        made = Place(folder, served)
        try:
            yield made
        finally:
            if made.daemon is not None:
                made.daemon.process.terminate()
                made.daemon.process.communicate(timeout=SECONDS)
