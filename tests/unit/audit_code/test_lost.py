"""Results that are lost: each program has a twin that loses nothing."""

from __future__ import annotations

from textwrap import dedent

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import survey_code
from pmagent.contracts.audit_facts import Finding, History
from tests.support.cases import each

HISTORY = History(total=0, shown=[], span_s=0, burst=0.0)
GRAPH = """
    from typing import TypedDict
    from langgraph.graph import END, START, StateGraph
    class State(TypedDict):
        topic: str
        draft: str
        mended: str
    def write(state: State): return {"draft": state["topic"].upper()}
    def mend(state: State): return {"mended": state["draft"].strip()}
    g = StateGraph(State)
    g.add_node(write).add_node(mend).add_edge(START, "write").add_edge("write", "mend").add_edge("mend", END)
    end = g.compile().invoke({"topic": "x"})
    HOLE
    if __name__ == "__main__": pass
"""


def reached(text: str, hole: str) -> list[Finding]:
    content = dedent(text).replace("HOLE", hole).encode()
    facts = survey_code([parsed("main.py", content)], ["main.py"], lambda _: content, HISTORY)
    return [one for one in facts.findings if one.reached]


def says(text: str, hole: str, goal: str) -> str:
    return "\n".join(one.text for one in reached(text, hole) if one.goal == goal)


@each(
    "text, goal, lossy, sound",
    [
        ("""
         import json
         def run(names):
             for name in names:
                 json.dump(len(name), open(HOLE, "w"))
         if __name__ == "__main__": run(["a"])
         """, "outcome.unused", '"out.json"', 'f"{name}.json"'),
        ("""
         def save(text): HOLE
         def run(names):
             for name in names: save(name)
         if __name__ == "__main__": run(["a"])
         """, "outcome.unused", "open('out.csv', 'w').write(text)", "open('out.csv', 'a').write(text)"),
        (GRAPH, "outcome.unused", 'print(end["draft"])', 'print(end["mended"])'),
        (GRAPH, "outcome.unused", 'print(end["draft"])', "print(end)"),
        ("""
         from pathlib import Path
         def run(scores):
             total = sum(scores)
             print(total)
             Path("report.md").write_text(HOLE)
         if __name__ == "__main__": run([1])
         """, "outcome.constant", '"# Report: score 4.8 of 5, excellent"', 'f"# Report: score {total} of 5"'),
        ("""
         import shutil
         def run(name): HOLE
         if __name__ == "__main__": run("a")
         """, "outcome.constant", 'shutil.copy("base.json", "out.json")', "shutil.copy(name, 'out.json')"),
        ("""
         from statistics import pvariance
         def mean(scores):
             score = sum(scores) / len(scores)
             if pvariance(scores) > 2: HOLE
             return score
         if __name__ == "__main__": print(mean([1]))
         """, "justice.without_effect", "pass", "score = min(scores)"),
    ],
)  # fmt: skip
def test_a_loss_is_found_and_its_sound_twin_has_none(text: str, goal: str, lossy: str, sound: str) -> None:
    assert says(text, lossy, goal)
    assert not says(text, sound, goal)


JURY = """
    from langchain_openai import ChatOpenAI
    llm = ChatOpenAI()
    def ask(name, before): return llm.invoke(f"You are {name}. The others: {before}").content
    def jury(names):
        said = []
        for name in names: said.append(HOLE)
        return said
    if __name__ == "__main__": print(jury(["a", "b"]))
"""
AT_ONCE = """
    import asyncio
    from langchain_openai import ChatOpenAI
    llm = ChatOpenAI()
    async def examine(seat): return await llm.ainvoke(seat)
    async def bench(seats):
        async def one(seat): return HOLE
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(seat)) for seat in seats]
        return [task.result() for task in tasks]
    if __name__ == "__main__": print(asyncio.run(bench(["a"])))
"""


def test_judges_who_are_shown_what_was_said_before_judge_in_a_row() -> None:
    assert says(JURY, "ask(name, said)", "judges.in_sequence")
    assert not says(JURY, "ask(name, names)", "judges.in_sequence")


def test_who_calls_somebody_that_asks_is_asked_side_by_side_as_well() -> None:
    assert says(AT_ONCE, "await examine(seat)", "judges.parallel")
    assert not says(AT_ONCE, "await asyncio.sleep(0, seat)", "judges.parallel")


def test_a_program_without_a_graph_has_its_stages() -> None:
    goals = {one.goal for one in reached(AT_ONCE, "await examine(seat)") if one.goal.startswith("graph.")}
    assert goals == {"graph.fan_out", "graph.fan_in", "graph.run"}
    alone = AT_ONCE.replace(" for seat in seats]", "]").replace("one(seat))", "one(seats[0]))")
    assert not says(alone, "await examine(seat)", "graph.fan_out")


def test_a_loop_that_counts_its_rounds_has_a_limit() -> None:
    loop = dedent(GRAPH).replace("HOLE", "print(end)").replace("mended: str", "mended: str\n    tries: int")
    loop = loop.replace('"draft": state["topic"].upper()', '"draft": state["topic"], "tries": state["tries"] + 1')
    choice = 'g.add_conditional_edges("mend", lambda state: END if state["tries"] > HOLE else "write", ["write", END])'
    loop = loop.replace('.add_edge("mend", END)', f"\n{choice}")
    assert says(loop, "3", "agent.limits")
    assert not says(loop.replace('state["tries"] + 1', '3'), "3", "agent.limits")


def test_a_route_that_reads_what_no_state_declares_never_goes_the_other_way() -> None:
    text = dedent(GRAPH).replace("HOLE", "print(end)").replace('.add_edge("write", "mend")', "")
    choice = 'g.add_conditional_edges("write", lambda state: END if state.get(HOLE) else "mend", ["mend", END])'
    text = text.replace("end = g.", f"{choice}\nend = g.")
    assert says(text, '"failed"', "graph.broken_route")
    assert not says(text, '"draft"', "graph.broken_route")


def test_a_bound_model_that_no_code_reads_is_for_show_unless_a_file_offers_it() -> None:
    agent = dedent("""
        from langchain_openai import ChatOpenAI
        from pydantic import BaseModel
        class Answer(BaseModel): text: str
        bound = ChatOpenAI().with_structured_output(Answer)
        def ask(): return ChatOpenAI().invoke("x").content
    """).encode()
    main = b"from agent import ask\nif __name__ == '__main__': print(ask())\n"
    for others, told in (({}, True), ({"langgraph.json": b'{"graphs": {"a": "./agent.py:bound"}}'}, False)):
        files = {"agent.py": agent, "main.py": main, **others}
        sources = [parsed(one, files[one]) for one in ("agent.py", "main.py")]
        facts = survey_code(sources, list(files), files.get, HISTORY)
        assert ("output.unused_schema" in facts.counts) == told
