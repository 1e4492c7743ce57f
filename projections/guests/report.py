"""The report of a guest's session: what was asked, allowed, refused, done and unknown, and by whom approved; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from pmagent.contracts.content import Growing

FOLDER: Final = "guests"
LISTED_MAX: Final = 200
"""So many notes, changes, subagents and unseen calls stand in a report, of each; all stand in the log."""
PROOFS: Final = {
    "gated": "gated", "in_part": "gated in part ({unseen} unseen)", "not_proven": "not proven", "": "open",
}  # fmt: skip


class CallLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call. ``end``: refused, ended, expired, unknown, or imported; ``operators``: who approved it. ``starts``: it is
    one that starts an agent; ``gains``: labels that its session has from it on."""

    position: int
    time: str
    tool: str
    mode: str
    agent: str = ""
    agent_type: str = ""
    call: str = ""
    text: str = ""
    source: str = "live"
    digest: str = ""
    input_sha256: str = ""
    answer: str = ""
    rules: list[str] = []
    reasons: list[str] = []
    approval: int = 0
    needed: int = 0
    operators: list[str] = []
    rejected_by: str = ""
    end: str = ""
    why: str = ""
    ok: bool | None = None
    duration_ms: int = 0
    closed: str = ""
    starts: bool = False
    gains: list[str] = []


class Listed(msgspec.Struct, frozen=True):
    """Something else that happened in a session; ``about``: who, or what of it."""

    position: int
    time: str
    text: str
    about: str = ""


class Subagent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subagent, under the ``call`` (a position) that started it; 0: it is not known which. ``inherits``: the labels
    that its session had then, which hold for it, too; ``gains``: those that its own calls brought, which hold for the
    whole session."""

    agent: str
    agent_type: str = ""
    call: int = 0
    began: str = ""
    ended: str = ""
    inherits: list[str] = []
    gains: list[str] = []


class Row(NamedTuple):
    """A line of a session's tree: a call, or a subagent whose calls follow one step deeper."""

    depth: int
    call: CallLine | None = None
    subagent: Subagent | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A session. ``ended``: the calls that have ended, a line of JSON each; ``open``: the others. ``allow``, ``ask``
    and ``deny`` count verdicts. ``wall``: the wall behind which it works; ``labels``: of what it has seen.
    ``approved``: who has approved what was not used yet. ``proof``: "" while it is open. ``subagents``: by their ids;
    ``spawning``: the positions of the calls that start agents, by their ids. ``part``: of a session that was taken up
    again after its report had been let go of, this is the second, and so on; ``since``: the position of its very first
    event."""

    session: str
    began: str
    first: int
    since: int = 0
    part: int = 1
    last: str = ""
    position: int = 0
    harness: str = ""
    mode: str = ""
    cwd: str = ""
    version: str = ""
    model: str = ""
    source: str = "live"
    wall: str = ""
    labels: list[str] = []
    reason: str = ""
    transcript: str = ""
    closed: str = ""
    proof: str = ""
    why: list[str] = []
    unseen: int = 0
    unknown: int = 0
    asked: int = 0
    allow: int = 0
    ask: int = 0
    deny: int = 0
    left_out: int = 0
    approved: dict[int, list[str]] = {}
    agents: list[Listed] = []
    subagents: dict[str, Subagent] = {}
    spawning: dict[str, int] = {}
    calls_unseen: list[Listed] = []
    changes: list[Listed] = []
    notes: list[Listed] = []
    open: dict[int, CallLine] = {}
    ended: Growing = Growing()


def json_document(report: Report) -> bytes:
    """All of it: the calls in the order of their positions."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    del plain["open"], plain["ended"], plain["approved"], plain["spawning"]
    calls = calls_of(report)
    plain["waiting"], plain["calls"] = waiting(report), calls
    plain["tree"] = [
        {"depth": row.depth, "call": row.call.position} if row.call is not None else
        {"depth": row.depth, "subagent": row.subagent.agent if row.subagent is not None else ""}
        for row in tree(calls, report.subagents)
    ]  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def waiting(report: Report) -> int:
    """So many of its calls wait for operators."""
    return sum(call.answer == "ask" and call.mode == "enforce" for call in report.open.values())


def calls_of(report: Report) -> list[CallLine]:
    """Every call, ended or not."""
    ended = msgspec.json.decode(b"[" + b",".join(_lines(report.ended)) + b"]", type=list[CallLine])
    return sorted((*ended, *report.open.values()), key=lambda call: call.position)


