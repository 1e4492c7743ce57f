-- The schema of logs in PostgreSQL, version 1 (docs/machines.md). All of it belongs to pm_owner; whoever writes logs may
-- only call the functions, and nobody may change or remove a page.

CREATE TABLE pm.version (version int NOT NULL, at timestamptz NOT NULL DEFAULT now());

-- A row is what HEAD is beside segments. No indexed column changes, and pages stay nearly empty: updates stay in place.
CREATE TABLE pm.log (
  log_no int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  log_id text NOT NULL DEFAULT '',              -- '': nobody has begun it
  writer name NOT NULL,                         -- the role that began it; its members write it
  replicated bool NOT NULL,                     -- a batch counts only when a standby has it
  epoch bigint NOT NULL DEFAULT 0,              -- raised by each taker: an append of an earlier epoch changes nothing
  token text NOT NULL DEFAULT '', origin text NOT NULL DEFAULT '', holder text NOT NULL DEFAULT '',
  since text NOT NULL DEFAULT '', renewals bigint NOT NULL DEFAULT 0, released bool NOT NULL DEFAULT true,
  position bigint NOT NULL DEFAULT 0, batch bigint NOT NULL DEFAULT 0, time text NOT NULL DEFAULT '',
  sum bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  settled bigint NOT NULL DEFAULT 0,            -- acknowledged up to here, for readers on standbys
  moved_to text NOT NULL DEFAULT ''             -- closed for good: a copy went on there
) WITH (fillfactor = 10);

-- Whole lines as they are in segments. A batch is one page, or several.
CREATE TABLE pm.page (
  log_no int REFERENCES pm.log, first bigint, last bigint NOT NULL, batch bigint NOT NULL, epoch bigint NOT NULL,
  lines bytea NOT NULL, PRIMARY KEY (log_no, first)
);
ALTER TABLE pm.page ALTER lines SET STORAGE EXTERNAL;

CREATE TABLE pm.epoch (
  log_no int REFERENCES pm.log, epoch bigint, holder text NOT NULL, position bigint NOT NULL, sum bytea NOT NULL,
  system_id bigint NOT NULL, timeline int NOT NULL, replicated bool NOT NULL, at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_no, epoch)
);

CREATE FUNCTION pm.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'nobody may change or remove what is in %', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON pm.page FOR EACH ROW EXECUTE FUNCTION pm.keep();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON pm.page EXECUTE FUNCTION pm.keep();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON pm.epoch FOR EACH ROW EXECUTE FUNCTION pm.keep();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON pm.epoch EXECUTE FUNCTION pm.keep();
REVOKE UPDATE, DELETE, TRUNCATE ON pm.page, pm.epoch FROM pm_owner;

-- Whether a commit of this session is promised to survive: '' or what to change.
CREATE FUNCTION pm.unsafe(p_replicated bool) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN 'synchronous_commit'
    WHEN current_setting('fsync') <> 'on' THEN 'fsync'
    WHEN p_replicated AND current_setting('synchronous_standby_names') = '' THEN 'synchronous_standby_names'
    ELSE '' END
$$;

CREATE FUNCTION pm.system() RETURNS TABLE (system_id bigint, timeline int) LANGUAGE sql STABLE AS $$
  SELECT s.system_identifier, CASE WHEN pg_is_in_recovery() THEN c.timeline_id
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END
  FROM pg_control_system() s, pg_control_checkpoint() c
$$;

