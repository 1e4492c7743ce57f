"""The real programs' reading of a hook's answer: whether the tool runs, and whether the model is told why.

The refusal of ours rests on these tables, and so does all that docs/guests.md says about each harness. A session makes
one call for each case; the hook reads in the call how it is to answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.effort import NIGHT, some
from tests.support.guests import Place, installed, of, place

pytestmark = [installed, pytest.mark.slow]

RAN, CHANGED, TOLD, MUTE = "R", "C", "-", "."
"""The tool ran; with the input that the hook gave it; it did not, and the model was told why; was not."""


def said(decision: str = "deny", event: str = "PreToolUse", **fields: Any) -> str:
    """A line that prints Claude Code's form of an answer."""
    answer = {"hookEventName": event, "permissionDecision": decision, "permissionDecisionReason": "NOPE", **fields}
    return printed({"hookSpecificOutput": answer})


def printed(document: Any) -> str:
    """A line that prints this as JSON."""
    return f"printf '%s' '{json.dumps(document)}'"


OTHER = {"command": "echo changed > ran-$n"}
DENY, ALLOW = said(), said("allow")
UNNAMED = printed({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "NOPE"}})
LONG = "head -c 200000 /dev/zero | tr '\\0' x"
CASES: dict[str, tuple[str, str]] = {
    # Refusals. Columns: Claude Code, the same with onFailure "block", Codex, Gemini CLI.
    "exit 2 with a text on stderr": ("echo NOPE >&2; exit 2", "----"),
    "exit 2 with a long text": (f"echo NOPE >&2; {LONG} >&2; exit 2", "---."),
    "exit 2 without a text": ("exit 2", "..RR"),
    "exit 2 with a consent": (f"echo NOPE >&2; {ALLOW}; exit 2", "---R"),
    "exit 2 with a text on stdout alone": ("echo NOPE; exit 2", "..R-"),
    "exit 2 with half an answer": ("echo NOPE >&2; printf '{\"hook'; exit 2", "---."),
    "exit 2 with stderr closed": ("exec 2>&-; exit 2", "..RR"),
    "deny": (DENY, "---R"),
    "deny, with a key that is not known": (said(other=1), "--RR"),
    "deny, and exit 1": (f"{DENY}; exit 1", "--RR"),
    "deny, on several lines": (f"{DENY} | tr '{{' '\\n' | tr '\\n' '{{'; echo", "---R"),
    "deny in capitals": (said("DENY"), "R-RR"),
    "deny on stderr": (f"{DENY} >&2", "RRRR"),
    "deny twice": (f"{DENY}; {DENY}", "R.RR"),
    "an older form": (printed({"decision": "block", "reason": "NOPE"}), "----"),
    "Gemini's form": (printed({"decision": "deny", "reason": "NOPE"}), "R-R-"),
    # Failures.
    "exit 1": ("exit 1", "R.RR"),
    "exit 3": ("echo NOPE >&2; exit 3", "R-R-"),
    "exit 255": ("exit 255", "R.RR"),
    "a crash": ("python3 -c 'raise SystemError'", "R.RR"),
    "killed": ("kill -9 $$", "R.RR"),
    "terminated": (f"{DENY}; kill -15 $$", "--RR"),
    "a program that is missing": ("/nonexistent", "R.R."),
    "a script that is missing": ("python3 /nonexistent.py", "...."),
    "out of time": ("exec sleep 60", "R.RR"),
    # Answers that are none.
    "nothing": ("true", "RRRR"),
    "an empty object": (printed({}), "RRRR"),
    "a list": (printed([]), "RRRR"),
    "null": (printed(None), "RRRR"),
    "a text": ("echo NOPE", "RRRR"),
    "half a deny": (f"{DENY} | head -c 80", "RRRR"),
    "a line before a deny": (f"echo starts; {DENY}", "RRRR"),
    "a line after a deny": (f"{DENY}; echo; echo ends", "RRRR"),
    "a byte order mark before a deny": (f"printf '\\357\\273\\277'; {DENY}", "--RR"),
    "a zero byte before a deny": (f"printf '\\0'; {DENY}", "RRRR"),
    "a verdict that is not known": (said("forbid"), "R-RR"),
    "a deny for no event": (UNNAMED, "R-RR"),
    "a deny for another event": (said(event="PostToolUse"), "R.-R"),
    # Consents.
    "allow": (ALLOW, "RRRR"),
    "allow, changed": (said("allow", updatedInput=OTHER).replace("$n", "'$n'"), "CCCR"),
    "changed": (said("", updatedInput=OTHER).replace('"permissionDecision": "", ', "").replace("$n", "'$n'"), "CCRR"),
    "ask": (said("ask"), "--RR"),
}
COLUMNS = ("claude", "claude-block", "codex", "gemini")


