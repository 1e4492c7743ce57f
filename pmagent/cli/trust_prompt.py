"""Accepting a workspace's configuration: unasked (``--trust-workspace``), or by a question on a terminal."""

from __future__ import annotations

from pathlib import Path

from pmagent.cli.inputs import can_answer, confirmed
from pmagent.cli.output import Output, Styled
from pmagent.events.errors import PmagentError

QUESTION = "let the workspace's configuration do this?"


def accept_as_is(workspace: Path, output: Output, *, always_shown: bool = False) -> None:
    """Accept the configuration as it lies there; what is new of it is shown. Raises RegistryUnusable, OSError."""
    from pmagent.workspace.trust import Powers, accept, lines, offer, summary

    found = offer(workspace)
    accept(workspace, found)
    if always_shown or (not found.first and found.new != Powers()):
        for line in summary(found.powers) if always_shown else lines(found.new):
            output.note(f"trusted: {line}")


def ask_to_accept(workspace: Path, output: Output, error: PmagentError) -> bool:
    """Ask on a terminal whether to accept what ``error`` refused; whether it was accepted. The shown version is
    accepted, whatever the files say by then. Raises RegistryUnusable, OSError."""
    from pmagent.workspace.trust import Powers, accept, accept_also, lines, offer, summary

    if not can_answer(output):
        return False
    beyond: Powers | None = getattr(error, "beyond", None)
    found = offer(workspace)
    output.note(Styled("not accepted:", "yellow"), f" {error.message}")
    shown = lines(beyond) if beyond is not None else summary(found.powers) if found.first else lines(found.new)
    for line in shown:
        output.note(f"  {line}")
    if not confirmed(output, QUESTION, "--trust-workspace"):
        return False
    if beyond is not None:
        accept_also(workspace, beyond)
    else:
        accept(workspace, found)
    return True


def show_new(output: Output, new: list[str]) -> None:
    """Show additions, ten at most."""
    if new:
        output.note(Styled("new:", "yellow"), f" {'; '.join(new[:10])}{'; …' if len(new) > 10 else ''}")
