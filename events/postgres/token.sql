-- Version 8: whoever renews a log is known by its token, too (docs/design.md §4.6). After a promotion that lost a take-over
-- and then saw another one, two holders have an epoch of one number.

DROP FUNCTION pm.renew(int, bigint, bool);

-- The holder lives; with p_released it has let go. False: somebody else has the log, in this history.
CREATE FUNCTION pm.renew(p_log int, p_epoch bigint, p_token text, p_released bool) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_replicated bool;
BEGIN
  UPDATE pm.log SET renewals = renewals + 1, renewed = clock_timestamp(), released = p_released
    WHERE log_no = p_log AND epoch = p_epoch AND token = p_token AND pg_has_role(session_user, writer, 'USAGE')
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

REVOKE ALL ON FUNCTION pm.renew(int, bigint, text, bool) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pm.renew(int, bigint, text, bool) TO pm_writer;
INSERT INTO pm.version VALUES (8);
