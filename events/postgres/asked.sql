-- Version 9: a request is its operator's when it is taken, too, and no role fills the holder's memory (docs/design.md §11.6).

-- The sum of the arguments, which outlives them: under the same id, something else is another request.
ALTER TABLE pm.request ADD COLUMN sum bytea;

-- Ask the holder, who may take it for p_seconds; once more is the same request. One that was answered, and is asked with other
-- arguments, goes to the holder once more, who knows what its id was used for. Returns who asks.
CREATE OR REPLACE FUNCTION pm.ask(p_name text, p_id text, p_operation text, p_arguments text, p_seconds int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  number int := (SELECT log_no FROM pm.log WHERE name = p_name);
  who text := (SELECT operator FROM pm.operator WHERE role = session_user);
  asked bytea := sha256(convert_to(p_arguments, 'UTF8'));
  many bigint;
  bytes bigint;
BEGIN
  IF who IS NULL OR number IS NULL THEN
    RAISE EXCEPTION 'permission denied: role % is no operator''s here', session_user USING ERRCODE = '42501';
  END IF;
  IF length(p_id) > 200 OR length(p_operation) > 64 OR octet_length(p_arguments) > 25165824 THEN
    RAISE EXCEPTION 'the request is too long' USING ERRCODE = '54000';
  END IF;
  DELETE FROM pm.request WHERE log_no = number AND expires < now() - interval '1 hour';
  SELECT count(*), coalesce(sum(octet_length(arguments)), 0) INTO many, bytes FROM pm.request
    WHERE log_no = number AND role = session_user AND id <> p_id AND reply IS NULL;
  IF many >= 64 OR bytes + octet_length(p_arguments) > 134217728 THEN
    RAISE EXCEPTION 'too many requests of role % wait', session_user USING ERRCODE = '54000';
  END IF;
  DELETE FROM pm.request WHERE log_no = number AND id = p_id AND role = session_user AND operation = p_operation
    AND reply IS NOT NULL AND (operator <> who OR sum <> asked);
  INSERT INTO pm.request (log_no, id, role, operator, operation, arguments, sum, expires)
    VALUES (number, p_id, session_user, who, p_operation, p_arguments, asked,
      now() + least(greatest(p_seconds, 1), 3600) * interval '1 second')
    ON CONFLICT (log_no, id) DO UPDATE SET expires = excluded.expires
    WHERE pm.request.role = session_user AND pm.request.operation = excluded.operation
      AND pm.request.operator = excluded.operator;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the request id % is another request''s', p_id USING ERRCODE = '23505';
  END IF;
  PERFORM pg_notify('pm_' || number || '_ask', '');
  RETURN who;
END $$;

-- Take the requests that wait, as the holder of the log: those, too, that an earlier one took and did not answer; none whose
-- role is not that operator's any more.
CREATE OR REPLACE FUNCTION pm.take_requests(p_log int, p_epoch bigint)
RETURNS TABLE (id text, role name, operator text, operation text, arguments text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pm.request r SET epoch = p_epoch FROM pm.log l, pm.operator o
  WHERE r.log_no = p_log AND l.log_no = p_log AND l.epoch = p_epoch AND pg_has_role(session_user, l.writer, 'USAGE')
    AND o.role = r.role AND o.operator = r.operator
    AND r.epoch < p_epoch AND r.reply IS NULL AND r.expires > now()
  RETURNING r.id, r.role, r.operator, r.operation, r.arguments
$$;

INSERT INTO pm.version VALUES (9);
