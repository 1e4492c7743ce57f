"""The OPS block as Markdown: title, governance, goal, preflight, commands, evidence to return, next gate; pure.

A person reads it, decides, and runs it. The goal and the risks stay words in their own section, whatever they say:
their text is escaped, and the fence around commands is longer than any run of backticks in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from pmagent.actors.oa.reasoning.rules.text import bounded
from pmagent.contracts.reasoning import OPSBlockGeneratorResult, ReasoningEnvelope, ReasoningResult

TITLE_CHARS: Final = 80
EVIDENCE_CHARS: Final = 300
GIVEN_MAX: Final = 100
"""So many references and hints are listed."""
HEAD_LINES: Final = 50
"""So many lines of a file that a command writes are asked for as evidence."""

_CHECKS: Final = (("pmagent", "status"), ("pmagent", "oa", "guard"), ("pmagent", "doctor"), ("test",))
"""How commands begin that only look: those that a block begins with are its preflight."""

_OPERATOR: Final = re.compile(r"[();<>|&]+")
_WORD: Final = re.compile(
    r"""(?:(?P<operator>[();<>|&]+)|(?P<word>(?:[^\s'"\\();<>|&]|\\.|'[^']*'|"(?:\\.|[^"\\])*")+))\s*"""
)
_MARKUP: Final = re.compile(r"[\\`*\[\]<>#!|~&{}$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINE_START: Final = re.compile(r"^(?:([-+=:])|(\d+)([.)]))")
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
"""Controls, line breaks of every kind, and what reorders or hides text."""


def ops_block(envelope: ReasoningEnvelope, result: ReasoningResult, payload: OPSBlockGeneratorResult) -> str:
    """The block of a result; it says the same as its payload."""
    preflight, work = split_preflight(payload.ops_block)
    sections = [
        f"## 🟦 OPS MODE — {inline(envelope.goal, TITLE_CHARS)}",
        f"**Governance:** {_governance(envelope, result, payload)}", "### Goal",
        inline(envelope.goal) or "Nothing that can be seen.", *_given(envelope), "### Preflight",
        *_preflight(envelope, preflight), "### Commands", *_commands(work, payload), "### Evidence to return",
        _items(evidence_of(payload.ops_block)) or "Nothing: no command is to be run.", "### Next gate",
        _items(_gates(payload.ops_block)),
    ]
    return "\n\n".join(sections) + "\n"


def _given(envelope: ReasoningEnvelope) -> list[str]:
    """References and hints that came with the goal, as they stand, for the person who runs the block."""
    references = _listed(envelope.oa_context.get("ssot_references"))
    hints = [one for one in _listed(envelope.oa_context.get("hints")) if isinstance(one, dict)]
    notes = [f"reference: {one}" for one in references if isinstance(one, str)]
    notes += [f"hint for {_shown(one.get('flow_id'), raw=True)}: {one['hint']}" for one in hints if _is_text(one)]
    return [_items(bounded(text, EVIDENCE_CHARS) for text in notes[:GIVEN_MAX])] if notes else []


def _is_text(hint: dict[str, object]) -> bool:
    return isinstance(hint.get("hint"), str)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def split_preflight(commands: Sequence[str]) -> tuple[list[str], list[str]]:
    """The commands at the beginning that only look, and all from the first other one on."""
    for number, command in enumerate(commands):
        if not _only_looks(command):
            return list(commands[:number]), list(commands[number:])
    return list(commands), []


def _only_looks(command: str) -> bool:
    """Whether the command is one of the checks, and nothing that a shell would do besides."""
    words = _words(command)
    if any(mark in command for mark in ("`", "$(")) or any(_OPERATOR.fullmatch(word) for word in words):
        return False
    return any(tuple(words[: len(check)]) == check for check in _CHECKS)


def evidence_of(commands: Sequence[str]) -> list[str]:
    """The evidence that the person who runs the commands has to bring back, computed from them."""
    asked = []
    for command in commands:
        words = _words(command)
        written = _writes_to(words)
        if command.lstrip().startswith("#"):  # a comment does nothing; what it stands for is done by hand
            asked.append(f"first {HEAD_LINES} lines of each file that was written by hand")
        elif written:
            asked += [f"first {HEAD_LINES} lines of {path}" for path in written]
        elif words[:3] == ["pmagent", "oa", "guard"]:
            asked.append(f"JSON report of: {command}")
        elif words[:1] == ["test"]:
            asked.append(f"exit code of: {command}")
        else:
            asked.append(f"output and exit code of: {command}")
    return [bounded(text, EVIDENCE_CHARS) for text in dict.fromkeys(asked)]


def inline(text: str, length: int | None = None) -> str:
    """The text as one line of Markdown that says the same and is nothing but text; ``length``: cut to so many."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    if length is not None:
        line = bounded(line, length)
    return _LINE_START.sub(_escaped_start, _MARKUP.sub(lambda found: f"\\{found[0]}", line))


def fenced(commands: Sequence[str]) -> str:
    """The commands, one a line, in a fence that none of them can close."""
    longest = max((len(run) for command in commands for run in re.findall("`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}sh", *commands, fence])


def _governance(envelope: ReasoningEnvelope, result: ReasoningResult, payload: OPSBlockGeneratorResult) -> str:
    kernel = envelope.kernel_state_ref
    parts = [
        f"kernel {kernel.mode}", f"phase {_shown(kernel.ssot_index.get('current_phase'))}",
        f"branch {_shown(kernel.bootstrap.get('branch'))}", f"status {result.status}", f"engine {_engine(result)}",
        f"complexity {payload.complexity_score} of 10", f"envelope {envelope.envelope_id}",
    ]
    return " · ".join(parts)


def _preflight(envelope: ReasoningEnvelope, commands: Sequence[str]) -> list[str]:
    kernel = envelope.kernel_state_ref
    reality = "reality green" if kernel.reality_summary.get("reality_green") is True else "reality not green"
    known = _items([
        f"at {envelope.timestamp} the kernel was {kernel.mode}, {reality}; stop if that has become worse",
        f"the branch is {_shown(kernel.bootstrap.get('branch'), raw=True)}",
        "a person has read this block and agrees with every command in it",
    ])
    return [known, fenced(commands)] if commands else [known]


def _commands(work: Sequence[str], payload: OPSBlockGeneratorResult) -> list[str]:
    risk = f"Risk: {inline(payload.risk_analysis)}" if payload.risk_analysis.strip() else ""
    if not payload.ops_block:
        return [text for text in ("None: no block was generated.", risk) if text]
    notes = fenced(work) if work else "None besides the preflight's."
    hidden = "**Careful:** a command holds characters that hide or reorder text; look at its bytes."
    return [notes, *([risk] if risk else []), *([hidden] if any(map(_UNSEEN.search, payload.ops_block)) else [])]


def _gates(commands: Sequence[str]) -> list[str]:
    if not commands:
        return ["success: none", "failure: mend what the risk names, then ask for a new block"]
    return [
        "success: every command ended with exit code 0; return the evidence and ask for the next step",
        "failure: stop at the first command that fails, return its output, and explain it: pmagent oa interpret",
    ]


def _items(texts: Iterable[str]) -> str:
    return "\n".join(f"- {inline(text)}" for text in texts)


def _engine(result: ReasoningResult) -> str:
    for one in result.diagnostics:
        named = one.details.get("engine") if one.category == "engine" else None
        if isinstance(named, str) and named:
            return inline(named, TITLE_CHARS)
    return "none"


def _shown(value: object, *, raw: bool = False) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        return "unknown"
    return str(value) if raw else inline(str(value), TITLE_CHARS)


def _words(command: str) -> list[str]:
    """The command's words, unquoted, and its operators, as a shell would split it; none of one that it could not."""
    words, at = [], 0
    command = command.strip()
    while at < len(command):
        found = _WORD.match(command, at)
        if found is None:
            return []
        words.append(found["operator"] or _unquoted(found["word"]))
        at = found.end()
    return words


def _unquoted(word: str) -> str:
    """The word as a program gets it; an operator in quotes is told from a real one by a blank before it."""
    plain = "".join(shlex.split(word))
    return f" {plain}" if _OPERATOR.fullmatch(plain) else plain


def _writes_to(words: Sequence[str]) -> list[str]:
    """The files that redirections write."""
    return [path for operator, path in pairwise(words) if operator in (">", ">>", ">|", "&>") and path != "/dev/null"]


def _escaped_start(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}"