def probe(here: Place, fragments: list[str]) -> str:
    """The line of a hook that does what the fragment of a call's number says."""
    folder = here.home / "probe"
    folder.mkdir(exist_ok=True)
    for number, fragment in enumerate(fragments):
        (folder / f"{number}.sh").write_text(fragment + "\n")
    (folder / "hook.sh").write_text(
        f'given=$(cat)\nn=${{given#*ran-}}\nn=${{n%%[!0-9]*}}\necho x >> {folder}/heard\n. {folder}/${{n:-0}}.sh\n'
    )
    return f"sh {folder}/hook.sh"


def heard(here: Place) -> int:
    """How often the hook was started."""
    file = here.home / "probe" / "heard"
    return len(file.read_text().split()) if file.exists() else 0


def hooked(here: Place, harness: str, line: str, *, block: bool = True, **more: Any) -> tuple[Path, dict[str, Any]]:
    """The user's settings with the hook, and where they lie."""
    handler = {"type": "command", "command": line, "timeout": 2} | ({"onFailure": "block"} if block else {}) | more
    event, path = "PreToolUse", here.home / {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}.get(
        harness, ".gemini/settings.json"
    )  # fmt: skip
    document: dict[str, Any] = {}
    if harness == "gemini":
        event, document = "BeforeTool", json.loads(path.read_text())
        handler |= {"timeout": 2000, "name": "probe"}
    document["hooks"] = {event: [{"matcher": "*", "hooks": [handler]}]}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path, document


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


@of("claude", "codex", *(("gemini",) if NIGHT else ()))
@pytest.mark.parametrize("block", some([False, True], 1))
def test_what_a_hooks_answer_does(here: Place, harness: str, *, block: bool) -> None:
    if block and harness != "claude":
        pytest.skip("no other harness knows onFailure")
    column = COLUMNS.index(f"{harness}-block" if block else harness)
    hooked(here, harness, probe(here, [fragment for fragment, _ in CASES.values()]), block=block)
    turns = [[here.shell(harness, f"echo ran > ran-{number}")] for number in range(len(CASES))]
    flags = {"codex": ("--dangerously-bypass-hook-trust",)}.get(harness, ())
    done = here.run(harness, *turns, "done", flags=flags)
    assert done.code == 0, done
    assert heard(here) == len(done.results) == len(CASES)
    found = {}
    for number, (name, result) in enumerate(zip(CASES, done.results, strict=True)):
        file = here.workspace / f"ran-{number}"
        left = {"ran": RAN, "changed": CHANGED}[file.read_text().strip()] if file.exists() else ""
        found[name] = left or (TOLD if "NOPE" in result else MUTE)
    assert found == {name: columns[column] for name, (_, columns) in CASES.items()}


def off(where: str) -> Callable[[Place, dict[str, Any]], None]:
    """Switch all hooks off in another settings file of Claude Code."""

    def write(here: Place, _document: dict[str, Any]) -> None:
        path = here.workspace / where
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"disableAllHooks": true}')

    return write


def handler(**fields: Any) -> Callable[[Place, dict[str, Any]], None]:
    """Change fields of the hook's entry."""
    return lambda _here, document: _first(document)["hooks"][0].update(fields)


