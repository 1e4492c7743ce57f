"""``pmagent oa decision|generate|interpret|transition``: the reasoning programs at the shell (docs/design.md §13.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from pmagent.actors.oa.policy import CARE, WORK
from pmagent.cli.frame import App, Decorator, command, format_option, options
from pmagent.cli.oa_reasoning_input import criteria_of, form_from, hints_of, interpreted, laid_over
from pmagent.cli.output import Styled
from pmagent.contracts.reasoning_forms import (
    OPSBlockGeneratorInput,
    PhaseTransitionValidatorInput,
    SafeOPSDecisionInput,
)
from pmagent.exitcodes import Exit
from pmagent.oa.forms import CONSTRAINTS, Input, merged

_constraints = click.option(
    "--constraint", "constraints", multiple=True, metavar="TEXT",
    help="A constraint that holds besides those of CONTEXT.json, e.g. no_git_push (repeatable).",
)


def _shared(goal: str = "") -> Decorator:
    """The options that all four have; ``goal`` is the help of --goal, for those whose forms have none."""
    return options(
        click.option("--input", "given", metavar="FILE", help="Read the form as JSON from FILE; - is stdin."),
        *([click.option("--goal", default="", metavar="TEXT", help=goal)] if goal else []),
        click.option("--engine", type=click.Choice(["rules", "langchain", "dspy"]),
                     help="The engine that answers [default: the setting reasoning.engine]."),
        click.option("--model", metavar="NAME", help="The engine's model, PROVIDER:NAME [default: reasoning.model]."),
        click.option("--fallback/--no-fallback", default=None,
                     help="Whether the rules answer when the engine cannot [default: reasoning.fallback]."),
        click.option("--bridge", is_flag=True, help="Print the whole ReasoningResult instead of the output form."),
        click.option("--envelope", is_flag=True, help="Print the envelope that would be run; run and record nothing."),
        format_option("json", seen="text"),
    )


@command(
    "pmagent oa decision 'Add a page to the manual'",
    "pmagent oa decision 'Tidy the notes' --constraint no_db_writes --format text", format=None,
)
@click.argument("proposed_action", required=False)
@_constraints
@click.option("--action-class", type=click.Choice([*WORK, *CARE]), metavar="CLASS",
              help=f"The class of the action: {', '.join([*WORK, *CARE])}.")
@_shared()
def decision(
    app: App, /, proposed_action: str | None, constraints: Sequence[str], action_class: str | None, given: str | None,
    **asked: Any,
) -> int:
    """Ask whether an action is safe now: ALLOW, CONDITIONAL or DENY, with reasons.

    PROPOSED_ACTION states it in words; or the form SafeOPSDecision comes as JSON from a file or stdin. Exit 1 for DENY,
    8 for CONDITIONAL: the caller must meet its conditions first."""
    form = form_from(SafeOPSDecisionInput, "proposed_action", proposed_action, given)
    classed = {"action_class": action_class} if action_class else {}
    return _answered(app, laid_over(form, oa_context=_constrained(form, constraints) | classed), **asked)


@command(
    "pmagent oa generate 'Refresh the kernel surfaces' --format text",
    "pmagent oa generate 'Run `pmagent log verify` and keep its output' --ref README.md", format=None,
)
@click.argument("goal", required=False)
@_constraints
@click.option("--ref", "refs", multiple=True, metavar="PATH", help="A document about the work (repeatable).")
@click.option("--hint", "hints", multiple=True, metavar="FLOW=HINT", help="Advice for a kind of work (repeatable).")
@_shared()
def generate(
    app: App, /, goal: str | None, constraints: Sequence[str], refs: Sequence[str], hints: Sequence[str],
    given: str | None, **asked: Any,
) -> int:
    """Generate the OPS block that reaches a goal: commands for a person to review and run. Nothing is run here.

    GOAL states it in words; or the form OPSBlockGenerator comes as JSON from a file or stdin. With --format text the
    block is printed as Markdown. Exit 1 when no block is generated.

    Offline (engine rules) it knows two kinds of commands: pmagent's own, which it finds by the goal's words, and those
    that the goal states in backquotes. All else stands in the block as a manual step; a model (--engine langchain)
    proposes commands for it."""
    form = form_from(OPSBlockGeneratorInput, "goal", goal, given)
    more = {
        "ssot_references": [*form.ssot_references, *refs],
        "hints": [*msgspec.to_builtins(form.hints), *hints_of(hints)], "oa_context": _constrained(form, constraints),
    }
    return _answered(app, laid_over(form, **more), **asked)


@command(
    """pmagent oa interpret '{"ok": false, "missing_surfaces": ["share/HANDOFF_KERNEL.json"]}'""",
    """pmagent oa interpret '{"ok": false, "issues": ["oa.kernel_status: timed out"]}' --guard oa_tools""", format=None,
)
@click.argument("guard_output", required=False)
@click.option("--guard", "guard_name", default="", metavar="NAME", help="The guard's name, where its report lacks it.")
@_shared("The question to answer, instead of why the guard failed.")
def interpret(app: App, /, guard_output: str | None, guard_name: str, given: str | None, **asked: Any) -> int:
    """Explain why a guard failed, and what mends it. Works in every mode.

    GUARD_OUTPUT is the guard's report: JSON, or a file that holds it, or - for stdin (also when nothing is given):

        pmagent oa guard | pmagent oa interpret

    The form GuardFailureInterpreter as JSON comes from --input, or stdin.
    """
    form = interpreted(guard_output, given)
    named = {"guard_name": guard_name} if guard_name else {}
    return _answered(app, laid_over(form, **named) if named else form, **asked)


@command("pmagent oa transition 29 --from 28B --criterion 'Tests pass=yes' --envelope", format=None)
@click.argument("proposed_phase", required=False)
@click.option("--from", "current_phase", metavar="PHASE", help="The current phase [default: the kernel's].")
@click.option("--criterion", "criteria", multiple=True, metavar="NAME=yes|no",
              help="Whether a criterion of the current phase is fulfilled (repeatable).")
@_shared("The question to answer, instead of whether the phase may begin.")
def transition(
    app: App, /, proposed_phase: str | None, current_phase: str | None, criteria: Sequence[str], given: str | None,
    **asked: Any,
) -> int:
    """Ask whether the next phase may begin: READY, or NOT_READY with the missing criteria.

    PROPOSED_PHASE is its name; or the form PhaseTransitionValidator comes as JSON from a file or stdin. Exit 1 for
    NOT_READY."""
    form = form_from(PhaseTransitionValidatorInput, "proposed_phase", proposed_phase, given)
    current = {} if current_phase is None else {"current_phase": current_phase}
    checklist = {**form.phase_done_checklist, **criteria_of(criteria)}
    return _answered(app, laid_over(form, phase_done_checklist=checklist, **current), **asked)


def _constrained(form: Input, constraints: Sequence[str]) -> dict[str, Any]:
    """The form's task context, with further constraints."""
    return merged(form.oa_context, {CONSTRAINTS: list(constraints)} if constraints else {})


