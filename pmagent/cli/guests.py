"""``pmagent guests``: agents' sessions; ``approvals``: what waits for a decision; ``note``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from pmagent.clean import shorten
from pmagent.cli.frame import App, command, format_option, same_request
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import acting, ask, is_answered, proof_of, refusal, secret_option
from pmagent.events.errors import PmagentError
from pmagent.exitcodes import Exit
from pmagent.when import duration

if TYPE_CHECKING:
    from pmagent.guests.frequent import Frequent
    from pmagent.guests.what_if import Trial
    from pmagent.service.answer import Answer

FOLDER: Final = "guests"
_PROOFS: Final = {
    "": Styled("▸ open", "cyan"), "gated": Styled("✓ gated", "green"), "in_part": Styled("! gated in part", "red"),
    "not_proven": Styled("! not proven", "yellow"),
}  # fmt: skip
_WENT: Final = {
    "rejected": "rejected by an operator", "deny": "denied", "ask": "asked about", "imported": "imported",
    "allow": "allowed anyway",
}  # fmt: skip
"""How calls went that a rule would have let through."""
_COUNT: Final = 20


class NoSession(PmagentError, exit_code=1):
    """There is no such session, or more than one whose id begins so."""


class _Session(msgspec.Struct, frozen=True):
    """A session's document, as far as a list shows it."""

    session: str
    began: str
    last: str = ""
    harness: str = ""
    mode: str = ""
    wall: str = ""
    proof: str = ""
    unseen: int = 0
    asked: int = 0
    allow: int = 0
    ask: int = 0
    deny: int = 0
    waiting: int = 0


@command("pmagent guests", "pmagent guests 5b0c7a52", "pmagent guests --format json", reads=True)
@click.argument("session", required=False, metavar="[ID]")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(1, 10_000),
    default=_COUNT,
    metavar="N",
    help=f"N at most [default: {_COUNT}].",
)
def guests(app: App, session: str | None, count: int, format: str) -> int:
    """Sessions of agents, those that wait for a decision first; or the session ID: its calls, verdicts and ends.

    ID may be the beginning of an id. pmagent connect puts an agent under control; pmagent guests tail follows all."""
    from pmagent.service.client import held_elsewhere

    if held_elsewhere(app.layout):  # and the reports lie there
        every = msgspec.convert(ask(app, "guests.sessions").document["sessions"], list[_Session])
        if session is not None:
            named = {one.session for one in every if one.session.startswith(session)}
            return _one_elsewhere(app, _called(named or {session}, session), format)
    else:
        ask(app, "guests.written")
        folder = app.workspace / FOLDER
        if session is not None:
            return _one(app, folder, session, format)
        every = [msgspec.json.decode(file.read_bytes(), type=_Session) for file in folder.glob("*.json")]
    found = [one for one in every if one.harness or one.asked]  # others are notes alone
    found.sort(key=lambda one: (one.waiting > 0, not one.proof, one.last), reverse=True)
    document = {"sessions": [msgspec.to_builtins(one) for one in found[:count]], "count": len(found)}
    app.output.answer(format, document, lambda: _screen(app.output, found[:count], len(found)))
    return Exit.DONE


def _called(every: set[str], given: str) -> str:
    """The session whose id begins so. Raises NoSession."""
    named = {name for name in every if name.startswith(given)}
    found = sorted(named & {given} or named)
    if len(found) != 1:
        what = f"{len(found)} sessions have an id that begins so" if found else f"there is no session {given}"
        raise NoSession(what, "pmagent guests lists them")
    return found[0]


def _one_elsewhere(app: App, session: str, format: str) -> int:
    if format == "json":
        app.output.document(ask(app, "guests.sessions", session=session).document)
    else:
        with app.output.paged(wanted=app.pager):
            app.output.block(ask(app, "guests.sessions", session=session, text=True).document["text"].rstrip("\n"))
    return Exit.DONE


