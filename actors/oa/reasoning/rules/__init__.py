"""The engine `rules`: the four reasoning programs as pure functions of envelope and evidence."""
