"""``pmagent up`` and ``pmagent status``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from pmagent.clean import shorten
from pmagent.cli.frame import App, command
from pmagent.cli.oa import mode_piece
from pmagent.cli.output import Output, Styled, warned
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit
from pmagent.when import spoken

if TYPE_CHECKING:
    from pmagent.events.store import Sharing
    from pmagent.service.host import Host


STOP_SECONDS: Final = 60.0
"""So long ``down`` waits for the daemon's end."""


@command("pmagent up", "pmagent up --detach", format=None)
@click.option("-d", "--detach", is_flag=True, help="Start it in the background, and return when it is ready.")
@click.option("--standby", is_flag=True,
              help="While another machine's daemon holds the log in PostgreSQL: follow it, and take it over.")
def up(app: App, detach: bool, standby: bool) -> int:
    """Run the daemon in the foreground until SIGTERM or Ctrl-C; then stop in order.

    It watches the kernel surfaces, keeps STATE.json up to date, answers other commands on its socket, and serves the
    operator console: `pmagent console` prints the address."""
    from pmagent.cli.messages import log_through
    from pmagent.service.daemon import serve

    if detach:
        return _started(app, *(("--standby",) if standby else ()))
    log_through(app.output)

    served = app.resolved.settings.console.enabled

    def ready(_host: Host) -> None:
        console = "pmagent console, " if served else ""
        app.output.note(f"ready; in another shell: {console}pmagent log tail -f, pmagent status")

    return serve(app.workspace, ready, standby=standby)


def _started(app: App, *options: str) -> int:
    from pmagent.service.background import OUTPUT, start
    from pmagent.workspace.trust import require_accepted

    require_accepted(app.workspace.resolve())  # asked for here: the daemon has no terminal
    pid = start(app.workspace.resolve(), *options)
    app.output.line(Styled("✓", "green"), f" ready, pid {pid}; its messages: {app.layout.home / OUTPUT}")
    return Exit.DONE


@command("pmagent down", format=None)
@click.option("--timeout", type=click.FloatRange(min=0), default=STOP_SECONDS, show_default=True, metavar="SECONDS",
              help="Wait no longer for its end; exit 6 then.")
def down(app: App, timeout: float) -> int:
    """Stop the daemon in order, and wait for its end."""
    from pmagent.service.background import stop

    pid = stop(app.workspace.resolve(), timeout)
    app.output.line("not running" if pid is None else f"stopped, pid {pid}")
    return Exit.DONE


@command("pmagent restart", format=None)
def restart(app: App) -> int:
    """Stop the daemon in order, if one runs, and start one in the background: with settings as they are now."""
    from pmagent.service.background import stop

    stop(app.workspace.resolve(), STOP_SECONDS)
    return _started(app)


_STANDBY: Final = click.option("--standby", is_flag=True, help="Its daemon stands by while another one holds the log.")


@command("pmagent service install", format=None)
@_STANDBY
def service_install(app: App, standby: bool) -> int:
    """Write a unit for systemd's user manager that keeps this workspace's daemon running.

    Nothing is enabled: the commands that do so are shown. `loginctl enable-linger` keeps it running after logout."""
    from pmagent.events.atomic import write_atomic
    from pmagent.service.background import unit, unit_file

    workspace = app.workspace.resolve()
    file = unit_file(workspace, app.environ)
    content = unit(workspace, *(("--standby",) if standby else ())).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, content)
    app.output.line(Styled("✓", "green"), f" {file}")
    app.output.note("next: systemctl --user daemon-reload")
    app.output.note(f"      systemctl --user enable --now '{file.name}'")
    return Exit.DONE


@command("pmagent service show", format=None)
@_STANDBY
def service_show(app: App, standby: bool) -> int:
    """Print the unit that `pmagent service install` writes."""
    from pmagent.service.background import unit

    app.output.block(unit(app.workspace.resolve(), *(("--standby",) if standby else ())).rstrip())
    return Exit.DONE