def _answered(
    app: App, form: Input, *, engine: str | None, model: str | None, fallback: bool | None, bridge: bool,
    envelope: bool, format: str, goal: str = "",
) -> int:
    """Run the form's program and print what it answers; the exit code."""
    from pmagent.cli.oa_reasoning_screen import as_block, by_hand, screen
    from pmagent.oa.forms import exit_code, output_of, task_of, without_surfaces
    from pmagent.oa.reasoning import conclude, envelope_of
    from pmagent.workspace.kernel_settings import expected

    made = envelope_of(task_of(form, goal), workspace=app.workspace)
    if envelope:
        app.output.document(made) if format == "json" else app.output.block(as_block(made))
        return Exit.DONE
    settings = app.resolved.settings.reasoning
    concluded = conclude(made, app.workspace, settings, engine=engine, model=model, fallback=fallback)
    if expected(app.workspace.resolve()) == "none":
        concluded = msgspec.structs.replace(concluded, result=without_surfaces(concluded.result))
    result = concluded.result
    if format == "json":
        app.output.document(result if bridge else output_of(made, result))
    elif bridge:
        app.output.block(as_block(result))
    else:
        screen(app.output, made, concluded)
        if concluded.engine == "rules" and by_hand(result):
            app.output.note(Styled("note:", "yellow"), f" {_OFFLINE}")
    return exit_code(result)


_OFFLINE: Final = (
    "offline only pmagent's own commands and those in backquotes are generated, so the work is a manual step; "
    "state its commands, or ask a model: --engine langchain --model PROVIDER:NAME"
)
