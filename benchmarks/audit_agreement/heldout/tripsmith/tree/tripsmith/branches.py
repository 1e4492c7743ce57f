"""The two subgraphs."""
from langgraph.graph import END, START, StateGraph

from .models import LodgingState, Offer, TransportState
from .providers import Provider, Unavailable


def transport(provider: Provider):
    def look(state: TransportState):
        try:
            rides = provider.rides(state.wish.city)
        except Unavailable:
            rides = []
        return {"found": [Offer(kind="ride", id=r["id"], price=2 * r["price"], note=f"{r['hours']} h") for r in rides]}

    def rank(state: TransportState):
        return {"offers": sorted(state.found, key=lambda o: o.price)[:3]}

    g = StateGraph(TransportState)
    g.add_sequence([look, rank])
    g.add_edge(START, "look")
    g.add_edge("rank", END)
    return g.compile()


def lodging(provider: Provider):
    def look(state: LodgingState):
        try:
            rooms = provider.rooms(state.wish.city)
        except Unavailable:
            rooms = []
        offers = [Offer(kind="room", id=r["id"], price=r["night"] * state.wish.nights, note=f"rated {r['rating']}")
                  for r in rooms if r["rating"] >= state.floor]
        return {"offers": offers}

    def relax(state: LodgingState):
        return {"floor": state.floor - 1.0}

    def next_step(state: LodgingState):
        return END if state.offers or state.floor <= 6.0 else "relax"

    g = StateGraph(LodgingState)
    g.add_node(look)
    g.add_node(relax)
    g.add_edge(START, "look")
    g.add_conditional_edges("look", next_step)
    g.add_edge("relax", "look")
    return g.compile()
