"""``pmagent oa snapshot|guard`` and ``pmagent boot oa`` (docs/design.md §12)."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

from pmagent.cli.frame import App, command, format_option, same_request
from pmagent.cli.output import Output, Styled, warned
from pmagent.exitcodes import Exit

_STYLES = {"NORMAL": "green", "DEGRADED": "yellow", "BLOCKED": "red"}


def mode_piece(mode: object) -> Styled:
    """A mode in its colour."""
    return Styled(str(mode or "unknown"), _STYLES.get(str(mode), "dim"))


@command("pmagent oa snapshot", "pmagent oa snapshot --format json", request=True)
def snapshot(app: App, request: str | None, format: str) -> int:
    """Read the kernel surfaces and bring STATE.json up to them.

    Exit 1, and STATE.json left as it was, when a required surface is missing or invalid.
    """
    from pmagent.service.operations import call

    answer = warned(app.output, call(app.workspace, "oa.snapshot", same_request(request), app.output.note))
    app.output.answer(format, answer.document, lambda: _snapshot_screen(app.output, answer.document))
    return answer.exit_code


def _snapshot_screen(output: Output, document: dict[str, Any]) -> None:
    if not document["success"]:
        output.line(Styled("✗ refused", "red"), f": {document['path']} is left as it was")
        output.line(f"  {document.get('error', '')}")
        return
    state = document["state"]
    if not state:
        output.line(Styled("✓ taken", "green"), f": {document['path']} is as it was")
        return
    output.line(Styled("✓ taken", "green"), f": {document['path']}")
    reality = Styled("✓ green", "green") if state["reality_green"] else Styled("✗ not green", "red")
    if state.get("kernel_surfaces") == "none":
        output.line("  no kernel surfaces: mode is not computed")
    else:
        output.line(f"  branch    {state['branch']}")
        output.line(f"  phase     {state['current_phase']}, last completed: {state['last_completed_phase'] or 'none'}")
        output.line("  reality   ", reality)
    for check in state["checks_summary"]:
        mark = {True: Styled("✓", "green"), False: Styled("✗", "red")}.get(check["passed"], "-")
        output.line("            ", mark, f" {check['name']}")
    place = state["log"]
    output.line(Styled(f"  log       position {place['position']} of {place['log_id']}", "dim"))


@command(
    "pmagent oa guard --mode HINT", "pmagent oa guard --name surface_schema", format=format_option("json"), reads=True,
)
@click.option("--mode", type=click.Choice(["STRICT", "HINT"]), default="STRICT", show_default=True,
              help="STRICT: exit 1 when it fails. HINT: exit 0; the report says the truth in both.")
@click.option("--name", default="oa_state", show_default=True, metavar="GUARD", help="The guard to run.")
def guard(app: App, mode: str, name: str, format: str) -> int:
    """Run a guard over the current surfaces, documents and log. It writes nothing.

    A guard of [guards] in .pmagent/config.toml is a program: it runs in the read-only sandbox, without network, and
    passes with exit code 0. Its output is in the log."""
    from pmagent.oa.guards.table import GUARDS
    from pmagent.oa.tools import run_guard
    from pmagent.workspace.settings_programs import normalized

    guards = (*GUARDS, *app.resolved.guards)
    if normalized(name) not in guards:
        near = get_close_matches(normalized(name), guards, 1)
        known = f"did you mean {near[0]}?" if near else f"guards: {', '.join(guards)}"
        raise click.UsageError(f"there is no guard {name!r}; {known}", click.get_current_context())
    report = run_guard(name, app.workspace, "HINT" if mode == "HINT" else "STRICT")
    app.output.answer(format, report, lambda: _guard_screen(app.output, normalized(name), report))
    return Exit.NO if mode == "STRICT" and not report["ok"] else Exit.DONE


def _guard_screen(output: Output, name: str, report: dict[str, Any]) -> None:
    verdict = Styled("✓ passed", "green") if report["ok"] else Styled("✗ failed", "red")
    output.line(verdict, f": {name}, {report['mode']}")
    for mismatch in report["mismatches"]:
        surfaces = " and ".join(mismatch["surfaces"])
        output.line(f"  {mismatch['check']}: {mismatch['expected']!r} is not {mismatch['actual']!r} ({surfaces})")
    for path in report["missing_surfaces"]:
        output.line(f"  {path}: missing or not valid")
    for diagnostic in report.get("diagnostics", ()):
        if diagnostic["remediation"]:
            output.line(Styled(f"  {diagnostic['message']}; mend: {diagnostic['remediation']}", "dim"))


@command("pmagent oa release 42 --holder claude-code", request=True)
@click.argument("permit", type=click.IntRange(min=1))
@click.option("--holder", required=True, metavar="NAME", help="The name that the permit was granted to.")
def release(app: App, permit: int, holder: str, request: str | None, format: str) -> int:
    """Give back the permit that was granted at position PERMIT.

    Nothing starts under it any more, and what runs under it is stopped.

    Exit 1 when it is not live, or is held by another.
    """
    from pmagent.service.operations import call

    arguments = {"permit": permit, "holder": holder, **same_request(request)}
    answer = warned(app.output, call(app.workspace, "oa.permit_release", arguments, app.output.note))
    app.output.answer(format, answer.document, lambda: _release_screen(app.output, answer.document))
    return answer.exit_code


def _release_screen(output: Output, document: dict[str, Any]) -> None:
    if document["released"]:
        output.line(Styled("✓ released", "green"), f": permit {document['permit']}")
        return
    output.line(Styled("✗ refused", "red"), f": {'; '.join(document['reasons'])}")
    output.note(Styled("hint:", "cyan"), f" {'; '.join(document['mend'])}")


@command("pmagent boot oa --format json", request=True)
def boot(app: App, request: str | None, format: str) -> int:
    """Boot an OA session and print its envelope.

    DEGRADED boots with a warning; BLOCKED is refused: exit 1, with the reasons.
    """
    from pmagent.service.operations import call

    answer = warned(app.output, call(app.workspace, "boot.oa", same_request(request), app.output.note))
    app.output.answer(format, answer.document, lambda: _boot_screen(app.output, answer.document))
    return answer.exit_code


def _boot_screen(output: Output, document: dict[str, Any]) -> None:
    envelope = document.get("oa_boot_envelope")
    if envelope is None:
        output.line(Styled("✗ refused", "red"), ": the kernel is ", mode_piece(document.get("mode")))
        for reason in document.get("reasons", ()):
            output.line(f"  {reason}")
        output.note(Styled("hint:", "cyan"), " pmagent status names what would mend each reason")
        return
    kernel, session, may = envelope["kernel"], envelope["session_metadata"], envelope["interpretation"]
    output.line(Styled("✓ booted", "green"), f": {session['session_id']}")
    place = f", phase {kernel['phase'] or '-'}, branch {kernel['branch'] or '-'}"
    output.line("  mode       ", mode_piece(kernel["mode"]), place)
    output.line(f"  workspace  {session['workspace']}")
    output.line(f"  allowed    {', '.join(may['allowed_actions']) or 'nothing'}")
    output.line(f"  forbidden  {', '.join(may['forbidden_actions']) or 'nothing of the known'}")
    for recommended in may["recommended_commands"]:
        output.line(f"  recommended: {recommended}")
