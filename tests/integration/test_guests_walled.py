"""Claude Code and Codex themselves behind the wall, with a policy that lets them try everything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.actors.sandbox.egress.upstream import Upstream
from pmagent.guests.wall import Walled, attend
from pmagent.guests.walls import begun, ended
from tests.support.guest_models import Turn
from tests.support.guests import Place, installed, place

pytestmark = [installed, pytest.mark.slow]

HARNESSES = pytest.mark.parametrize("harness", ["claude", "codex"])
HOST = "model.test"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with place(tmp_path) as made:
        yield made


def walled(here: Place, harness: str, *turns: Turn) -> None:
    """Let an agent do that behind the wall; its model is reached by the proxy."""
    port = int(here.models.url.rpartition(":")[2])

    async def ask(_name: str, _port: int) -> list[tuple[str, int]]:
        return [("127.0.0.1", port)]

    config = here.home / ".codex/config.toml"
    config.write_text(config.read_text().replace(here.models.url, f"http://{HOST}"))
    environ = {**os.environ, **here.environ, "ANTHROPIC_BASE_URL": f"http://{HOST}"}
    passed = tuple(name for name in environ if name in here.environ and name not in ("PATH", "HOME", "TMPDIR"))
    words = tuple(here.command(harness, *turns))
    asked = Walled(harness=harness, words=words, wait=0, hosts=(HOST,), login=True, env=passed)  # type: ignore[arg-type]
    begun(here.layout, "wall", asked, "ada")
    outcome = attend(asked, here.layout, "wall", environ, terminal=False, upstream=Upstream(ask, lambda *_: ""))
    ended(here.layout, "wall", outcome)
    assert outcome.exit_code == 0, outcome


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


@HARNESSES
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
