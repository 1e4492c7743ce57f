"""The real programs behind the wall, with a policy that lets them try everything."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from pmagent.actors.sandbox.egress.upstream import Upstream
from pmagent.guests.wall import Walled, attend
from pmagent.guests.walls import begun, ended
from tests.support.commands import SECONDS
from tests.support.effort import NIGHT
from tests.support.guest_models import Turn, served
from tests.support.guests import Place, installed, of, place

pytestmark = [installed, pytest.mark.slow]

HARNESSES = of("claude", "codex", *(("gemini", "opencode") if NIGHT else ()))
TWO = of("claude", "codex")
HOST = "model.test"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with place(tmp_path) as made:
        yield made


@contextmanager
def secured(here: Place) -> Iterator[int]:
    """The port of the models with TLS; their certificate lies in the workspace. Node.js fetches through
    tunnels, and those lead to TLS alone."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    key, certificate = here.home / "key.pem", here.workspace / "ca.pem"
    words = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={HOST}")
    names = ("-addext", f"subjectAltName=DNS:{HOST}", "-keyout", str(key), "-out", str(certificate))
    subprocess.run([program, *words, *names], check=True, capture_output=True, timeout=SECONDS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with served(here.models, context) as port:
        yield port


def walled(here: Place, harness: str, *turns: Turn) -> None:
    """Let an agent do that behind the wall; its model is reached by the proxy."""
    with secured(here) if harness == "gemini" else nullcontext(int(here.models.url.rpartition(":")[2])) as port:
        started(here, harness, port, turns)


def started(here: Place, harness: str, port: int, turns: tuple[Turn, ...]) -> None:

    async def ask(_name: str, _port: int) -> list[tuple[str, int]]:
        return [("127.0.0.1", port)]

    for path in (".codex/config.toml", ".config/opencode/opencode.json"):
        config = here.home / path
        config.write_text(config.read_text().replace(here.models.url, f"http://{HOST}"))
    environ = {
        **os.environ, **here.environ, "ANTHROPIC_BASE_URL": f"http://{HOST}",
        "GOOGLE_GEMINI_BASE_URL": f"https://{HOST}", "NODE_EXTRA_CA_CERTS": str(here.workspace / "ca.pem"),
        "OPENCODE_CONFIG_CONTENT": config.read_text(),  # its settings lie in another folder than its keys
    }  # fmt: skip
    own = {*here.environ, "OPENCODE_CONFIG_CONTENT", "NODE_EXTRA_CA_CERTS"} - {"PATH", "HOME", "TMPDIR"}
    passed = tuple(name for name in environ if name in own)
    words = tuple(here.command(harness, *turns))
    asked = Walled(harness=harness, words=words, wait=0, hosts=(HOST,), login=True, env=passed)  # type: ignore[arg-type]
    begun(here.layout, "wall", asked, "ada")
    end = attend(asked, here.layout, "wall", environ, terminal=False, upstream=Upstream(ask, lambda *_: ""))
    ended(here.layout, "wall", asked.harness, end)
    assert end.outcome.exit_code == 0, end


@HARNESSES
def test_it_works_behind_the_wall_under_the_gate(here: Place, harness: str) -> None:
    here.policy("allow Bash(echo *)", "allow Edit(**)", "deny Bash(rm *)")
    here.start()
    walled(here, harness, [here.shell(harness, "echo hi > ran.txt")], [here.shell(harness, "rm ran.txt")], "done")
    assert (here.workspace / "ran.txt").read_text() == "hi\n"
    assert [one.answer for one in here.events("guest.call_decided")] == ["allow", "deny"]
    (started,) = here.events("guest.session_started")
    assert (started.harness, started.wall) == (harness, "wall")
    (over,) = here.events("guest.wall_ended")
    assert HOST in {contact.host for contact in over.contacts if contact.verdict == "allowed"}


@of("claude")
def test_behind_the_wall_prompts_run_no_commands_by_themselves(here: Place, harness: str) -> None:
    """No hook is told of those: outside of it, only what writes such prompts is asked about."""
    skill = here.workspace / ".claude/skills/sk/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: sk\ndescription: d\n---\nHere: !`touch ran.txt`\n")
    here.policy("allow Skill")
    here.start()
    walled(here, harness, [["Skill", {"skill": "sk"}]], "done")
    assert [one.answer for one in here.events("guest.call_decided")] == ["allow"]
    assert not (here.workspace / "ran.txt").exists()


@TWO
def test_what_the_policy_lets_it_try_the_wall_keeps_it_from(here: Place, harness: str) -> None:
    """It may run a script that switches hooks off, reads the log, ends the daemon and reaches another host."""
    here.policy("allow Bash(*)", "allow Read(**)")
    here.start()
    assert here.daemon is not None
    script = here.workspace / "tries.sh"
    script.write_text(
        "mkdir -p .claude ~/.claude ~/.codex; echo '{\"disableAllHooks\": true}' > .claude/settings.local.json\n"
        "echo '{\"env\": {\"LD_PRELOAD\": \"x\"}}' > \"$CLAUDE_CONFIG_DIR/settings.json\" && echo CHANGED-SETTINGS\n"
        "echo '[features]\nhooks = false' > .codex/config.toml; echo '{}' > /etc/claude-code/managed-settings.json\n"
        "cat .pmagent/data/log/* && echo READ-THE-LOG\n"
        f"kill -9 {here.daemon.process.pid} && echo ENDED-THE-DAEMON\n"
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")' && echo REACHED-A-HOST\n"
        "touch /etc/x /usr/x ../x && echo WROTE-OUTSIDE\n"
        "sleep 1; echo tried\n"
    )
    walled(here, harness, *([here.shell(harness, line)] for line in ("bash tries.sh", "sleep 1", "true")), "done")
    said = here.models.results
    assert "tried" in said[0]
    for reached in ("READ-THE-LOG", "ENDED-THE-DAEMON", "REACHED-A-HOST", "WROTE-OUTSIDE", "CHANGED-SETTINGS"):
        assert reached not in said[0]
    assert here.daemon.process.poll() is None
    asked = [one.input["command"] for one in here.events("guest.call_asked")]
    assert asked == ["bash tries.sh", "sleep 1", "true"]  # hooks that were to be switched off still tell of all
    (over,) = here.events("guest.wall_ended")
    assert "example.com" in {contact.host for contact in over.contacts if contact.verdict == "refused"}
    (closed,) = here.events("guest.session_closed")
    assert (closed.proof, closed.unseen) == ("gated", 0)
