//! The log in a database: the same statements on SQLite and PostgreSQL.
//!
//! The lines of one transaction are one row, a *page*, by the number of its last entry: a transaction of a thousand decisions is
//! as quick to write as one of a single decision. One row holds the head of the log, and it is moved only from where a writer found it:
//! in one statement that says from where, or under a lock that is taken before it is read (`BEGIN IMMEDIATE`, `SELECT … FOR UPDATE`).

use super::{Head, Location, Snapshot, Store, StoreError};
use crate::entry::Digest;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

/// One step of the schema for each version.
const MIGRATIONS: &[&[&str]] = &[&[
    "CREATE TABLE paygo_head (one {integer} PRIMARY KEY, seq BIGINT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE paygo_pages (last {integer} PRIMARY KEY, lines TEXT NOT NULL)",
    "CREATE TABLE paygo_snapshot (one {integer} PRIMARY KEY, seq BIGINT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL)",
    "CREATE TABLE paygo_fingerprints (seq {integer} PRIMARY KEY, digest TEXT NOT NULL, bytes {bytes} NOT NULL)",
]];

/// A connection to a database.
#[derive(Debug)]
pub struct SqlStore {
    location: Location,
    /// `None` after an error: whatever was begun is over.
    connection: Option<AnyConnection>,
    /// The last entry when it was begun.
    begun: u64,
}

