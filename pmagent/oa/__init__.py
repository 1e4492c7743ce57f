"""The OA's front door for other programs (spec, OA Tools Interface, Reasoning Bridge API): tools and guards, which only
read, and the reasoning programs, whose runs are recorded in the log."""
