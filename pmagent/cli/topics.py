"""The help topics. Tables come from the code, so that help cannot be out of date; texts are in topics.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from pmagent.exitcodes import MEANINGS, kind


class Topic(NamedTuple):
    """A topic: its line in the list, and what makes its text."""

    title: str
    text: Callable[[], str]


def _exit_codes() -> str:
    rows = [f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items()]
    kinds = sorted({kind(code) for code in MEANINGS if code not in (0, 141)})
    return "\n".join([
        "Exit codes", "", *rows, "", "With --format json an error is one document on stdout (without it, nothing is):",
        '  {"error": {"kind": …, "message": …, "hint": …}}', f"kind is one of: {', '.join(kinds)}.", "",
        "A daemon that says nothing for 1.5 s does not answer; one that computes is given 30 s, but not to look or to",
        "stop something. A command that only looks, as status, is answered by the log then (exit 0; in JSON daemon is",
        "unresponsive, or starting). For anything else the error has outcome and request:",
        "  none     exit 5: the daemon had not taken the request, and drops it",
        "  unknown  exit 6: it had taken it; or the request stops something (pause, cancel, pla disarm, pla end, a",
        "           lower pla mode), and is carried out whenever the daemon goes on",
        "The same command with --request ID is the same request: it is done once, and answered as the first time."
    ])


def _environment() -> str:
    from pmagent.cli.frame import FORMAT
    from pmagent.workspace.settings import FILE, WORKSPACE, settings_table

    rows = [f"  {WORKSPACE:<38} the workspace, without --workspace", f"  {FORMAT:<38} text or json, without --format"]
    rows += [
        f"  {setting.variable:<38} {setting.text} [{_shown(setting.default)}]"
        for setting in settings_table() if setting.variable
    ]
    rows += [
        "  XDG_STATE_HOME                         the folder of your registry of what is trusted [~/.local/state]",
        "  NO_COLOR                               set: no colour",
        "  CLICOLOR_FORCE                         set: colour, also into a pipe",
        "  COLUMNS                                how wide a line may be",
        "  PAGER                                  shows long text on a terminal, cat: none; also --no-pager [less]",
    ]
    return "\n".join(
        ["Environment", "", *rows, "", f"A flag wins over a variable, a variable over {FILE}, that over the default.",
         "In the file, PMAGENT_KERNEL_PHASE is phase under [kernel]. doctor --settings shows each value's origin.",
         "Settings under [storage], where the log and its blobs lie, are set in the file only."]
    )


def _shown(default: object) -> str:
    """A default, as it would be written in the environment."""
    return "none" if default in (None, "") else str(default).lower() if isinstance(default, bool) else str(default)


def _text(name: str) -> Callable[[], str]:
    """A topic of topics.toml."""
    return lambda: str(tomllib.loads(Path(__file__).with_name("topics.toml").read_text("utf-8"))[name])


TOPICS: Final[dict[str, Topic]] = {
    "exit-codes": Topic("what the exit codes mean", _exit_codes),
    "environment": Topic("variables and settings", _environment),
    "formatting": Topic("text, JSON, colour, hostile text", _text("formatting")),
    "plans": Topic("how a plan of tasks is written", _text("plans")),
    "times": Topic("how times and durations are written", _text("times")),
    "vocabulary": Topic("the words, one for each thing", _text("vocabulary")),
}
