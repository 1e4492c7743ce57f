from pathlib import Path

import typer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .flow import build

app = typer.Typer()
THREADS = "frontdesk-threads.sqlite"


def config(thread: str) -> dict:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 10}


@app.command()
def sort(inbox: Path) -> None:
    """Sort the night's messages. The name of a file is the patient's number."""
    with SqliteSaver.from_conn_string(THREADS) as saver:
        flow = build(saver)
        failed = 0
        for path in sorted(inbox.glob("*.txt")):
            before = flow.get_state(config(path.stem))
            if before.values and (before.interrupts or not before.next):
                continue  # sorted before, or waiting
            try:
                end = flow.invoke({"message": path.read_text("utf-8")[:5000], "patient": path.stem}, config(path.stem))
            except Exception as error:
                failed += 1
                typer.echo(f"{path.stem}: NOT SORTED, read it yourself: {error}", err=True)
                continue
            if "__interrupt__" in end:
                typer.echo(f"{path.stem}: waits for a nurse")
            else:
                reply = path.with_suffix(".reply")
                reply.write_text(end["reply"], "utf-8")
                typer.echo(f"{path.stem}: answered")
    raise typer.Exit(1 if failed else 0)


@app.command()
def waiting() -> None:
    """Urgent ones first."""
    with SqliteSaver.from_conn_string(THREADS) as saver:
        flow = build(saver)
        threads = {item.config["configurable"]["thread_id"] for item in saver.list(None)}
        asks = [(t, i.value) for t in threads for i in flow.get_state(config(t)).interrupts]
        for thread, ask in sorted(asks, key=lambda pair: not pair[1].get("urgent")):
            typer.echo(f"{'URGENT ' if ask.get('urgent') else ''}{thread}: {ask}")


@app.command()
def confirm(thread: str, yes: bool = False, say: str = "") -> None:
    with SqliteSaver.from_conn_string(THREADS) as saver:
        end = build(saver).invoke(Command(resume=say or ("yes" if yes else "no")), config(thread))
        Path(f"{thread}.reply").write_text(end["reply"], "utf-8")
        typer.echo(end["reply"])
