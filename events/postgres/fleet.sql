-- Version 6: the words of each log's holder on how its log stands, for lists of all logs of a database (docs/design.md §11.7).
CREATE TABLE pm.said (log_no int PRIMARY KEY REFERENCES pm.log, epoch bigint NOT NULL, text text NOT NULL, at timestamptz NOT NULL);

CREATE FUNCTION pm.say(p_log int, p_epoch bigint, p_text text) RETURNS bool
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO pm.said SELECT l.log_no, p_epoch, left(p_text, 4000), clock_timestamp() FROM pm.log l
    WHERE l.log_no = p_log AND l.epoch = p_epoch AND pg_has_role(session_user, l.writer, 'USAGE')
    ON CONFLICT (log_no) DO UPDATE SET epoch = excluded.epoch, text = excluded.text, at = excluded.at
    WHERE pm.said.epoch <= excluded.epoch RETURNING true
$$;

REVOKE ALL ON FUNCTION pm.say(int, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pm.say(int, bigint, text) TO pm_writer;
GRANT SELECT ON pm.said TO pm_writer, pm_reader;
INSERT INTO pm.version VALUES (6);
