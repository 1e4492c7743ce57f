-- Version 7: the line to a device that is plugged into a worker's host (docs/design.md §4.8). Both ends read and write
-- one row. It is unlogged: what is typed reaches no standby and no backup, and a failover ends the line.

CREATE UNLOGGED TABLE pm.line (
  log_no int PRIMARY KEY, epoch bigint NOT NULL,
  life text COLLATE "C" NOT NULL,               -- of the line: from one opening of the device to its closing
  role name NOT NULL, worker text COLLATE "C" NOT NULL,
  claim text COLLATE "C" NOT NULL DEFAULT '',   -- the worker's name for it, which nobody else knows; '': not claimed
  heard bigint NOT NULL DEFAULT 0, down_at bigint NOT NULL DEFAULT 0, down bytea NOT NULL DEFAULT '',
  up_taken bigint NOT NULL DEFAULT 0,           -- the holder's letter
  beat bigint NOT NULL DEFAULT 0, up_at bigint NOT NULL DEFAULT 0, up bytea NOT NULL DEFAULT '',
  down_taken bigint NOT NULL DEFAULT 0, ended text NOT NULL DEFAULT ''  -- the worker's
) WITH (fillfactor = 10);

-- Begin a life of the line, as the holder of the log, with the device of that worker alone.
CREATE FUNCTION pm.begin_line(p_name text, p_epoch bigint, p_life text, p_role text, p_worker text) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pm.line AS n (log_no, epoch, life, role, worker)
    SELECT l.log_no, l.epoch, p_life, p_role, p_worker FROM pm.log l
    WHERE l.log_no = pm.writable(p_name) AND l.epoch = p_epoch AND l.moved_to = ''
    ON CONFLICT (log_no) DO UPDATE SET epoch = excluded.epoch, life = excluded.life, role = excluded.role,
      worker = excluded.worker, claim = '', heard = 0, down_at = 0, down = '', up_taken = 0, beat = 0, up_at = 0, up = '',
      down_taken = 0, ended = '' WHERE n.epoch <= excluded.epoch;
  RETURN FOUND;
END $$;

-- Change letters with the worker. Without a row, that life is over.
CREATE FUNCTION pm.hold_line(
  p_name text, p_epoch bigint, p_life text, p_heard bigint, p_at bigint, p_content bytea, p_taken bigint
) RETURNS TABLE (sign bigint, first bigint, content bytea, confirmed bigint, why text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.line n SET heard = p_heard, down_at = p_at, down = p_content, up_taken = p_taken FROM pm.log l
    WHERE n.log_no = pm.writable(p_name) AND l.log_no = n.log_no AND l.epoch = p_epoch AND n.epoch = p_epoch
      AND n.life = p_life
    RETURNING n.beat, n.up_at, n.up, n.down_taken, n.ended
$$;

CREATE FUNCTION pm.end_line(p_name text, p_epoch bigint, p_life text) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pm.line n WHERE n.log_no = pm.writable(p_name) AND n.epoch = p_epoch AND n.life = p_life;
  RETURN FOUND;
END $$;

-- No key depends on a collation of the system, which may be another one after an upgrade.
ALTER TABLE pm.request ALTER id TYPE text COLLATE "C";
ALTER TABLE pm.standby ALTER token TYPE text COLLATE "C";

-- --- the worker's side ---

-- Claim the line that waits for this worker: the name of its log.
CREATE FUNCTION pm.claim_line(p_claim text, p_worker text, p_logs text[]) RETURNS TABLE (log text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.line n SET claim = p_claim FROM pm.log l
    WHERE l.log_no = n.log_no AND p_claim <> '' AND n.log_no = (
      SELECT o.log_no FROM pm.line o JOIN pm.log h ON h.log_no = o.log_no
      WHERE o.claim = '' AND o.role = session_user AND o.worker = p_worker AND o.epoch = h.epoch AND h.name = ANY (p_logs)
      LIMIT 1 FOR UPDATE OF o SKIP LOCKED)
    RETURNING l.name
$$;

-- Change letters with the holder. Without a row, that life is over.
CREATE FUNCTION pm.carry_line(
  p_claim text, p_beat bigint, p_at bigint, p_content bytea, p_taken bigint, p_ended text
) RETURNS TABLE (sign bigint, first bigint, content bytea, confirmed bigint, why text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.line n SET beat = p_beat, up_at = p_at, up = p_content, down_taken = p_taken, ended = left(p_ended, 2000)
    FROM pm.log l
    WHERE l.log_no = n.log_no AND l.epoch = n.epoch AND n.claim = p_claim AND p_claim <> '' AND n.role = session_user
      AND octet_length(p_content) <= 131072
    RETURNING n.heard, n.down_at, n.down, n.up_taken, ''
$$;

REVOKE ALL ON FUNCTION pm.begin_line(text, bigint, text, text, text),
  pm.hold_line(text, bigint, text, bigint, bigint, bytea, bigint), pm.end_line(text, bigint, text),
  pm.claim_line(text, text, text[]), pm.carry_line(text, bigint, bigint, bytea, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pm.begin_line(text, bigint, text, text, text),
  pm.hold_line(text, bigint, text, bigint, bigint, bytea, bigint), pm.end_line(text, bigint, text) TO pm_writer;
GRANT EXECUTE ON FUNCTION pm.claim_line(text, text, text[]), pm.carry_line(text, bigint, bigint, bytea, bigint, text)
  TO pm_worker;
INSERT INTO pm.version VALUES (7);
