-- Blobs beside the logs, version 2: whole ones in pm.blob, their content in pieces that were written before.

CREATE TABLE pm.piece (
  log_no int REFERENCES pm.log, upload bytea, n int, bytes bytea NOT NULL, PRIMARY KEY (log_no, upload, n)
);
ALTER TABLE pm.piece ALTER bytes SET STORAGE EXTERNAL;

CREATE TABLE pm.blob (
  log_no int REFERENCES pm.log, sha256 bytea, size bigint NOT NULL, upload bytea NOT NULL, PRIMARY KEY (log_no, sha256)
);

-- The log p_name, if the caller may write it.
CREATE FUNCTION pm.writable(p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found int := (SELECT log_no FROM pm.log WHERE name = p_name AND pg_has_role(session_user, writer, 'USAGE'));
BEGIN
  IF found IS NULL THEN
    RAISE EXCEPTION 'permission denied: this role does not write the log %', p_name USING ERRCODE = '42501';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION pm.put_piece(p_name text, p_upload bytea, p_n int, p_bytes bytea) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pm.piece VALUES (pm.writable(p_name), p_upload, p_n, p_bytes);
  RETURN true;
END $$;

-- The size of a blob that is there; NULL: none is. It is written anew, so that this commit is as durable as it: a row
-- that is only read may be one that only this server has.
CREATE FUNCTION pm.touch_blob(p_name text, p_sha256 bytea) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found bigint;
BEGIN
  UPDATE pm.blob SET size = size WHERE log_no = pm.writable(p_name) AND sha256 = p_sha256 RETURNING size INTO found;
  RETURN found;
END $$;

-- Give an upload its name, unless a blob has that by now; the size of the one that has it. p_bytes: the only piece.
CREATE FUNCTION pm.put_blob(p_name text, p_sha256 bytea, p_size bigint, p_upload bytea, p_bytes bytea) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  log int := pm.writable(p_name);
  b pm.blob;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(28782, log);  -- pieces are not cleared away meanwhile
  IF p_bytes IS NOT NULL THEN
    IF sha256(p_bytes) <> p_sha256 THEN
      RAISE EXCEPTION 'the content is not what its name says' USING ERRCODE = '22023';
    END IF;
    b.size := pm.touch_blob(p_name, p_sha256);
    IF b.size IS NOT NULL THEN
      RETURN b.size;
    END IF;
    INSERT INTO pm.piece VALUES (log, p_upload, 0, p_bytes);
  END IF;
  IF (SELECT coalesce(sum(octet_length(bytes)), 0) FROM pm.piece WHERE log_no = log AND upload = p_upload) <> p_size THEN
    RAISE EXCEPTION 'pieces of it are missing' USING ERRCODE = '22023';
  END IF;
  INSERT INTO pm.blob AS known VALUES (log, p_sha256, p_size, p_upload)
    ON CONFLICT (log_no, sha256) DO UPDATE SET size = known.size RETURNING known.* INTO b;
  IF b.upload <> p_upload THEN
    DELETE FROM pm.piece WHERE log_no = log AND upload = p_upload;
  END IF;
  RETURN b.size;
END $$;

-- Removal by the holder of p_epoch: the blobs of these names (in hex, with commas), or uploads that never ended.
CREATE FUNCTION pm.drop_blobs(p_name text, p_epoch bigint, p_names text) RETURNS TABLE (blobs bigint, size bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  log int := pm.writable(p_name);
BEGIN
  PERFORM FROM pm.log l WHERE l.log_no = log AND l.epoch = p_epoch FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'permission denied: another holder has the log %', p_name USING ERRCODE = '42501';
  END IF;
  PERFORM pg_advisory_xact_lock(28782, log);
  IF p_names = '' THEN
    RETURN QUERY WITH gone AS (
        DELETE FROM pm.piece p WHERE p.log_no = log
          AND NOT EXISTS (SELECT FROM pm.blob b WHERE b.log_no = log AND b.upload = p.upload) RETURNING p.upload, p.bytes)
      SELECT count(DISTINCT upload), coalesce(sum(octet_length(bytes)), 0)::bigint FROM gone;
    RETURN;
  END IF;
  RETURN QUERY WITH gone AS (
      DELETE FROM pm.blob b WHERE b.log_no = log
        AND b.sha256 IN (SELECT decode(one, 'hex') FROM unnest(string_to_array(p_names, ',')) AS one)
        RETURNING b.upload, b.size),
    pieces AS (DELETE FROM pm.piece p WHERE p.log_no = log AND p.upload IN (SELECT upload FROM gone))
    SELECT count(*), coalesce(sum(gone.size), 0)::bigint FROM gone;
END $$;

REVOKE ALL ON FUNCTION pm.writable(text), pm.put_piece(text, bytea, int, bytea), pm.touch_blob(text, bytea),
  pm.put_blob(text, bytea, bigint, bytea, bytea), pm.drop_blobs(text, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pm.put_piece(text, bytea, int, bytea), pm.touch_blob(text, bytea),
  pm.put_blob(text, bytea, bigint, bytea, bytea), pm.drop_blobs(text, bigint, text) TO pm_writer;
GRANT SELECT ON pm.piece, pm.blob TO pm_writer, pm_reader;
INSERT INTO pm.version VALUES (2);
