"""``pmagent pla device``: which devices there are, and how ours stands; nothing is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import ask, switch_piece
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.actors.pla.line.discovery import PortUnusable


@command("pmagent pla device", "pmagent pla device --format json")
def device(app: App, format: str) -> int:
    """The serial devices on USB, which of them is ours, and its state.

    With a daemon, this is the daemon's knowledge of the device (where it does not answer: the log's). Without one, the
    device is opened, greeted, asked for its status and closed; nothing is typed. Exit 1: there is none, or it does not
    answer."""
    from pmagent.actors.pla.line.discovery import PRODUCT, PortUnusable, Wanted
    from pmagent.pla.probing import candidates, probe

    settings = app.resolved.settings.pla
    document: dict[str, Any] = {
        "ports": [{**msgspec.structs.asdict(port), "ours": port.product == PRODUCT} for port in candidates()],
        "wanted": {"device": settings.device or None, "serial": settings.device_serial or None},
        "linked": None, "probed": None, "trouble": None,
    }  # fmt: skip
    trouble: PortUnusable | None = None
    status = ask(app, "pla.status").document if app.layout.store.holder().live else None
    if status is not None and status["daemon"] != "none":  # a port that a daemon holds is opened by nobody else
        document["linked"], document["trouble"] = status["device"], status["trouble"]
    else:
        try:
            probed = probe(Wanted(path=settings.device, serial=settings.device_serial))
        except PortUnusable as error:
            trouble = error
            document["trouble"] = error.message
        else:
            document["probed"] = msgspec.structs.asdict(probed)
    there = document["linked"] or document["probed"]
    if format == "json":
        app.output.document(document)
    else:
        _screen(app.output, document)
        if trouble is not None and trouble.hint:
            app.output.note(Styled("hint:", "cyan"), f" {trouble.hint}")
    return Exit.DONE if there else Exit.NO


def _screen(output: Output, document: dict[str, Any]) -> None:
    for port in document["ports"]:
        ours = Styled("✓ ours", "green") if port["ours"] else Styled("- another", "dim")
        ids = f"{port['vendor_id']:04x}:{port['product_id']:04x}"
        output.line(ours, f": {port['path']}, {port['product'] or 'without a name'}, {ids}, serial {port['serial']}")
    if not document["ports"] and document["linked"] is None and document["probed"] is None:
        output.line("no serial device is plugged in over USB")
    if document["linked"] is not None:
        linked = document["linked"]
        output.line(Styled("✓ linked", "green"), f": {linked['device_id']} on {linked['port']}, held by the daemon")
        _stands(output, linked["firmware_version"], linked["kill_switch_state"], compatible=linked["compatible"],
                text=linked["text"])
        if linked["caps_lock"]:
            output.line("  Caps Lock   ", Styled("on", "red"), ": with it no letter is typed")
        output.line("  last error  ", linked["error"] or "none")
    elif document["probed"] is not None:
        probed = document["probed"]
        hello = probed["hello"]
        output.line(Styled("✓ answers", "green"), f": {hello['device_id']} on {probed['port']}, and is closed again")
        _stands(output, hello["firmware_version"], probed["status"]["kill_switch_state"],
                compatible=probed["compatible"], text=probed["text"])
        output.line(f"  boot        {hello['boot_id']}, after {hello['reset_reason']}")
    else:
        output.line(Styled("✗ no device", "red"), f": {document['trouble'] or 'none is linked'}")


def _stands(output: Output, firmware: str, switch: str, *, compatible: bool, text: str) -> None:
    contract = Styled("ours", "green") if compatible else Styled(f"another: {text}", "red")
    output.line(f"  firmware    {firmware}, its contract is ", contract)
    output.line("  kill switch ", switch_piece(switch))
