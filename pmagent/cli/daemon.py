"""``pmagent up`` and ``pmagent status``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pmagent.clean import shorten
from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.oa import mode_piece
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit
from pmagent.when import short

if TYPE_CHECKING:
    from pmagent.host import Host


@click.command(cls=Command, example="pmagent up")
@pass_app
def up(app: App) -> int:
    """Run the daemon in the foreground, until SIGTERM or Ctrl-C; then stop in order.

    It watches the kernel surfaces, keeps STATE.json up to them, answers other commands on its socket, and serves the
    operator console: `pmagent console` prints the address that lets you in.
    """
    from pmagent.cli.messages import log_through
    from pmagent.daemon import serve

    log_through(app.output)

    served = app.resolved.settings.console.enabled

    def ready(_host: Host) -> None:
        console = "pmagent console, " if served else ""
        app.output.note(f"ready; in another shell: {console}pmagent log tail -f, pmagent status")

    return serve(app.workspace, ready)


@click.command(cls=Command, example=["pmagent status", "pmagent status --format json"])
@click.option("--require-daemon", is_flag=True, help="Exit 5 when no daemon runs.")
@format_option()
@pass_app
def status(app: App, require_daemon: bool, format: str) -> int:
    """Daemon, mode and its reasons, sessions, open effects, the log's end. Works without a daemon, and says so.

    The log's end is what HEAD notes; whether the whole log is intact is told by pmagent log verify.
    """
    from pmagent.operations import call

    answer = call(app.workspace, "status", {})
    document = {"workspace": str(app.workspace), **answer.document, "holder": _holder(app)}
    if format == "json":
        app.output.document(document)
    else:
        _screen(app.output, document)
    if require_daemon and not document["running"]:
        app.output.note(Styled("error:", "red"), " no daemon runs in this workspace")
        app.output.note(Styled("hint:", "cyan"), " start it: pmagent up")
        return Exit.UNREACHABLE
    return answer.exit_code


def _holder(app: App) -> str | None:
    """What the process that holds the log wrote about itself; None when none does."""
    from events.lock import is_locked

    try:
        return app.layout.lock.read_text("utf-8", "replace").strip() if is_locked(app.layout.lock) else None
    except OSError:
        return None


def _screen(output: Output, document: dict[str, Any]) -> None:
    running = Styled("✓ running", "green") if document["running"] else Styled("- not running", "yellow")
    said = f" ({document['holder']})" if document["holder"] else "; this is what the log says"
    output.line("daemon     ", running, said)
    output.line(f"workspace  {document['workspace']}")
    place = f", phase {document['phase'] or 'unknown'}, branch {document['branch'] or 'unknown'}"
    output.line("mode       ", mode_piece(document["mode"]), place)
    for reason in document["reasons"]:
        mend = f"; mend: {reason['mend']}" if reason["mend"] else ""
        output.line(f"           {reason['text']}", Styled(mend, "dim"))
    pause = document["paused"]
    if pause:
        why = f": {pause['reason']}" if pause["reason"] else ""
        said = f" by {pause['operator_id']}, {short(pause['time'])} UTC{why}; {document['held']} effect(s) wait"
        output.line("effects    ", Styled("✗ paused", "red"), said, Styled("; pmagent resume", "dim"))
    _log_lines(output, document["log"])
    if document.get("distrust"):
        output.line(Styled("✗ not trusted", "red"), f" {document['distrust']}")
    if document.get("unaccepted"):
        output.line(Styled("✗ not accepted", "red"), f" {document['unaccepted']}")
    output.line(f"sessions   {len(document['sessions'])}, permits {document['permits']}")
    for session in document["sessions"]:
        output.line(f"           {session['session_id']}, booted in {session['boot_mode']}")
    _work_lines(output, document)
    for name in document["halted"]:
        output.line(Styled("✗ halted", "red"), f"   {name}; pmagent log tail --type actor.halted")


def _log_lines(output: Output, log: dict[str, Any]) -> None:
    if log["position"]:
        output.line(f"log        position {log['position']} ({short(log['time'] or '')} UTC), log {log['log_id']}")
        output.line(Styled(f"           sum {log['sum']}", "dim"))
    else:
        output.line("log        none yet: after pmagent init, pmagent up or pmagent oa snapshot begins it")


def _work_lines(output: Output, document: dict[str, Any]) -> None:
    """Open runs and audits, and open effects."""
    for job in document["jobs"]:
        said = f"{job['kind']:<10} {job['id']}, {job['doing']}: "
        output.line(said, shorten(job["what"], output.columns - len(said)))
    for effect in document["open_effects"]:
        held = Styled(", held", "yellow") if effect["held"] else Styled("", "dim")
        since = f"since {short(effect['since'])} UTC"
        output.line(f"effect     {effect['type']} of position {effect['position']}, {since}", held)
