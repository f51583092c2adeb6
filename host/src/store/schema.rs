//! The schema of the database, step by step.

/// Each step of the schema, in order. Steps are only ever added: how many were taken stands in the file (`user_version`).
pub(super) const MIGRATIONS: [&str; 9] = [REGISTRY, CLIENTS, RUNS, GRANTS, TRANSPORT, ENDED, OAUTH, FAMILIES, USED];

/// Who was declared.
const REGISTRY: &str = "
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        name TEXT,
        root_path TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE agent (
        session_id TEXT NOT NULL REFERENCES session (id),
        name TEXT NOT NULL,
        specialization TEXT,
        pid INTEGER,
        start INTEGER,
        boot_id TEXT,
        pid_namespace TEXT,
        owner TEXT NOT NULL,
        registered_by TEXT NOT NULL,
        registered_at_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, name),
        CHECK ((pid IS NULL) = (start IS NULL) AND (pid IS NULL) = (boot_id IS NULL) AND (pid IS NULL) = (pid_namespace IS NULL))
    ) STRICT, WITHOUT ROWID;
";

/// Which MCP clients were connected, and what they have called.
const CLIENTS: &str = "
    CREATE TABLE client (
        id TEXT PRIMARY KEY,
        server TEXT NOT NULL,
        user_id TEXT NOT NULL,
        grant_id TEXT,
        client_id TEXT,
        name TEXT,
        version TEXT,
        protocol TEXT NOT NULL,
        transport TEXT NOT NULL,
        connected_at_ms INTEGER NOT NULL,
        last_activity_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER,
        ended_reason TEXT,
        agents_registered INTEGER NOT NULL DEFAULT 0,
        CHECK ((ended_at_ms IS NULL) = (ended_reason IS NULL))
    ) STRICT;
    CREATE INDEX client_by_time ON client (user_id, connected_at_ms DESC, id DESC);
    CREATE INDEX client_open ON client (server) WHERE ended_at_ms IS NULL;
    CREATE TABLE client_call (
        client TEXT NOT NULL REFERENCES client (id) ON DELETE CASCADE,
        tool TEXT NOT NULL,
        calls INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        PRIMARY KEY (client, tool)
    ) STRICT, WITHOUT ROWID;
";

