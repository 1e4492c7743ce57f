"""The documents that a history leads to, and Markdown as its readers take it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pmagent.contracts.content import BlobContent, Growing
from pmagent.contracts.generate import FOLDER as SCHEMAS
from pmagent.contracts.orchestra import Artifact
from pmagent.contracts.orchestra_events import RunEnded
from pmagent.events.event import Event, LogCreated
from pmagent.projections.core.documents import Documents
from pmagent.projections.runs.folders import RunFolders, RunsView
from tests.support.orchestra import RUN, START, Harness, exited

LOG_ID = "ab" * 16
JOB = f"jobs/{RUN}.json"
FOLDER = f"runs/{RUN}"
CREATED = LogCreated(log_id=LOG_ID)


def sums(events: Sequence[Event]) -> list[str]:
    """A sum for each event, as its line would have one."""
    return [f"{event.position:064x}" for event in events]


def folded(events: Sequence[Event], documents: Documents | None = None) -> Documents:
    """The run folders' documents after these events, which follow those that ``documents`` have seen already."""
    if documents is None:
        documents = Documents([RunFolders()])
        documents.fold([Event(0, START, "log", "fact", "log", "log.created", "", 0, CREATED, b"")], ["0" * 64])
    documents.fold(events, sums(events))
    return documents


def shown(documents: Documents) -> dict[str, bytes | BlobContent]:
    """All of them, what grows as bytes."""
    return {
        path: b"".join(content.pieces()) if isinstance(content, Growing) else content
        for path, content in documents.render().items()
    }


def text(events: Sequence[Event], name: str, run_id: str = RUN) -> str:
    """A document of the run after these events, by its name in the run's folder."""
    content = shown(folded(events))[f"runs/{run_id}/{name}"]
    assert isinstance(content, bytes)
    return content.decode()


def value(events: Sequence[Event], path: str) -> Any:
    """The content of a JSON document."""
    content = shown(folded(events))[path]
    assert isinstance(content, bytes)
    return json.loads(content)


def log_lines(events: Sequence[Event], run_id: str = RUN) -> list[dict[str, Any]]:
    """The lines of tasks.jsonl."""
    return [json.loads(line) for line in text(events, "tasks.jsonl", run_id).splitlines()]


def artifact(task_id: str, path: str, content: bytes = b"x") -> Artifact:
    """An artifact as a performer gives it."""
    return Artifact(path=f"{task_id}/{path}", size_bytes=len(content), checksum=sha256(content).hexdigest())


@cache
def schema(name: str) -> Any:
    """A validator for ``<area>/<document>``."""
    import fastjsonschema

    area, short = name.split("/")
    return fastjsonschema.compile(json.loads((SCHEMAS / area / "v1" / f"{short}.json").read_text()), use_default=False)


def parsed(markdown: str) -> list[Token]:
    """Markdown with tables and with everything that could do harm: HTML, and links."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown)


def every(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens with those inside of them."""
    for token in tokens:
        yield token
        yield from every(token.children or [])


_NESTED = (
    "heading", "paragraph", "strong", "table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item"
)  # fmt: skip
PLAIN = frozenset((
    *(f"{name}_{end}" for name in _NESTED for end in ("open", "close")), "inline", "text", "text_special", "softbreak",
    "code_inline", "fence",
))  # fmt: skip
"""The tokens that a report is made of."""


def skeleton(markdown: str) -> list[tuple[str, int, str]]:
    """The structure of the Markdown, without its texts: types, nesting, and languages of blocks."""
    return [(token.type, token.level, token.info) for token in parsed(markdown)]


def headings(markdown: str) -> list[str]:
    """The headings' texts."""
    tokens = parsed(markdown)
    return [
        "".join(child.content for child in tokens[at + 1].children or [])
        for at, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def cells(markdown: str, heading: str) -> list[list[str]]:
    """The rows of the first table below the heading, as a reader sees them."""
    tokens = parsed(markdown)
    titles = iter(headings(markdown))
    rows: list[list[str]] = []
    inside = False
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            if inside:
                break
            inside = next(titles) == heading
        if inside and token.type == "table_close":
            break
        if inside and token.type == "tr_open":
            rows.append([])
        if inside and token.type in ("td_open", "th_open"):
            rows[-1].append("".join(child.content for child in tokens[at + 1].children or []))
    return rows[1:]


def fences(markdown: str, language: str = "") -> list[list[str]]:
    """The blocks of code of a language, as lines."""
    tokens = parsed(markdown)
    return [token.content.splitlines() for token in tokens if token.type == "fence" and token.info == language]


def copied(documents: Documents, projection: RunFolders | None = None) -> Documents:
    """The documents that a start from the snapshot cache would have."""
    other = Documents([projection or RunFolders()])
    other.restore(other.decoded(documents.export()))
    return other


def ended(harness: Harness, run_id: str = RUN) -> str:
    """Go on until the run is over; its state, or why it was refused."""
    over = harness.run(run_id)
    return over.state if isinstance(over, RunEnded) else over.code


def other(number: int) -> str:
    """The id of another run."""
    return f"5b0c7a52-3f7e-4c1d-9a55-{number:012}"


def done(**more: Any) -> Harness:
    """A run of three tasks that went well; each left a file."""
    harness = Harness()
    harness.tool = lambda event: exited(event, artifacts=[artifact(event.data.task_id, "stdout", b"said")])
    harness.request({"a": [], "b": ["a"], "c": ["a", "b"]}, **more)
    assert ended(harness) == "done"
    return harness


def view(harness: Harness) -> RunsView:
    """The projection's state after all that happened in the harness."""
    documents = folded(harness.history)
    found = documents._states["run_folders"]
    assert isinstance(found, RunsView)
    return found


def ids(harness: Harness) -> dict[str, str]:
    """The tasks of the harness's run: name -> id."""
    return {planned.name: planned.task_id for planned in view(harness).jobs[RUN].planned_tasks}
