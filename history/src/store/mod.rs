//! The database of a history, i.e. of a list of explorations (runs) and their findings: one SQLite file.
//!
//! **Invariants.** Several processes may use the file at once. Each change is one transaction, which waits for other
//! processes for at most [`WAIT`]. Texts and numbers from the file are only returned, and never executed or opened. The
//! caller must not trust a path from the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Row, TransactionBehavior, named_params,
};

use crate::compare::Compared;
use crate::run::{FINDINGS_MAX, Finding, PATH_BYTES_MAX, RUNS_MAX, Run, cut};
use crate::schema::{self, Unfit};

/// Maximum time that an access waits for other processes.
const WAIT: Duration = Duration::from_secs(10);

/// Columns of a run, in the order in which [`run_of`] reads them.
const COLUMNS: &str = "folder, world, identity, seed, strategy, engine, exact, begun_unix_s, ended_unix_s, why, \
                       budget_branches, budget_ns, branches, vtime_ns, cpu_ns, digest, findings";
/// Order of runs, newest first.
const NEWEST_FIRST: &str = "ORDER BY begun_unix_s DESC, number DESC";

/// Error of a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Other processes have used the file for longer than [`WAIT`].
    #[error("{}: other processes use the history of runs; try again", .0.display())]
    Busy(PathBuf),
    /// The path does not lead to a regular file.
    #[error("{}: not a regular file; remove it to begin a new history of runs", .0.display())]
    NotAFile(PathBuf),
    /// The file is damaged, or is not a history.
    #[error("{}: no usable history of runs: {what}; remove it to begin a new one", file.display())]
    Damaged {
        /// Path of the file.
        file: PathBuf,
        /// Description of the error.
        what: String,
    },
    /// The file cannot be opened, read or written.
    #[error("{}: cannot use the history of runs: {what}", file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Description of the error.
        what: String,
    },
    /// The path of a run directory or world file is too long.
    #[error("a path of {0} bytes is too long for the history of runs, which takes {PATH_BYTES_MAX}")]
    LongPath(usize),
}

/// Open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    file: PathBuf,
}

impl History {
    /// Opens a history to change it. Creates the file if it does not exist. The file's folder must exist.
    ///
    /// # Errors
    /// Returns an error if the file is not a history, or if it cannot be opened or created.
    pub fn open(file: &Path) -> Result<History, HistoryError> {
        History::with(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE, true)
    }

