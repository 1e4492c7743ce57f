-- Version 4: requests to the holder of a log from other machines (docs/design.md §11.6). The role that connected asks.

-- The person behind a role: a request of that role is this operator's, and of nobody else.
CREATE TABLE pm.operator (role name PRIMARY KEY, operator text NOT NULL CHECK (operator ~ '^[A-Za-z0-9_-]{2,64}$'));

CREATE TABLE pm.request (
  log_no int REFERENCES pm.log, id text, role name NOT NULL, operator text NOT NULL, operation text NOT NULL,
  arguments text NOT NULL, expires timestamptz NOT NULL, epoch bigint NOT NULL DEFAULT 0, reply text,
  PRIMARY KEY (log_no, id)
);

-- Ask the holder, who may take it for p_seconds; once more is the same request. Returns who asks.
CREATE FUNCTION pm.ask(p_name text, p_id text, p_operation text, p_arguments text, p_seconds int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  number int := (SELECT log_no FROM pm.log WHERE name = p_name);
  who text := (SELECT operator FROM pm.operator WHERE role = session_user);
BEGIN
  IF who IS NULL OR number IS NULL THEN
    RAISE EXCEPTION 'permission denied: role % is no operator''s here', session_user USING ERRCODE = '42501';
  END IF;
  DELETE FROM pm.request WHERE log_no = number AND expires < now() - interval '1 hour';
  IF (SELECT count(*) FROM pm.request WHERE log_no = number AND role = session_user AND reply IS NULL) >= 64 THEN
    RAISE EXCEPTION 'too many requests of role % wait', session_user USING ERRCODE = '54000';
  END IF;
  INSERT INTO pm.request (log_no, id, role, operator, operation, arguments, expires)
    VALUES (number, left(p_id, 200), session_user, who, left(p_operation, 64), p_arguments,
      now() + least(greatest(p_seconds, 1), 3600) * interval '1 second')
    ON CONFLICT (log_no, id) DO UPDATE SET expires = excluded.expires
    WHERE pm.request.role = session_user AND pm.request.operation = excluded.operation;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the request id % is another request''s', p_id USING ERRCODE = '23505';
  END IF;
  PERFORM pg_notify('pm_' || number || '_ask', '');
  RETURN who;
END $$;

-- The state of one's own request: whether the holder has taken it, and its reply.
CREATE FUNCTION pm.reply(p_name text, p_id text) RETURNS TABLE (log_no int, taken bool, reply text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.log_no, r.epoch > 0, r.reply FROM pm.request r JOIN pm.log l USING (log_no)
  WHERE l.name = p_name AND r.id = p_id AND r.role = session_user
$$;

-- Take back one's own request; whether nobody has taken it, and nobody will.
CREATE FUNCTION pm.withdraw(p_name text, p_id text) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pm.request r USING pm.log l
    WHERE r.log_no = l.log_no AND l.name = p_name AND r.id = p_id AND r.role = session_user AND r.epoch = 0;
  RETURN FOUND;
END $$;

-- Take the requests that wait, as the holder of the log: those, too, that an earlier one took and did not answer.
CREATE FUNCTION pm.take_requests(p_log int, p_epoch bigint)
RETURNS TABLE (id text, role name, operator text, operation text, arguments text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.request r SET epoch = p_epoch FROM pm.log l
  WHERE r.log_no = p_log AND l.log_no = p_log AND l.epoch = p_epoch AND pg_has_role(session_user, l.writer, 'USAGE')
    AND r.epoch < p_epoch AND r.reply IS NULL AND r.expires > now()
  RETURNING r.id, r.role, r.operator, r.operation, r.arguments
$$;

-- Answer a request, as the holder; what was asked is not kept.
CREATE FUNCTION pm.answer(p_log int, p_epoch bigint, p_id text, p_reply text) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pm.request r SET reply = p_reply, arguments = '' FROM pm.log l
    WHERE r.log_no = p_log AND r.id = p_id AND r.epoch = p_epoch AND l.log_no = p_log AND l.epoch = p_epoch
      AND pg_has_role(session_user, l.writer, 'USAGE');
  IF FOUND THEN
    PERFORM pg_notify('pm_' || p_log || '_reply', '');
  END IF;
  RETURN FOUND;
END $$;

REVOKE ALL ON FUNCTION pm.ask(text, text, text, text, int), pm.reply(text, text), pm.withdraw(text, text),
  pm.take_requests(int, bigint), pm.answer(int, bigint, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pm.ask(text, text, text, text, int), pm.reply(text, text), pm.withdraw(text, text)
  TO pm_writer, pm_reader;
GRANT EXECUTE ON FUNCTION pm.take_requests(int, bigint), pm.answer(int, bigint, text, text) TO pm_writer;
INSERT INTO pm.version VALUES (4);
