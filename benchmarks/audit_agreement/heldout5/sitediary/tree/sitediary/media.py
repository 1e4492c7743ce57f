"""Memos to text, photos to descriptions, both to entries."""

from __future__ import annotations

import base64
import os
from functools import lru_cache

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import OpenAI

from .models import Entries, Source

MAX_BYTES = 20_000_000
SYSTEM = """You keep the diary of a building site. Turn what you get into entries. One fact per entry.
Accidents and defects that endanger people are urgent. Do not invent hours or names."""


class MediaError(Exception):
    pass


@lru_cache(maxsize=1)
def extractor():
    llm = ChatOpenAI(model=os.environ.get("DIARY_MODEL", "gpt-4o-mini"), temperature=0, timeout=60, max_tokens=1200)
    return llm.with_structured_output(Entries).with_retry(stop_after_attempt=3)


def transcribe(source: Source) -> str:
    with source.path.open("rb") as file:
        return OpenAI(timeout=120).audio.transcriptions.create(model="whisper-1", file=file).text


def read(source: Source) -> Entries:
    if source.path.stat().st_size > MAX_BYTES:
        raise MediaError(f"{source.path.name} is larger than {MAX_BYTES} bytes")
    try:
        if source.kind == "memo":
            content = f"Memo of the foreman:\n{transcribe(source)}"
        else:
            data = base64.b64encode(source.path.read_bytes()).decode()
            content = [
                {"type": "text", "text": "Photo from the site. Which work or defect is to be seen?"},
                {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}},
            ]
        return extractor().invoke([SystemMessage(SYSTEM), HumanMessage(content)])
    except Exception as error:
        raise MediaError(f"{source.path.name}: {error}") from error
