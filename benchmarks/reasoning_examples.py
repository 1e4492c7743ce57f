"""How often the engine ``rules`` says what labelled examples expect, program by program, and where it differs, and why.

Usage: python -m benchmarks.reasoning_examples [DIR]     (DIR: *.jsonl files of examples)

It measures agreement, not speed, so ``benchmarks/run.py`` does not list it. Nothing is tuned here: the examples become
envelopes (``recorded_examples``), the engine plans and answers as in a run, and answer and label are compared. The same
is done once more without what recorded tools had answered, to show how much of the agreement those answers carry.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.recorded_examples import Example, read_examples
from pmagent.actors.oa.reasoning.rules.answer import Answer
from pmagent.actors.oa.reasoning.rules.engine import answer, permitted, plan
from pmagent.contracts.reasoning import (
    PROGRAM_IDS,
    OPSBlockGeneratorResult,
    PhaseTransitionValidatorResult,
    SafeOPSDecisionResult,
    check_payload,
)

DEFAULT = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "oa" / "examples"
DENIED = ("ABORT", "NOT_READY")


class Count(msgspec.Struct):
    """How many of those that can be compared agree."""

    agreed: int = 0
    compared: int = 0

    def add(self, said: object, expected: object) -> bool:
        """Count one pair, if the label says anything; whether it agrees (or cannot be compared)."""
        if expected is None or said is None:
            return True
        self.compared += 1
        self.agreed += said == expected
        return said == expected

    @property
    def share(self) -> float:
        """Agreement from 0 to 1 (1 when nothing could be compared)."""
        return self.agreed / self.compared if self.compared else 1.0

    def __str__(self) -> str:
        return f"{self.agreed} of {self.compared} ({self.share:.0%})" if self.compared else "nothing to compare"


class Agreement(msgspec.Struct):
    """One program's agreement with its examples. ``differences``: what differs and the inputs that decided, as one
    text, and where it does."""

    examples: int = 0
    verdict: Count = msgspec.field(default_factory=Count)
    allowed: Count = msgspec.field(default_factory=Count)
    status: Count = msgspec.field(default_factory=Count)
    commands: Count = msgspec.field(default_factory=Count)
    guards_named: int = 0
    differences: dict[str, list[str]] = {}


def main(arguments: Sequence[str]) -> int:
    """Print the agreement. Differences are a result like another (exit code 0); 2: there are no examples."""
    parser = argparse.ArgumentParser(description="Agreement of the engine rules with labelled examples.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT, metavar="DIR")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir() or not any(folder.glob("*.jsonl")):
        print(f"no examples: {folder} holds no *.jsonl; name a folder that does", file=sys.stderr)
        return 2
    examples, unread = read_examples(folder)
    bare, _ = read_examples(folder, recorded=False)
    without = agreement(bare)
    print(f"{len(examples)} examples, {len(unread)} lines that are none")
    for text in unread:
        print(f"  not read: {text}")
    for program, found in agreement(examples).items():
        _tell(program, found, without[program])
    return 0


def agreement(examples: Sequence[Example]) -> dict[str, Agreement]:
    """Program -> how far the engine and the labels agree, for the programs that have examples."""
    found: dict[str, Agreement] = {}
    for one in sorted(examples, key=lambda one: PROGRAM_IDS.index(one.envelope.program_id)):
        _compare(one, answered(one), found.setdefault(one.envelope.program_id, Agreement()))
    return found


def answered(one: Example) -> Answer:
    """The engine's answer to the example, with the tools played back."""
    given = permitted(one.envelope)
    if given is None:
        given = answer(one.envelope, [one.play(tool, args) for tool, args in plan(one.envelope)])
    check_payload(one.envelope.program_id, msgspec.to_builtins(given.payload))
    return given


def status_of(given: Answer) -> str:
    """The status that a run with this answer has."""
    return "BLOCKED" if not given.permitted else "DEGRADED" if given.degraded else "OK"


def verdict_of(given: Answer) -> str | None:
    """The verdict, of the two programs that give one."""
    match given.payload:
        case SafeOPSDecisionResult():
            return given.payload.allowed_action
        case PhaseTransitionValidatorResult():
            return given.payload.transition_status
    return None


def _compare(one: Example, given: Answer, found: Agreement) -> None:
    label, said, status = one.label, verdict_of(given), status_of(given)
    found.examples += 1
    found.guards_named += bool(one.envelope.oa_context.get("guard_name"))
    same = found.verdict.add(said, label.verdict)
    if label.verdict is not None and said is not None:
        found.allowed.add(said not in DENIED, label.verdict not in DENIED)
    same = found.status.add(status, label.status) and same
    if isinstance(given.payload, OPSBlockGeneratorResult):
        same = found.commands.add(bool(given.payload.ops_block), label.has_commands) and same
    if not same:
        expected = " ".join(str(part) for part in (label.verdict, label.status) if part)
        got = " ".join(str(part) for part in (said, status) if part)
        text = f"expected {expected}, answered {got}: {given.rationale[:300]}"
        found.differences.setdefault(text, []).append(one.where)


def _tell(program: str, found: Agreement, bare: Agreement) -> None:
    print(f"\n{program}: {found.examples} examples")
    if found.verdict.compared:
        print(f"  verdict         {found.verdict}   (without recorded answers: {bare.verdict})")
        print(f"  allowed/denied  {found.allowed}   (without recorded answers: {bare.allowed})")
    if found.commands.compared:
        print(f"  some commands   {found.commands}")
        print("  which commands is not compared: those of the labels are of another tool and stand in no input")
    if program == "GuardFailureInterpreter":
        print(f"  guard           named by the input in {found.guards_named} of {found.examples}")
        print(
            "  cause and cure are not compared: where no input holds a report, the label's are its author's invention"
        )
    print(f"  status          {found.status}   (without recorded answers: {bare.status})")
    for text, places in found.differences.items():
        print(f"  - {', '.join(places)}: {text}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
