"""The door: who may enter the console, and what is refused before any page of it."""
