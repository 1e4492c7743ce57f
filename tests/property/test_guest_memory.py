"""Facts and verdicts that are used again for guests' calls are those that would be found anew."""

from __future__ import annotations

import ast
import errno
import glob
import hmac
import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pmagent.guests
from pmagent.actors.guests.judge import _Known, judge
from pmagent.actors.guests.matching import hints_of, holds, names_tool, parts_of, pattern
from pmagent.contracts.guest_calls import Call, Command, Layer, Policy, Rule, Situation, When
from pmagent.guests import facts, shell
from pmagent.guests.files import Files, NotResolved
from pmagent.guests.gathered import Gathered
from pmagent.guests.keys import mac
from tests.property.test_guest_policy import calls, made_rules, policies, situations
from tests.support.effort import examples
from tests.support.policies import NORMAL

LINES: Final = (
    "cat a", "cat a/b > c", "rm -rf a", "cp a b", "ln -s a b", "cd a && cat b", "mv a c", "cat *", "ls a/*",
    "grep -r x a", "git add c", "head a/b | tee c", "cat ./a/../c", "find a -name b", "make c",
)  # fmt: skip
NAMES: Final = ("a", "b", "c", "a/b", "a/c", "b/a")
TARGETS: Final = ("a", "b", "c", ".", "..", "gone", "/etc", "a/b")


def change(root: Path, step: tuple[str, str, str]) -> None:
    """Make a file, a folder, a link or a second name of a file, or remove what is there; below ``root`` alone, wherever
    its links lead."""
    how, name, target = step
    folder = Path(os.path.realpath((root / name).parent))
    if not (folder.is_dir() and folder.is_relative_to(root)):
        return
    path = folder / Path(name).name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if how == "file":
        path.write_text("x")
    elif how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to(target)
    elif how == "name" and (root / target).is_file():
        path.hardlink_to(root / target)


steps = st.tuples(
    st.sampled_from(["file", "folder", "link", "name", "nothing"]), st.sampled_from(NAMES), st.sampled_from(TARGETS)
)


def call(root: Path, line: str) -> Call:
    return facts.look("claude", "s", "", "", "Bash", {"command": line}, "", str(root), str(root), cedar=())


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.one_of(steps, st.sampled_from(LINES)), max_size=30))
def test_facts_are_those_of_the_files_as_they_are(history: list[tuple[str, str, str] | str]) -> None:
    with TemporaryDirectory() as made:
        root = Path(os.path.realpath(made))
        for one in history:
            if isinstance(one, tuple):
                change(root, one)
                continue
            known = call(root, one)
            facts._seen.clear()
            anew = call(root, one)
            assert {*known.mentions} == {*anew.mentions}
            assert msgspec.structs.replace(known, mentions=anew.mentions) == anew


def test_a_line_that_was_seen_is_taken_apart_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    read: list[str] = []
    plain = shell.read_line

    def counted(line: str, gathered: Gathered, cwd: str | None) -> None:
        read.append(line)
        plain(line, gathered, cwd)

    monkeypatch.setattr(shell, "read_line", counted)
    facts._seen.clear()
    for _ in range(3):
        assert call(tmp_path, "cat a").reads == [f"{tmp_path}/a"]
    assert read == ["cat a"]
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/gone")
    assert call(tmp_path, "cat a").reads == ["/etc/gone"]


def test_a_folder_is_looked_through_each_time(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert call(tmp_path, "rm -rf a").writes == [f"{tmp_path}/a"]
    (tmp_path / "a/.env").touch()
    assert call(tmp_path, "rm -rf a").writes == [f"{tmp_path}/a", f"{tmp_path}/a/.env"]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(steps, max_size=12), st.lists(st.sampled_from(["a", "b", "c", ".", "..", "gone"]), max_size=5))
