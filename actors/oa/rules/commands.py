"""What a command line would do that a person has to know before running it; pure, by general patterns.

Nothing here runs anything. A command of a forbidden kind is never part of a block; one that can destroy is kept, named,
and counted.
"""

from __future__ import annotations

import re

import msgspec

from actors.oa.rules.constraints import Hit, hits
from contracts.reasoning import COMMAND_CHARS_MAX

_RM = r"(?<![\w.-])rm(?=\s)(?=[^|;&]*\s-(?:[a-z]*r|-recursive))(?=[^|;&]*\s-(?:[a-z]*f|-force))"
_FORBIDDEN: tuple[tuple[str, str], ...] = (
    (_RM, "removes folders without asking"),
    (
        r"\bgit\b[^|;&]*\bpush\b[^|;&]*(?:\s--force\b|\s--force-with-lease\b|\s-[a-z]*f\b|\s\+\S+:)",
        "overwrites pushed history",
    ),
    (r"\bgit\b[^|;&]*\bpush\b[^|;&]*\s(?:--mirror|--delete)\b", "removes pushed branches"),
    (r"\bdrop\s+(?:table|database|schema|role|user)\b", "drops what a database holds"),
    (r"\btruncate\s+(?:table\s+)?[a-z_\"]+\s*(?:;|\"|'|$)", "empties a table"),
    (r"\bdelete\s+from\s+\S+\s*(?:;|\"|'|$)", "deletes every row of a table"),
    (r"\b(?:curl|wget|fetch)\b.*\|\s*(?:sudo\s+)?(?:\S*/)?(?:ba|z|da|k)?sh\b", "runs what it downloads"),
    (
        r"\b(?:curl|wget|fetch)\b.*\|\s*(?:sudo\s+)?(?:\S*/)?(?:python|perl|ruby|node)[0-9.]*\b",
        "runs what it downloads",
    ),
    (r"\b(?:ba|z|da|k)?sh\b\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b", "runs what it downloads"),
    (r"\beval\b.*\$\(\s*(?:curl|wget)\b", "runs what it downloads"),
    (r"\bmkfs(?:\.\w+)?\b|\bdd\b[^|;&]*\bof=/dev/|>\s*/dev/(?:sd|nvme|vd|hd|mmc)", "overwrites a disk"),
    (r"\bfind\b[^|;&]*\s-delete\b|\bfind\b[^|;&]*-exec\s+rm\b", "removes whatever it finds"),
    (r"\bchmod\b[^|;&]*\s-[a-z]*R[a-z]*\s+(?:0?777|a\+rwx)\b", "opens files to everybody"),
    (r":\(\)\s*\{.*\}\s*;\s*:", "starts processes without end"),
    (r"\s--no-verify\b|\bgit\b[^|;&]*\bcommit\b[^|;&]*\s-[a-z]*n\b", "goes around the checks"),
    (r"\b(?:guard|verify|doctor)\b.*\|\|\s*true\b", "goes around the checks"),
    (r"\b(?:rm|mv|truncate|shred|sed\s+-i)\b[^|;&]*\.pmagent\b|>\s*\S*\.pmagent/", "changes the log behind its writer"),
    (r"\bgit\b[^|;&]*\b(?:filter-branch|filter-repo)\b|\breflog\s+expire\b", "rewrites history"),
)
_RISKY: tuple[tuple[str, str, int], ...] = (
    (r"(?<![\w.-])(?:rm|unlink|shred|rmdir)(?=\s)", "removes files", 3),
    (r"\bgit\b[^|;&]*\bpush\b", "publishes commits", 2),
    (
        r"\bgit\b[^|;&]*\b(?:reset\b.*--hard|clean\b|checkout\s+--|restore\b|stash\s+drop)",
        "discards work in the tree",
        3,
    ),
    (r"\bgit\b[^|;&]*\b(?:rebase|merge|branch\s+-D)\b", "changes branches", 2),
    (r"\b(?:alter|update|insert|delete)\s+(?:table|into|from|\S+\s+set)\b", "changes a database", 3),
    (r"\b(?:alembic|flyway|migrate|manage\.py\s+migrate)\b", "migrates a database", 3),
    (r"\bsudo\b|\bsu\s+-|\bdoas\b", "runs with all rights", 3),
    (
        r"\b(?:kubectl|docker|podman|helm|terraform)\b[^|;&]*\b(?:delete|rm|prune|destroy|uninstall|apply|down)\b",
        "changes what runs",
        3,
    ),
    (
        r"\b(?:systemctl|service)\b[^|;&]*\b(?:stop|restart|disable|mask)\b|\b(?:kill|pkill|killall|shutdown|reboot)\b",
        "stops what runs",
        2,
    ),
    (r"\b(?:chmod|chown)\b", "changes rights", 1),
    (r"\bdd\b|\btruncate\b", "overwrites files", 3),
    (r"(?<![0-9&>-])>(?![>&])\s*(?!/dev/null)\S", "overwrites a file", 1),
    (r"\bmv\b|\bcp\b[^|;&]*\s-[a-z]*f", "replaces files", 1),
    (
        r"\b(?:pip|npm|pnpm|yarn|apt|apt-get|brew|cargo)\b[^|;&]*\b(?:install|remove|upgrade|uninstall|add)\b",
        "changes what is installed",
        2,
    ),
    (r"\b(?:curl|wget|scp|rsync|ssh)\b", "uses the network", 1),
    (r"\s--force\b|\s-f\b", "overrides a safeguard", 1),
    (r"\bxargs\b|\beval\b", "runs what it reads", 2),
)
_DENY = tuple((re.compile(pattern, re.IGNORECASE), what) for pattern, what in _FORBIDDEN)
_CAUTION = tuple((re.compile(pattern, re.IGNORECASE), what, points) for pattern, what, points in _RISKY)