def tree(calls: Sequence[CallLine], subagents: Mapping[str, Subagent]) -> list[Row]:
    """Calls in their order, a subagent and its own under the call that started it. Where it is not known which call
    that was, or that call is not among these, a subagent stands where it makes its first call."""
    made = _Tree(calls, subagents)
    for call in calls:
        if not call.agent:
            made.put(call, 0)
        elif call.agent not in made.hung:
            made.hang(call.agent, 0)
    for call in calls:  # subagents each of which another of them was to start
        if call.agent:
            made.hang(call.agent, 0)
    return made.rows


class _Tree:
    """A tree as it grows. ``hung``: subagents whose call is among these."""

    def __init__(self, calls: Sequence[CallLine], subagents: Mapping[str, Subagent]) -> None:
        self.rows: list[Row] = []
        self._own: dict[str, list[CallLine]] = {}
        for call in calls:
            self._own.setdefault(call.agent, []).append(call)
        positions = {call.position for call in calls}
        self._subagents = subagents
        self._under: dict[int, list[str]] = {}
        for name, one in subagents.items():
            if one.call in positions:
                self._under.setdefault(one.call, []).append(name)
        self.hung = {name for names in self._under.values() for name in names}
        self._placed: set[str] = set()

    def hang(self, name: str, depth: int) -> None:
        """A subagent and its calls, if it hangs nowhere yet."""
        if name in self._placed:
            return
        self._placed.add(name)
        mine = self._own.get(name, [])
        unknown = Subagent(agent=name, agent_type=mine[0].agent_type if mine else "")
        self.rows.append(Row(depth, subagent=self._subagents.get(name, unknown)))
        for call in mine:
            self.put(call, depth + 1)

    def put(self, call: CallLine, depth: int) -> None:
        """A call, and the subagents that it started."""
        self.rows.append(Row(depth, call=call))
        for name in self._under.get(call.position, ()):
            self.hang(name, depth + 1)


def _lines(growing: Growing) -> Iterator[bytes]:
    yield from b"".join(growing.pieces()).splitlines()


def markdown(report: Report) -> bytes:
    """The report for people."""
    calls = calls_of(report)
    proof = PROOFS[report.proof].format(unseen=report.unseen)
    head = [
        f"# Session {_plain(report.session)}", "",
        f"{_plain(report.harness)} {_plain(report.version)} in `{_plain(report.cwd)}`, mode {report.mode or '?'}",
        "",
        f"- from {report.began} to {report.closed or report.last} (positions {report.first} to {report.position})",
        f"- **{proof}**" + (f": {_plain('; '.join(report.why))}" if report.why else ""),
        f"- asked {report.asked}: allow {report.allow}, ask {report.ask}, deny {report.deny}",
        f"- end unknown: {sum(call.end == 'unknown' for call in calls)}; past the gate: {report.unseen}",
    ]  # fmt: skip
    parts = [
        ("Calls", [f"{'  ' * row.depth}- {_row(row)}" for row in tree(calls, report.subagents)]),
        ("Past the gate", _listed(report.calls_unseen)), ("Changed settings", _listed(report.changes)),
        ("Notes", _listed(report.notes)),
    ]  # fmt: skip
    text = [*head]
    for title, lines in parts:
        if lines:
            text += ["", f"## {title}", "", *lines]
    if report.left_out:
        text += ["", f"{report.left_out} more stand in the log."]
    return ("\n".join(text) + "\n").encode()


def _row(row: Row) -> str:
    if row.call is not None:
        return _call(row.call)
    one = row.subagent
    assert one is not None, "a row is a call or a subagent"
    labels = (("inherits", one.inherits), ("brings", one.gains))
    said = "".join(f", {word} {', '.join(names)}" for word, names in labels if names)
    return f"*subagent {_plain(one.agent_type)} {_plain(one.agent)}*{said}"


def _listed(ones: list[Listed]) -> list[str]:
    return [f"- {one.time} {_plain(one.text)} {_plain(one.about)}".rstrip() for one in ones]


def _call(call: CallLine) -> str:
    who = f" ({_plain(call.agent_type or call.agent)})" if call.agent or call.agent_type else ""
    by = f", approved by {', '.join(call.operators)} ({call.approval})" if call.operators else ""
    by = f", rejected by {call.rejected_by}" if call.rejected_by else by
    end = call.end or "open"
    failed = ", with an error" if call.ok is False else ""
    rules = f" by {_plain(', '.join(call.rules))}" if call.rules else ""
    what = f"{call.position} {call.time} {_plain(call.tool)}{who} `{_plain(call.text)}`"
    return f"{what}: {call.answer or call.source}{rules}{by}; {end}{failed}"


def _plain(text: str) -> str:
    """On one line, and no Markdown of its own."""
    return " ".join(text.split()).replace("`", "'").replace("<", "&lt;")
