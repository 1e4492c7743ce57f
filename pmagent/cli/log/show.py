"""``pmagent log show``: one event, what caused it, what it caused, and whether its line is intact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.log.lines import event_line
from pmagent.cli.log.why import plain
from pmagent.cli.output import Output, Styled
from pmagent.events.errors import PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.reader import event_at
from pmagent.events.storage import BLOB_PREFIX, StorageReader
from pmagent.events.store import LogStore
from pmagent.exitcodes import Exit
from pmagent.log.find import position_of
from pmagent.log.names import TaskNames
from pmagent.log.source import store_at
from pmagent.log.tracing import Node, causes, consequences

_LABEL = 12


@command("pmagent log show 1", "pmagent log show 3.kernel.0", reads=True)
@click.argument("event", metavar="POSITION|ID")
@click.option("--limit", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Consequences at most.")
@click.option("--blob", is_flag=True, help="Show the content of a blob, too.")
def show(app: App, event: str, limit: int, blob: bool, format: str) -> int:
    """One event: its causes above, its data, its direct consequences below, and its proof."""
    store = store_at(app.workspace)
    with closing(store.reader()) as storage:
        found = event_at(storage, position_of(storage, event))
        above, _ = causes(storage, found)
        below, more = consequences(storage, found, limit, 1)
        proof = _proof(storage, found)
        content = _blob(store, found) if blob else None
        document = {
            "event": plain(found), "verified": proof, "causes": [plain(cause) for cause in above[:-1]],
            "consequences": [plain(node.event) for node in below], "more": more,
            **({"content": content} if content is not None else {}),
        }
        told = TaskNames(storage, store.blobs()).summary
        app.output.answer(
            format, document, lambda: _screen(app.output, told, found, above[:-1], below, more, proof, content)
        )
    return Exit.DONE


def _proof(storage: StorageReader, event: StoredEvent) -> dict[str, object]:
    """Where the line stands. It was checked against its sum and the sum of the line before it when it was read."""
    file, offset = storage.location(event.position)
    return {"file": file, "offset": offset, "sum": event.sum, "ok": True}


def _blob(store: LogStore, event: StoredEvent) -> str | None:
    if not bytes(event.data).startswith(BLOB_PREFIX):
        return None
    digest = msgspec.json.decode(event.data)["blob"]["sha256"]
    return store.blobs().get(str(digest)).decode("utf-8", "replace")


def _screen(
    output: Output, told: Callable[[StoredEvent], str], event: StoredEvent, above: list[StoredEvent],
    below: list[Node], more: int, proof: dict[str, object], content: str | None,
) -> None:
    for cause in above:
        output.line(*event_line(cause, output, told))
    for name in ("position", "time", "type", "kind", "actor", "id", "correlation", "causation", "batch"):
        output.line(Styled(f"{name:<{_LABEL}}", "cyan"), f"{getattr(event, name)}")
    output.line(Styled("data", "cyan"))
    output.block(_pretty(event.data))
    if content is not None:
        output.line(Styled("blob", "cyan"))
        output.block(content)
    output.line(Styled(f"{'sum':<{_LABEL}}", "cyan"), event.sum)
    output.line(
        Styled(f"{'verified':<{_LABEL}}", "cyan"), Styled("✓ yes", "green"),
        f": {proof['file']}, byte {proof['offset']}; its sum fits its bytes and the line before",
    )
    if below:
        output.line(Styled("led to", "cyan"))
    for node in below:
        output.line(*event_line(node.event, output, told))
    if more:
        output.line(Styled(f"… and {more} more; --limit shows them", "dim"))


def _pretty(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.format(bytes(raw), indent=2).decode("utf-8", "replace")
    except msgspec.DecodeError as error:
        raise PmagentError(f"the event's data is no JSON: {error}", "pmagent log verify --decode") from error
