"""Reading the log for people: what is asked for, where it stands, what caused it, what it says in a line.

The command line and the console show the same.
"""
