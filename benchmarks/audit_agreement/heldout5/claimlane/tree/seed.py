"""Create the demo database."""
import sqlite3

conn = sqlite3.connect("claims.db")
conn.executescript("""
DROP TABLE IF EXISTS policies; DROP TABLE IF EXISTS history;
CREATE TABLE policies (number TEXT PRIMARY KEY, holder TEXT, iban TEXT, cover TEXT, deductible REAL, limit_eur REAL);
CREATE TABLE history (number TEXT, year INT, amount REAL, cause TEXT);
INSERT INTO policies VALUES ('KX-2201', 'Jana Petrovic', 'DE02100100100006820101', 'hail,theft,glass', 300, 15000);
INSERT INTO policies VALUES ('KX-2202', 'Omar Said', 'DE02300209000106531065', 'liability', 0, 50000);
INSERT INTO history VALUES ('KX-2201', 2023, 450, 'glass');
""")
conn.commit()
print("claims.db ready")
