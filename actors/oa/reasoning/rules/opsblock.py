"""OPSBlockGenerator: the commands that reach a goal, for a person to review and run; pure (docs/design.md §13.2).

It invents nothing: a command is stated by the goal or its context, is pmagent's own way to do what the goal asks of it,
or checks that a reference exists. A goal that none of these reaches is a manual step: a comment holds its place between
the checks. A command that a constraint or the rules of blocks forbid refuses the block as a whole: half a block is
another operation than the one that was asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pmagent.actors.oa.policy import allows
from pmagent.actors.oa.reasoning.rules import freshness
from pmagent.actors.oa.reasoning.rules.actions import classified
from pmagent.actors.oa.reasoning.rules.answer import DIAGNOSTICS_MAX, Answer, Evidence, Making, finding
from pmagent.actors.oa.reasoning.rules.commands import danger, judged, score
from pmagent.actors.oa.reasoning.rules.constraints import hits, read
from pmagent.actors.oa.reasoning.rules.evidence import weighed
from pmagent.actors.oa.reasoning.rules.facts import REFRESH, Facts, forbidden, gather, listing, mapping
from pmagent.actors.oa.reasoning.rules.goal_commands import intended, stated, without_commands
from pmagent.actors.oa.reasoning.rules.safeops import refused
from pmagent.actors.oa.reasoning.rules.text import bounded, is_printable, listed, quoted
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import COMMAND_CHARS_MAX, COMMANDS_MAX, OPSBlockGeneratorResult, ReasoningEnvelope

PROGRAM = "OPSBlockGenerator"

PREFLIGHT = ("pmagent status", "pmagent oa guard --mode STRICT")
CLOSING = ("pmagent kernel refresh", "pmagent oa snapshot", "pmagent oa guard --mode STRICT")
"""The guard comes last: it compares STATE.json with the surfaces, and both have to be of now."""

REFERENCE_KEYS = ("ssot_references", "references")
MANUAL = "the work between the checks is a manual step: the goal states no command"
MANUAL_STEP = "# manual step: "
"""How the line of a block begins that holds the place of work without a command; a shell takes it for a comment."""


class _Block(Making):
    """A block while it is made."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts.diagnostics)
        self.work: list[str] = []
        self.references: list[str] = []
        self.objections: list[OADiagnostic] = []

    def object(self, message: str, mend: str) -> None:
        """Something forbids the block as a whole."""
        self.objections.append(finding("policy", "block", message, mend))


def answer(envelope: ReasoningEnvelope, evidence: Sequence[Evidence]) -> Answer:
    """The block for the envelope's goal, or why there is none."""
    facts = gather(envelope, evidence)
    if objections := forbidden(facts, PROGRAM):
        return refused(PROGRAM, objections)
    if not allows(facts.mode, "ops_blocks"):
        message = f"mode {facts.mode} forbids ops_blocks: {listed(facts.why)}"
        return refused(PROGRAM, [finding("policy", "block", message, listed(facts.mends) or REFRESH)])
    block = _Block(facts)
    _inputs(block, envelope, facts)
    _stated(block, envelope)
    _references(block, envelope.oa_context)
    _hints(block, envelope.oa_context.get("hints"))
    _objections(block, envelope)
    if block.objections:
        return refused(PROGRAM, [*block.objections, *block.diagnostics][:DIAGNOSTICS_MAX])
    stakes = classified(without_commands(envelope.goal), {}, envelope.timestamp).stakes
    return _concluded(block, " ".join(quoted(envelope.goal).split()), stakes)


def _inputs(block: _Block, envelope: ReasoningEnvelope, facts: Facts) -> None:
    """Inputs that are missing or speak against the block make flaws of it: it is still one to review, and says so."""
    for why in facts.unproven.values():
        block.flaw(why, "allow the tool, and let it answer", "tool")
    if facts.mode != "NORMAL":
        block.flaw(f"mode {facts.mode}: {listed(facts.why)}", REFRESH)
    found = freshness.of_reality(envelope, facts)
    if found.state == "stale":
        block.flaw(found.why, REFRESH)
    against, problems = weighed(envelope, facts)
    for what in [*(one.what for one in against), *(problem.message for problem in problems)]:
        block.flaw(what, "mend it before the block is run")