def group(**fields: Any) -> Callable[[Place, dict[str, Any]], None]:
    """Change fields of the list's entry that holds it."""
    return lambda _here, document: _first(document).update(fields)


def top(**fields: Any) -> Callable[[Place, dict[str, Any]], None]:
    """Change fields of the file."""
    return lambda _here, document: document.update(fields)


def _first(document: dict[str, Any]) -> dict[str, Any]:
    (groups,) = document["hooks"].values()
    found: dict[str, Any] = groups[0]
    return found


def nothing(_here: Place, _document: dict[str, Any]) -> None:
    """Change nothing."""


def crash(_here: Place, document: dict[str, Any]) -> None:
    """The hook crashes; ``onFailure`` stands where it does not count."""
    found = _first(document)
    found["hooks"][0].pop("onFailure", None)
    found["hooks"][0]["command"] = "exit 1"
    found["onFailure"] = "block"


def path_of(_here: Place, document: dict[str, Any]) -> None:
    """Nothing is found by its name any more."""
    document["env"] = {"PATH": "/nonexistent"}
    _first(document)["hooks"][0]["onFailure"] = "allow"


def python(*, isolated: bool) -> Callable[[Place, dict[str, Any]], None]:
    """The hook is Python's, and the settings name a folder whose sitecustomize ends it well."""

    def write(here: Place, document: dict[str, Any]) -> None:
        folder = here.home / "python"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text("import os\nos._exit(0)\n")
        (folder / "hook.py").write_text("import sys\nsys.exit('NOPE')\n")
        document["env"] = {"PYTHONPATH": str(folder)}
        words = f"/usr/bin/python3 {'-I -S ' if isolated else ''}{folder}/hook.py"
        _first(document)["hooks"][0]["command"] = f"{words} || {{ echo NOPE >&2; exit 2; }}"

    return write


def switched(here: Place, _document: dict[str, Any]) -> None:
    """A trusted project switches Codex's hooks off."""
    config = here.home / ".codex/config.toml"
    config.write_text(config.read_text() + f'[projects."{here.workspace}"]\ntrust_level = "trusted"\n')
    (here.workspace / ".codex").mkdir()
    (here.workspace / ".codex/config.toml").write_text("[features]\nhooks = false\n")


def project(document: Any, trust: str = "DO_NOT_TRUST") -> Callable[[Place, dict[str, Any]], None]:
    """Write settings of a project of Gemini CLI."""

    def write(here: Place, _document: dict[str, Any]) -> None:
        (here.workspace / ".gemini").mkdir()
        (here.workspace / ".gemini/settings.json").write_text(json.dumps(document))
        (here.home / ".gemini/trustedFolders.json").write_text(json.dumps({str(here.workspace): trust}))

    return write


class Setting(NamedTuple):
    """A hook that refuses everything, and a change by which it may not come to that; how it ends."""

    harness: str
    name: str
    change: Callable[[Place, dict[str, Any]], None]
    end: str
    flags: tuple[str, ...] = ()
    environ: dict[str, str] = {}


