"""From readings to a mark."""

WEIGHT = {"strict": 1, "kind": 1, "practical": 2}


def settle(readings: list, facts: list) -> dict:
    total = sum(WEIGHT[r["chair"]] * r["score"] for r in readings)
    mark = round(total / sum(WEIGHT[r["chair"]] for r in readings))
    if any(f["what"] == "SHELL" for f in facts):
        mark = min(mark, 3)
    return {"mark": mark, "readings": readings}


def spread(readings: list) -> int:
    scores = [r["score"] for r in readings]
    return max(scores) - min(scores)


def page(url: str, settled: dict) -> str:
    lines = [f"# {url}", ""]
    for name, s in settled.items():
        lines.append(f"## {name}: {s['mark']}")
        for r in s["readings"]:
            lines.append(f"- {r['chair']} ({r['score']}): {r['reason']}")
        lines.append("")
    mean = sum(s["mark"] for s in settled.values()) / len(settled)
    lines.append(f"**Mean: {mean:.2f}**")
    return "\n".join(lines)
