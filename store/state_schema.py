"""The numbered steps of state.db: appended, never changed (S2-62). `user_version` counts the steps taken."""

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE base (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            base_id TEXT NOT NULL,
            created_ns INTEGER NOT NULL,
            generation INTEGER NOT NULL
        ) STRICT""",
        """CREATE TABLE roots (
            name TEXT PRIMARY KEY,
            path TEXT NOT NULL UNIQUE,
            single_files TEXT NOT NULL,
            last_full_generation INTEGER NOT NULL
        ) STRICT""",
        """CREATE TABLE runs (
            id INTEGER PRIMARY KEY,
            generation INTEGER NOT NULL,
            kind TEXT NOT NULL,
            trigger TEXT NOT NULL,
            roots TEXT NOT NULL,
            is_full INTEGER NOT NULL,
            state TEXT NOT NULL,
            started_ns INTEGER NOT NULL,
            ended_ns INTEGER,
            counts TEXT NOT NULL,
            cause TEXT NOT NULL,
            pid INTEGER NOT NULL
        ) STRICT""",
        """CREATE TABLE pages (
            run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            page INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('planned', 'done')),
            payload BLOB,
            counts TEXT NOT NULL,
            PRIMARY KEY (run, page)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE failures (
            key TEXT PRIMARY KEY,
            reason TEXT NOT NULL,
            detail TEXT NOT NULL,
            tries INTEGER NOT NULL,
            first_ns INTEGER NOT NULL,
            last_ns INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE removal_candidates (
            run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            reason TEXT NOT NULL,
            stat TEXT NOT NULL,
            PRIMARY KEY (run, key)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE receipts (
            id TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            at_ns INTEGER NOT NULL,
            outcome TEXT NOT NULL
        ) STRICT, WITHOUT ROWID""",
    ),
    # runs that others than their own process ask for, stop and look at; what each has changed
    (
        "ALTER TABLE runs ADD COLUMN requested TEXT NOT NULL DEFAULT '' CHECK (requested IN ('', 'pause', 'cancel'))",
        "ALTER TABLE runs ADD COLUMN request TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE runs ADD COLUMN plan TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE runs ADD COLUMN schedule TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN queued_ns INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE runs ADD COLUMN since_ns INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE runs ADD COLUMN progress TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE runs ADD COLUMN progressed_ns INTEGER NOT NULL DEFAULT 0",
        # a page's keys that ended one way, joined by NUL
        """CREATE TABLE run_changes (
            run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            page INTEGER NOT NULL,
            change TEXT NOT NULL CHECK (change IN ('added', 'updated', 'moved', 'removed')),
            keys BLOB NOT NULL,
            PRIMARY KEY (run, change, page)
        ) STRICT, WITHOUT ROWID""",
        # when a file that failed is tried again by itself, whether it ever is, and what stat said of it then
        "ALTER TABLE failures ADD COLUMN next_ns INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE failures ADD COLUMN standing TEXT NOT NULL DEFAULT 'open'"
        " CHECK (standing IN ('open', 'quarantined', 'ignored'))",
        "ALTER TABLE failures ADD COLUMN stat TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE schedules (
            name TEXT PRIMARY KEY,
            last_tick_ns INTEGER NOT NULL,
            last_run INTEGER NOT NULL,
            last_outcome TEXT NOT NULL,
            outcome_ns INTEGER NOT NULL,
            skipped INTEGER NOT NULL,
            last_success_ns INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID""",
        # what somebody was told last of a subject, so that a state is told once
        """CREATE TABLE notices (
            subject TEXT PRIMARY KEY,
            state TEXT NOT NULL,
            told_ns INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID""",
    ),
    # why a run has ended as it has, and what mends it, in the words of the error
    (
        "ALTER TABLE runs ADD COLUMN message TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN hint TEXT NOT NULL DEFAULT ''",
    ),
)
