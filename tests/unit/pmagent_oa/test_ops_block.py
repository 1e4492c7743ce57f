"""The OPS block's Markdown: its sections, its evidence, and that no text breaks out of its place.

A Markdown parser reads the blocks here, so that their structure is what readers will see.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pmagent.contracts.reasoning import OPSBlockGeneratorResult
from pmagent.oa.ops_block import evidence_of, fenced, inline, ops_block, split_preflight
from pmagent.oa.reasoning_bridge import checked_envelope, checked_result
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.hostile import CORPUS
from tests.unit.pmagent_oa.test_reasoning_bridge import ENVELOPE, RESULT

SECTIONS = ["Goal", "Preflight", "Commands", "Evidence to return", "Next gate"]
FRAME = ["pmagent status", "pmagent oa guard --mode STRICT"]

HOSTILE = {
    **{name: text[:5000] for name, text in CORPUS.items() if text.isprintable() or "\ud800" not in text},
    "heading": "x\n# Commands\n## 🟦 OPS MODE — owned",
    "setext": "owned\n=====\nowned\n---",
    "fence": "x\n```sh\nrm -rf /\n```\n~~~\nowned",
    "html": "<script>alert(1)</script><!-- <details><summary>x</summary>",
    "list": "- a\n- b\n1. c\n2) d\n+ e",
    "starts like a list": "- a",
    "starts like a number": "1. a",
    "quote": "> owned\n>> owned",
    "rule": "---\n***\n___",
    "link": "[click](javascript:alert(1)) ![x](http://e.example/x.png) <http://e.example>",
    "reference": "[a]: http://e.example 'x'",
    "table": "a | b\n--- | ---\n1 | 2",
    "code": "`rm -rf /` ``x`` \\`y\\`",
    "emphasis": "*a* **b** _c_ __d__ ~~e~~",
    "entity": "&lt;script&gt; &#35; &copy;",
    "indented": "    indented code\n\tand so",
    "line separators": "a\u2028# b\u2029# c\x85# d\x0b# e\x0c# f\r# g",
    "bidi": "safe \u202e# owned",
    "nothing to be seen": "\u200b\u2060",
}


def block(
    goal: str, *commands: str, risk: str = "nothing is written", context: dict[str, Any] | None = None, **kernel: Any,
) -> str:
    """The Markdown of a result with these commands."""
    reference = {**ENVELOPE["kernel_state_ref"], **kernel}
    asked = {"program_id": "OPSBlockGenerator", "goal": goal, "kernel_state_ref": reference, "tools_allowed": []}
    asked["oa_context"] = {**ENVELOPE["oa_context"], **(context or {})}
    envelope = checked_envelope({**ENVELOPE, **asked})
    payload = OPSBlockGeneratorResult(ops_block=list(commands), complexity_score=3, risk_analysis=risk)
    decision = {"ops_block": list(commands), "complexity_score": 3, "risk_analysis": risk}
    result = checked_result({**RESULT, "program_id": "OPSBlockGenerator", "decision": decision})
    return ops_block(envelope, result, payload)


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def headings(tokens: list[Token]) -> list[tuple[str, str]]:
    return [
        (token.tag, tokens[number + 1].content) for number, token in enumerate(tokens) if token.type == "heading_open"
    ]


def plain(token: Token) -> str:
    """The text that a reader sees of an inline token."""
    return "".join(child.content for child in token.children or ())


def assert_sound(text: str, commands: list[str]) -> None:
    """The block has its six headings, its commands in fences and nothing else that is structure."""
    tokens = parsed(text)
    assert [tag for tag, _ in headings(tokens)] == ["h2", "h3", "h3", "h3", "h3", "h3"]
    assert [title for _, title in headings(tokens)][1:] == SECTIONS
    fences = [token for token in tokens if token.type == "fence"]
    assert [line for token in fences for line in token.content.rstrip("\n").split("\n")] == commands
    allowed = {
        "heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "fence", "bullet_list_open",
        "bullet_list_close", "list_item_open", "list_item_close",
    }
    assert {token.type for token in tokens} <= allowed
    assert text.count("\n### ") == len(SECTIONS)
    inner = {child.type for token in tokens for child in token.children or ()}
    assert inner <= {"text", "strong_open", "strong_close", "text_special"}


def test_a_block_has_its_sections_in_order() -> None:
    text = block("Verify the log", *FRAME, "pmagent log verify", "pmagent oa snapshot")
    assert_sound(text, [*FRAME, "pmagent log verify", "pmagent oa snapshot"])
    assert text.startswith("## 🟦 OPS MODE — Verify the log\n\n**Governance:** kernel NORMAL · phase 27 · branch main")
    assert "· status OK · engine rules · complexity 3 of 10 ·" in text
    preflight, commands = text.split("### Commands")
    assert "```sh\npmagent status\npmagent oa guard --mode STRICT\n```" in preflight
    assert "```sh\npmagent log verify\npmagent oa snapshot\n```" in commands
    assert "- output and exit code of: pmagent log verify" in commands


def test_references_and_hints_stand_with_the_goal() -> None:
    given = {
        "ssot_references": ["docs/tides.md", 3],
        "hints": [{"flow_id": "docs.create", "hint": "Mind the index"}, {"hint": "Be kind"}, {"flow_id": "x"}, "y"],
    }
    text = block("Write about tides", *FRAME, context=given)
    assert_sound(text, FRAME)
    goal = text.split("### Goal")[1].split("### Preflight")[0].split("\n\n")
    assert goal[1:3] == [
        "Write about tides",
        "- reference: docs/tides.md\n- hint for docs.create: Mind the index\n- hint for unknown: Be kind",
    ]
    assert "reference:" not in block("Write about tides", *FRAME, context={"ssot_references": "docs", "hints": {}})


def test_a_manual_step_has_its_place_among_the_commands_and_its_own_evidence() -> None:
    text = block("Write about tides", *FRAME, "# manual step: Write about tides", "pmagent oa snapshot")
    assert "```sh\n# manual step: Write about tides\npmagent oa snapshot\n```" in text.split("### Commands")[1]
    assert "- first 50 lines of each file that was written by hand" in text
    assert "exit code of: #" not in text


def test_a_block_without_commands_says_so() -> None:
    text = block("Push it", risk="no_git_push forbids: git push")
    assert_sound(text, [])
    assert "None: no block was generated.\n\nRisk: no_git_push forbids: git push" in text
    assert "Nothing: no command is to be run." in text


@each("name", HOSTILE)
def test_hostile_text_stays_in_its_place(name: str) -> None:
    text = HOSTILE[name]
    commands = [*FRAME, "echo 'a'"]
    kernel = {"bootstrap": {"branch": text}, "ssot_index": {"current_phase": text}}
    given = {"ssot_references": [text], "hints": [{"flow_id": text, "hint": text}]}
    made = block(text if text.strip() else "x", *commands, risk=text, context=given, **kernel)
    assert_sound(made, commands)
    assert not any(char in made for char in "\u202e\u2066\u200b\u2060\u2028\x85\x1b\r\x00")


@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet=st.sampled_from(list("#-*_`~>|[]()<>!&;:=+1.2) \n\t\\ab\u2028")), min_size=1, max_size=60))
def test_no_text_of_marks_breaks_out(text: str) -> None:
    if text.strip():
        assert_sound(block(text, *FRAME, risk=text), FRAME)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=80))
def test_a_line_says_the_same_to_its_reader(text: str) -> None:
    """A text is seen again as it was after its escaping; only what cannot be seen, and line breaks, become blanks."""
    made = inline(text)
    tokens = [token for token in parsed(made) if token.type == "inline"]
    seen = " ".join(plain(tokens[0]).split()) if tokens else ""
    gone = "".join(char if char.isprintable() or char.isspace() else " " for char in text)
    if gone == text:
        assert seen == " ".join(text.split()) or any(ord(char) in range(0x2000, 0x2070) for char in text)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.text(alphabet=st.sampled_from(list("`~sh \\a'#")), min_size=1, max_size=20), min_size=1, max_size=4))
def test_no_command_closes_its_fence(commands: list[str]) -> None:
    tokens = parsed(fenced(commands))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == "\n".join(commands) + "\n"


def test_a_command_that_hides_something_is_pointed_out() -> None:
    assert "**Careful:**" in block("x", "echo \u202egnp.exe")
    assert "**Careful:**" not in block("x", "echo é 漢")


@each("command, asked", [
    ("pmagent oa guard --mode STRICT", "JSON report of: pmagent oa guard --mode STRICT"),
    ("test -f docs/a.md", "exit code of: test -f docs/a.md"),
    ("echo hi > docs/a.md", "first 50 lines of docs/a.md"),
    ("printf x >> 'my file'", "first 50 lines of my file"),
    ("pmagent log verify > /dev/null", "output and exit code of: pmagent log verify > /dev/null"),
    ("mkdir -p docs", "output and exit code of: mkdir -p docs"),
    ("echo 'unclosed", "output and exit code of: echo 'unclosed"),
    ("echo '>' x", "output and exit code of: echo '>' x"),
    ("echo \\> x", "output and exit code of: echo \\> x"),
    ("grep --a='b > c' \"d > e\" f", "output and exit code of: grep --a='b > c' \"d > e\" f"),
    ("echo a>b", "first 50 lines of b"),
])
def test_evidence_is_computed_from_the_command(command: str, asked: str) -> None:
    assert evidence_of([command]) == [asked]


def test_evidence_is_asked_for_once_and_is_short() -> None:
    assert len(evidence_of(["pmagent status", "pmagent status"])) == 1
    assert len(evidence_of(["x" * 4000])[0]) == 300


@each("command", [
    "test -f a; rm -rf b", "test -f $(rm a)", "test -f `rm a`", "pmagent status > out", "pmagent status && rm a",
    "pmagent status | sh", 'test -f "$(rm a)"', "pmagent kernel refresh", "pmagent", "testing", "test -f 'a",
    "pmagent status & rm a",
])
def test_only_what_does_nothing_but_look_is_preflight(command: str) -> None:
    assert split_preflight(["pmagent status", command, "test -f b"]) == (["pmagent status"], [command, "test -f b"])


def test_a_block_of_checks_alone_is_all_preflight() -> None:
    assert split_preflight([*FRAME, "test -f a"]) == ([*FRAME, "test -f a"], [])
    assert_sound(block("look", *FRAME), FRAME)
    assert split_preflight([]) == ([], [])
