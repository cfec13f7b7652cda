-- All that is stored. Everything here can be made again over what is there.

CREATE TABLE IF NOT EXISTS daruma_version (v integer PRIMARY KEY);

-- Checkpoints: a row each, and the values of their channels; those that stay the same are shared.

CREATE TABLE IF NOT EXISTS daruma_checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE IF NOT EXISTS daruma_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);

-- What tasks wrote from a checkpoint: slot 0 holds all that a task wrote which came to its end.

CREATE TABLE IF NOT EXISTS daruma_writes (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    slot integer NOT NULL,
    task_path text NOT NULL DEFAULT '',
    channels text[] NOT NULL,
    type text NOT NULL,
    blob bytea NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, slot)
);

-- Replies to questions: only the first one gets in.

CREATE TABLE IF NOT EXISTS daruma_replies (
    thread_id text NOT NULL,
    interrupt_id text NOT NULL,
    kind text NOT NULL,
    reply bytea NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    acceptance text NOT NULL,
    PRIMARY KEY (thread_id, interrupt_id)
);

-- Questions that wait for a reply: what an inbox shows, however many threads have ended. One goes
-- when its reply is on record, and with the next question of its thread; until then one that was
-- answered in another way is known by a newer checkpoint.

CREATE TABLE IF NOT EXISTS daruma_questions (
    thread_id text NOT NULL,
    interrupt_id text NOT NULL,
    question_id text NOT NULL,
    kind text NOT NULL,
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(),
    notified_at timestamptz,
    notified boolean NOT NULL DEFAULT false,
    PRIMARY KEY (thread_id, interrupt_id)
);

-- What people send to threads at work, in order, until the history holds it.

CREATE TABLE IF NOT EXISTS daruma_steering (
    thread_id text NOT NULL,
    id text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    message bytea NOT NULL,
    PRIMARY KEY (thread_id, id)
);

-- Leases: one run at a time has a thread. A token only grows: the rows are never deleted.

CREATE TABLE IF NOT EXISTS daruma_leases (
    thread_id text PRIMARY KEY,
    token bigint NOT NULL,
    run text NOT NULL,
    holder text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE OR REPLACE FUNCTION daruma_fence(thread text, held bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM daruma_leases WHERE thread_id = thread AND token = held FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'DR001';
    END IF;
END
$$;

-- The journal: what calls were about to do, and what came of them.

CREATE TABLE IF NOT EXISTS daruma_effects (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL,
    checkpoint_id text NOT NULL,
    call text NOT NULL,
    digest text NOT NULL,
    run text NOT NULL,
    key text NOT NULL,
    settles text NOT NULL,
    workspace text NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    kind text,
    outcome bytea,
    began_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    PRIMARY KEY (thread_id, call, digest, checkpoint_ns, checkpoint_id)
);
CREATE TABLE IF NOT EXISTS daruma_outputs (
    thread_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    output bytea NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (thread_id, id)
);

-- A proof of the key that a database is sealed under.

CREATE TABLE IF NOT EXISTS daruma_seal (
    alone boolean PRIMARY KEY DEFAULT true CHECK (alone),
    kind text NOT NULL,
    proof bytea NOT NULL
);

-- Items of the store. Words are kept in the row as they are: to unpack them for each item that is
-- ranked takes long. Without fastupdate: each look-up would read all that was put off.

CREATE TABLE IF NOT EXISTS daruma_items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    value bytea NOT NULL,
    words tsvector NOT NULL,
    length integer NOT NULL,
    meant text NOT NULL,
    fields text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (namespace, key)
) WITH (toast_tuple_target = 8160);
CREATE INDEX IF NOT EXISTS daruma_items_words ON daruma_items USING gin (words)
WITH (fastupdate = off);

-- What runs told. The ends are few: who follows a thread asks for them at each event.

CREATE TABLE IF NOT EXISTS daruma_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id text NOT NULL,
    run text NOT NULL,
    is_last boolean NOT NULL,
    kind text NOT NULL,
    event bytea NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS daruma_events_of ON daruma_events (thread_id, id);
CREATE INDEX IF NOT EXISTS daruma_events_ends ON daruma_events (thread_id, run, id) WHERE is_last;
