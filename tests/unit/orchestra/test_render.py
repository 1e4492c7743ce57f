"""A run's configuration shows all that it holds, whatever shows it."""

from __future__ import annotations

import re
import sys

import msgspec

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.actors.orchestra.planning.render import rendered
from pmagent.events.unseen import UNSEEN
from tests.support.cases import each
from tests.support.orchestra import config

UNSEEN_CHARS = re.findall(f"[{UNSEEN}]", "".join(map(chr, range(sys.maxunicode + 1))))


@each("before", ["", "two\nlines "])
def test_no_character_of_a_prompt_hides_or_is_obeyed(before: str) -> None:
    said = config()
    planner = f"{before}{''.join(UNSEEN_CHARS)}\n"
    prompts = msgspec.structs.replace(said.llm.prompts, planner=planner)
    said = msgspec.structs.replace(said, llm=msgspec.structs.replace(said.llm, prompts=prompts))
    text = rendered(said)
    assert not set(text) & set(UNSEEN_CHARS)
    assert read_config(text) == said


def test_what_can_be_seen_is_shown_as_it_is() -> None:
    said = config()
    prompts = msgspec.structs.replace(said.llm.prompts, planner="Größe\n\t日本 \U0001f600\n")
    text = rendered(msgspec.structs.replace(said, llm=msgspec.structs.replace(said.llm, prompts=prompts)))
    assert "    planner: |\n      Größe\n      \t日本 \U0001f600\n" in text