-- Raise the epoch if it is p_expected, or if p_token raised it before (its answer was lost). Commits of earlier epochs
-- that were under way are waited for, and all that precedes this one is as durable as this one is.
CREATE FUNCTION pm.take(
  p_name text, p_expected bigint, p_token text, p_origin text, p_holder text, p_since text, p_replicated bool
) RETURNS TABLE (taken bool) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r pm.log;
BEGIN
  IF pm.unsafe(p_replicated) <> '' THEN
    RAISE EXCEPTION '%', pm.unsafe(p_replicated) USING ERRCODE = 'PM001';
  END IF;
  INSERT INTO pm.log (name, writer, replicated) SELECT p_name, session_user, p_replicated
    WHERE p_expected = 0 AND NOT EXISTS (SELECT FROM pm.log l WHERE l.name = p_name) ON CONFLICT (name) DO NOTHING;
  UPDATE pm.log l SET epoch = l.epoch + 1, token = p_token, origin = p_origin, holder = p_holder, since = p_since,
      replicated = p_replicated, released = false, renewals = l.renewals + 1
    WHERE l.name = p_name AND (l.epoch = p_expected OR l.token = p_token) AND l.moved_to = ''
      AND pg_has_role(session_user, l.writer, 'USAGE')
    RETURNING l.* INTO r;
  IF NOT FOUND THEN
    RETURN QUERY SELECT false;
    RETURN;
  END IF;
  INSERT INTO pm.epoch (log_no, epoch, holder, position, sum, system_id, timeline, replicated)
    SELECT r.log_no, r.epoch, p_holder, r.position, r.sum, s.system_id, s.timeline, p_replicated FROM pm.system() s;
  RETURN QUERY SELECT true;
END $$;

CREATE FUNCTION pm.begin(p_log int, p_epoch bigint, p_log_id text) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.log SET log_id = CASE log_id WHEN '' THEN p_log_id ELSE log_id END
    WHERE log_no = p_log AND epoch = p_epoch AND pg_has_role(session_user, writer, 'USAGE') RETURNING log_id
$$;

-- Add one batch behind the end that the writer knows, or do nothing. How many pages were added; p_lasts and p_ends are
-- the last position and the end in p_lines of each.
CREATE FUNCTION pm.append(
  p_log int, p_epoch bigint, p_position bigint, p_sum bytea, p_last bigint, p_batch bigint, p_time text,
  p_new_sum bytea, p_lines bytea, p_lasts bigint[], p_ends int[]
) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  pages int := cardinality(p_lasts);
  is_replicated bool;
BEGIN
  UPDATE pm.log SET position = p_last, batch = p_batch, time = p_time, sum = p_new_sum, renewals = renewals + 1
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

-- The holder lives, and everything up to p_settled is acknowledged. False: somebody else has taken the log.
CREATE FUNCTION pm.tell(p_log int, p_epoch bigint, p_settled bigint, p_released bool) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pm.log SET settled = greatest(settled, p_settled), renewals = renewals + 1, released = p_released
    WHERE log_no = p_log AND epoch = p_epoch AND pg_has_role(session_user, writer, 'USAGE');
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM pg_notify('pm_' || p_log, '');
  RETURN true;
END $$;

CREATE FUNCTION pm.move(p_log int, p_epoch bigint, p_to text) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pm.log SET moved_to = p_to
    WHERE log_no = p_log AND epoch = p_epoch AND p_to <> '' AND pg_has_role(session_user, writer, 'USAGE');
  RETURN FOUND;
END $$;

-- All that is checked of a server; the state of standbys needs pg_read_all_stats, which pm_owner may have.
CREATE FUNCTION pm.facts() RETURNS TABLE (name text, value text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.name, current_setting(s.name) FROM unnest(array['fsync', 'full_page_writes', 'data_checksums', 'wal_level',
    'synchronous_commit', 'synchronous_standby_names', 'server_version_num', 'wal_sync_method']) AS s(name)
  UNION ALL SELECT 'superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)::text
  UNION ALL SELECT 'standbys', count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))::text FROM pg_stat_replication
  UNION ALL SELECT 'unseen', count(*) FILTER (WHERE sync_state IS NULL)::text FROM pg_stat_replication
  UNION ALL SELECT 'version', max(version)::text FROM pm.version
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA pm FROM PUBLIC;
GRANT USAGE ON SCHEMA pm TO pm_writer, pm_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA pm TO pm_writer, pm_reader;
GRANT EXECUTE ON FUNCTION pm.facts(), pm.system(), pm.unsafe(bool) TO pm_writer, pm_reader;
GRANT EXECUTE ON FUNCTION pm.take(text, bigint, text, text, text, text, bool), pm.begin(int, bigint, text),
  pm.append(int, bigint, bigint, bytea, bigint, bigint, text, bytea, bytea, bigint[], int[]),
  pm.tell(int, bigint, bigint, bool), pm.move(int, bigint, text) TO pm_writer;
INSERT INTO pm.version VALUES (1);
