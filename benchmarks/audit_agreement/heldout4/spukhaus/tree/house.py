# the house. rooms, things and where they are

ROOMS = {
    "bedroom": {
        "text": "A bed, a wardrobe, a window that is nailed shut.",
        "exits": {"east": "landing"},
        "things": ["candle"],
    },
    "landing": {
        "text": "A long carpet. The humming comes from above.",
        "exits": {"west": "bedroom", "down": "hall", "up": "attic"},
        "things": [],
    },
    "attic": {
        "text": "An old woman sits in a chair and hums. She does not turn around.",
        "exits": {"down": "landing"},
        "things": ["music box"],
    },
    "hall": {
        "text": "The front door with a heavy lock. A grandfather clock that has stopped.",
        "exits": {"up": "landing", "north": "kitchen"},
        "things": ["clock hand"],
    },
    "kitchen": {
        "text": "Knives on a wall. A trapdoor, and it is dark below.",
        "exits": {"south": "hall", "down": "cellar"},
        "things": ["matches"],
        },
    "cellar": {
        "text": "Water up to your ankles. Something glitters in it.",
        "exits": {"up": "kitchen"},
        "things": ["key"],
        "dark": True,
    },
}

PUZZLES = {
    ("matches", "candle"): "light",
    ("music box", "old woman"): "calm",
    ("key", "door"): "open",
}


def new_world():
    import copy

    return {
        "room": "bedroom",
        "rooms": copy.deepcopy(ROOMS),
        "bag": [],
        "light": False,
        "calm": False,
        "open": False,
        "fear": 0,
        "turns": 0,
    }