def _one(app: App, folder: Path, session: str, format: str) -> int:
    name = _called({file.stem.partition("~")[0] for file in folder.glob("*.json")}, session)
    parts = [file for file in (folder / f"{name}.json", *folder.glob(f"{name}~*.json")) if file.exists()]
    parts.sort(key=lambda file: int(file.stem.partition("~")[2] or 1))
    if format == "json":
        earlier = [str(file.relative_to(app.workspace)) for file in parts[:-1]]
        document = msgspec.json.decode(parts[-1].read_bytes())
        app.output.document({**document, "earlier": earlier} if earlier else document)
    else:
        with app.output.paged(wanted=app.pager):
            for file in parts:
                app.output.block(file.with_suffix(".md").read_text("utf-8").rstrip("\n"))
    return Exit.DONE


def _walled(one: _Session) -> str:
    if not one.wall:
        return ""
    return ", walled, not gated" if one.harness == "script" else ", behind the wall"


def _screen(output: Output, found: list[_Session], count: int) -> None:
    for one in found:
        mark = Styled(f"◦ {one.waiting} waiting", "yellow") if one.waiting else _PROOFS[one.proof]
        unseen = f", {one.unseen} past the gate" if one.unseen else ""
        output.line(mark, f"  {one.session}  {one.harness}, {one.mode}{_walled(one)}, {output.moment(one.last)}: "
                          f"asked {one.asked}, allow {one.allow}, ask {one.ask}, deny {one.deny}{unseen}")  # fmt: skip
    if not found:
        output.line("no agent has been seen here")
        output.note(Styled("hint:", "cyan"), " pmagent connect claude; pmagent import claude reads what there was")
    if count > len(found):
        output.note(f"{count - len(found)} older ones: pmagent guests -n {count}")


@command(
    "pmagent guests tail",
    "pmagent guests tail -n 50 --session 5b0c7a52-1f0e-4f5e-9a53-3d0b8c1f2e77",
    name="guests tail",
    reads=True,
    format=format_option(lines=True),
)
@click.option("-n", "--lines", default="20", metavar="N", help="Begin with the last N events [default: 20].")
@click.option("--session", metavar="ID", help="Only of this session.")
@click.option("--no-follow", is_flag=True, help="End there.")
def tail(_app: App, lines: str, session: str | None, no_follow: bool, format: str) -> int:
    """Follow agents live, one event a line, until Ctrl-C: pmagent log tail, of their events."""
    from pmagent.cli.log.tail import tail as log_tail

    given: dict[str, Any] = dict.fromkeys(("since", "until", "after", "grep", "exit_on", "timeout"), None) | {
        "match": (),
        "exclude": (),
        "actors": (),
        "everything": False,
        "show_cursor": False,
    }
    follow = not no_follow
    code = click.get_current_context().invoke(
        log_tail, lines=lines, follow=follow, types=("guest.*",), correlations=(session,) if session else (),
        format=format, **given,
    )  # fmt: skip
    return int(code)


# --- approvals ------------------------------------------------------------------------------------------------------


@command("pmagent approvals", "pmagent approvals --format json")
def approvals(app: App, format: str) -> int:
    """Calls of agents that wait for a decision, and approvals that were not used yet.

    Proposals to type wait elsewhere: pmagent pla list."""
    answer = ask(app, "guests.approvals")
    app.output.answer(format, answer.document, lambda: _waiting(app.output, answer.document["approvals"]))
    return answer.exit_code


def _waiting(output: Output, items: list[dict[str, Any]]) -> None:
    for one in items:
        mark = Styled("✓ approved, not used", "green") if one["given"] else Styled("◦ waits", "yellow")
        more = f", {len(one['operators'])} of {one['needed']}" if one["needed"] > 1 else ""
        until = output.moment(one["expires"])
        output.line(mark, f"  {one['approval']}  {one['harness']} {one['tool']}{more}, until {until}")
        output.line("    ", Styled(shorten(one["text"], output.columns - 4), "dim"))
    if not items:
        output.line("no call waits for a decision")
    else:
        output.note(Styled("hint:", "cyan"), " pmagent approvals show NUMBER")


