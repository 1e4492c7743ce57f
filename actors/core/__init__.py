"""The core's actors: what an actor is, the gate, the engine that drives them, and the scheduler and runtime of
effects."""
