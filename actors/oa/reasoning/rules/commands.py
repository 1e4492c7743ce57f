"""What a command line would do that a person has to know before running it; pure, by general patterns.

Nothing here runs anything. A command of a forbidden kind is never part of a block; one that can destroy is kept, named,
and counted.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from pmagent.actors.oa.reasoning.rules.constraints import Constraint, Hit, hits
from pmagent.actors.oa.reasoning.rules.text import is_printable
from pmagent.contracts.reasoning import COMMAND_CHARS_MAX

_GIT = r"\bgit\b"
_FETCH = r"\b(?:curl|wget|fetch)\b"
_PATH = r"(?:[\w.-]*/)*"

Rule = tuple[str, ...]
"""Patterns that follow each other within one simple command (or, beginning with "line", within the whole line). Each is
looked for behind the one before it, so that reading a line takes time in proportion to its length."""

_FORBIDDEN: tuple[tuple[Rule, str], ...] = (
    (
        (r"(?<![\w.-])rm(?=\s)", r"\s-(?:[a-z]{0,8}r[a-z]{0,8}f|[a-z]{0,8}f[a-z]{0,8}r)"),
        "removes folders without asking",
    ),
    (
        (r"(?<![\w.-])rm(?=\s)", r"\s-(?:[a-z]*r|-recursive)", r"\s-(?:[a-z]*f|-force)"),
        "removes folders without asking",
    ),
    (
        (r"(?<![\w.-])rm(?=\s)", r"\s-(?:[a-z]*f|-force)", r"\s-(?:[a-z]*r|-recursive)"),
        "removes folders without asking",
    ),
    ((_GIT, r"\bpush\b", r"\s--force\b|\s--force-with-lease\b|\s-[a-z]*f\b|\s\+\S"), "overwrites pushed history"),
    ((_GIT, r"\bpush\b", r"\s(?:--mirror|--delete|-d)\b|\s:\S"), "removes pushed branches"),
    ((r"\bdrop\s+(?:table|database|schema|role|user)\b",), "drops what a database holds"),
    (("line", r"\btruncate\s+(?:table\s+)?[a-z_\"]+\s*(?:;|\"|'|$)"), "empties a table"),
    (("line", r"\bdelete\s+from\s+[\w.\"`]+\s*(?:;|\"|'|$)"), "deletes every row of a table"),
    (("line", _FETCH, rf"\|\s*(?:sudo\s+)?{_PATH}(?:ba|z|da|k)?sh\b"), "runs what it downloads"),
    (("line", _FETCH, rf"\|\s*(?:sudo\s+)?{_PATH}(?:python|perl|ruby|node)[0-9.]*\b"), "runs what it downloads"),
    (("line", r"\b(?:ba|z|da|k)?sh\b|\beval\b|\bsource\b", r"<\(|\$\(|`", _FETCH), "runs what it downloads"),
    ((r"\bmkfs\b|\bdd\b", r"\bof=/dev/|\s/dev/"), "overwrites a disk"),
    (("line", r">\s*/dev/(?:sd|nvme|vd|hd|mmc)"), "overwrites a disk"),
    ((r"\bfind\b", r"\s-delete\b|-exec\s+rm\b"), "removes whatever it finds"),
    ((r"\bchmod\b", r"\s-[a-z]*R", r"\s(?:0?777|a\+rwx)\b"), "opens files to everybody"),
    (("line", r":\(\)\s*\{", r":\s*\|\s*:"), "starts processes without end"),
    ((r"\s--no-verify\b",), "goes around the checks"),
    ((_GIT, r"\bcommit\b", r"\s-[a-z]*n\b"), "goes around the checks"),
    (("line", r"\b(?:guard|verify|doctor)\b", r"\|\|\s*(?:true\b|:)"), "goes around the checks"),
    ((r"\b(?:rm|mv|truncate|shred|sed)\b", r"\.pmagent\b"), "changes the log behind its writer"),
    (("line", r">\s*[^\s>|;&]*\.pmagent/"), "changes the log behind its writer"),
    ((_GIT, r"\b(?:filter-branch|filter-repo)\b|\breflog\s+expire\b"), "rewrites history"),
)
_CLUSTER = r"\b(?:kubectl|docker|podman|helm|terraform)\b"
_INSTALLER = r"\b(?:pip|npm|pnpm|yarn|apt|apt-get|brew|cargo)\b"
_RISKY: tuple[tuple[Rule, str, int], ...] = (
    ((r"(?<![\w.-])(?:rm|unlink|shred|rmdir)(?=\s)",), "removes files", 3),
    ((_GIT, r"\bpush\b"), "publishes commits", 2),
    ((_GIT, r"\breset\b", r"--hard"), "discards work in the tree", 3),
    ((_GIT, r"\b(?:clean|restore)\b|\bcheckout\s+--|\bstash\s+drop"), "discards work in the tree", 3),
    ((_GIT, r"\b(?:rebase|merge)\b|\bbranch\s+-D"), "changes branches", 2),
    ((r"\balter\s+table\b|\binsert\s+into\b|\bdelete\s+from\b",), "changes a database", 3),
    ((r"\bupdate\s", r"\sset\s"), "changes a database", 3),
    ((r"\b(?:alembic|flyway|migrate)\b",), "migrates a database", 3),
    ((r"\bsudo\b|\bsu\s+-|\bdoas\b",), "runs with all rights", 3),
    ((_CLUSTER, r"\b(?:delete|rm|prune|destroy|uninstall|apply|down)\b"), "changes what runs", 3),
    ((r"\b(?:systemctl|service)\b", r"\b(?:stop|restart|disable|mask)\b"), "stops what runs", 2),
    ((r"\b(?:kill|pkill|killall|shutdown|reboot)\b",), "stops what runs", 2),
    ((r"\b(?:chmod|chown)\b",), "changes rights", 1),
    ((r"\bdd\b|\btruncate\b",), "overwrites files", 3),
    (("line", r"(?<![0-9&>-])>(?![>&])\s*(?!\s|/dev/null)"), "overwrites a file", 1),
    ((r"(?<![\w.-])mv(?=\s)",), "replaces files", 1),
    ((r"(?<![\w.-])cp(?=\s)", r"\s-[a-z]*f"), "replaces files", 1),
    ((_INSTALLER, r"\b(?:install|remove|upgrade|uninstall|add)\b"), "changes what is installed", 2),
    ((r"\b(?:curl|wget|scp|rsync|ssh)\b",), "uses the network", 1),
    ((r"\s--force\b",), "overrides a safeguard", 1),
    ((r"(?<![\w.-])(?:git|rm|mv|cp|ln)(?=\s)", r"\s-[a-z]*f\b"), "overrides a safeguard", 1),
    ((r"\bxargs\b|\beval\b",), "runs what it reads", 2),
)


def _compiled(rule: Rule) -> tuple[bool, tuple[re.Pattern[str], ...]]:
    whole = rule[0] == "line"
    return whole, tuple(re.compile(pattern, re.IGNORECASE) for pattern in (rule[1:] if whole else rule))


_DENY = tuple((_compiled(rule), what) for rule, what in _FORBIDDEN)
_CAUTION = tuple((_compiled(rule), what, points) for rule, what, points in _RISKY)
_COMMENT = re.compile(r"\s*#")
_SIMPLE = re.compile(r"[|;&]+")


def _applies(rule: tuple[bool, tuple[re.Pattern[str], ...]], line: str, commands: list[str]) -> bool:
    whole, patterns = rule
    return any(_follow(patterns, text) for text in ([line] if whole else commands))


def _follow(patterns: tuple[re.Pattern[str], ...], text: str) -> bool:
    """Whether the patterns occur one behind the other; if they do at all, they do from the first place of each."""
    at = 0
    for pattern in patterns:
        match = pattern.search(text, at)
        if match is None:
            return False
        at = match.end()
    return True


class Danger(msgspec.Struct, frozen=True):
    """What a command does: ``forbidden`` says why it is never part of a block ("" if it may be), ``risks`` what to know
    before it is run, ``points`` how much that counts."""

    forbidden: str
    risks: tuple[str, ...]
    points: int


@lru_cache(maxsize=256)
def danger(command: str) -> Danger:
    """The danger of one command line. A comment does nothing."""
    if _COMMENT.match(command):
        return Danger("", (), 0)
    commands = _SIMPLE.split(command)
    forbidden = next((what for rule, what in _DENY if _applies(rule, command, commands)), "")
    risks = [(what, points) for rule, what, points in _CAUTION if _applies(rule, command, commands)]
    return Danger(forbidden, tuple(dict.fromkeys(what for what, _ in risks)), sum(points for _, points in risks))


def judged(command: str, constraints: list[Constraint]) -> tuple[str, list[Hit]]:
    """Why the command may not be part of a block ("" when nothing forbids it): its kind, or a constraint; and the
    constraints that it may meet. A command is read as its words together with what it does."""
    found = danger(command)
    met = hits(constraints, f"{_spaced(command)}. {'. '.join(found.risks)}", command=True)
    forbidden = f"it {found.forbidden}" if found.forbidden else next((hit.what for hit in met if hit.sure), "")
    return forbidden, [hit for hit in met if not hit.sure]


def _spaced(command: str) -> str:
    """The command as words: options, paths and quoting are no clauses of their own."""
    return re.sub(r"[^A-Za-z0-9]+", " ", command)


def score(commands: list[str]) -> int:
    """Complexity from 1 to 10: how many commands, and how dangerous."""
    points = sum(danger(command).points for command in commands)
    return max(1, min(10, 1 + len(commands) // 6 + points // 2 + (1 if points else 0)))


def writable(command: str) -> bool:
    """Whether the command is one printable line of a length that a block may hold."""
    return bool(command.strip()) and is_printable(command) and len(command) <= COMMAND_CHARS_MAX
