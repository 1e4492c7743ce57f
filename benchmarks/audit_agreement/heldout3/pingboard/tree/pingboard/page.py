"""The status page: one HTML file, no script."""
from __future__ import annotations

import html
import os
import time
from pathlib import Path

from .history import Summary

STYLE = "body{font:16px sans-serif;margin:2em auto;max-width:40em}td{padding:.3em 1em}.up{color:#080}.down{color:#b00}"


def ago(seconds: float) -> str:
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def render(summaries: list[Summary], now: float) -> str:
    rows = [
        f"<tr class={'up' if one.up else 'down'}><td>{html.escape(one.target)}</td><td>{'up' if one.up else 'DOWN'}</td>"
        f"<td>{ago(now - one.since)}</td><td>{one.uptime:.2%}</td><td>{one.millis:.0f} ms</td></tr>"
        for one in sorted(summaries, key=lambda one: (one.up, one.target))
    ]
    down = sum(not one.up for one in summaries)
    head = "All services are up" if not down else f"{down} of {len(summaries)} services are down"
    stamp = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    return (
        f"<!doctype html><meta charset=utf-8><title>{head}</title><style>{STYLE}</style><h1>{head}</h1>"
        f"<table><tr><th>service<th>state<th>since<th>30 days<th>mean</tr>{''.join(rows)}</table><p>{stamp}</p>\n"
    )


def publish(text: str, path: Path) -> None:
    """Replaced in one step, so that a reader never sees half a page."""
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    os.replace(part, path)