    /// Opens a history to read it. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns an error if the file is not a history, or if it cannot be opened.
    pub fn read(file: &Path) -> Result<Option<History>, HistoryError> {
        match file.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => History::with(file, OpenFlags::SQLITE_OPEN_READ_ONLY, false).map(Some),
        }
    }

    fn with(file: &Path, flags: OpenFlags, make: bool) -> Result<History, HistoryError> {
        // Refuse other files first. Opening a FIFO would wait for its other end, and a link could lead to a file of
        // another program.
        if file.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(HistoryError::NotAFile(file.to_owned()));
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let error = |unfit| problem(file, unfit);
        let mut connection = Connection::open_with_flags(file, flags).map_err(Unfit::from).map_err(error)?;
        let prepared = connection.busy_timeout(WAIT).map_err(Unfit::from);
        prepared.and_then(|()| schema::confine(&connection)).map_err(error)?;
        if make {
            schema::make(&mut connection).map_err(error)?;
        }
        schema::check(&connection).map_err(error)?;
        Ok(History { connection, file: file.to_owned() })
    }

    /// Records that an exploration starts or resumes. If `resumed` is true, and the folder's record has the same
    /// identity (of world, images and machine version) and seed, the record keeps its start and its results so far. In
    /// all other cases, a new record replaces the folder's record, if there is one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be changed, or if a path is too long.
    pub fn begin(&mut self, run: &Run, resumed: bool) -> Result<(), HistoryError> {
        self.change(run, |transaction| {
            let changed = match resumed {
                true => transaction.execute(
                    "UPDATE run SET ended_unix_s = NULL, why = NULL, budget_branches = :branches, budget_ns = :ns,
                     engine = :engine, exact = :exact WHERE folder = :folder AND identity = :identity AND seed = :seed",
                    named_params! {
                        ":branches": run.budget_branches.map(Count), ":ns": run.budget_ns.map(Count),
                        ":engine": run.engine, ":exact": run.exact, ":folder": run.folder,
                        ":identity": run.identity, ":seed": Count(run.seed),
                    },
                )?,
                false => 0,
            };
            if changed == 0 { put(transaction, run, &[]) } else { Ok(()) }
        })
    }

    /// Records an exploration with its results. If its start is already recorded, keeps the recorded start.
    ///
    /// # Errors
    /// Returns an error if the file cannot be changed, or if a path is too long.
    pub fn finish(&mut self, run: &Run, findings: &[Finding]) -> Result<(), HistoryError> {
        self.change(run, |transaction| {
            let begun = transaction.query_row(
                "SELECT begun_unix_s, budget_branches, budget_ns FROM run
                 WHERE folder = ? AND identity = ? AND seed = ?",
                (&run.folder, &run.identity, Count(run.seed)),
                |row| Ok((count(row, 0)?, optional(row, 1)?, optional(row, 2)?)),
            );
            let mut run = run.clone();
            if let Some((begun_unix_s, budget_branches, budget_ns)) = begun.optional()? {
                run.begun_unix_s = begun_unix_s;
                run.budget_branches = run.budget_branches.or(budget_branches);
                run.budget_ns = run.budget_ns.or(budget_ns);
            }
            put(transaction, &run, findings)
        })
    }

    /// Deletes the record of the run in a folder. Returns true if there was a record.
    ///
    /// # Errors
    /// Returns an error if the file cannot be changed.
    pub fn forget(&mut self, folder: &str) -> Result<bool, HistoryError> {
        let removed = self.connection.execute("DELETE FROM run WHERE folder = ?", [folder]);
        removed.map(|count| count > 0).map_err(|error| problem(&self.file, error.into()))
    }

    /// Returns the latest runs of a world or of all worlds, newest first. Returns at most `most` runs.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn runs(&self, world: Option<&str>, most: u32) -> Result<Vec<Run>, HistoryError> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE ?1 IS NULL OR world = ?1 {NEWEST_FIRST} LIMIT ?2");
        self.all(&sql, (world, most.min(RUNS_MAX)), run_of)
    }

    /// Returns the number of runs of a world, or of all worlds.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn count(&self, world: Option<&str>) -> Result<u64, HistoryError> {
        let counted =
            self.all("SELECT count(*) FROM run WHERE ?1 IS NULL OR world = ?1", [world], |row| {
                count(row, 0)
            })?;
        Ok(counted.first().copied().unwrap_or(0))
    }

    /// Returns the run in a folder, or `None` if no run is recorded there.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn run(&self, folder: &str) -> Result<Option<Run>, HistoryError> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE folder = ?");
        Ok(self.all(&sql, [folder], run_of)?.pop())
    }

    /// Returns earlier runs of the same world that have ended, newest first. Returns at most `most` runs. Earlier runs
    /// are those that started before `run`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn before(&self, run: &Run, most: u32) -> Result<Vec<Run>, HistoryError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run WHERE world = ?1 AND ended_unix_s IS NOT NULL AND folder <> ?2
             AND (begun_unix_s < ?3 OR begun_unix_s = ?3
                  AND number < coalesce((SELECT number FROM run WHERE folder = ?2), 9223372036854775807))
             {NEWEST_FIRST} LIMIT ?4"
        );
        let parameters = (&run.world, &run.folder, Count(run.begun_unix_s), most.min(RUNS_MAX));
        self.all(&sql, parameters, run_of)
    }

    /// Returns the findings of a run, in the order of their numbers.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn findings(&self, run: &Run) -> Result<Vec<Finding>, HistoryError> {
        let sql = format!(
            "SELECT id, property, signature, text FROM finding WHERE run = ? ORDER BY id LIMIT {FINDINGS_MAX}"
        );
        self.all(&sql, [&run.folder], |row| {
            Ok(Finding { id: row.get(0)?, property: row.get(1)?, signature: row.get(2)?, text: row.get(3)? })
        })
    }

    /// Compares a run that has ended with the previous run of its world. Returns `None` if there is no previous run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn compared(&self, run: &Run) -> Result<Option<Compared>, HistoryError> {
        let Some(before) = self.before(run, 1)?.pop() else { return Ok(None) };
        let (now, then) = (self.findings(run)?, self.findings(&before)?);
        Ok(Some(Compared::of(&run.identity, &now, before, &then)))
    }

    fn all<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, HistoryError> {
        let read = || {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map(parameters, of)?.collect::<rusqlite::Result<Vec<T>>>()
        };
        read().map_err(|error| problem(&self.file, error.into()))
    }

    fn change(
        &mut self,
        run: &Run,
        change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), HistoryError> {
        let longest = run.folder.len().max(run.world.len());
        if longest > PATH_BYTES_MAX {
            return Err(HistoryError::LongPath(longest));
        }
        let changed = || {
            // SQLite does not let a transaction wait for the write lock after it has read. `Immediate` takes the lock
            // at the start.
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change(&transaction)?;
            transaction.execute(
                "DELETE FROM run WHERE number NOT IN
                 (SELECT number FROM run ORDER BY begun_unix_s DESC, number DESC LIMIT ?)",
                [RUNS_MAX],
            )?;
            transaction.commit()
        };
        changed().map_err(|error| problem(&self.file, error.into()))
    }
}