def test_paths_are_resolved_as_the_system_does(made: list[tuple[str, str, str]], names: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        for one in made:
            change(root, one)
        (root / "gone").symlink_to("c/none")
        path = "/".join((str(root), *names))
        try:
            real, links = Files().real(path)
        except NotResolved:
            with pytest.raises(OSError, match=re.escape(path)):
                os.close(os.open(path, os.O_PATH))
            return
        assert real == os.path.realpath(path)
        assert links == (os.stat(path).st_nlink if os.path.isfile(path) else 0)


def test_files_are_asked_about_in_one_place() -> None:
    """Beside ``Files`` only what looks through a folder, and says so, asks the machine."""
    allowed = {("gathered", "_whole"), ("gathered", "_entry"), ("gathered", "_ignored")}
    for name in ("gathered", "shell", "words", "programs", "single_programs", "text_programs"):
        source = Path(pmagent.guests.__path__[0], f"{name}.py").read_text()
        for function in (one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)):
            found = {ast.unparse(one.func) for one in ast.walk(function) if isinstance(one, ast.Call)}
            asks = {one for one in found if one == "open" or one.startswith(("os.", "glob.", "Path(", "shutil."))}
            assert asks <= {"glob.escape"} or (name, function.name) in allowed, (name, function.name, asks)


when = st.builds(
    When, mode=st.lists(st.sampled_from(["NORMAL", "DEGRADED"]), max_size=1), hours=st.sampled_from([[], [8, 12]]),
    branch=st.sampled_from([[], ["main"]]), labels=st.sampled_from([[], ["private"]]),
    subagent=st.sampled_from([None, True]),
)  # fmt: skip
limited = st.builds(
    lambda rule, when, expires: msgspec.structs.replace(rule, when=when, expires=expires), made_rules, when,
    st.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"]),
)  # fmt: skip
moments = st.sampled_from([f"2026-01-0{day}T00:00:00.000000Z" for day in (1, 2, 4)])


@settings(max_examples=examples(300), deadline=None)
@given(policies, st.lists(limited, max_size=4), st.lists(st.tuples(calls, situations, moments), min_size=1, max_size=3),
       st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 23)), max_size=6))  # fmt: skip
def test_verdicts_are_those_that_would_be_given_anew(
    policy: Policy, more: list[Rule], drawn: list[tuple[Call, Situation, str]], picked: list[tuple[int, int, int]]
) -> None:
    layers = [msgspec.structs.replace(policy.layers[0], rules=[*policy.layers[0].rules, *more])]
    policy = Policy(layers=layers, digest="d")
    for one, other, hour in picked:
        asked = msgspec.structs.replace(drawn[one % len(drawn)][0], hour=hour, session=f"s{hour}")
        _, situation, time = drawn[other % len(drawn)]
        situation = msgspec.structs.replace(situation, time=time)
        assert judge(asked, policy, situation) == judge(asked, Policy(layers=layers, digest="d"), situation)


@given(policies, calls)
def test_rules_are_found_by_how_they_begin(policy: Policy, asked: Call) -> None:
    known = _Known(policy)
    found = [rule for layer in policy.layers for rule in layer.rules]
    for part in (*parts_of(asked), *hints_of(asked)):
        matches = [(number, pattern(rule.match)) for number, rule in enumerate(found)]
        speak = [
            number for number, one in matches
            if (holds(one, part, asked.root, strict=True) if one.parts else names_tool(one, asked))
        ]  # fmt: skip
        assert [hit.held.number for hit in known.hits(part, asked)] == speak


def test_a_rule_is_found_whatever_the_case() -> None:
    rules = [Rule(id="no", match="Read(./Private/**)", answer="deny"), Rule(id="yes", match="Read", answer="allow")]
    policy = Policy(layers=[Layer(name="project", rules=rules)], digest="d")
    for path, answer in (("/w/private/a", "deny"), ("/w/Private", "deny"), ("/w/a/private", "allow")):
        asked = Call(harness="claude", session="s", tool="Read", kind="read", root="/w", reads=[path])
        assert judge(asked, policy, NORMAL).answer == answer
        assert judge(msgspec.structs.replace(asked, reads=["/w"], trees=["/w"]), policy, NORMAL).answer == "ask"