@command(
    "pmagent approvals show 4711", "pmagent approvals show 4711 --rule 'Bash(npm run build *)'", name="approvals show"
)
@click.argument("number", type=click.IntRange(1))
@click.option("--rule", default="", metavar="RULE", help="Also what this rule would have let through in 30 days.")
def show(app: App, number: int, rule: str, format: str) -> int:
    """Exactly what the call NUMBER would do, and why it waits. Masked text stays masked here."""
    answer = ask(app, "guests.approvals", approval=number)
    trial = _tried(app, number, rule) if rule else None
    often = _frequent(app, answer.document)
    document = answer.document if trial is None else {**answer.document, "trial": msgspec.to_builtins(trial)}
    document = {**document, "frequent": often._asdict() if often is not None else None}

    def screen() -> None:
        _show(app.output, document)
        if trial is not None:
            _show_trial(app.output, rule, trial)
        elif often is not None:
            since = app.output.moment(often.since)
            app.output.line(f"  often    approved {often.approved} times since {since}, never rejected; try the rule:")
            app.output.line(f"           pmagent approvals show {number} --rule {shlex.quote(often.rule)}")

    app.output.answer(format, document, screen)
    return answer.exit_code


def _frequent(app: App, shown: dict[str, Any]) -> Frequent | None:
    """The template that fits the call. Raises CorruptLog."""
    from pmagent.contracts.guest_calls import Call
    from pmagent.events.log import now
    from pmagent.guests.frequent import frequent

    return frequent(app.layout.store, msgspec.convert(shown["facts"], Call), now())


def _tried(app: App, number: int, rule: str) -> Trial:
    """The calls that the rule would have let through. Raises BadPolicy, CorruptLog."""
    from pmagent.events.log import now
    from pmagent.guests.what_if import policy_shown, try_session_rule

    policy = policy_shown(ask(app, "guests.policy").document)
    return try_session_rule(app.layout.store, policy, rule, number, app.environ.get("HOME", ""), now())


def _show_trial(output: Output, rule: str, trial: Trial) -> None:
    reach = "" if trial.whole else ", the newest"
    output.line(f"  the rule {rule}, on {trial.calls:,} calls since {output.moment(trial.since)}{reach}:")
    output.line(f"    it would have let {trial.let:,} through" + (
        ": " + ", ".join(f"{count:,} {_WENT[was]}" for was, count in trial.was.items()) if trial.let else ""
    ))  # fmt: skip
    for one in trial.first:
        bad = one.was in ("rejected", "deny")
        went = Styled(_WENT[one.was], "red" if bad else "yellow")
        output.line(f"    {one.position:>8}  ", went, f"  {one.tool}  {shorten(one.what, output.columns - 32)}")
    if trial.kept:
        output.line(f"    {trial.kept:,} more stay denied or asked about: rules that forbid precede it")


def _show(output: Output, one: dict[str, Any]) -> None:
    by = f", approved by {', '.join(one['operators'])}" if one["operators"] else ""
    output.line(Styled("✓ approved, not used" if one["given"] else "◦ waits", "yellow"),
                f": {one['approval']}, {one['needed']} operator(s){by}")  # fmt: skip
    who = f"{one['harness']}, session {one['session']}" + (f", subagent {one['agent']}" if one["agent"] else "")
    output.line(f"  agent    {who}")
    output.line(f"  tool     {one['tool']} in {one['cwd']}")
    for line in one["lines"]:
        output.line("    ", Styled(line, {"+": "green", "-": "red"}.get(line[:1], "bold")))
    facts = one["facts"]
    for name in ("reads", "writes", "hosts", "unclear"):
        if facts.get(name):
            output.line(f"  {name:<8} {', '.join(facts[name])}")
    output.line(f"  because  {'; '.join(one['reasons'])} ({', '.join(one['rules'])})")
    if one["resume"]:
        output.line(f"  deferred its session has ended; once this is approved: cd {one['cwd']} && {one['resume']}")
    output.line(f"  digest   {one['digest']}")
    output.line(f"  asked    {output.moment(one['asked'])}, expires {output.moment(one['expires'])}")


