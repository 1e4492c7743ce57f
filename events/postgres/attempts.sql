-- Attempts that workers on other hosts make, version 5 (docs/design.md §4.7). The holder of a log offers them; a worker
-- claims one, streams what it writes, and reports. Each step is one statement that compares what it expects.

CREATE TABLE pm.attempt (
  log_no int REFERENCES pm.log, position bigint,
  state text NOT NULL CHECK (state IN ('open', 'claimed', 'done', 'lost')),
  epoch bigint NOT NULL,                        -- of the holder that offers it; 0: nobody may claim it now
  labels text[] NOT NULL, wish bytea NOT NULL, loads bytea[] NOT NULL, bytes_left bigint NOT NULL,
  lease_ms int NOT NULL, start_by timestamptz,
  claim text COLLATE "C" NOT NULL DEFAULT '', worker text NOT NULL DEFAULT '', role name NOT NULL DEFAULT '',
  renewals bigint NOT NULL DEFAULT 0, stop bool NOT NULL DEFAULT false, result bytea NOT NULL DEFAULT '',
  at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (log_no, position)
);
CREATE INDEX attempt_open ON pm.attempt (at) WHERE state = 'open';
CREATE UNIQUE INDEX attempt_claim ON pm.attempt (claim) WHERE claim <> '';

-- Content that attempts are given, by its digest.
CREATE TABLE pm.load (log_no int REFERENCES pm.log, sha256 bytea, n int, bytes bytea NOT NULL, PRIMARY KEY (log_no, sha256, n));
ALTER TABLE pm.load ALTER bytes SET STORAGE EXTERNAL;

-- Their output: part is the stream or the file.
CREATE TABLE pm.output (
  log_no int, position bigint, part int, n int, bytes bytea NOT NULL, PRIMARY KEY (log_no, position, part, n),
  FOREIGN KEY (log_no, position) REFERENCES pm.attempt ON DELETE CASCADE
);
ALTER TABLE pm.output ALTER bytes SET STORAGE EXTERNAL;

-- Workers that are there: a hint for whoever places an attempt, and for people.
CREATE TABLE pm.worker (
  role name, worker text COLLATE "C", labels text[] NOT NULL, logs text[] NOT NULL, capacity int NOT NULL,
  seen timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (role, worker)
);

-- --- the holder's side ---

