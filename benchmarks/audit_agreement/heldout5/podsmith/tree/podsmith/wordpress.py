import os

import httpx

from .model import Chapter, Episode
from .transcript import stamp


def post(episode: Episode, notes: str, chapters: list[Chapter]) -> str:
    marks = "\n".join(f"{stamp(one.second)} {one.title}" for one in chapters)
    reply = httpx.post(
        os.environ["WP_URL"] + "/wp-json/wp/v2/posts",
        json={
            "title": episode.title,
            "content": f"{notes}\n\n{marks}",
            "status": "publish" if episode.publish else "draft",
        },
        auth=(os.environ["WP_USER"], os.environ["WP_APP_PASSWORD"]),
    )
    reply.raise_for_status()
    return reply.json()["link"]