@command(
    "pmagent approvals approve 4711",
    "pmagent approvals approve 4711 --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "pmagent approvals approve 4711 --rule 'Bash(npm run build *)' --for 2h --times 5", name="approvals approve",
    operator=True, request=True,
)
@click.argument("number", type=click.IntRange(1))
@click.option("--digest", metavar="HEX", help="The digest that was shown; without it, the call is shown now.")
@click.option("--rule", default="", metavar="RULE", help="Also allow such calls in this session from now on.")
@click.option("--for", "lasting", default="1h", metavar="DURATION", help="For so long, 7 days at most [default: 1h].")
@click.option("--times", type=click.IntRange(1, 1000), metavar="N", help="And for so many calls at most.")
@click.option("--note", default="", metavar="TEXT", help="A note, for the log.")
@secret_option()
def approve(
    app: App,
    number: int,
    digest: str | None,
    rule: str,
    lasting: str,
    times: int | None,
    note: str,
    secret_stdin: bool,
    operator: str | None,
    request: str | None,
    format: str,
) -> int:
    """Let the call NUMBER through, once: the agent that waits goes on, or its identical retry passes.

    On a terminal the call is shown, and what the rule would have let through in the last 30 days; typing yes approves
    it. Elsewhere --digest names what was shown. Exit 1: it was refused, with the reason."""
    if times and not rule:
        raise click.UsageError("--times bounds a rule: say which, with --rule")
    if secret_stdin and digest is None:
        raise click.UsageError("--secret-stdin takes stdin: say what was shown, with --digest")
    who, shown = acting(app, operator), None
    if digest is None:
        shown = ask(app, "guests.approvals", approval=number).document
        if not (is_answered() and app.output.is_seen) or format == "json":
            hint = f"pmagent approvals approve {number} --digest {shown['digest']}"
            raise click.UsageError(f"nobody is shown anything here, so --digest has to say what was shown: {hint}")
        _show(app.output, shown)
        if rule:
            _show_trial(app.output, rule, _tried(app, number, rule))
        if click.prompt("approve it? yes or no", default="no", err=True) != "yes":
            app.output.line("nothing was approved")
            return Exit.NO
        digest = shown["digest"]
    proven = proof_of(app, who, wanted=shown is not None and shown["needed"] > 1, from_stdin=secret_stdin)
    ruled = {"rule": rule, "rule_seconds": duration(lasting), "rule_uses": times or 0} if rule else {}
    answer = ask(app, "guests.answer", approval=number, decision="approve", digest=digest, operator=who, channel="cli",
                 note=note, **ruled, **proven, **same_request(request))  # fmt: skip
    return _answered(app, answer, format)


@command(
    "pmagent approvals reject 4711 --reason 'not on a Friday'", name="approvals reject", operator=True, request=True
)
@click.argument("number", type=click.IntRange(1))
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
def reject(app: App, number: int, reason: str, operator: str | None, request: str | None, format: str) -> int:
    """Refuse the call NUMBER. One that is approved and was not used yet does not pass any more."""
    who = acting(app, operator)
    shown = ask(app, "guests.approvals", approval=number).document
    answer = ask(app, "guests.answer", approval=number, decision="reject", digest=shown["digest"], operator=who,
                 channel="cli", note=reason, **same_request(request))  # fmt: skip
    return _answered(app, answer, format)


def _answered(app: App, answer: Answer, format: str) -> int:
    document = answer.document
    if format == "json":
        app.output.document(document)
    elif not document["answered"]:
        refusal(app.output, f"{document['approval']} stays as it is", document)
    elif "given" not in document:
        app.output.line(Styled("✓ rejected", "green"), f": {document['approval']}")
    elif document["given"] < document["needed"]:
        app.output.line(f"{document['given']} of {document['needed']} operators have approved {document['approval']}")
    else:
        until = app.output.moment(document["expires"])
        app.output.line(Styled("✓ approved", "green"), f": {document['approval']}, one such call passes, until {until}")
    return answer.exit_code


@command("pmagent note 'the migration begins'", "pmagent note --session 5b0c7a52 done", operator=True, request=True)
@click.argument("text")
@click.option("--session", default="notes", metavar="ID", help="The session that it belongs to [default: notes].")
def note(app: App, text: str, session: str, operator: str | None, request: str | None, format: str) -> int:
    """Put TEXT into the log, and into a session's report."""
    answer = ask(app, "guests.note", text=text, session=session, operator=acting(app, operator),
                 **same_request(request))  # fmt: skip
    said = f"noted at position {answer.document['position']}"
    app.output.answer(format, answer.document, lambda: app.output.line(said))
    return answer.exit_code
