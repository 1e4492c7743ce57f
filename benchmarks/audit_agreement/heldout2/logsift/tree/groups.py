"""Groups of similar lines, and what we saw of them before"""
import sqlite3
from parse import template

WEIGHT = {'crit': 100, 'error': 10, 'warn': 3, 'info': 0}


class Group:
    def __init__(self, program, text, level):
        self.program = program
        self.text = text
        self.level = level
        self.count = 0
        self.example = None
        self.new = True
        self.score = 0


def make_groups(entries):
    groups = {}
    for e in entries:
        key = (e.program, template(e.text))
        if key not in groups:
            groups[key] = Group(e.program, key[1], e.level)
            groups[key].example = e.text
        groups[key].count += 1
    for g in groups.values():
        g.score = WEIGHT[g.level] * (1 + g.count ** 0.5)
    return list(groups.values())


def remember(db_path, host, groups):
    """Mark groups that this host had before, and store the others."""
    db = sqlite3.connect(db_path)
    table = 'seen_' + host
    db.execute(f'create table if not exists {table} (program text, text text, first text default current_timestamp)')
    for g in groups:
        row = db.execute(f'select 1 from {table} where program = ? and text = ?', (g.program, g.text)).fetchone()
        if row:
            g.new = False
        else:
            db.execute(f'insert into {table} (program, text) values (?, ?)', (g.program, g.text))
    db.commit()
    db.close()


def top(groups, n=10):
    new = [g for g in groups if g.new]
    old = [g for g in groups if not g.new]
    new.sort(key=lambda g: g.count, reverse=True)
    old.sort(key=lambda g: g.count, reverse=True)
    return (new + old)[:n]
