"""Documents for people: each is a pure function of a prefix of the log (docs/design.md §7)."""
