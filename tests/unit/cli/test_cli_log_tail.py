"""``pmagent log tail``: which events are shown, in which form, and where one can go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.logged import flip, note, segments, write_log


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """A workspace whose log holds log.created and 30 events of some kinds."""
    drafts = [
        note(
            n, {"n": n, "deep": {"words": ["zero", f"w{n}"]}, "even": n % 2 == 0}, actor=("ann", "bob")[n % 2],
            type=("a.done", "a.failed", "b.done")[n % 3], correlation=f"run-{n // 10}",
        )
        for n in range(30)
    ]
    write_log(tmp_path, drafts)
    return tmp_path


def positions(workspace: Path, *arguments: str) -> list[int]:
    """Positions that a tail shows."""
    done = pmagent(workspace, "log", "tail", *arguments)
    assert done.code == 0, done.errors
    return [int(line.split()[0]) for line in done.lines]


def test_the_last_twenty_are_shown_unless_told(logged: Path) -> None:
    assert positions(logged) == list(range(12, 32))
    assert positions(logged, "-n", "3") == [29, 30, 31]
    assert positions(logged, "-n", "0") == []
    assert positions(logged, "-n", "all") == list(range(1, 32))
    assert positions(logged, "-n", "1000") == list(range(1, 32))


def test_the_last_n_are_the_last_that_match(logged: Path) -> None:
    assert positions(logged, "-n", "2", "--type", "b.*") == [28, 31]
    assert positions(logged, "-n", "2", "--type", "log.*") == [1]


def test_the_last_n_are_found_however_far_back(tmp_path: Path) -> None:
    write_log(tmp_path, [note(0, type="rare.done")], 200_000)
    write_log(tmp_path, [note(n) for n in range(1, 9000)], 200_000)
    assert positions(tmp_path, "-n", "1", "--type", "rare.*") == [2]


@each("arguments, wanted", [
    (["--type", "a.*"], lambda n: n % 3 != 2),
    (["--type", "a.done", "--type", "b.*"], lambda n: n % 3 != 1),
    (["--type", "a.*", "--exclude", "*.failed"], lambda n: n % 3 == 0),
    (["--actor", "ann"], lambda n: n % 2 == 0),
    (["--actor", "ann", "--actor", "bob", "--correlation", "run-1"], lambda n: 10 <= n < 20),
    (["kind=fact", "data.even=true"], lambda n: n % 2 == 0),
    (["data.n=7", "data.n=9"], lambda n: n in (7, 9)),
    (["data.deep.words.1=w4"], lambda n: n == 4),
    (["position=7"], lambda n: n == 5),
    (["data.none=null", "actor=bob"], lambda n: n % 2 == 1),
    (["--grep", r"w1\d\b"], lambda n: 10 <= n < 20),
    (["--until", "pos:11"], lambda n: n <= 9),
    (["--since", "pos:11"], lambda n: n >= 9),
    (["--after", "11"], lambda n: n >= 10),
    (["--since", "1h", "--until", "now"], lambda n: n >= 0),
    (["--since", "2100-01-01"], lambda n: n < 0),
    (["--until", "2000-01-01"], lambda n: n < 0),
])
def test_filters(logged: Path, arguments: list[str], wanted: object) -> None:
    assert callable(wanted)
    shown = [position for position in positions(logged, "-n", "all", *arguments) if position > 1]
    assert shown == [n + 2 for n in range(30) if wanted(n)]


def test_since_a_time_begins_with_the_event_of_that_time(logged: Path) -> None:
    document = pmagent(logged, "log", "show", "9", "--format", "json").document
    shown = positions(logged, "--since", document["event"]["time"], "--until", "pos:12")
    assert shown[-1] == 12
    assert 9 in shown


@each(
    "arguments",
    [
        ["x=1"], ["novalue"], ["--grep", "("], ["--since", "soon"], ["--since", "pos:0"], ["-n", "few"],
        ["--timeout", "x"],
    ],
)
def test_a_filter_that_is_not_understood_is_a_usage_error(logged: Path, arguments: list[str]) -> None:
    done = pmagent(logged, "log", "tail", *arguments)
    assert (done.code, done.text) == (2, "")
    assert "hint:" in done.errors


def test_json_is_the_stored_lines_byte_for_byte(logged: Path) -> None:
    stored = b"".join(path.read_bytes() for path in segments(logged)).decode().splitlines()
    assert pmagent(logged, "log", "tail", "-n", "all", "--format", "json").lines == stored
    wanted = [line for line in stored if '"actor":"ann"' in line]
    assert pmagent(logged, "log", "tail", "--actor", "ann", "-n", "5", "--format", "json").lines == wanted[-5:]


def test_json_lines_are_kept_across_segments(tmp_path: Path) -> None:
    write_log(tmp_path, [note(n) for n in range(200)], 4096)
    stored = b"".join(path.read_bytes() for path in segments(tmp_path)).decode()
    assert len(segments(tmp_path)) > 5
    assert pmagent(tmp_path, "log", "tail", "-n", "all", "--format", "json").text == stored


def test_it_goes_on_where_the_cursor_says(logged: Path) -> None:
    first = pmagent(logged, "log", "tail", "--until", "pos:20", "-n", "all", "--show-cursor")
    assert first.errors == "— cursor 20 —\n"
    assert positions(logged, "--after", "20") == list(range(21, 32))
    write_log(logged, [note(99)])
    assert positions(logged, "--after", "31") == [32]


def test_exit_on_ends_at_the_first_such_event_and_says_no_when_there_is_none(logged: Path) -> None:
    done = pmagent(logged, "log", "tail", "-n", "all", "--exit-on", "a.failed")
    assert done.code == 0
    assert len(done.lines) == 3
    assert pmagent(logged, "log", "tail", "--exit-on", "z.*").code == 1


def test_following_ends_at_its_time_limit(logged: Path) -> None:
    done = pmagent(logged, "log", "tail", "-f", "-n", "1", "--timeout", "1ms")
    assert (done.code, len(done.lines)) == (0, 1)
    assert "— caught up at 31 —" in done.errors
    assert pmagent(logged, "log", "tail", "-f", "--exit-on", "z.*", "--timeout", "1ms").code == 6
    assert pmagent(logged, "log", "tail", "-f", "--exit-on", "b.*", "--timeout", "1m").code == 0


def test_lines_are_no_wider_than_the_screen(logged: Path) -> None:
    write_log(logged, [note(50, {"text": "世界" * 5000}), note(51, {"text": "x" * 900_000})])
    for columns in (80, 100, 120, 140):
        done = pmagent(logged, "log", "tail", environ={"COLUMNS": str(columns)})
        assert max(len(line) for line in done.lines) <= columns


def test_a_workspace_without_a_log_says_what_to_do(tmp_path: Path) -> None:
    done = pmagent(tmp_path, "log", "tail")
    assert done.code == 1
    assert done.errors.startswith("error: there is no log in")
    assert "hint: pmagent init" in done.errors


def test_data_of_an_unknown_or_odd_shape_is_shown_all_the_same(tmp_path: Path) -> None:
    odd: list[Any] = [[], 1, "text", {"blob": {}}, {"blob": {"size": "x"}}, {"surfaces": 1}, {"reasons": {"a": 1}}, {}]
    types = ["kernel.observed", "kernel.mode_decided", "oa.escalated", "oa.permit_refused", "new.done"]
    drafts = [note(0, data, type=type, id=f"{n}.{type}") for n, data in enumerate(odd) for type in types]
    write_log(tmp_path, drafts)
    done = pmagent(tmp_path, "log", "tail", "-n", "all")
    assert (done.code, len(done.lines)) == (0, 1 + len(odd) * len(types))


def test_an_error_behind_events_leaves_nothing_but_events_on_stdout(tmp_path: Path) -> None:
    write_log(tmp_path, [note(n) for n in range(2, 31)])
    (segment,) = segments(tmp_path)
    stored = segment.read_text().splitlines()
    flip(segment, sum(len(line) + 1 for line in stored[:24]) + 30)
    done = pmagent(tmp_path, "log", "tail", "-n", "all", "--format", "json")
    assert (done.code, done.lines) == (4, stored[:24])
    assert "position 25" in done.errors


RUN = "5b0c7a52-0000-4000-8000-000000000001"


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """A workspace whose log ends as a run does in which all went well."""
    write_log(tmp_path, [
        note(1, {"text": "wanted"}, type="run.requested", correlation=RUN),
        note(2, {"text": "another"}, type="run.requested", correlation=RUN.replace("5b0c7a52", "5b0c7a53")),
        note(3, {"request": 7}, type="effect.cancel_requested", correlation=RUN, decision=True),
        note(4, {"state": "done", "done": 1, "failed": 0, "reasons": []}, type="run.ended", correlation=RUN),
        note(5, {"permit": 2, "reason": "its run is over"}, type="oa.permit_revoked", correlation=RUN, decision=True),
        note(6, {"request": 7, "reason": "cancel_requested"}, type="effect.cancelled", correlation=RUN),
        note(7, {"reason": "done"}, type="daemon.stopped", correlation=f"oa.permit-{RUN}"),
    ])  # fmt: skip
    return tmp_path


def test_a_run_that_went_well_ends_well_and_what_only_tidies_up_is_asked_for(ran: Path) -> None:
    last = pmagent(ran, "log", "tail", "-n", "2")
    assert [line.split()[3:5] for line in last.lines] == [["✓", "run.ended"], ["✓", "daemon.stopped"]]
    assert positions(ran) == [1, 2, 3, 5, 8]
    assert positions(ran, "--all") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert "✗" not in pmagent(ran, "log", "tail", "--all").text
    assert positions(ran, "--type", "effect.*") == [4, 7]
    assert positions(ran, "--grep", "its run is over") == [6]
    assert len(pmagent(ran, "log", "tail", "--format", "json").lines) == 8


def test_a_permit_that_is_taken_away_stays_a_cross(ran: Path) -> None:
    write_log(ran, [
        note(8, {"permit": 2, "reason": "mode BLOCKED"}, type="oa.permit_revoked"),
        note(9, {"request": 7, "reason": "permit_revoked"}, type="effect.cancelled"),
        note(10, {"state": "failed"}, type="run.ended"),
    ])  # fmt: skip
    assert [line.split()[3] for line in pmagent(ran, "log", "tail", "-n", "3").lines] == ["✗"] * 3


def test_an_id_is_accepted_as_it_is_shown(ran: Path) -> None:
    assert pmagent(ran, "log", "tail", "-n", "1").text.split()[5] == RUN[:8]
    assert positions(ran, "--all", "--correlation", RUN[:8]) == [2, 4, 5, 6, 7, 8]
    assert positions(ran, "--all", "--correlation", RUN[:8] + "…", "-n", "2") == [7, 8]
    assert positions(ran, "--all", "--correlation", RUN) == [2, 4, 5, 6, 7]
    assert positions(ran, "--correlation", RUN[:7]) == []


def test_at_80_columns_the_summary_has_half_of_the_line(ran: Path) -> None:
    write_log(ran, [note(8, {"reason": "x" * 200}, type="daemon.stopped", correlation=RUN)])
    (line,) = pmagent(ran, "log", "tail", "-n", "1", environ={"COLUMNS": "80"}).lines
    assert len(line) <= 80
    assert line.count("x") >= 30