impl SqlStore {
    /// Connects, and makes or brings up to date what is not there.
    ///
    /// # Errors
    /// [`StoreError`] when there is no way to the database, it was made by a later version, or does not keep what it
    /// acknowledges.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let mut store = Self { location: location.clone(), connection: None, begun: 0 };
        store.reconnect().await?;
        store.migrate().await?;
        Ok(store)
    }

    fn is_file(&self) -> bool {
        matches!(self.location, Location::File(_))
    }

    fn connection(&mut self) -> Result<&mut AnyConnection, StoreError> {
        self.connection.as_mut().ok_or_else(|| StoreError::Sql(sqlx::Error::PoolClosed))
    }

    async fn run(&mut self, statement: &str) -> Result<(), StoreError> {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(self.connection()?).await?;
        Ok(())
    }

    async fn number(&mut self, query: &str) -> Result<Option<i64>, StoreError> {
        let row = sqlx::query(AssertSqlSafe(query)).fetch_optional(self.connection()?).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// What a connection needs to be durable and to give up.
    async fn prepare(&mut self) -> Result<(), StoreError> {
        if self.is_file() {
            // A batch of a thousand decisions is 200 KB: larger pages are fewer writes, and as quick for a single decision.
            for pragma in [
                "busy_timeout = 10000",
                "page_size = 16384",
                "journal_mode = WAL",
                "synchronous = FULL",
                "fullfsync = ON",
            ] {
                self.run(&format!("PRAGMA {pragma}")).await?;
            }
            return Ok(());
        }
        // A replica that is frozen in the middle of a transaction loses its lock.
        for setting in
            ["lock_timeout = '10s'", "idle_in_transaction_session_timeout = '30s'", "synchronous_commit = on"]
        {
            self.run(&format!("SET {setting}")).await?;
        }
        let fsync = sqlx::query("SELECT current_setting('fsync')").fetch_one(self.connection()?).await?;
        if fsync.try_get::<String, _>(0)? != "on" {
            return Err(StoreError::NotDurable("fsync is off; expected on".to_owned()));
        }
        Ok(())
    }

    async fn migrate(&mut self) -> Result<(), StoreError> {
        let (integer, bytes) = if self.is_file() { ("INTEGER", "BLOB") } else { ("BIGINT", "BYTEA") };
        if self.is_file() {
            self.run("BEGIN IMMEDIATE").await?;
        } else {
            // Two replicas that start at once make the tables once.
            self.run("BEGIN").await?;
            sqlx::query("SELECT pg_advisory_xact_lock(7021)").execute(self.connection()?).await?;
        }
        self.run("CREATE TABLE IF NOT EXISTS paygo_schema (version BIGINT NOT NULL)").await?;
        let version = self.number("SELECT version FROM paygo_schema").await?;
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        let given = version.unwrap_or(0);
        if given > known {
            self.run("ROLLBACK").await?;
            return Err(StoreError::Version { given, known });
        }
        for step in MIGRATIONS.iter().skip(usize::try_from(given).unwrap_or(0)) {
            for statement in *step {
                self.run(&statement.replace("{integer}", integer).replace("{bytes}", bytes)).await?;
            }
        }
        if version.is_none() {
            self.run(&format!("INSERT INTO paygo_schema (version) VALUES ({known})")).await?;
            self.run(&format!("INSERT INTO paygo_head (one, seq, digest) VALUES (1, 0, '{}')", Digest::ZERO)).await?;
        } else if given < known {
            self.run(&format!("UPDATE paygo_schema SET version = {known}")).await?;
        }
        self.run("COMMIT").await
    }

    /// Runs a step; after an error the connection is not used again.
    async fn step<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.is_err()
            && let Some(connection) = self.connection.take()
        {
            // Closing ends the transaction; the database forgets or keeps it as a whole.
            connection.close_hard().await.ok();
        }
        outcome
    }

    async fn try_begin(&mut self) -> Result<Head, StoreError> {
        // Both in one go: the database is asked once.
        let statements = if self.is_file() {
            "BEGIN IMMEDIATE; SELECT seq, digest FROM paygo_head WHERE one = 1"
        } else {
            "BEGIN; SELECT seq, digest FROM paygo_head WHERE one = 1 FOR UPDATE"
        };
        let rows = sqlx::raw_sql(statements).fetch_all(self.connection()?).await?;
        let found = head(rows.first().ok_or_else(|| StoreError::Damaged("the log has no head".to_owned()))?)?;
        self.begun = found.seq;
        Ok(found)
    }

    /// Everything in one go, the predicate inside: the database is asked once. Whether it was this one that moved the head is asked by
    /// what changed: another may have written the very same entry.
    async fn try_extend(&mut self, from: Head, lines: &str, to: Head) -> Result<bool, StoreError> {
        let statements = if self.is_file() {
            "BEGIN IMMEDIATE; \
             INSERT INTO paygo_pages (last, lines) SELECT $1, $2 FROM paygo_head WHERE one = 1 AND seq = $4 AND digest = $5; \
             UPDATE paygo_head SET seq = $1, digest = $3 WHERE one = 1 AND seq = $4 AND digest = $5; \
             SELECT 1 WHERE changes() = 1; \
             COMMIT"
        } else {
            "WITH moved AS (UPDATE paygo_head SET seq = $1, digest = $3 WHERE one = 1 AND seq = $4 AND digest = $5 RETURNING seq), \
             page AS (INSERT INTO paygo_pages (last, lines) SELECT $1, $2 FROM moved) \
             SELECT 1 FROM moved"
        };
        let moved = sqlx::query(statements)
            .bind(number(to.seq)?)
            .bind(lines)
            .bind(to.digest.to_string())
            .bind(number(from.seq)?)
            .bind(from.digest.to_string())
            .fetch_all(self.connection()?)
            .await?;
        Ok(moved.len() == 1)
    }

    async fn try_append(&mut self, lines: &str, last: u64) -> Result<(), StoreError> {
        // The predicate is inside the statement: nothing is appended to a log whose head somebody else has moved.
        let page = "INSERT INTO paygo_pages (last, lines) SELECT $1, $2 FROM paygo_head WHERE one = 1 AND seq = $3";
        let (last, begun) = (number(last)?, number(self.begun)?);
        let appended = sqlx::query(page).bind(last).bind(lines).bind(begun).execute(self.connection()?).await?;
        if appended.rows_affected() == 1 {
            return Ok(());
        }
        Err(StoreError::Damaged(format!("the log does not end at entry {begun}, where it was found")))
    }

    async fn try_commit(&mut self, head: Head) -> Result<(), StoreError> {
        let (Head { seq, digest }, begun) = (head, self.begun);
        let moved = format!("UPDATE paygo_head SET seq = {seq}, digest = '{digest}' WHERE one = 1 AND seq = {begun}");
        self.run(&format!("{moved}; COMMIT")).await
    }

    async fn try_save(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.run("DELETE FROM paygo_snapshot").await?;
        sqlx::query("INSERT INTO paygo_snapshot (one, seq, digest, state) VALUES (1, $1, $2, $3)")
            .bind(number(snapshot.seq)?)
            .bind(Digest::of(&snapshot.state).to_string())
            .bind(snapshot.state.clone())
            .execute(self.connection()?)
            .await?;
        sqlx::query("DELETE FROM paygo_fingerprints WHERE seq > $1")
            .bind(number(snapshot.after)?)
            .execute(self.connection()?)
            .await?;
        sqlx::query("INSERT INTO paygo_fingerprints (seq, digest, bytes) VALUES ($1, $2, $3)")
            .bind(number(snapshot.seq)?)
            .bind(Digest::of_bytes(&snapshot.fingerprints).to_string())
            .bind(snapshot.fingerprints.clone())
            .execute(self.connection()?)
            .await?;
        Ok(())
    }

    async fn try_lines(&mut self, after: u64, most: u64) -> Result<Vec<String>, StoreError> {
        if i64::try_from(after).is_err() {
            return Ok(Vec::new());
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut lines, mut from) = (Vec::new(), after);
        while lines.len() < most {
            // Pages that hold something after the entry: the first may hold something before it, too.
            let rows = sqlx::query("SELECT last, lines FROM paygo_pages WHERE last > $1 ORDER BY last LIMIT 16")
                .bind(number(from)?)
                .fetch_all(self.connection()?)
                .await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                let (last, page): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
                let last =
                    u64::try_from(last).map_err(|_| StoreError::Damaged("a page before the first".to_owned()))?;
                let count = page.lines().count() as u64;
                let known = (from + count).saturating_sub(last);
                lines.extend(page.lines().skip(usize::try_from(known).unwrap_or(usize::MAX)).map(str::to_owned));
                from = last;
            }
        }
        lines.truncate(most);
        Ok(lines)
    }

    async fn try_state(&mut self) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT digest, state FROM paygo_snapshot").fetch_optional(self.connection()?).await?;
        let Some(row) = row else { return Ok(None) };
        let (digest, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        // A damaged snapshot is passed over: the log says everything that it says.
        Ok((Digest::of(&state).to_string() == digest).then_some(state))
    }

    async fn try_fingerprints(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = sqlx::query("SELECT digest, bytes FROM paygo_fingerprints ORDER BY seq")
            .fetch_all(self.connection()?)
            .await?;
        let mut chunks = Vec::with_capacity(rows.len());
        for row in &rows {
            let (digest, bytes): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
            // Damaged ones are passed over, and the snapshot with them.
            if Digest::of_bytes(&bytes).to_string() == digest {
                chunks.push(bytes);
            }
        }
        Ok(chunks)
    }
}

