"""The brain: makes proposals of what operators ask for (rulings C, Observe)."""