@command("pmagent status", "pmagent status --format json")
@click.option("--require-daemon", is_flag=True, help="Exit 5 when no daemon runs.")
def status(app: App, require_daemon: bool, format: str) -> int:
    """Daemon, mode and its reasons, sessions, open effects, the log's end. Works without a daemon, and says so.

    A daemon that does not answer within 1.5 s is shown as unresponsive (JSON: "daemon"), and the log answers in its
    place; the exit code is then 0, as for any view of the log.

    The log's end comes from HEAD; `pmagent log verify` shows whether the whole log is intact."""
    from pmagent.alerts.ledger import troubles

    code, found = _found(app)
    document = {
        "workspace": str(app.workspace), **found, "holder": _holder(app), "notifications": troubles(app.layout),
        "lease": msgspec.to_builtins(_sharing(app)),
    }  # fmt: skip
    app.output.answer(format, document, lambda: _screen(app.output, document))
    if require_daemon and not document["running"]:
        hangs = document["daemon"] != "none"
        what = "the daemon does not answer" if hangs else "no daemon runs in this workspace"
        app.output.note(Styled("error:", "red"), f" {what}")
        app.output.note(Styled("hint:", "cyan"), " pmagent doctor looks closer" if hangs else " start it: pmagent up")
        return Exit.UNREACHABLE
    return code


def _found(app: App) -> tuple[int, dict[str, Any]]:
    """The exit code, and the status of the daemon or the log."""
    if not app.layout.store.holder().live:
        from pmagent.service.noted import noted_status

        if (noted := noted_status(app.workspace)) is not None:
            return Exit.DONE, noted
    from pmagent.service.operations import call

    answer = warned(app.output, call(app.workspace, "status", {}, app.output.note))
    return answer.exit_code, answer.document


def _sharing(app: App) -> Sharing | None:
    """The lease, if several machines can reach the log; None, too, while its database is away."""
    try:
        return app.layout.store.sharing()
    except PmagentError as error:
        app.output.note(Styled("warning:", "yellow"), f" {error.message}")
        return None


def _holder(app: App) -> str | None:
    """The record that the log's holder wrote about itself; None when there is no holder."""
    holder = app.layout.store.holder()
    return (holder.note or "an unknown process") if holder.live else None


_SIGNS: Final = (".pmagent", "orchestra.config.yaml")
"""Without any of these nothing is configured, so there is nothing to accept."""


def _screen(output: Output, document: dict[str, Any]) -> None:
    output.line("daemon     ", *daemon_pieces(document["daemon"], document["holder"]))
    output.line(f"workspace  {document['workspace']}")
    reasons = document["reasons"]
    if [reason.get("code") for reason in reasons] == ["no_surfaces"]:
        output.line(f"mode       {reasons.pop()['text']}")
    else:
        place = f", phase {document['phase'] or 'unknown'}, branch {document['branch'] or 'unknown'}"
        output.line("mode       ", mode_piece(document["mode"]), place)
    for reason in reasons:
        mend = f"; mend: {reason['mend']}" if reason["mend"] else ""
        output.line(f"           {reason['text']}", Styled(mend, "dim"))
    if pause := document["paused"]:
        why = f": {pause['reason']}" if pause["reason"] else ""
        text = f" by {pause['operator_id']}, {output.moment(pause['time'])}{why}; {document['held']} effect(s) wait"
        output.line("effects    ", Styled("✗ paused", "red"), text, Styled("; pmagent resume", "dim"))
    _alert_line(output, document.get("alerts") or {})
    for trouble in document.get("notifications", ()):
        output.line(Styled("✗ notify", "red"), f"   {trouble}; pmagent notify test")
    _log_lines(output, document["log"])
    _lease_lines(output, document.get("lease"))
    if document.get("distrust"):
        output.line(Styled("✗ not trusted", "red"), f" {document['distrust']}")
    root = Path(document["workspace"])
    if document.get("unaccepted") and any((root / name).exists() for name in _SIGNS):
        output.line(Styled("✗ not accepted", "red"), f" {document['unaccepted']}")
    output.line(f"sessions   {len(document['sessions'])}, permits {document['permits']}")
    for session in document["sessions"]:
        output.line(f"           {session['session_id']}, booted in {session['boot_mode']}")
    _work_lines(output, document)
    for name in document["halted"]:
        output.line(Styled("✗ halted", "red"), f"   {name}; pmagent log tail --type actor.halted")
    for halt in document.get("stale", ()):  # an older daemon has none
        text = f"{halt['projection']}, since position {halt['since']}: {halt['error']} in {halt['place']}"
        output.line(Styled("✗ stale", "red"), f"    documents of {text}")
    unwritten = document.get("unwritten") or {"count": 0, "first": []}
    for one in unwritten["first"]:
        output.line(Styled("✗ unwritten", "red"), f" {one['path']}{': ' if one['path'] else ''}{one['text']}")
    if unwritten["count"] > len(unwritten["first"]):
        output.line(f"            … and {unwritten['count'] - len(unwritten['first'])} more documents")


