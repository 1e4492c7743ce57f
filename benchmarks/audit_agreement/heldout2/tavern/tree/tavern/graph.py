from __future__ import annotations

import random

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from . import dice, players
from .sheet import Hero, Table

RNG = random.Random()


async def master(table: Table) -> dict:
    scene = await players.paint(table)
    return {"scene": scene, "moves": None, "saga": [f"\n{scene.picture}"]}


def ask_heroes(table: Table) -> list[Send]:
    return [Send("hero", {"hero": h, "scene": table.scene}) for h in table.heroes.values() if h.hp > 0]


async def hero(seat: dict) -> dict:
    who: Hero = seat["hero"]
    move = await players.choose(who, seat["scene"])
    return {"moves": {who.name: move}, "saga": [f"> {who.name}: {move.words}"]}


def roll(table: Table) -> dict:
    helped = {m.target for m in table.moves.values() if m.verb == "help"}
    harm, lines = {}, []
    for name, move in sorted(table.moves.items()):
        good, loss, line = dice.outcome(table.heroes[name], move, table.scene, name in helped, RNG)
        # nobody dies in this tavern: whoever would fall stays at one hit point
        harm[name] = max(loss, 1 - table.heroes[name].hp)
        lines.append(line)
    return {"heroes": harm, "saga": lines}


def next_round(table: Table) -> dict:
    return {"round": table.round + 1}


def evening_over(table: Table) -> str:
    if table.quest_done or table.round > table.rounds:
        return "end"
    return "on"


def build():
    g = StateGraph(Table)
    g.add_node("master", master)
    g.add_node("hero", hero)
    g.add_node("roll", roll)
    g.add_edge(START, "master")
    g.add_conditional_edges("master", ask_heroes, ["hero"])
    g.add_edge("hero", "roll")
    g.add_conditional_edges("roll", evening_over, {"on": "master", "end": END})
    return g.compile()
