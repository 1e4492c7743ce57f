import sqlite3

import config


def connect():
    db = sqlite3.connect(config.DB)
    db.execute("CREATE TABLE IF NOT EXISTS seen (link TEXT, title TEXT)")
    return db


def is_seen(db, link):
    cur = db.execute("SELECT 1 FROM seen WHERE link = '%s'" % link)
    return cur.fetchone() is not None


def mark(db, item):
    try:
        db.execute(f"INSERT INTO seen VALUES ('{item['link']}', '{item['title']}')")
        db.commit()
    except Exception:
        pass
