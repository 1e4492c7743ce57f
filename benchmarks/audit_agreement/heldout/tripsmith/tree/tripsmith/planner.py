import os

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, interrupt

from .branches import lodging, transport
from .models import Trip, Wish
from .providers import Provider


def understand(trip: Trip):
    llm = ChatOpenAI(model=os.environ.get("TRIPSMITH_MODEL", "gpt-4o-mini"), temperature=0, timeout=40)
    reader = llm.with_structured_output(Wish)
    return {"wish": Wish.model_validate(reader.invoke([("system", "Read the traveller's wish."), ("human", trip.request)]))}


def make_planner(provider: Provider, checkpointer=None):
    rides, rooms = transport(provider), lodging(provider)

    def find_rides(trip: Trip):
        return {"offers": rides.invoke({"wish": trip.wish})["offers"]}

    def find_rooms(trip: Trip):
        return {"offers": rooms.invoke({"wish": trip.wish})["offers"]}

    def choose(trip: Trip):
        """The cheapest of each kind; by rule, no model."""
        chosen = []
        for kind in ("ride", "room"):
            of_kind = [o for o in trip.offers if o.kind == kind]
            if of_kind:
                chosen.append(min(of_kind, key=lambda o: o.price))
        return {"chosen": chosen, "over": sum(o.price for o in chosen) - trip.wish.budget}

    def affordable(trip: Trip):
        if len(trip.chosen) < 2:
            return "nothing_found"
        return "too_dear" if trip.over > 0 else "confirm"

    def nothing_found(trip: Trip):
        missing = {"ride", "room"} - {o.kind for o in trip.chosen}
        return {"message": f"no {' and no '.join(sorted(missing))} to {trip.wish.city}"}

    def too_dear(trip: Trip):
        return {"message": f"{trip.over:.2f} euro over the budget"}

    def confirm(trip: Trip):
        word = interrupt({"offers": [o.model_dump() for o in trip.chosen]})
        return {"booked": word == "yes"}

    def book(trip: Trip):
        if not trip.booked:
            return {"message": "not booked"}
        return {"message": "; ".join(provider.book(o.id) for o in trip.chosen)}

    g = StateGraph(Trip)
    g.add_node("understand", understand, retry_policy=RetryPolicy(max_attempts=3, retry_on=ValueError))
    for fn in (find_rides, find_rooms, choose, nothing_found, too_dear, confirm, book):
        g.add_node(fn)
    g.add_edge(START, "understand")
    g.add_edge("understand", "find_rides")
    g.add_edge("understand", "find_rooms")
    g.add_edge(["find_rides", "find_rooms"], "choose")
    g.add_conditional_edges("choose", affordable, {n: n for n in ("nothing_found", "too_dear", "confirm")})
    g.add_edge("confirm", "book")
    for last in ("nothing_found", "too_dear", "book"):
        g.add_edge(last, END)
    return g.compile(checkpointer=checkpointer)
