from __future__ import annotations

from collections import defaultdict

from .models import Diary

HEADINGS = {
    "accident": "Accidents", "defect": "Defects", "work": "Work done", "staff": "Staff", "delivery": "Deliveries",
    "visit": "Visits", "weather": "Weather",
}


def compose(diary: Diary) -> str:
    """The diary as Markdown. By rule, without a model: what was said stands there, nothing else."""
    by_kind = defaultdict(list)
    for entry in diary.entries:
        by_kind[entry.kind].append(entry)
    lines = [f"# Site diary {diary.site}, {diary.day:%d.%m.%Y}"]
    for kind, heading in HEADINGS.items():
        if not by_kind[kind]:
            continue
        lines += ["", f"## {heading}", ""]
        for entry in sorted(by_kind[kind], key=lambda one: not one.urgent):
            mark = "**URGENT** " if entry.urgent else ""
            where = f" ({entry.place})" if entry.place else ""
            hours = f", {entry.hours:g} h" if entry.hours is not None else ""
            lines.append(f"- {mark}{entry.text}{where}{hours}")
    hours = sum(entry.hours or 0 for entry in by_kind["staff"])
    lines += ["", f"Hours of staff: {hours:g}"]
    if diary.failed:
        lines += ["", "## Not readable", "", *[f"- {one}" for one in diary.failed]]
    return "\n".join(lines) + "\n"
