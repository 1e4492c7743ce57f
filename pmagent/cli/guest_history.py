"""``pmagent import`` and ``pmagent what-if``: what agents did before, and what a policy would have said to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import ask
from pmagent.exitcodes import Exit
from pmagent.when import moment

_RULES_SHOWN = 20


@command("pmagent import claude", "pmagent import codex ~/.codex/sessions", name="import")
@click.argument("harness", type=click.Choice(["claude", "codex", "gemini"]), metavar="HARNESS")
@click.argument("path", required=False, metavar="[PATH]")
def import_(app: App, harness: str, path: str | None, format: str) -> int:
    """Record what HARNESS (claude, codex, gemini) keeps of its sessions in PATH, file or folder [default: its own].

    The sessions are marked as imported: observed by nobody, and gated by nothing. Secrets are masked. Facts that
    the log has already are left out, so a second import adds only new ones."""
    from pmagent.guests.transcripts import home

    folder = Path(path).absolute() if path else home(harness, app.environ)
    answer = ask(app, "guests.import", harness=harness, path=str(folder))
    found = answer.document
    text = f" {found['calls']:,} new calls, {found['sessions']:,} new sessions, {found['files']:,} transcripts"
    if found["not_understood"]:
        text += f"; {found['not_understood']:,} lines are not understood"
    app.output.answer(format, found, lambda: app.output.line(Styled("✓ imported", "green"), text))
    return answer.exit_code


@command("pmagent what-if", "pmagent what-if --policy stricter.yaml --since 30d")
@click.option("--policy", metavar="FILE", help="Instead of the workspace's .pmagent/policy.yaml.")
@click.option("--since", default="", metavar="TIME", help="Only calls since then, like 30d (ago) [default: all].")
def what_if(app: App, policy: str | None, since: str, format: str) -> int:
    """Judge the calls of the log by a policy: how many it would allow, ask about and deny, and which rules decide.

    Live and imported sessions count. Of imported ones mode and branch are not known: a call whose answer hangs on them
    is not evaluable. Exit 3: a call that was allowed would be denied."""
    from pmagent.guests import what_if as trying
    from pmagent.guests.policy import BadPolicy, policy_of, read_policy, rules_of

    read = read_policy(app.workspace, environ=app.environ)
    if policy is not None:
        home = app.environ.get("HOME") or os.path.expanduser("~")
        try:
            layer = rules_of(Path(policy).read_bytes(), "project", policy, home)
        except OSError as error:
            raise BadPolicy(f"{policy} cannot be read: {error.strerror}", "name a policy's file") from None
        read = policy_of([layer if one.name == "project" else one for one in read.layers])
    for one in read.layers:
        if one.problem:
            raise BadPolicy(one.problem, "pmagent policy check")
    from_then = moment(since, app.output.now) if since else ""
    found = trying.document(trying.what_if(app.layout.store, read, from_then))
    app.output.answer(format, found, lambda: _show(app.output, found))
    return Exit.DIVERGED if found["tightened"] else Exit.DONE


def _show(output: Output, found: dict[str, Any]) -> None:
    answers = ", ".join(f"{answer} {found['answers'][answer]:,}" for answer in found["answers"])
    output.line(f"{found['calls']:,} calls ({found['live']:,} live, {found['imported']:,} imported): {answers}")
    if found["not_evaluable"]:
        output.line(f"{found['not_evaluable']:,} not evaluable: their mode or branch is not known")
    rows = [row for row in found["rules"] if row["allow"] + row["ask"] + row["deny"]]
    if rows:
        output.line(Styled("   allow      ask     deny  rule", "dim"))
    for row in rows[:_RULES_SHOWN]:
        counts = f"{row['allow']:>8,} {row['ask']:>8,} {row['deny']:>8,}"
        output.line(Styled(counts, "bold"), f"  {row['rule']}  {row['match']}")
    if dead := len(found["rules"]) - len(rows):
        output.line(f"{dead} rules decided nothing")
    if found["changed"]:
        output.line("")
        output.line(f"{found['changed']:,} live calls would have another answer; the first:")
    for one in found["first"]:
        mark = Styled(f"{one['was']} → {one['would_be']}", "red" if one["would_be"] == "deny" else "yellow")
        output.line(f"  {one['position']:>8}  ", mark, f"  {one['tool']}  {one['what']}  ({', '.join(one['rules'])})")