/// What became of agents that `headcount run` started.
const RUNS: &str = "
    CREATE TABLE run (
        session_id TEXT NOT NULL,
        name TEXT NOT NULL,
        tag TEXT NOT NULL UNIQUE,
        keeper_pid INTEGER NOT NULL,
        keeper_start INTEGER NOT NULL,
        running INTEGER NOT NULL,
        restarts INTEGER NOT NULL DEFAULT 0,
        restarted_at_ms INTEGER,
        exit_code INTEGER,
        ended_at_ms INTEGER,
        request INTEGER,
        next_start_at_ms INTEGER,
        restarts_in_a_row INTEGER NOT NULL DEFAULT 0,
        max_restarts INTEGER,
        kind TEXT,
        PRIMARY KEY (session_id, name),
        FOREIGN KEY (session_id, name) REFERENCES agent (session_id, name) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
";

/// Who may use a server, and the tokens that show it. Of a token only its digest is here.
const GRANTS: &str = "
    CREATE TABLE grant (
        id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        name TEXT NOT NULL,
        client_id TEXT,
        scopes TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER,
        last_used_at_ms INTEGER,
        revoked_at_ms INTEGER
    ) STRICT;
    CREATE INDEX grant_by_name ON grant (user_id, name);
    CREATE TABLE token (
        digest BLOB PRIMARY KEY,
        grant_id TEXT NOT NULL REFERENCES grant (id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
";

/// Sessions of the HTTP transport, and how each began.
const TRANSPORT: &str = "
    CREATE TABLE transport_session (
        id BLOB PRIMARY KEY,
        grant_id TEXT NOT NULL,
        hello TEXT NOT NULL,
        begun_at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX transport_session_by_time ON transport_session (begun_at_ms);
";

/// What has ended is found, so that it can be forgotten, and what goes with it; and the few that have not, among many that have. A
/// grant has ended when it was revoked or its time was over, whichever came first.
const ENDED: &str = "
    CREATE INDEX client_open_by_time ON client (user_id, connected_at_ms DESC, id DESC) WHERE ended_at_ms IS NULL;
    CREATE INDEX client_ended ON client (last_activity_at_ms) WHERE ended_at_ms IS NOT NULL;
    CREATE INDEX client_by_grant ON client (grant_id);
    CREATE INDEX grant_ended ON grant (coalesce(min(revoked_at_ms, expires_at_ms), revoked_at_ms, expires_at_ms));
    CREATE INDEX grant_unrevoked ON grant (user_id, created_at_ms DESC, id DESC) WHERE revoked_at_ms IS NULL;
    CREATE INDEX token_by_grant ON token (grant_id);
";

/// The authorization server: who may ask, what was asked and not yet answered, and what was given for it. Of secrets that are
/// handed out only digests are here; a code that the owner reads in the terminal lives for some minutes.
const OAUTH: &str = "
    ALTER TABLE token ADD COLUMN expires_at_ms INTEGER;
    ALTER TABLE token ADD COLUMN scopes TEXT;
    ALTER TABLE token ADD COLUMN resource TEXT;
    CREATE INDEX token_by_expiry ON token (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
    CREATE TABLE oauth_client (
        id TEXT PRIMARY KEY,
        name TEXT,
        redirect_uris TEXT NOT NULL,
        registered_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX grant_by_client ON grant (client_id) WHERE client_id IS NOT NULL;
    CREATE TABLE oauth_request (
        id BLOB PRIMARY KEY,
        client_id TEXT NOT NULL,
        client_name TEXT,
        redirect_uri TEXT NOT NULL,
        state TEXT,
        scopes TEXT NOT NULL,
        resource TEXT NOT NULL,
        challenge TEXT NOT NULL,
        user_code TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        asked_at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE oauth_code (
        digest BLOB PRIMARY KEY,
        client_id TEXT NOT NULL,
        client_name TEXT,
        redirect_uri TEXT NOT NULL,
        scopes TEXT NOT NULL,
        resource TEXT NOT NULL,
        challenge TEXT NOT NULL,
        issued_at_ms INTEGER NOT NULL,
        grant_id TEXT REFERENCES grant (id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE oauth_refresh (
        digest BLOB PRIMARY KEY,
        grant_id TEXT NOT NULL REFERENCES grant (id) ON DELETE CASCADE,
        resource TEXT NOT NULL,
        issued_at_ms INTEGER NOT NULL,
        used_at_ms INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX oauth_code_by_grant ON oauth_code (grant_id);
    CREATE INDEX oauth_refresh_by_time ON oauth_refresh (issued_at_ms);
    CREATE INDEX oauth_refresh_by_grant ON oauth_refresh (grant_id, issued_at_ms);
";

/// By what refresh tokens are known once nothing else is known of them, and which grants others give tokens for. The ids of these are
/// longer ones: a digest of what they are named by.
const FAMILIES: &str = "
    CREATE TABLE oauth_family (
        digest BLOB PRIMARY KEY,
        grant_id TEXT NOT NULL REFERENCES grant (id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX oauth_family_by_grant ON oauth_family (grant_id);
    DROP INDEX oauth_refresh_by_time;
    ALTER TABLE grant ADD COLUMN is_others INTEGER NOT NULL DEFAULT 0;
    UPDATE grant SET is_others = 1 WHERE length(id) > 24;
";

/// Sessions of the HTTP transport are over when they were not used for long, whichever server they were used with.
const USED: &str = "
    ALTER TABLE transport_session RENAME COLUMN begun_at_ms TO used_at_ms;
";
