-- Version 3: the lease of a log, beside its epoch (docs/design.md §4.6).

ALTER TABLE pm.log
  ADD lease_ms int NOT NULL DEFAULT 30000 CHECK (lease_ms BETWEEN 1000 AND 600000), -- belongs to the log, not to a holder
  ADD renewed timestamptz NOT NULL DEFAULT now(); -- for people: by the server's clock, which decides nothing

-- The standbys that follow a log, each with what it said last.
CREATE TABLE pm.standby (
  log_no int REFERENCES pm.log, token text, note text NOT NULL, role name NOT NULL, position bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (log_no, token)
);

-- Raise the epoch from p_expected by one, or renew it if p_token did that before (its answer was lost); whether that was
-- done, and the row as it was. Commits of earlier epochs that were under way are waited for, and all that precedes this
-- one is as durable as this one is.
DROP FUNCTION IF EXISTS pm.take(text, bigint, text, text, text, text, bool);
CREATE FUNCTION pm.take(
  p_name text, p_expected bigint, p_token text, p_origin text, p_holder text, p_since text, p_replicated bool
) RETURNS TABLE (taken bool, was_epoch bigint, was_token text, was_origin text, was_holder text, was_renewals bigint,
  was_released bool, was_lease_ms int, was_timeline int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was pm.log;
  done bool;
BEGIN
  IF pm.unsafe(p_replicated) <> '' THEN
    RAISE EXCEPTION '%', pm.unsafe(p_replicated) USING ERRCODE = 'PM001';
  END IF;
  INSERT INTO pm.log (name, writer, replicated) SELECT p_name, session_user, p_replicated
    WHERE p_expected = 0 AND NOT EXISTS (SELECT FROM pm.log l WHERE l.name = p_name) ON CONFLICT (name) DO NOTHING;
  SELECT l.* INTO was FROM pm.log l WHERE l.name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  done := was.moved_to = '' AND pg_has_role(session_user, was.writer, 'USAGE')
    AND (was.epoch = p_expected OR (was.epoch = p_expected + 1 AND was.token = p_token));
  IF done THEN
    UPDATE pm.log l SET epoch = p_expected + 1, token = p_token, origin = p_origin, holder = p_holder,
        since = CASE WHEN l.token = p_token THEN l.since ELSE p_since END, replicated = p_replicated, released = false,
        renewals = l.renewals + 1, renewed = clock_timestamp()
      WHERE l.log_no = was.log_no;
    INSERT INTO pm.epoch (log_no, epoch, holder, position, sum, system_id, timeline, replicated)
      SELECT was.log_no, p_expected + 1, p_holder, was.position, was.sum, s.system_id, s.timeline, p_replicated
      FROM pm.system() s ON CONFLICT DO NOTHING;
    DELETE FROM pm.standby s WHERE s.log_no = was.log_no AND s.token = p_token;
  END IF;
  RETURN QUERY SELECT done, was.epoch, was.token, was.origin, was.holder, was.renewals, was.released, was.lease_ms,
    s.timeline FROM pm.system() s;
END $$;

-- Add one batch behind the end that the writer knows, or do nothing. How many pages were added; p_lasts and p_ends are
-- the last position and the end in p_lines of each.
CREATE OR REPLACE FUNCTION pm.append(
  p_log int, p_epoch bigint, p_position bigint, p_sum bytea, p_last bigint, p_batch bigint, p_time text,
  p_new_sum bytea, p_lines bytea, p_lasts bigint[], p_ends int[]
) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  pages int := cardinality(p_lasts);
  is_replicated bool;
BEGIN
  UPDATE pm.log SET position = p_last, batch = p_batch, time = p_time, sum = p_new_sum, renewals = renewals + 1,
      renewed = clock_timestamp()
    WHERE log_no = p_log AND epoch = p_epoch AND position = p_position AND sum = p_sum AND moved_to = ''
      AND pg_has_role(session_user, writer, 'USAGE')
    RETURNING replicated INTO is_replicated;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  IF pm.unsafe(is_replicated) <> '' THEN
    RAISE EXCEPTION '%', pm.unsafe(is_replicated) USING ERRCODE = 'PM001';
  END IF;
  IF pages = 1 THEN
    INSERT INTO pm.page VALUES (p_log, p_position + 1, p_last, p_batch, p_epoch, p_lines);
    RETURN 1;
  END IF;
  INSERT INTO pm.page SELECT p_log, coalesce(lag(l) OVER w, p_position) + 1, l, p_batch, p_epoch,
      substr(p_lines, coalesce(lag(e) OVER w, 0) + 1, e - coalesce(lag(e) OVER w, 0))
    FROM unnest(p_lasts, p_ends) AS p(l, e) WINDOW w AS (ORDER BY l);
  RETURN pages;
END $$;

-- The holder lives; with p_released it has let go. False: somebody else has taken the log.
CREATE FUNCTION pm.renew(p_log int, p_epoch bigint, p_released bool) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_replicated bool;
BEGIN
  UPDATE pm.log SET renewals = renewals + 1, renewed = clock_timestamp(), released = p_released
    WHERE log_no = p_log AND epoch = p_epoch AND pg_has_role(session_user, writer, 'USAGE')
    RETURNING replicated INTO is_replicated;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF pm.unsafe(is_replicated) <> '' THEN
    RAISE EXCEPTION '%', pm.unsafe(is_replicated) USING ERRCODE = 'PM001';
  END IF;
  IF p_released THEN
    PERFORM pg_notify('pm_' || p_log, '');
  END IF;
  RETURN true;
END $$;

-- Everything up to p_settled is acknowledged. This renews nothing: its commit may wait for no standby. False: somebody
-- else has taken the log.
CREATE OR REPLACE FUNCTION pm.tell(p_log int, p_epoch bigint, p_settled bigint, p_released bool) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pm.log SET settled = greatest(settled, p_settled), released = released OR p_released
    WHERE log_no = p_log AND epoch = p_epoch AND (settled < p_settled OR p_released)
      AND pg_has_role(session_user, writer, 'USAGE');
  IF FOUND THEN
    PERFORM pg_notify('pm_' || p_log, '');
    RETURN true;
  END IF;
  RETURN EXISTS (SELECT FROM pm.log WHERE log_no = p_log AND epoch = p_epoch);
END $$;

-- A standby follows, and has folded the log up to p_position; with p_gone it does not any more.
CREATE FUNCTION pm.follow(p_log int, p_token text, p_note text, p_position bigint, p_gone bool) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pm.standby WHERE log_no = p_log
    AND ((token = p_token AND role = session_user AND p_gone) OR at < now() - interval '1 day');
  IF NOT p_gone THEN
    INSERT INTO pm.standby VALUES (p_log, p_token, left(p_note, 400), session_user, p_position)
      ON CONFLICT (log_no, token) DO UPDATE SET note = excluded.note, position = excluded.position, at = now()
      WHERE pm.standby.role = session_user;
  END IF;
END $$;

REVOKE ALL ON FUNCTION pm.take(text, bigint, text, text, text, text, bool), pm.renew(int, bigint, bool),
  pm.append(int, bigint, bigint, bytea, bigint, bigint, text, bytea, bytea, bigint[], int[]),
  pm.tell(int, bigint, bigint, bool), pm.follow(int, text, text, bigint, bool) FROM PUBLIC;
GRANT SELECT ON pm.standby TO pm_writer, pm_reader;
GRANT EXECUTE ON FUNCTION pm.take(text, bigint, text, text, text, text, bool), pm.renew(int, bigint, bool),
  pm.append(int, bigint, bigint, bytea, bigint, bigint, text, bytea, bytea, bigint[], int[]),
  pm.tell(int, bigint, bigint, bool), pm.follow(int, text, text, bigint, bool) TO pm_writer;
INSERT INTO pm.version VALUES (3);
