//! Tables of people: CSV and Parquet files, read in partitions.
//!
//! CSV columns are text; an empty field is null. Errors name files and columns, never values, rows or counts: those are secret.

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How far a scan has come; called from several threads with the size that was just read.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Rows that are read at a time.
const BATCH: usize = 16_384;

/// A table: one or many files of the same columns, or batches in memory.
#[derive(Clone, Debug)]
pub struct Table {
    partitions: Vec<Partition>,
}

/// A piece of a table that one thread, or one machine, can read on its own.
#[derive(Clone, Debug)]
pub struct Partition {
    source: Source,
    schema: SchemaRef,
    /// How much there is to read, for a progress bar.
    size: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Csv { path: PathBuf, delimiter: u8 },
    RowGroup { path: PathBuf, metadata: ArrowReaderMetadata, row_group: usize },
    Memory(RecordBatch),
}

/// A table that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The operating system could not open or read it.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Neither CSV nor Parquet by its name.
    #[error("{} is neither a .csv, .tsv or .parquet file nor a folder of them", .0.display())]
    Kind(PathBuf),
    /// Not what its name says, or cut off.
    #[error("{} cannot be read as {kind}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// CSV or Parquet.
        kind: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// No rows at all.
    #[error("the table is empty: no file of it has a row")]
    Empty,
    /// A column that is not there, or twice.
    #[error("{}: {problem} `{column}`; it has {}", path.display(), columns.join(", "))]
    Column {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
        /// The column.
        column: String,
        /// Those that are there.
        columns: Vec<String>,
    },
}

impl Table {
    /// Files, or folders of files; all of one table.
    ///
    /// # Errors
    /// [`TableError`] when one cannot be opened. Nothing but headers and footers is read yet.
    pub fn open(paths: &[PathBuf]) -> Result<Self, TableError> {
        let mut partitions = Vec::new();
        for path in paths {
            let io = |error| TableError::Io { path: path.clone(), error };
            if std::fs::metadata(path).map_err(io)?.is_dir() {
                let mut files = Vec::new();
                for entry in std::fs::read_dir(path).map_err(io)? {
                    files.push(entry.map_err(io)?.path());
                }
                files.retain(|file| Kind::of(file).is_some());
                files.sort();
                if files.is_empty() {
                    return Err(TableError::Kind(path.clone()));
                }
                for file in files {
                    open_file(&file, &mut partitions)?;
                }
            } else {
                open_file(path, &mut partitions)?;
            }
        }
        Ok(Self { partitions })
    }

    /// Batches in memory.
    #[must_use]
    pub fn in_memory(batches: Vec<RecordBatch>) -> Self {
        let partition = |batch: RecordBatch| Partition {
            schema: batch.schema(),
            size: batch.num_rows() as u64,
            source: Source::Memory(batch),
        };
        Self { partitions: batches.into_iter().map(partition).collect() }
    }

    /// The pieces.
    #[must_use]
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// How much there is to read, in units of [`Partition::size`].
    #[must_use]
    pub fn size(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.size).sum()
    }

    /// The type of a column, checked to be there once in every file, and of one type.
    ///
    /// # Errors
    /// [`TableError::Column`] names the file and the columns that it has.
    pub fn column(&self, name: &str) -> Result<DataType, TableError> {
        let mut found: Option<DataType> = None;
        for partition in &self.partitions {
            let complaint = |problem| TableError::Column {
                path: partition.path().to_owned(),
                problem,
                column: name.to_owned(),
                columns: partition.schema.fields().iter().map(|field| format!("`{}`", field.name())).collect(),
            };
            let mut fields = partition.schema.fields().iter().filter(|field| field.name() == name);
            let field = fields.next().ok_or_else(|| complaint("there is no column"))?;
            if fields.next().is_some() {
                return Err(complaint("there is more than one column"));
            }
            if found.as_ref().is_some_and(|found| found != field.data_type()) {
                return Err(complaint("another file has another type of column"));
            }
            found = Some(field.data_type().clone());
        }
        found.ok_or(TableError::Empty)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Csv(u8),
    Parquet,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv(b',')),
            "tsv" => Some(Self::Csv(b'\t')),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

