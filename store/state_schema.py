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
)