_DAEMON: Final = {
    "running": ("✓ running", "green"), "unresponsive": ("✗ does not answer", "red"),
    "starting": ("- starting", "yellow"), "elsewhere": ("✓ on another machine", "green"),
}  # fmt: skip


def daemon_pieces(daemon: str, holder: str | None) -> tuple[Styled, str]:
    """How the daemon stands, by the key ``daemon`` of a status, and who holds the log."""
    text, style = _DAEMON.get(daemon, ("- not running", "yellow"))
    whose = f" ({holder})" if holder else ""
    return Styled(text, style), whose if daemon == "running" else f"{whose}; this is what the log says"


def _alert_line(output: Output, alerts: dict[str, Any]) -> None:
    """Open alerts and requests, if there are any."""
    words = {"urgent": "urgent", "request": "waiting for a decision", "bad": "bad", "warn": "warning"}
    if found := [f"{alerts[name]} {word}" for name, word in words.items() if alerts.get(name)]:
        style = "red" if alerts["urgent"] or alerts["bad"] else "yellow"
        output.line("alerts     ", Styled(", ".join(found), style), Styled("; pmagent alerts", "dim"))


def _log_lines(output: Output, log: dict[str, Any]) -> None:
    if log["position"]:
        output.line(f"log        position {log['position']} ({output.moment(log['time'] or '')}), log {log['log_id']}")
        if log.get("ahead_s"):
            text = f"its time stands {spoken(log['ahead_s'])} ahead of this machine's clock; nothing waits for it"
            output.line("           ", Styled(text, "yellow"))
        output.line(Styled(f"           sum {log['sum']}", "dim"))
    else:
        output.line("log        none yet: after pmagent init, pmagent up or pmagent oa snapshot begins it")


def _lease_lines(output: Output, lease: dict[str, Any] | None) -> None:
    """The lease of a log that several machines can reach, and its standbys."""
    if lease is None:
        return
    left = "released" if lease["released"] else f"{lease['left_s']:.0f} of {lease['length_s']:.0f} s left"
    since = f", since {output.moment(lease['since'])}" if lease["since"] else ""
    output.line(f"lease      {lease['holder']}{since}, {left}; epoch {lease['epoch']}, {lease['mode']}")
    for one in lease["standbys"]:
        behind = max(0, lease["position"] - one["position"])
        output.line(f"standby    {one['note']}, at position {one['position']}, {behind} behind")


def _work_lines(output: Output, document: dict[str, Any]) -> None:
    """Open runs and audits, and open effects."""
    for job in document["jobs"]:
        text = f"{job['kind']:<10} {job['id']}, {job['doing']}: "
        output.line(text, shorten(job["what"], output.columns - len(text)))
    for effect in document["open_effects"]:
        held = Styled(", held", "yellow") if effect["held"] else Styled("", "dim")
        since = f"since {output.moment(effect['since'])}"
        output.line(f"effect     {effect['type']} of position {effect['position']}, {since}", held)