fn open_file(path: &Path, partitions: &mut Vec<Partition>) -> Result<(), TableError> {
    let io = |error| TableError::Io { path: path.to_owned(), error };
    let file = File::open(path).map_err(io)?;
    match Kind::of(path).ok_or_else(|| TableError::Kind(path.to_owned()))? {
        Kind::Csv(delimiter) => {
            let size = file.metadata().map_err(io)?.len();
            let mut reader = reader(file, delimiter);
            let header = reader.headers().map_err(|_| unreadable(path, "CSV"))?;
            if header.is_empty() {
                return Err(TableError::Empty);
            }
            // All text: a type guessed from the first rows would depend on secret values.
            let text = |name: &str| Field::new(name, DataType::Utf8, true);
            let schema = Arc::new(Schema::new(header.iter().map(text).collect::<Vec<_>>()));
            partitions.push(Partition { source: Source::Csv { path: path.to_owned(), delimiter }, schema, size });
        }
        Kind::Parquet => {
            let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|error| {
                TableError::Unreadable { path: path.to_owned(), kind: "Parquet", problem: error.to_string() }
            })?;
            for (row_group, group) in metadata.metadata().row_groups().iter().enumerate() {
                let size = u64::try_from(group.compressed_size()).unwrap_or(0);
                let source = Source::RowGroup { path: path.to_owned(), metadata: metadata.clone(), row_group };
                partitions.push(Partition { source, schema: Arc::clone(metadata.schema()), size });
            }
        }
    }
    Ok(())
}

/// Says no more than that: what exactly is wrong is in the data.
fn unreadable(path: &Path, kind: &'static str) -> TableError {
    let problem = match kind {
        "CSV" => "expected a header, then rows with as many fields, in UTF-8",
        _ => "it is cut off or damaged",
    };
    TableError::Unreadable { path: path.to_owned(), kind, problem: problem.to_owned() }
}

impl Partition {
    /// How much there is to read, in bytes or rows.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    fn path(&self) -> &Path {
        match &self.source {
            Source::Csv { path, .. } | Source::RowGroup { path, .. } => path,
            Source::Memory(_) => Path::new("the table in memory"),
        }
    }

    /// Calls `f` with one batch after another of these columns, and `progress` with what was read.
    ///
    /// # Errors
    /// [`TableError`] when the file cannot be read, or whatever `f` complains about.
    pub(crate) fn for_each_batch<E: From<TableError>>(
        &self,
        columns: &[String],
        progress: Progress<'_>,
        mut f: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = self.path();
        let io = |error| TableError::Io { path: path.to_owned(), error };
        let index = |name: &String| self.schema.index_of(name).ok();
        let wanted: Vec<usize> = columns.iter().filter_map(index).collect();
        match &self.source {
            Source::Memory(batch) => {
                progress(self.size);
                f(batch.project(&wanted).map_err(|_| unreadable(path, "a table"))?)
            }
            Source::RowGroup { metadata, row_group, .. } => {
                let rows = u64::try_from(metadata.metadata().row_group(*row_group).num_rows()).unwrap_or(0).max(1);
                let damaged = || unreadable(path, "Parquet");
                let file = File::open(path).map_err(io)?;
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
                let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
                let reader = builder.with_row_groups(vec![*row_group]).with_projection(mask).with_batch_size(BATCH);
                for batch in reader.build().map_err(|_| damaged())? {
                    let batch = batch.map_err(|_| damaged())?;
                    progress(self.size.saturating_mul(batch.num_rows() as u64) / rows);
                    f(batch)?;
                }
                Ok(())
            }
            Source::Csv { delimiter, .. } => {
                let file = Counted { inner: File::open(path).map_err(io)?, progress };
                let schema = self.schema.project(&wanted).map(Arc::new).map_err(|_| unreadable(path, "CSV"))?;
                let mut reader = reader(file, *delimiter);
                while let Some(batch) =
                    next_batch(&mut reader, &schema, &wanted).ok_or_else(|| unreadable(path, "CSV"))?
                {
                    f(batch)?;
                }
                Ok(())
            }
        }
    }
}

fn reader<R: Read>(file: R, delimiter: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new().delimiter(delimiter).buffer_capacity(1 << 20).from_reader(file)
}

/// The next rows, some of their columns; nothing after the last, and none where they are not CSV. An empty field is null.
fn next_batch<R: Read>(
    reader: &mut csv::Reader<R>,
    schema: &SchemaRef,
    wanted: &[usize],
) -> Option<Option<RecordBatch>> {
    let mut columns: Vec<StringBuilder> = wanted.iter().map(|_| StringBuilder::new()).collect();
    let (mut row, mut rows) = (csv::StringRecord::new(), 0);
    while rows < BATCH && reader.read_record(&mut row).ok()? {
        for (column, &index) in columns.iter_mut().zip(wanted) {
            column.append_option(row.get(index).filter(|field| !field.is_empty()));
        }
        rows += 1;
    }
    if rows == 0 {
        return Some(None);
    }
    let columns = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).ok().map(Some)
}

/// Says how much was read.
struct Counted<'a, R> {
    inner: R,
    progress: Progress<'a>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}
