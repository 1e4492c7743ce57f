"""``pmagent log show|why|verify|export|stat``, on intact logs and on damaged ones."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from pmagent.log.summaries import known
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.logged import flip, note, segments, write_log


@pytest.fixture
def caused(tmp_path: Path) -> Path:
    """A log with causes: 2 caused 3 and 4, 3 caused 5 and 6, 6 caused 7; 8 stands alone."""
    causes = {3: 2, 4: 2, 5: 3, 6: 3, 7: 6}
    write_log(tmp_path, [note(n, causation=causes.get(n, 0)) for n in range(2, 9)])
    return tmp_path


def first_numbers(lines: list[str]) -> list[int]:
    """The positions that lines begin with."""
    return [int(line.split()[0]) for line in lines if line.split() and line.split()[0].isdigit()]


def test_why_draws_the_path_from_the_first_cause_and_the_tree_of_consequences(caused: Path) -> None:
    done = pmagent(caused, "log", "why", "3")
    assert done.code == 0
    lines = done.lines[1:]
    assert first_numbers(lines) == [2, 3, 5, 6, 7]
    assert [line[line.find("•") - 3 : line.find("•")] for line in lines] == ["   ", "└─ ", "├─ ", "└─ ", "└─ "]
    assert "◀" in lines[1]
    assert "◀" not in lines[2]


def test_why_of_the_root_shows_all_of_it_and_of_a_leaf_its_causes(caused: Path) -> None:
    assert first_numbers(pmagent(caused, "log", "why", "2").lines) == [2, 3, 5, 6, 7, 4]
    assert first_numbers(pmagent(caused, "log", "why", "7").lines) == [2, 3, 6, 7]
    assert first_numbers(pmagent(caused, "log", "why", "8").lines) == [8]


def test_why_is_bounded_in_number_and_depth_and_says_so(caused: Path) -> None:
    done = pmagent(caused, "log", "why", "2", "--limit", "2")
    assert first_numbers(done.lines) == [2, 3, 4]
    assert "… and 2 more" in done.text
    assert first_numbers(pmagent(caused, "log", "why", "2", "--depth", "1").lines) == [2, 3, 4]


def test_an_event_that_names_a_later_cause_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path, [note(2, causation=3), note(3)])
    done = pmagent(tmp_path, "log", "why", "2")
    assert done.code == 1
    assert "3, which comes after it" in done.errors


def test_why_as_a_document(caused: Path) -> None:
    document = pmagent(caused, "log", "why", "3", "--format", "json").document
    assert [event["position"] for event in document["causes"]] == [2, 3]
    assert [(node["position"], node["depth"]) for node in document["consequences"]] == [(5, 1), (6, 1), (7, 2)]
    assert document["consequences"][0]["data"] == {"n": 5}


def test_a_chain_longer_than_the_screen_is_drawn(tmp_path: Path) -> None:
    write_log(tmp_path, [note(n, causation=n - 1 if n > 2 else 0) for n in range(2, 1300)])
    done = pmagent(tmp_path, "log", "why", "2", "--limit", "100000", "--depth", "1000", environ={"COLUMNS": "100"})
    assert done.code == 0
    assert len(done.lines) == 1002
    last = pmagent(tmp_path, "log", "why", "1299")
    assert "too many causes to show all" in last.text


def test_show_has_causes_above_consequences_below_and_the_proof(caused: Path) -> None:
    done = pmagent(caused, "log", "show", "3")
    lines = done.lines
    assert first_numbers(lines) == [2, 5, 6]
    assert "position    3" in lines
    assert any(line.startswith("verified    ✓ yes: 00000000000000000001.jsonl, byte ") for line in lines)
    document = pmagent(caused, "log", "show", "3", "--format", "json").document
    place = document["verified"]
    assert segments(caused)[0].read_bytes()[place["offset"] :].split(b"\n")[0].startswith(b'{"position":3,')
    assert document["event"]["data"] == {"n": 3}
    assert [event["position"] for event in document["consequences"]] == [5, 6]


def test_events_are_found_by_id_too(tmp_path: Path) -> None:
    drafts = [note(1, id="42"), note(2, id='odd "id" \\ ü'), note(3, id="2.toy.0", decision=True, causation=2)]
    write_log(tmp_path, drafts)
    for named, position in (("id:42", 2), ('odd "id" \\ ü', 3), ("2.toy.0", 4), ("id:2.toy.0", 4)):
        document = pmagent(tmp_path, "log", "show", named, "--format", "json").document
        assert document["event"]["position"] == position


@each("named", ["0", "99", "99999999999999999", "nobody", "9.toy.0", "id:2"])
@each("command", ["show", "why"])
def test_an_event_that_is_not_there_is_a_clear_no(caused: Path, command: str, named: str) -> None:
    done = pmagent(caused, "log", command, named)
    assert (done.code, done.text) == (1, "")
    assert done.errors.startswith("error: the log has no ")


def test_verify_says_that_all_is_well(caused: Path) -> None:
    for path in ([], [str(caused)], [str(caused / ".pmagent")], [str(Layout(caused).home)], [str(Layout(caused).log)]):
        done = pmagent(caused, "log", "verify", "--decode", *path)
        assert done.code == 0, done.errors
        assert done.text.startswith("✓ intact: 8 events")


def test_verify_names_file_offset_and_position_of_damage_and_exits_4(caused: Path) -> None:
    raw = segments(caused)[0].read_bytes()
    offset = raw.index(b'{"position":5,')
    flip(segments(caused)[0], offset + 60)
    done = pmagent(caused, "log", "verify")
    assert done.code == 4
    assert f"00000000000000000001.jsonl, byte {offset}, position 5" in done.text
    assert "pmagent log export --until 4" in done.errors
    finding = pmagent(caused, "log", "verify", "--format", "json").document["finding"]
    assert (finding["offset"], finding["position"]) == (offset, 5)


def test_the_way_out_that_verify_names_works_for_the_path_that_it_was_given(caused: Path, tmp_path: Path) -> None:
    raw = segments(caused)[0].read_bytes()
    flip(segments(caused)[0], raw.index(b'{"position":5,') + 60)
    path = tmp_path / "its copy"
    shutil.copytree(caused / ".pmagent", path / ".pmagent")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = pmagent(elsewhere, "log", "verify", str(path))
    command = done.errors.split("pmagent ", 1)[1].split(";", 1)[0]
    exported = pmagent(elsewhere, *shlex.split(command))
    assert (exported.code, exported.out) == (0, raw[: raw.index(b'{"position":5,')])


def test_what_stands_behind_the_durable_end_is_named_and_no_damage(caused: Path) -> None:
    raw = segments(caused)[0].read_bytes()
    segments(caused)[0].write_bytes(raw + raw.splitlines(keepends=True)[-1][:-9])
    done = pmagent(caused, "log", "verify")
    assert done.code == 0
    assert f"00000000000000000001.jsonl, byte {len(raw)}, position 9: " in done.text


def test_a_doubled_last_line_is_found(caused: Path) -> None:
    raw = segments(caused)[0].read_bytes()
    segments(caused)[0].write_bytes(raw + raw.splitlines(keepends=True)[-1])
    finding = pmagent(caused, "log", "verify", "--format", "json")
    assert finding.code == 4
    assert (finding.document["finding"]["offset"], finding.document["finding"]["position"]) == (len(raw), 9)


def test_export_is_byte_faithful_and_takes_ranges(caused: Path, tmp_path: Path) -> None:
    stored = segments(caused)[0].read_text()
    assert pmagent(caused, "log", "export").text == stored
    assert pmagent(caused, "log", "export", "--from", "3", "--until", "5").lines == stored.splitlines()[2:5]
    assert pmagent(caused, "log", "export", "--from", "5", "--until", "3").text == ""
    file = tmp_path / "copy.jsonl"
    assert pmagent(caused, "log", "export", "-o", str(file)).code == 0
    assert file.read_text() == stored


def test_export_gives_what_is_intact_of_a_corrupt_log_and_exits_4(caused: Path, tmp_path: Path) -> None:
    raw = segments(caused)[0].read_bytes()
    offset = raw.index(b'{"position":5,')
    flip(segments(caused)[0], offset + 60)
    done = pmagent(caused, "log", "export")
    assert (done.code, done.out) == (4, raw[:offset])
    assert "position 5" in done.errors
    assert pmagent(caused, "log", "export", "--until", "4").code == 0
    file = tmp_path / "copy.jsonl"
    assert pmagent(caused, "log", "export", "-o", str(file)).code == 4
    assert file.read_bytes() == raw[:offset]


@pytest.mark.parametrize("command", [["tail", "-n", "all"], ["stat"], ["show", "7"], ["why", "7"]])
def test_every_reading_command_ends_with_4_at_damage(caused: Path, command: list[str]) -> None:
    flip(segments(caused)[0], segments(caused)[0].read_bytes().index(b'{"position":7,') + 60)
    done = pmagent(caused, "log", *command)
    assert done.code == 4
    assert "the log is corrupt" in done.errors


def test_stat_counts(caused: Path) -> None:
    document = pmagent(caused, "log", "stat", "--format", "json").document
    assert document["events"] == 8
    assert document["types"] == {"toy.noted": 7, "log.created": 1}
    assert document["actors"] == {"toy": 7, "log": 1}
    assert document["bytes"] == sum(path.stat().st_size for path in segments(caused))
    assert sum(document["batches"]["by_size"].values()) == document["batches"]["count"]
    lines = segments(caused)[0].read_bytes().splitlines(keepends=True)
    assert document["largest_line"]["bytes"] == max(map(len, lines))
    done = pmagent(caused, "log", "stat")
    assert "8 events in 1 segment(s)" in done.text


def test_stat_stays_bounded_with_endless_names(tmp_path: Path) -> None:
    write_log(tmp_path, [note(n, type=f"t{n}.done") for n in range(1100)])
    types = pmagent(tmp_path, "log", "stat", "--format", "json").document["types"]
    assert types["(others)"] == 101
    assert len(types) == 1001


def test_every_type_there_is_has_a_line_of_its_own() -> None:
    from pmagent.actors.registry import all_actors
    from pmagent.contracts.payload import types

    assert all_actors()
    modules = ("pmagent.contracts.", "pmagent.events.")
    assert {name for name, cls in types().items() if cls.__module__.startswith(modules)} <= {*known()}


def test_who_was_not_let_in_and_is_not_known_is_somebody(tmp_path: Path) -> None:
    names = ("", "bob")
    write_log(tmp_path, [
        note(n, {"operator_id": name, "by": "link", "reason": "too old"}, type="console.refused")
        for n, name in enumerate(names)
    ])  # fmt: skip
    told = pmagent(tmp_path, "log", "tail", "--type", "console.refused").lines
    assert [line.partition("run-1")[2].strip() for line in told] == [
        "somebody was not let in: too old", "bob was not let in: too old",
    ]  # fmt: skip
