"""Two runs held against each other: states, commands, files and their lines."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from pmagent.console.pages.jobs.compared import DIFF_BYTES_MAX
from pmagent.contracts.orchestra import Artifact
from tests.support.cases import each
from tests.support.furnished import MARKUP
from tests.support.orchestra import RUN, config, exited
from tests.support.page_runs import task_ids
from tests.support.pages import RunHarness, links, page, pages, text, written

SECOND = "77e1d004-1111-4000-8000-000000000002"


def lived(workspace: Path, first: bytes, second: bytes, **more: Any) -> None:
    """Two runs of two tasks; ``a`` leaves other bytes in the second, where ``b`` fails."""
    harness = RunHarness()
    content, failing = [first], [""]

    def tool(event: Any) -> Any:
        sums = sha256(content[0]).hexdigest()
        left = [Artifact(path=f"{event.data.task_id}/out.txt", size_bytes=len(content[0]), checksum=sums)]
        return exited(event, 1 if event.data.task_id == failing[0] else 0, artifacts=left)

    harness.tool = tool
    harness.request({"a": [], "b": []}, config=config(retries=0))
    harness.run()
    content[0] = second
    harness.request({"a": [], "b": [], **more}, run_id=SECOND, config=config(retries=0))
    failing[0] = task_ids(harness)["b"]
    harness.run(SECOND)
    written(workspace, harness.history, [first, second])


def test_what_differs_is_listed_failures_first_with_the_lines_of_files(tmp_path: Path) -> None:
    lived(tmp_path, b"one\ntwo\n", b"one\n2\n", c=[])
    with pages(tmp_path) as client:
        shown = page(client, f"/runs/compare?a={RUN[:8]}&b={SECOND}")
        told = text(shown)
        assert "Tasks that differ: 3" in told
        assert told.index("done, then failed") < told.index("only in the second")
        address = f"/runs/compare?a={RUN}&b={SECOND}&file=a%2Fout.txt"
        assert address in links(shown)
        lines = page(client, address)
        assert '<span class="removed">- two</span>' in lines
        assert '<span class="added">+ 2</span>' in lines
        same = page(client, f"/runs/compare?run={RUN}&run={RUN}")
        assert "No task differs." in text(same)
        assert "2 tasks ended alike" in text(same)


@each("query", ["", "?run=5b0c7a52", "?a=5b0c7a52", f"?run={RUN}&run={RUN}&run={RUN}"])
def test_two_runs_are_compared_and_no_other_number(tmp_path: Path, query: str) -> None:
    lived(tmp_path, b"", b"")
    with pages(tmp_path) as client:
        assert client.get(f"/runs/compare{query}").status_code == 400


@each("content", [b"\x00binary", b"x" * (DIFF_BYTES_MAX + 1)])
def test_what_has_no_lines_to_show_says_so(tmp_path: Path, content: bytes) -> None:
    lived(tmp_path, b"one\n", content)
    with pages(tmp_path) as client:
        assert client.get(f"/runs/compare?a={RUN}&b={SECOND}&file=a/out.txt").status_code == 404
        assert client.get(f"/runs/compare?a={RUN}&b={SECOND}&file=a/none.txt").status_code == 404


def test_hostile_lines_stay_lines(tmp_path: Path) -> None:
    lived(tmp_path, "\n".join(MARKUP.values()).encode(), b"plain\n")
    with pages(tmp_path) as client:
        shown = page(client, f"/runs/compare?a={RUN}&b={SECOND}&file=a/out.txt")
        assert "<script>document" not in shown
        assert "&lt;script&gt;document" in shown