SETTINGS = [
    Setting("claude", "as it is", nothing, TOLD),
    Setting("claude", "an event that is not known", lambda _, document: document["hooks"].update(Other=[]), TOLD),
    Setting("claude", "a key that is not known", handler(other=1), TOLD),
    Setting("claude", "every tool: nothing", group(matcher=""), TOLD),
    Setting("claude", "two tools", group(matcher="Write|Bash"), TOLD),
    Setting("claude", "a tool in small letters", group(matcher="bash"), RAN),
    Setting("claude", "an expression that is none", group(matcher="Bash("), RAN),
    Setting("claude", "a condition that is none", handler(**{"if": "Bash("}), RAN),
    Setting("claude", "in the background", handler(**{"async": True}), RAN),
    Setting("claude", "onFailure beside the list", crash, RAN),
    Setting("claude", "a type that is not known", handler(type="other"), RAN),
    Setting("claude", "a timeout that is a text", handler(timeout="2"), RAN),
    Setting("claude", "a timeout of zero", handler(timeout=0), RAN),
    Setting("claude", "a timeout below zero", handler(timeout=-1), RAN),
    Setting("claude", "onFailure of another word", handler(onFailure="deny"), RAN),
    Setting("claude", "a model that is a number", top(model=17), RAN),
    Setting("claude", "switched off by the project", off(".claude/settings.json"), RAN),
    Setting("claude", "switched off by the project's own", off(".claude/settings.local.json"), RAN),
    Setting("claude", "switched off by the user", top(disableAllHooks=True), RAN),
    Setting("claude", "switched off by a flag", nothing, RAN, ("--settings", '{"disableAllHooks": true}')),
    Setting("claude", "bare", nothing, RAN, ("--bare",)),
    Setting("claude", "simple", nothing, RAN, (), {"CLAUDE_CODE_SIMPLE": "1"}),
    Setting("claude", "the project's settings alone", nothing, RAN, ("--setting-sources", "project")),
    Setting("claude", "another folder of settings", nothing, RAN, (), {"CLAUDE_CONFIG_DIR": "/nonexistent"}),
    Setting("claude", "Python that obeys PYTHONPATH", python(isolated=False), RAN),
    Setting("claude", "Python that is isolated", python(isolated=True), TOLD),
    Setting("claude", "PATH of the settings", path_of, RAN),
    Setting("codex", "as it is", nothing, TOLD),
    Setting("codex", "the shell by its name", group(matcher="^Bash$"), TOLD),
    Setting("codex", "another tool", group(matcher="^apply_patch$"), RAN),
    Setting("codex", "an expression that is none", group(matcher="Bash("), RAN),
    Setting("codex", "a type that is not known", handler(type="other"), RAN),
    Setting("codex", "a timeout that is a text", handler(timeout="2"), RAN),
    Setting("codex", "switched off by a flag", nothing, RAN, ("--disable", "hooks")),
    Setting("codex", "switched off by a setting", nothing, RAN, ("-c", "features.hooks=false")),
    Setting("codex", "switched off by a project that is trusted", switched, RAN),
    Setting("gemini", "as it is", nothing, TOLD),
    Setting("gemini", "the shell by its name", group(matcher="run_shell_command"), TOLD),
    Setting("gemini", "an expression that is none", group(matcher="run("), RAN),
    Setting("gemini", "switched off by the user", top(hooksConfig={"enabled": False}), RAN),
    Setting("gemini", "switched off by name", top(hooksConfig={"disabled": ["probe"]}), RAN),
    Setting("gemini", "switched off by the project", project({"hooksConfig": {"enabled": False}}), TOLD),
    Setting("gemini", "by one that is trusted", project({"hooksConfig": {"enabled": False}}, "TRUST_FOLDER"), RAN),
    Setting("gemini", "by name in one that is", project({"hooksConfig": {"disabled": ["probe"]}}, "TRUST_FOLDER"), RAN),
    Setting("gemini", "switched off by name in the project", project({"hooksConfig": {"disabled": ["probe"]}}), TOLD),
]


@pytest.mark.parametrize("setting", some(SETTINGS, 4), ids=lambda one: f"{one.harness}: {one.name}")
def test_what_keeps_a_hook_from_refusing(here: Place, setting: Setting) -> None:
    """Nothing but the tool tells: each of these is silent for who works with it."""
    path, document = hooked(here, setting.harness, "cat >/dev/null; echo NOPE >&2; exit 2")
    setting.change(here, document)
    path.write_text(json.dumps(document))
    trusted = ("--dangerously-bypass-hook-trust",) if setting.harness == "codex" else ()  # their trust stands elsewhere
    turns = [here.shell(setting.harness, "echo ran > ran-0")], "done"
    done = here.run(setting.harness, *turns, flags=(*trusted, *setting.flags), environ=setting.environ)
    assert done.results, done
    assert (RAN if (here.workspace / "ran-0").exists() else TOLD) == setting.end, done
    assert setting.end == RAN or "NOPE" in done.results[0]