/// Replaces the record of a run.
fn put(connection: &Connection, run: &Run, findings: &[Finding]) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM run WHERE folder = ?", [&run.folder])?;
    connection.execute(
        &format!(
            "INSERT INTO run ({COLUMNS}) VALUES (:folder, :world, :identity, :seed, :strategy, :engine, :exact, :begun,
             :ended, :why, :budget_branches, :budget_ns, :branches, :vtime, :cpu, :digest, :findings)"
        ),
        named_params! {
            ":folder": run.folder, ":world": run.world, ":identity": cut(&run.identity), ":seed": Count(run.seed),
            ":strategy": cut(&run.strategy), ":engine": cut(&run.engine), ":exact": run.exact,
            ":begun": Count(run.begun_unix_s), ":ended": run.ended_unix_s.map(Count),
            ":why": run.why.as_deref().map(cut), ":budget_branches": run.budget_branches.map(Count),
            ":budget_ns": run.budget_ns.map(Count), ":branches": Count(run.branches), ":vtime": Count(run.vtime_ns),
            ":cpu": Count(run.cpu_ns), ":digest": cut(&run.digest), ":findings": Count(run.findings),
        },
    )?;
    let mut statement = connection.prepare(
        "INSERT OR REPLACE INTO finding (run, id, property, signature, text) VALUES (?, ?, ?, ?, ?)",
    )?;
    for Finding { id, property, signature, text } in findings.iter().take(FINDINGS_MAX) {
        statement.execute((&run.folder, id, cut(property), cut(signature), cut(text)))?;
    }
    Ok(())
}

/// Reads a run from a row with the [`COLUMNS`].
fn run_of(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        folder: row.get(0)?,
        world: row.get(1)?,
        identity: row.get(2)?,
        seed: count(row, 3)?,
        strategy: row.get(4)?,
        engine: row.get(5)?,
        exact: row.get(6)?,
        begun_unix_s: count(row, 7)?,
        ended_unix_s: optional(row, 8)?,
        why: row.get(9)?,
        budget_branches: optional(row, 10)?,
        budget_ns: optional(row, 11)?,
        branches: count(row, 12)?,
        vtime_ns: count(row, 13)?,
        cpu_ns: count(row, 14)?,
        digest: row.get(15)?,
        findings: count(row, 16)?,
    })
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(|Count(number)| number)
}

fn optional(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<Count>>(column)?.map(|Count(number)| number))
}

/// Unsigned 64-bit number. SQLite stores it as the signed number with the same bits.
struct Count(u64);

impl ToSql for Count {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.cast_signed().into())
    }
}

impl FromSql for Count {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Count> {
        match value {
            ValueRef::Integer(number) => Ok(Count(number.cast_unsigned())),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// Classifies an error of the file as busy, damaged or an I/O error.
fn problem(file: &Path, unfit: Unfit) -> HistoryError {
    let (file, what) = (file.to_owned(), unfit.to_string());
    let Unfit::Sqlite(error) = &unfit else { return HistoryError::Damaged { file, what } };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => HistoryError::Busy(file),
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory,
        ) => HistoryError::Io { file, what },
        _ => HistoryError::Damaged { file, what },
    }
}

#[cfg(test)]
mod tests;
