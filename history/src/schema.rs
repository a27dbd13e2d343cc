//! Tables of a history (the SQLite database of all explorations and their findings), and the checks before a file is
//! used as a history.
//!
//! Anyone may have created the file. It must have exactly these tables and no view or trigger, because a view or
//! trigger could execute other statements. SQLite checks each page that it reads, and reports a damaged page.

use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, TransactionBehavior};

/// Application id in SQLite's header, which marks a history: "EvrH".
const APPLICATION_ID: i32 = 0x4576_7248;
/// Version of the tables. Files with another version are refused.
const VERSION: i32 = 1;
/// Maximum length of a value, and of a statement, in bytes.
const VALUE_BYTES_MAX: i32 = 64 << 10;
/// Maximum size of the file, in pages of 4 KiB.
const PAGES_MAX: u32 = 1 << 20;

/// Statements that create the tables, in the order of the tables' names. SQLite stores these texts in the file.
const TABLES: [&str; 2] = [
    "CREATE TABLE finding (
        run TEXT NOT NULL REFERENCES run (folder) ON DELETE CASCADE,
        id INTEGER NOT NULL,
        property TEXT NOT NULL,
        signature TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (run, id)
    ) STRICT, WITHOUT ROWID",
    "CREATE TABLE run (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        folder TEXT NOT NULL UNIQUE,
        world TEXT NOT NULL,
        identity TEXT NOT NULL,
        seed INTEGER NOT NULL,
        strategy TEXT NOT NULL,
        engine TEXT NOT NULL,
        exact INTEGER NOT NULL,
        begun_unix_s INTEGER NOT NULL,
        ended_unix_s INTEGER,
        why TEXT,
        budget_branches INTEGER,
        budget_ns INTEGER,
        branches INTEGER NOT NULL,
        vtime_ns INTEGER NOT NULL,
        cpu_ns INTEGER NOT NULL,
        digest TEXT NOT NULL,
        findings INTEGER NOT NULL
    ) STRICT",
];

/// Reason why Everett cannot use a file as a history.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    /// SQLite reported an error.
    #[error(transparent)]
    Sqlite(#[from] Error),
    /// The file has another version of the tables.
    #[error("format version {0}; this Everett has {VERSION}")]
    Version(i32),
    /// The file is the database of another program, or its tables were changed.
    #[error("it is a database with other tables")]
    Tables,
}

/// Sets the limits of a connection.
pub(super) fn confine(connection: &Connection) -> Result<(), Unfit> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "max_page_count", PAGES_MAX)?;
    Ok(())
}

/// Creates the tables if the file is empty.
pub(super) fn make(connection: &mut Connection) -> Result<(), Unfit> {
    // If two processes create the file at once, the second process waits here and then finds the tables.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if tables(&transaction)?.is_empty() && number(&transaction, "application_id")? == 0 {
        for table in TABLES.iter().rev() {
            transaction.execute(table, ())?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(transaction.commit()?)
}

/// Checks that the file is a history with these tables.
pub(super) fn check(connection: &Connection) -> Result<(), Unfit> {
    if number(connection, "application_id")? != APPLICATION_ID {
        return Err(Unfit::Tables);
    }
    match number(connection, "user_version")? {
        VERSION => {}
        other => return Err(Unfit::Version(other)),
    }
    if tables(connection)? != TABLES {
        return Err(Unfit::Tables);
    }
    Ok(())
}

fn number(connection: &Connection, pragma: &str) -> Result<i32, Error> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Returns the statements that created the tables, views, indices and triggers, except SQLite's own. Reads at most one
/// statement more than expected, because a malicious file can have many.
fn tables(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare(
        "SELECT coalesce(sql, '') FROM sqlite_schema
         WHERE name NOT IN ('sqlite_sequence', 'sqlite_autoindex_run_1') ORDER BY name LIMIT 3",
    )?;
    statement.query_map((), |row| row.get(0))?.collect()
}