def _stated(block: _Block, envelope: ReasoningEnvelope) -> None:
    commands, flaws = stated(envelope.goal, envelope.oa_context)
    for flaw in flaws[:DIAGNOSTICS_MAX]:
        block.flaw(flaw, "state each command as one line of text")
    prose = without_commands(envelope.goal)
    block.work = list(dict.fromkeys([*intended(prose), *commands]))
    if len(block.work) > COMMANDS_MAX - len(PREFLIGHT) - len(CLOSING):
        block.object(f"{len(block.work)} commands are more than a block may hold", "split the goal into several blocks")
    if not block.work:
        block.flaw(MANUAL, "state the commands: in backquotes in the goal, or in oa_context.commands")


def _references(block: _Block, context: dict[str, Any]) -> None:
    for key in REFERENCE_KEYS:
        given = context.get(key)
        if given is not None and not isinstance(given, list):
            block.flaw(f"oa_context.{key} is {quoted(given)}, not a list of paths")
        for reference in listing(given):
            if not isinstance(reference, str) or not reference.strip() or not is_printable(reference):
                block.flaw(f"oa_context.{key} holds {quoted(reference)}, which is no path")
                continue
            path = reference.strip().split("#")[0]
            check = f"test -f {shlex.quote(path if not path.startswith('-') else './' + path)}"
            if len(check) > COMMAND_CHARS_MAX:
                block.flaw(f"oa_context.{key} holds a path that is too long: {quoted(reference)}")
            elif "://" not in reference:
                block.references.append(check)


def _hints(block: _Block, given: Any) -> None:
    """Advice for whoever runs the block: told as it stands. It is nothing that could be run."""
    if given is not None and not isinstance(given, list):
        block.flaw(f"oa_context.hints is {quoted(given)}, not a list")
    for entry in listing(given):
        hint = mapping(entry).get("hint")
        if not isinstance(hint, str):
            block.flaw(f"oa_context.hints holds {quoted(entry)}, which is no hint")
            continue
        block.note("evidence", "info", f"hint for {quoted(mapping(entry).get('flow_id'), 80)}: {quoted(hint)}")


def _objections(block: _Block, envelope: ReasoningEnvelope) -> None:
    texts, wrong = read(envelope.oa_context.get("constraints"))
    if wrong:
        block.flaw(wrong, "state the constraints as a list of texts")
    for command in block.work:
        why, doubts = judged(command, texts)
        if why:
            block.object(f"refused: {quoted(command)}: {why}", "leave the command out, or lift what forbids it")
        for hit in doubts:
            block.flaw(f"{quoted(command)}: {hit.what}", "confirm it before the block is run")
    for hit in hits(texts, without_commands(envelope.goal)):
        if hit.sure:
            block.object(f"refused: the goal: {hit.what}", "change the goal")


def _concluded(block: _Block, goal: str, stakes: list[str]) -> Answer:
    """``goal`` is what is to be done by hand where there is no command for it; ``stakes`` what makes it high-impact.
    Work that a check beside it does is not done twice in a row."""
    references = list(dict.fromkeys(block.references))
    work = block.work or [MANUAL_STEP + goal]
    room = COMMANDS_MAX - len(PREFLIGHT) - len(CLOSING) - len(work)
    if len(references) > room:
        block.flaw(f"{len(references) - room} references are left unchecked: a block holds {COMMANDS_MAX} commands")
    commands = [one for one, _ in groupby([*PREFLIGHT, *references[:room], *work, *CLOSING])]
    risks = [*stakes, *risky(block.work)]
    for risk in risks[:50]:
        block.note("evidence", "warn", risk, "review it, and take a backup first")
    analysis = listed(risks) if risks else "no command is known to destroy or publish anything"
    summary = f"{len(block.work)} commands for the goal, between {len(PREFLIGHT)} and {len(CLOSING)} checks; {analysis}"
    if not block.work:
        analysis = listed([*stakes, "what the manual step risks is for whoever does it to judge"])
        before = len(PREFLIGHT) + len(references[:room])
        summary = f"a manual step between {before} checks before and {len(CLOSING)} after"
    stated = [
        diagnostic.message
        for diagnostic in block.diagnostics
        if diagnostic.message not in risks and diagnostic.severity != "info"
    ]
    inputs = f"inputs: {listed(stated)}" if stated else "the inputs are in order"
    payload = OPSBlockGeneratorResult(
        ops_block=commands, complexity_score=score(commands), risk_analysis=bounded(analysis)
    )
    return block.answer(payload, f"{summary}; {inputs}")


def risky(commands: list[str]) -> list[str]:
    """The effect of each risky command, the command named; in their order."""
    return [f"{quoted(command)}: {', '.join(found.risks)}" for command in commands if (found := danger(command)).risks]
