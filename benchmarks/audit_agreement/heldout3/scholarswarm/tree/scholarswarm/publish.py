"""Publication of the approved review."""
from pathlib import Path


def publish(state: dict, folder: str = "reviews") -> Path:
    """Write the review and its bibliography."""
    target = Path(folder)
    target.mkdir(exist_ok=True)
    name = "".join(c if c.isalnum() else "-" for c in state["topic"].lower())[:60]
    path = target / f"{name}.md"
    path.write_text(f"# {state['topic']}\n\n{state['draft']}\n", encoding="utf-8")
    return path
