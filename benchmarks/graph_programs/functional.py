"""The functional interface: one node is drawn."""

from langgraph.func import entrypoint, task


@task
def double(number: int) -> int:
    return number * 2


@entrypoint()
def workflow(number: int) -> int:
    return double(number).result()


graph = workflow