def test_a_rule_holds_as_long_as_it_says() -> None:
    rules = [
        Rule(id="soon", match="Bash(x)", answer="allow", expires="2026-01-02T00:00:00Z"),
        Rule(id="night", match="Bash(y)", answer="deny", when=When(hours=[22, 6])),
        Rule(id="bad", match="Bash(x)", answer="deny", when=When(mode=["DEGRADED"])),
    ]
    policy = Policy(layers=[Layer(name="project", rules=rules)], digest="d")

    def said(word: str, day: int, hour: int, mode: str = "NORMAL") -> str:
        asked = Call(
            harness="claude", session="s", tool="Bash", kind="shell", root="/w", hour=hour,
            commands=[Command(words=[word], sets=[])],
        )  # fmt: skip
        return judge(asked, policy, Situation(mode=mode, time=f"2026-01-0{day}T00:00:00.000000Z")).answer

    assert [said("x", day, 12) for day in (1, 2, 1)] == ["allow", "ask", "allow"]
    assert [said("y", 1, hour) for hour in (12, 23, 12)] == ["ask", "deny", "ask"]
    assert [said("x", 1, 12, mode) for mode in ("NORMAL", "DEGRADED", "NORMAL")] == ["allow", "deny", "allow"]


@given(st.binary(max_size=64), st.binary(max_size=300))
def test_a_call_is_bound_by_hmac(key: bytes, content: bytes) -> None:
    assert mac(key, content) == hmac.digest(key, content, "sha256").hex()


PARTS: Final = st.sampled_from(["*", "**", "a", "b", "?", "[ab]", ".*", "a*", "", ".."])


@settings(max_examples=examples(400))
@given(st.lists(st.tuples(st.sampled_from(["file", "folder", "link"]), st.sampled_from([*NAMES, ".h", "a/b/a"]),
                          st.just("gone")), max_size=8),  # no link leads back: the library would not end
       st.lists(PARTS, min_size=1, max_size=4), st.integers(0, 40))  # fmt: skip
def test_a_wildcard_stands_for_what_the_library_finds_or_for_too_much(
    steps: list[tuple[str, str, str]], parts: list[str], left: int
) -> None:
    pattern = "/".join(parts).lstrip("/")
    with TemporaryDirectory() as outermost:
        folder = f"{outermost}/1/2/3/4"  # so deep that no pattern leads out of it
        os.makedirs(folder)
        for step in steps:
            change(Path(folder), step)
        named = filter(None, glob.glob(pattern, root_dir=folder, recursive=True))
        wanted = {os.path.normpath(one) for one in named if os.path.lexists(f"{folder}/{one}")}
        files = Files()
        files.left = left
        found, whole = files.matches(pattern, folder, 1000)
        assert {os.path.normpath(one) for one in found} - {"."} <= wanted
        assert not whole or {os.path.normpath(one) for one in found if one} - {"."} == wanted - {"."}
        assert 0 <= files.left <= left


def test_a_wildcard_ends_however_much_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at so many entries for all words of a call, and so does what goes through a folder."""
    for name in "abcdefgh":
        (tmp_path / name).mkdir()
        (tmp_path / name / "loop").symlink_to(tmp_path)
    monkeypatch.setattr("pmagent.guests.files.ENTRIES_MAX", 1000)
    looked: list[str] = []
    scandir = os.scandir

    def counted(path: str) -> Any:
        looked.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    for line in ("cat **/gone", "cat **/gone **/away */*/*/*/*/x", "rm -rf ./*/loop/ **/y"):
        looked.clear()
        found = facts.look("script", "s", "", "", "Bash", {"command": line}, "", str(tmp_path), str(tmp_path))
        assert found.unclear
        assert len(looked) < 1000 + 10


def test_a_wildcard_that_cannot_be_looked_for_stands_for_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Files().matches("*", str(tmp_path), 9) == ([], True)
    assert Files().matches("gone/*", str(tmp_path), 9) == ([], True)

    def no_descriptors(path: str) -> Any:
        raise OSError(errno.EMFILE, "too many open files", path)

    monkeypatch.setattr(os, "scandir", no_descriptors)
    assert Files().matches("*", str(tmp_path), 9) == ([], False)
