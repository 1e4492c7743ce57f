"""The areas' parts of the simulation: simulated performers, operators and laws."""