CREATE FUNCTION pm.held(p_name text, p_epoch bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r pm.log;
BEGIN
  SELECT * INTO r FROM pm.log WHERE log_no = pm.writable(p_name) AND epoch = p_epoch AND moved_to = '' FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'another holder has the log %', p_name USING ERRCODE = 'PM002';
  END IF;
  IF pm.unsafe(r.replicated) <> '' THEN
    RAISE EXCEPTION '%', pm.unsafe(r.replicated) USING ERRCODE = 'PM001';
  END IF;
  RETURN r.log_no;
END $$;

CREATE FUNCTION pm.put_load(p_name text, p_epoch bigint, p_sha256 bytea, p_n int, p_bytes bytea) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pm.load VALUES (pm.held(p_name, p_epoch), p_sha256, p_n, p_bytes) ON CONFLICT DO NOTHING;
  RETURN true;
END $$;

CREATE FUNCTION pm.offer(
  p_name text, p_epoch bigint, p_position bigint, p_labels text[], p_wish bytea, p_loads text, p_bytes bigint,
  p_lease_ms int, p_seconds float8
) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pm.attempt (log_no, position, state, epoch, labels, wish, loads, bytes_left, lease_ms, start_by)
    SELECT pm.held(p_name, p_epoch), p_position, 'open', p_epoch, p_labels, p_wish,
      array(SELECT decode(one, 'hex') FROM unnest(string_to_array(p_loads, ',')) AS one), p_bytes, p_lease_ms,
      now() + p_seconds * interval '1 second'
    ON CONFLICT DO NOTHING;
  RETURN true;
END $$;

-- One step of the holder with an attempt; whether it was taken.
CREATE FUNCTION pm.step(
  p_name text, p_epoch bigint, p_position bigint, p_step text, p_claim text, p_renewals bigint
) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  log int := pm.held(p_name, p_epoch);
BEGIN
  IF p_step = 'adopt' THEN
    UPDATE pm.attempt SET epoch = p_epoch WHERE log_no = log AND position = p_position AND state = 'open';
  ELSIF p_step = 'hold' THEN
    UPDATE pm.attempt SET epoch = 0 WHERE log_no = log AND position = p_position AND state = 'open';
  ELSIF p_step = 'stop' THEN
    UPDATE pm.attempt SET stop = true WHERE log_no = log AND position = p_position AND state = 'claimed';
  ELSIF p_step = 'withdraw' THEN
    INSERT INTO pm.attempt AS a (log_no, position, state, epoch, labels, wish, loads, bytes_left, lease_ms)
      VALUES (log, p_position, 'lost', 0, '{}', '', '{}', 0, 0)
      ON CONFLICT (log_no, position) DO UPDATE SET state = 'lost'
        WHERE a.state = 'open' OR (a.state = 'lost' AND a.claim = '');
  ELSIF p_step = 'lose' THEN
    UPDATE pm.attempt SET state = 'lost' WHERE log_no = log AND position = p_position AND claim = p_claim
      AND (state = 'lost' OR (state = 'claimed' AND renewals = p_renewals));
  ELSIF p_step = 'forget' THEN
    DELETE FROM pm.load l WHERE l.log_no = log AND NOT EXISTS (
      SELECT FROM pm.attempt a WHERE a.log_no = log AND a.position <> p_position AND l.sha256 = ANY (a.loads));
    DELETE FROM pm.attempt WHERE log_no = log AND position = p_position;
  ELSE
    RAISE EXCEPTION 'there is no step %', p_step USING ERRCODE = '22023';
  END IF;
  RETURN FOUND;
END $$;

-- --- the worker's side: it sees nothing but what it has claimed ---

CREATE FUNCTION pm.join_workers(p_worker text, p_labels text[], p_logs text[], p_capacity int) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pm.worker VALUES (session_user, p_worker, p_labels, p_logs, p_capacity)
    ON CONFLICT (role, worker) DO UPDATE SET labels = p_labels, logs = p_logs, capacity = p_capacity, seen = now();
  RETURN true;
END $$;

CREATE FUNCTION pm.claim(p_claim text, p_worker text, p_labels text[], p_logs text[])
RETURNS TABLE (log text, pos bigint, rounds bigint, stopped bool, lease int, wish bytea, left_bytes bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pm.unsafe(false) <> '' THEN
    RAISE EXCEPTION '%', pm.unsafe(false) USING ERRCODE = 'PM001';
  END IF;
  RETURN QUERY UPDATE pm.attempt a SET state = 'claimed', claim = p_claim, worker = p_worker, role = session_user
    FROM pm.log l
    WHERE l.log_no = a.log_no AND p_claim <> '' AND pm.unsafe(l.replicated) = '' AND (a.log_no, a.position) = (
      SELECT o.log_no, o.position FROM pm.attempt o JOIN pm.log h ON h.log_no = o.log_no
      WHERE o.state = 'open' AND o.epoch = h.epoch AND h.moved_to = '' AND h.name = ANY (p_logs)
        AND o.labels <@ p_labels AND now() < o.start_by
      ORDER BY o.at LIMIT 1 FOR UPDATE OF o SKIP LOCKED)
    RETURNING l.name, a.position, a.renewals, a.stop, a.lease_ms, a.wish, a.bytes_left;
END $$;

-- Renew a claim. Without a row, the attempt is not claimed so any more.
CREATE FUNCTION pm.keep_claim(p_claim text)
RETURNS TABLE (log text, pos bigint, rounds bigint, stopped bool, lease int, wish bytea, left_bytes bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.attempt a SET renewals = a.renewals + 1 FROM pm.log l
    WHERE l.log_no = a.log_no AND a.claim = p_claim AND p_claim <> '' AND a.state = 'claimed' AND a.role = session_user
    RETURNING l.name, a.position, a.renewals, a.stop, a.lease_ms, a.wish, a.bytes_left
$$;

CREATE FUNCTION pm.take_load(p_claim text, p_sha256 bytea, p_n int) RETURNS bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.bytes FROM pm.attempt a JOIN pm.load l ON l.log_no = a.log_no AND l.sha256 = ANY (a.loads)
    WHERE a.claim = p_claim AND p_claim <> '' AND a.state = 'claimed' AND a.role = session_user
      AND l.sha256 = p_sha256 AND l.n = p_n
$$;

-- Add what a claimed attempt wrote. False: it is not claimed so any more, or may write no more.
CREATE FUNCTION pm.put_output(p_claim text, p_part int, p_n int, p_bytes bytea) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a pm.attempt;
BEGIN
  UPDATE pm.attempt SET bytes_left = bytes_left - octet_length(p_bytes)
    WHERE claim = p_claim AND p_claim <> '' AND state = 'claimed' AND role = session_user
      AND bytes_left >= octet_length(p_bytes)
    RETURNING * INTO a;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO pm.output VALUES (a.log_no, a.position, p_part, p_n, p_bytes) ON CONFLICT DO NOTHING;
  RETURN true;
END $$;

-- Tell the result of a claim: 'done', also the second time; else what became of it ('': nobody knows it).
CREATE FUNCTION pm.report(p_claim text, p_result bytea) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found text;
BEGIN
  UPDATE pm.attempt SET state = 'done', result = CASE state WHEN 'done' THEN result ELSE p_result END
    WHERE claim = p_claim AND p_claim <> '' AND state IN ('claimed', 'done') AND role = session_user
    RETURNING state INTO found;
  RETURN coalesce(found, (SELECT state FROM pm.attempt WHERE claim = p_claim AND p_claim <> '' AND role = session_user), '');
END $$;

REVOKE ALL ON FUNCTION pm.held(text, bigint), pm.put_load(text, bigint, bytea, int, bytea),
  pm.offer(text, bigint, bigint, text[], bytea, text, bigint, int, float8),
  pm.step(text, bigint, bigint, text, text, bigint), pm.join_workers(text, text[], text[], int),
  pm.claim(text, text, text[], text[]), pm.keep_claim(text), pm.take_load(text, bytea, int),
  pm.put_output(text, int, int, bytea), pm.report(text, bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pm.put_load(text, bigint, bytea, int, bytea),
  pm.offer(text, bigint, bigint, text[], bytea, text, bigint, int, float8),
  pm.step(text, bigint, bigint, text, text, bigint) TO pm_writer;
GRANT SELECT ON pm.attempt, pm.output, pm.worker TO pm_writer;
GRANT USAGE ON SCHEMA pm TO pm_worker;
GRANT SELECT ON pm.version TO pm_worker;
GRANT EXECUTE ON FUNCTION pm.unsafe(bool), pm.facts(), pm.join_workers(text, text[], text[], int),
  pm.claim(text, text, text[], text[]), pm.keep_claim(text), pm.take_load(text, bytea, int),
  pm.put_output(text, int, int, bytea), pm.report(text, bytea) TO pm_worker;
INSERT INTO pm.version VALUES (5);