class Danger(msgspec.Struct, frozen=True):
    """What a command does: ``forbidden`` says why it is never part of a block ("" if it may be), ``risks`` what to know
    before it is run, ``points`` how much that counts."""

    forbidden: str
    risks: list[str]
    points: int


def danger(command: str) -> Danger:
    """The danger of one command line."""
    line = command[:COMMAND_CHARS_MAX]
    forbidden = next((what for pattern, what in _DENY if pattern.search(line)), "")
    risks = [(what, points) for pattern, what, points in _CAUTION if pattern.search(line)]
    return Danger(forbidden, list(dict.fromkeys(what for what, _ in risks)), sum(points for _, points in risks))


def objection(command: str, constraints: list[str]) -> str:
    """Why the command may not be part of a block: its kind, or a constraint; "" when nothing objects."""
    found = danger(command)
    if found.forbidden:
        return f"it {found.forbidden}"
    met = violated(command, constraints)
    return next((hit.what for hit in met if hit.sure), "")


def violated(command: str, constraints: list[str]) -> list[Hit]:
    """The constraints that the command meets, read as words together with what it does."""
    what = ". ".join(danger(command).risks)
    return hits(constraints, f"{_spaced(command)}. {what}")


def _spaced(command: str) -> str:
    """The command as words: options, paths and quoting are no clauses of their own."""
    return re.sub(r"[^A-Za-z0-9]+", " ", command[:COMMAND_CHARS_MAX])


def score(commands: list[str]) -> int:
    """Complexity from 1 to 10: how many commands, and how dangerous."""
    points = sum(danger(command).points for command in commands)
    return max(1, min(10, 1 + len(commands) // 6 + points // 2 + (1 if points else 0)))


def writable(command: str) -> bool:
    """Whether the command is one printable line of a length that a block may hold."""
    return bool(command.strip()) and command.isprintable() and len(command) <= COMMAND_CHARS_MAX
