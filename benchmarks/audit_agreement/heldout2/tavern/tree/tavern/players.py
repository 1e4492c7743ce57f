from __future__ import annotations

import logging

from langchain_openai import ChatOpenAI

from .sheet import Hero, Move, Scene, Table

log = logging.getLogger("tavern")

MANNERS = {
    "Brunhild": "You are brave and stupid. You attack first.",
    "Sly": "You are a coward with quick fingers. You never fight if you can sneak or talk.",
    "Abbot": "You heal and help. You think of the others before yourself.",
}


def brain(temperature: float) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o-mini", temperature=temperature, timeout=30, max_retries=2, max_tokens=400)


async def paint(table: Table) -> Scene:
    chain = brain(1.0).with_structured_output(Scene).with_retry(stop_after_attempt=3)
    return await chain.ainvoke([
        ("system", "You are the game master. Paint the next scene in three sentences. Do not decide what the heroes do."),
        ("user", f"Place: {table.place}. So far:\n" + "\n".join(table.saga[-12:])),
    ])


async def choose(hero: Hero, scene: Scene) -> Move:
    chain = brain(0.9).with_structured_output(Move).with_retry(stop_after_attempt=2)
    try:
        return await chain.ainvoke([
            ("system", f"You play {hero.name}, a {hero.craft} with {hero.hp} hit points. {MANNERS[hero.name]}"),
            ("user", f"{scene.picture}\nFoe: {scene.foe}. What do you do?"),
        ])
    except Exception as error:
        log.warning("%s dreams: %s", hero.name, error)
        return Move(verb="help", target="the others", words="...")
