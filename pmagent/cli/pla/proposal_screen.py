"""A proposal on the screen: exactly what would be typed, who asks for it, why, and for how long it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pmagent.clean import folded, pad, shorten
from pmagent.cli.output import Output, Piece, Styled
from pmagent.cli.pla.typed import in_short, show_typed
from pmagent.when import spoken

_MARKS: Final = {
    "open": Styled("▸ open", "yellow"), "executing": Styled("▸ executing", "yellow"),
    "executed": Styled("✓ executed", "green"), "recorded": Styled("✓ recorded", "green"),
    "unknown": Styled("✗ outcome unknown", "red"),
}  # fmt: skip

MIN_COLUMNS: Final = 20
BECAUSE_LINES: Final = 5
"""So much of a rationale is shown: what it says must not push what would be typed off the screen."""

_TIERS: Final = {"high": "red", "medium": "yellow", "low": "green"}


def mark(document: dict[str, Any]) -> Styled:
    """How a proposal stands, in a word."""
    stands = document["outcome"] if document["stands"] == "closed" else document["stands"]
    return _MARKS.get(stands, Styled(f"✗ {stands.replace('_', ' ')}", "red"))


def show_proposal(output: Output, document: dict[str, Any], *, hexdump: bool = False) -> None:
    """All of it. With ``plain`` in it, that is shown in place of what is masked."""
    output.line(mark(document), f": {document['proposal_id']}")
    plain = document.get("plain")
    if plain is not None:
        output.line("              ", Styled("revealed, from the memory of the daemon:", "yellow"))
    masked = document["masked"] and plain is None
    show_typed(output, document["action_type"], plain or document["payload"], masked=masked, hexdump=hexdump)
    if masked:
        output.line(f"              {document['chars']} characters; {_whereabouts(document)}")
    output.line(f"  digest      {document['digest']}")
    output.line(f"  machine     {_machine(document)}")
    if document["credential_warning"]:
        found = ", ".join(document["findings"]) or "not said which"
        output.line("  ", Styled("credentials", "red"), f" it holds what looks like: {found}")
    _weight(output, document)
    asked = f"{document['requested_by']} over {document['channel']}"
    output.line(f"  asked by    {asked}, proposed by {document['proposed_by']}")
    width = output.columns - 14
    because = folded(shorten(document["rationale"], BECAUSE_LINES * width), width)
    if len(because) > BECAUSE_LINES:
        because[BECAUSE_LINES - 1 :] = [shorten(" ".join(because[BECAUSE_LINES - 1 :]), width)]
    _column(output, ("  because     ",), because)
    if document["frame"]:
        output.line(f"  frame       at position {document['frame']} of the log")
        output.line("  on screen   ", shorten(document["ocr_text"] or "nothing was read", output.columns - 14))
    _times(output, document)


def _whereabouts(document: dict[str, Any]) -> str:
    """Where the plain text of a masked proposal is. ``plain`` stands in the document if it was asked for."""
    if document["stands"] == "closed":
        return "nobody holds them any more"
    if "plain" in document:
        return "nobody holds them any more, so they cannot be typed: propose it again"
    return "--reveal shows them, as long as the daemon lives that was asked for it"


def _machine(document: dict[str, Any]) -> str:
    """The machine that it is for, and the layout that it is typed by."""
    name = document["machine"] or "no name is declared"
    if document["action_type"] not in ("TYPE_TEXT", "KEY_COMBO"):
        return name
    undeclared = "layout not declared: US is assumed, and only a practice device types"
    return f"{name}, {'keyboard layout ' + document['layout'] if document['layout'] else undeclared}"


def _weight(output: Output, document: dict[str, Any]) -> None:
    """Its possible effects, as the console shows them too."""
    from pmagent.pla.consequences import cost, reversal
    from pmagent.pla.risk import risk

    risks, back, takes = risk(document), reversal(document), cost(document)
    tier = Styled(risks.tier, _TIERS[risks.tier])
    first, *others = risks.reasons
    _whole(output, ("  risk        ", tier, ": "), 20, first)
    for reason in others:
        _whole(output, ("              ",), 14, reason)
    _whole(output, ("  taken back  ",), 14, f"{back.can}: {back.why}")
    output.line(f"  takes       {takes.reports} reports, at least {spoken(takes.seconds)}")


def _whole(output: Output, before: Sequence[Piece], taken: int, text: str) -> None:
    """``text`` behind ``before``, which takes so many columns, on as many lines as it needs: nothing of it is left out,
    for somebody decides by it."""
    _column(output, before, folded(text, max(MIN_COLUMNS, output.columns - taken)))


def _column(output: Output, before: Sequence[Piece], lines: Sequence[str]) -> None:
    """The first of ``lines`` behind ``before``, the others below it."""
    output.line(*before, lines[0])
    for line in lines[1:]:
        output.line(" " * 14, line)


def _times(output: Output, document: dict[str, Any]) -> None:
    output.line(f"  proposed    {output.moment(document['proposed_at'])}, in {document['proposed_in']}")
    if document["stands"] == "open":
        two = "; another operator has to approve it" if document["two_persons"] else ""
        output.line(f"  open for    {spoken(document['seconds_left'])} more, then it expires{two}")
    if document["decided_by"]:
        at = output.moment(document["decided_at"] or "")
        output.line(f"  decided by  {document['decided_by']} over {document['decided_over']}, {at}")
    if document["execution_id"]:
        output.line(f"  execution   {document['execution_id']}")
    if document["stands"] == "closed":
        from pmagent.actors.pla.switch import said

        why = f": {said(document['why'])}" if document["why"] else ""
        ended = f"{output.moment(document['closed_at'] or '')}{why}"
        output.line("  ended       ", shorten(ended, output.columns - 14))


def list_proposals(output: Output, documents: list[dict[str, Any]], *, narrowed: bool = False) -> None:
    """One a line, newest first. ``narrowed``: others may have been left out."""
    if not documents:
        none = "no proposals yet: pmagent pla mode SUGGEST, then pmagent pla propose 'type: …'"
        output.line("no such proposals" if narrowed else none)
        return
    wide = output.time_width
    proposed = f"PROPOSED ({output.zone})" if output.zone else "PROPOSED"
    output.line(Styled(f"{'PROPOSAL':<17}  {proposed:<{wide}}  {'STATE':<17}  {'BY':<12}  WHAT", "bold"))
    for document in documents:
        stands = mark(document)
        time = Styled(pad(output.time(document["proposed_at"]), wide), "dim")
        parts: list[Piece] = [
            pad(document["proposal_id"], 17), "  ", time, "  ",
            Styled(pad(stands.text, 17), stands.style), "  ", pad(document["requested_by"], 12), "  ",
        ]  # fmt: skip
        what = in_short(document["action_type"], document["payload"])
        output.line(*parts, shorten(what, max(20, output.columns - 56 - wide)))
