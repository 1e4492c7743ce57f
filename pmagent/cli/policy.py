"""``pmagent policy``: what guests may do here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.contracts.guest_calls import Layer, Verdict

_STYLES: Final = {
    "allow": Styled("✓ allow", "green"), "ask": Styled("? ask", "yellow"), "deny": Styled("✗ deny", "red"),
}  # fmt: skip
_CODES: Final = {"allow": Exit.DONE, "ask": Exit.CONDITIONAL, "deny": Exit.NO}
_PLACES: Final = {
    "claude": (".claude/settings.json", "~/.claude/settings.json"), "codex": ("~/.codex/rules/default.rules",),
    "gemini": (".gemini/policies/policy.toml", "~/.gemini/policies/policy.toml"),
}  # fmt: skip


@command("pmagent policy init", "pmagent policy init --template python --template node")
@click.option("--template", "templates", multiple=True, metavar="KIND",
              help="python, node or rust; may be given several times [default: what the workspace looks like].")
def init(app: App, templates: tuple[str, ...], format: str) -> int:
    """Write .pmagent/policy.yaml from a template; an existing one stays as it is.

    The template lets ordinary work pass, asks about what cannot be taken back, and forbids reading keys."""
    from pmagent.events.atomic import write_atomic
    from pmagent.guests.policy import FILE, BadPolicy, kinds_of, template
    from pmagent.workspace.trust import accept_policy

    kinds = list(dict.fromkeys(templates)) or kinds_of(app.workspace)
    text, path = template(kinds), app.workspace / FILE
    if path.exists():
        raise BadPolicy(f"{path} is there already", "edit it, or remove it first")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    accept_policy(app.workspace.resolve(), text.encode())
    write_atomic(path, text.encode())
    document = {"path": str(path), "templates": kinds}
    app.output.answer(format, document, lambda: app.output.line(
        Styled("✓ written", "green"), f": {path} ({', '.join(['base', *kinds])})"
    ))  # fmt: skip
    return Exit.DONE


@command("pmagent policy check", "pmagent policy check other.yaml")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(app: App, file: Path | None, format: str) -> int:
    """Read the policy's files, or FILE, and say whether they can be used. Exit 2: not; while that is so, everything but
    reading is refused."""
    from pmagent.guests.policy import policy_in_force, rules_of

    if file is not None:
        layers = [rules_of(file.read_bytes(), "project", str(file), app.environ.get("HOME", ""))]
    else:
        layers = policy_in_force(app.workspace.resolve()).layers
    document = [{"layer": one.name, "path": one.path, "rules": len(one.rules), "problem": one.problem,
                 "default": one.default} for one in layers]  # fmt: skip
    app.output.answer(format, {"layers": document}, lambda: _layers(app, layers))
    return Exit.USAGE if any(one.problem for one in layers) else Exit.DONE


def _layers(app: App, layers: list[Layer]) -> None:
    for layer in layers:
        where = layer.path or layer.name
        if layer.problem:
            app.output.line(Styled("✗ not usable", "red"), f"  {layer.problem}")
        elif layer.path and not layer.rules and not layer.sha256:
            app.output.line(Styled("- none", "dim"), f"  {where}")
        else:
            app.output.line(Styled("✓ read", "green"), f"  {where}: {len(layer.rules)} rules")


@command("pmagent policy explain 'git push'", "pmagent policy explain --tool Read src/app.py")
@click.argument("call", required=True)
@click.option("--tool", default="Bash", metavar="TOOL", help="The tool that is called [default: Bash].")
@click.option("--agent-type", default="", metavar="KIND", help="Explain it for a subagent of this kind.")
@click.option("--mode", type=click.Choice(["NORMAL", "DEGRADED", "BLOCKED"]), default="NORMAL",
              help="In this mode of the kernel [default: NORMAL].")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="For a session that has seen this.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The agent's folder.")
def explain(
    app: App, call: str, tool: str, agent_type: str, mode: str, labels: tuple[str, ...], cwd: Path | None, format: str
) -> int:
    """Tell the decision on CALL, and why: a command line, or what another tool is called with (a path, an address,
    or a JSON object). Nothing is run or recorded. Exit 0: allow, 8: ask, 1: deny."""
    from datetime import UTC, datetime

    import msgspec

    from pmagent.actors.guests.judge import judge
    from pmagent.contracts.guest_calls import Situation
    from pmagent.events.event import format_time
    from pmagent.guests.facts import look
    from pmagent.guests.policy import policy_in_force

    root = app.workspace
    facts = look("claude", "", "", agent_type, tool, _input(tool, call), "", str(cwd or root), str(root))
    policy = policy_in_force(root.resolve())
    situation = Situation(mode=mode, labels=list(labels), time=format_time(datetime.now(UTC)))
    verdict = judge(facts, policy, situation)
    document = {"verdict": msgspec.to_builtins(verdict), "facts": msgspec.to_builtins(facts)}
    app.output.answer(format, document, lambda: _explained(app, verdict, document["facts"]))
    return _CODES[verdict.answer]


def _input(tool: str, call: str) -> dict[str, Any]:
    from pmagent.contracts.text import from_json

    if call.lstrip().startswith("{") and tool != "Bash":
        value: dict[str, Any] = from_json(call, "CALL")
        return value
    key = {"Bash": "command", "WebFetch": "url", "WebSearch": "query", "Agent": "subagent_type"}.get(tool, "file_path")
    return {key: call}


def _explained(app: App, verdict: Verdict, facts: dict[str, Any]) -> None:
    app.output.line(_STYLES[verdict.answer], f"  by {', '.join(verdict.rules) or 'nothing'}")
    for reason in verdict.reasons:
        app.output.line(f"    {reason}")
    for mend in verdict.mend:
        app.output.line(Styled("    would change it: ", "cyan"), mend)
    if verdict.answer == "ask" and verdict.approvals > 1:
        app.output.line(f"    {verdict.approvals} operators have to approve")
    for name in ("commands", "reads", "writes", "mentions", "hosts", "unclear"):
        shown = [_shown(one) for one in facts[name]]
        if shown:
            app.output.note(Styled(f"{name}: ", "dim"), "; ".join(shown))


def _shown(one: Any) -> str:
    if isinstance(one, dict):
        words = ("?" if word is None else word for word in one["words"])
        return " ".join([*(f"{name}=…" for name in one["sets"]), *words])
    return str(one)


@command("pmagent policy import claude > .pmagent/policy.yaml", "pmagent policy import codex my.rules")
@click.argument("harness", type=click.Choice(sorted(_PLACES)))
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def take_over(app: App, harness: str, file: Path | None, format: str) -> int:
    """Print a policy with the rules that HARNESS has, from FILE or from where it keeps them. Nothing is written.

    Rules without a counterpart stand in comments; one that forbids makes its whole tool a question."""
    from pmagent.contracts.text import decoded
    from pmagent.guests.policy import BYTES_MAX, BadPolicy
    from pmagent.guests.rule_import import READERS

    home = Path(app.environ.get("HOME", "/"))
    places = [home / one[2:] if one.startswith("~/") else app.workspace / one for one in _PLACES[harness]]
    path = file or next((one for one in places if one.is_file()), None)
    if path is None:
        raise BadPolicy(f"no rules of {harness} are there", f"name the file; looked at {', '.join(map(str, places))}")
    made = READERS[harness](decoded(path.read_bytes(), str(path), BYTES_MAX), str(path))
    for one in made.left_out:
        app.output.note(Styled("left out:", "yellow"), f" {one}")
    document = {"from": str(path), "rules": made.rules, "left_out": made.left_out}
    app.output.answer(format, document, lambda: app.output.block(made.yaml(str(path))))
    return Exit.DONE
