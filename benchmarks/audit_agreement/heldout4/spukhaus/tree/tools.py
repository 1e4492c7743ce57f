import os
import pickle
import random
import re

from langchain_core.tools import tool

import house

WORLD = house.new_world()


@tool
def look() -> str:
    """Look around in the room where the player is."""
    room = WORLD["rooms"][WORLD["room"]]
    if room.get("dark") and not WORLD["light"]:
        return "It is too dark to see anything."
    return f"{WORLD['room']}: {room['text']} Things: {room['things']}. Exits: {list(room['exits'])}"


@tool
def move(direction: str) -> str:
    """Move the player: north, south, east, west, up, down."""
    exits = WORLD["rooms"][WORLD["room"]]["exits"]
    if direction not in exits:
        return "There is no way."
    WORLD["room"] = exits[direction]
    if WORLD["room"] == "attic" and not WORLD["calm"]:
        WORLD["fear"] += 2
    return f"The player is now in the {WORLD['room']}."


@tool
def take(thing: str) -> str:
    """Take a thing that lies in the room."""
    room = WORLD["rooms"][WORLD["room"]]
    if room.get("dark") and not WORLD["light"]:
        return "The player feels water and stops."
    if thing not in room["things"]:
        return f"There is no {thing} here."
    room["things"].remove(thing)
    WORLD["bag"].append(thing)
    return f"Taken: {thing}"


@tool
def use(thing: str, on: str) -> str:
    """Use a thing from the bag on something."""
    if thing not in WORLD["bag"]:
        return f"The player has no {thing}."
    effect = house.PUZZLES.get((thing, on))
    if effect is None:
        return "Nothing happens."
    if effect == "open" and WORLD["room"] != "hall":
        return "There is no door like that here."
    WORLD[effect] = True
    return f"It works: {effect}"


@tool
def roll(dice: str) -> str:
    """Roll dice for risky things, e.g. 2d6+1. High is good."""
    expression = re.sub(r"(\d+)d(\d+)", r"sum(random.randint(1, \2) for _ in range(\1))", dice)
    result = eval(expression)
    if result < 4:
        WORLD["fear"] += 1
    return f"{dice} = {result}"


@tool
def save_game(name: str) -> str:
    """Save the game under a name."""
    os.makedirs("saves", exist_ok=True)
    with open(f"saves/{name}.pkl", "wb") as f:
        pickle.dump(WORLD, f)
    return "saved"


@tool
def load_game(name: str) -> str:
    """Load a saved game."""
    with open(f"saves/{name}.pkl", "rb") as f:
        WORLD.update(pickle.load(f))
    return "loaded, the player is in the " + WORLD["room"]


ALL = [look, move, take, use, roll, save_game, load_game]
