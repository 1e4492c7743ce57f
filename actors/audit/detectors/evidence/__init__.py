"""From what detectives brought home to evidence with keys; pure."""
