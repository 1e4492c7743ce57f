"""Version three. The first was one big prompt, the second a StateGraph; see the history."""

import os
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.types import RetryPolicy

from . import ask, wordpress
from .model import Chapter, Episode, Package, Summary
from .transcript import Part, cues, parts, stamp

OUT = Path(os.environ.get("PODSMITH_OUT", "out"))
again = RetryPolicy(max_attempts=3)


@task(retry=again)
def summarise(part: Part) -> Summary:
    return ask.summary(part)


@task(retry=again)
def find_chapters(episode: Episode, found: list[Part]) -> list[Chapter]:
    return ask.chapters(episode, found)


@task(retry=again)
def write_notes(episode: Episode, summaries: list[Summary]) -> str:
    return ask.notes(episode, summaries)


@task(retry=again)
def write_newsletter(episode: Episode, summaries: list[Summary]) -> str:
    return ask.newsletter(episode, summaries)


@task
def post(episode: Episode, notes: str, chapters: list[Chapter]) -> str:
    return wordpress.post(episode, notes, chapters)


@task
def store(episode: Episode, package: Package) -> str:
    folder = OUT / episode.key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.md").write_text(package.notes, "utf-8")
    (folder / "newsletter.txt").write_text(package.newsletter, "utf-8")
    marks = "\n".join(f"{stamp(one.second)} {one.title}" for one in package.chapters)
    (folder / "chapters.txt").write_text(marks, "utf-8")
    if package.link:
        (folder / "link.txt").write_text(package.link, "utf-8")
    return str(folder)


def make(saver: SqliteSaver):
    @entrypoint(checkpointer=saver)
    def produce(episode: Episode) -> str:
        found = parts(cues(Path(episode.path)))
        chapters = find_chapters(episode, found)
        summaries = [one.result() for one in [summarise(part) for part in found]]
        notes, letter = write_notes(episode, summaries), write_newsletter(episode, summaries)
        package = Package(notes=notes.result(), newsletter=letter.result(), chapters=chapters.result())
        if os.environ.get("WP_URL"):
            package.link = post(episode, package.notes, package.chapters).result()
        return store(episode, package).result()

    return produce