fn head(row: &AnyRow) -> Result<Head, StoreError> {
    let (seq, digest): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
    let damaged = |what: &str| StoreError::Damaged(format!("the head of the log: {what}"));
    let seq = u64::try_from(seq).map_err(|_| damaged("a negative number"))?;
    Ok(Head { seq, digest: Digest::try_from(digest).map_err(damaged)? })
}

fn number(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Damaged(format!("{value} is no number of an entry")))
}

impl Store for SqlStore {
    async fn begin(&mut self) -> Result<Head, StoreError> {
        let outcome = self.try_begin().await;
        self.step(outcome).await
    }

    async fn extend(&mut self, from: Head, lines: &str, to: Head) -> Result<bool, StoreError> {
        let outcome = self.try_extend(from, lines, to).await;
        self.step(outcome).await
    }

    async fn append(&mut self, lines: &str, last: u64) -> Result<(), StoreError> {
        let outcome = self.try_append(lines, last).await;
        self.step(outcome).await
    }

    async fn save(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let outcome = self.try_save(snapshot).await;
        self.step(outcome).await
    }

    async fn commit(&mut self, head: Head) -> Result<(), StoreError> {
        let outcome = self.try_commit(head).await;
        self.step(outcome).await
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        let outcome = self.run("ROLLBACK").await;
        self.step(outcome).await
    }

    async fn lines(&mut self, after: u64, most: u64) -> Result<Vec<String>, StoreError> {
        let outcome = self.try_lines(after, most).await;
        self.step(outcome).await
    }

    async fn state(&mut self) -> Result<Option<String>, StoreError> {
        let outcome = self.try_state().await;
        self.step(outcome).await
    }

    async fn saved(&mut self) -> Result<u64, StoreError> {
        let outcome = self.number("SELECT seq FROM paygo_snapshot").await;
        let seq = self.step(outcome).await?.unwrap_or(0);
        u64::try_from(seq).map_err(|_| StoreError::Damaged("a snapshot of a negative number".to_owned()))
    }

    async fn close(self) {
        if let Some(connection) = self.connection {
            connection.close().await.ok();
        }
    }

    async fn fingerprints(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        let outcome = self.try_fingerprints().await;
        self.step(outcome).await
    }

    async fn reconnect(&mut self) -> Result<(), StoreError> {
        if let Some(connection) = self.connection.take() {
            connection.close_hard().await.ok();
        }
        self.connection = Some(AnyConnection::connect(&self.location.url()).await?);
        let outcome = self.prepare().await;
        self.step(outcome).await
    }
}
