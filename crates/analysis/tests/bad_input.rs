//! What cannot be asked, or not of this table: a clear error, nothing charged, nothing released, and no secret in the message.

mod common;

use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use common::{clip, layout, noise, query, settings, sum};
use parquet::arrow::ArrowWriter;
use paygo_analysis::{
    Bins, Edges, Layout, Manner, Query, QueryError, RoundError, Statistic, Table, TableError, Weight, ask,
    open_accounts,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Asks on fresh accounts, as the command does.
fn answer(table: &Table, layout: &Layout) -> Result<(), RoundError> {
    let mut accounts = open_accounts(None, table, &settings("rho=1"), &|_| ())?;
    let mut source = paygo_noise::Source::from_operating_system().expect("a source");
    let result = ask(table, layout, &mut accounts, Manner::default(), &mut source, &|_| ());
    if result.is_err() {
        assert_eq!(accounts.rounds(), 0, "nothing is charged");
    }
    result.map(|_| ())
}

#[track_caller]
fn fails(table: &Table, query: Query, said: &str) {
    let error = answer(table, &layout(vec![query])).expect_err(said).to_string();
    assert!(error.contains(said), "{error}");
    for secret in ["13", "666", "row 1", "row 2", "line"] {
        assert!(!error.contains(secret), "{error}");
    }
}

fn amounts(values: Vec<Option<f64>>) -> Table {
    let person: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=i64::try_from(values.len()).expect("few")));
    let amount: ArrayRef = Arc::new(Float64Array::from(values));
    let columns = [("person", person, false), ("amount", amount, true)];
    Table::in_memory(vec![RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")])
}

fn with_person(person: ArrayRef) -> Table {
    let amount: ArrayRef = Arc::new(Float64Array::from(vec![1.0; person.len()]));
    let columns = [("person", person, true), ("amount", amount, true)];
    Table::in_memory(vec![RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")])
}

fn selected(condition: &str) -> Query {
    Query::new("q", sum(0.0, 100.0), Some(condition.parse().expect(condition)), noise(50.0)).expect("a query")
}

#[test]
fn values_must_be_finite_where_they_are_selected() {
    for odd in [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY)] {
        let table = amounts(vec![Some(13.0), odd, Some(666.0)]);
        let queries = [
            query(sum(0.0, 100.0), 50.0),
            query(Statistic::Mean("amount".into(), clip(0.0, 100.0)), 50.0),
            query(
                Statistic::Histogram("amount".into(), Bins::Edges("0..9:3".parse().expect("g")), Weight::Person),
                50.0,
            ),
        ];
        for query in queries {
            fails(&table, query, "column `amount` holds something that is not a finite number");
        }
        // Whether somebody's value is odd must not show in whether there is an error: a condition changes nothing.
        for condition in ["person = 1", "person = 2", "amount is not null", "amount > -1e9 and amount < 1e9"] {
            fails(&table, selected(condition), "column `amount` holds something that is not a finite number");
        }
        // Skipped, it does no harm.
        assert!(answer(&table, &layout(vec![query(sum(0.0, 100.0), 50.0).skipping_missing()])).is_ok(), "{odd:?}");
    }
}

#[test]
fn columns_must_be_there_and_of_a_kind() {
    let table = amounts(vec![Some(13.0)]);
    let of = |column: &str| query(Statistic::Sum(column.into(), clip(0.0, 1.0)), 50.0);
    fails(&table, of("amuont"), "there is no column `amuont`; it has `person`, `amount`");
    fails(&table, selected("age > 3"), "there is no column `age`");
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![13]));
    let person: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let table =
        Table::in_memory(vec![RecordBatch::try_from_iter([("person", person), ("day", dates)]).expect("a batch")]);
    fails(&table, of("day"), "column `day` is Date32; expected numbers");
}

#[test]
fn every_row_has_a_person_of_a_kind() {
    let people: [(ArrayRef, &str); 4] = [
        (
            Arc::new(Float64Array::from(vec![13.0])),
            "column `person` is Float64; a person's id must be text or an integer",
        ),
        (Arc::new(BooleanArray::from(vec![true])), "column `person` is Boolean"),
        (Arc::new(Int64Array::from(vec![Some(13), None])), "column `person` is empty in some rows"),
        (Arc::new(StringArray::from(vec!["13", ""])), "column `person` is empty in some rows"),
    ];
    for (person, said) in people {
        fails(&with_person(person), query(sum(0.0, 1.0), 50.0), said);
    }
    let table = amounts(vec![Some(1.0)]);
    let error =
        open_accounts(None, &table, &paygo_analysis::Settings { person: "user".into(), ..settings("rho=1") }, &|_| ());
    assert!(error.expect_err("no such column").to_string().contains("there is no column `user`"));
}

#[test]
fn an_empty_table_is_no_table() {
    let empty = amounts(vec![]);
    for table in [empty, Table::in_memory(vec![])] {
        fails(&table, query(sum(0.0, 1.0), 50.0), "the table is empty");
    }
}

#[test]
fn bounds_and_noise_go_together() {
    let error =
        |statistic, noise_std| Layout::new(vec![query(statistic, noise_std)], None).expect_err("no layout").to_string();
    assert!(error(sum(0.0, 1e9), 1.0).contains("clip = 1000000000"));
    for noise_std in [1_048_576.0, 1_060_000.0, 1e7] {
        assert!(error(Statistic::People, noise_std).contains("noise_std"), "{noise_std}");
    }
    assert!(matches!(Layout::new(vec![], None), Err(QueryError::None)));
    let twice = vec![query(Statistic::People, 1.0), query(Statistic::Rows(3), 1.0)];
    assert!(matches!(Layout::new(twice, None), Err(QueryError::SameName(_))));
    let wide = |name: &str| {
        let edges: Edges = "0..1:60000".parse().expect("a grid");
        Query::new(name, Statistic::Histogram("amount".into(), Bins::Edges(edges), Weight::Person), None, noise(1.0))
            .expect("q")
    };
    assert!(matches!(Layout::new(vec![wide("a"), wide("b")], None), Err(QueryError::TooMany { .. })));
    for budget in ["rho=0", "epsilon=0,delta=0", "epsilon=1,delta=0"] {
        let opened = open_accounts(None, &amounts(vec![Some(1.0)]), &settings(budget), &|_| ());
        assert!(opened.is_err(), "{budget}");
    }
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    fn parquet(&self, name: &str, batch: &RecordBatch) -> PathBuf {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a writer");
        writer.write(batch).expect("written");
        writer.close().expect("closed");
        self.write(name, bytes)
    }
}

fn open(path: &Path) -> Result<Table, TableError> {
    Table::open(&[path.to_owned()])
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let files = Files::new();
    let good = files.parquet("good.parquet", &common::batch(&[(1, 5.0, "North"), (2, 7.0, "South")]));
    assert!(answer(&open(&good).expect("a table"), &layout(vec![query(sum(0.0, 9.0), 50.0)])).is_ok());
    let bytes = std::fs::read(&good).expect("bytes");
    for (name, bytes) in
        [("cut.parquet", &bytes[..bytes.len() - 30]), ("not.parquet", b"person,amount\n13,666\n"), ("no.parquet", b"")]
    {
        let error = open(&files.write(name, bytes)).expect_err("unreadable").to_string();
        assert!(error.contains(name) && error.contains("cannot be read as Parquet"), "{error}");
    }
    // Whole at both ends, damaged in between.
    let mut damaged = bytes;
    damaged[10..60].fill(0xff);
    let table = open(&files.write("damaged.parquet", damaged)).expect("a footer");
    fails(&table, query(sum(0.0, 9.0), 50.0), "damaged.parquet cannot be read as Parquet: it is cut off or damaged");

    assert!(matches!(open(&files.write("empty.csv", "")), Err(TableError::Empty)));
    let header_only = open(&files.write("header.csv", "person,amount\n")).expect("a table");
    fails(&header_only, query(sum(0.0, 9.0), 50.0), "the table is empty");
    let ragged = open(&files.write("ragged.csv", "person,amount\n13,666\n13\n")).expect("a header");
    fails(&ragged, query(sum(0.0, 9.0), 50.0), "ragged.csv cannot be read as CSV");
    let latin = open(&files.write("latin.csv", b"person,amount\n\xe9,666\n")).expect("a header");
    fails(&latin, query(sum(0.0, 9.0), 50.0), "latin.csv cannot be read as CSV");
    let words = open(&files.write("words.csv", "person,amount\n13,many\n")).expect("a table");
    fails(&words, query(sum(0.0, 9.0), 50.0), "column `amount` holds something that is not a finite number");
    let twice = open(&files.write("twice.csv", "person,amount,amount\n1,2,3\n")).expect("a table");
    fails(&twice, query(sum(0.0, 9.0), 50.0), "there is more than one column `amount`");

    assert!(matches!(open(&files.write("table.xlsx", "")), Err(TableError::Kind(_))));
    assert!(matches!(open(Path::new("/nonexistent.csv")), Err(TableError::Io { .. })));
    let error = Table::open(&[good, files.write("other.csv", "person,amount\n1,2\n")]).expect("two files");
    fails(&error, query(sum(0.0, 9.0), 50.0), "another file has another type of column `person`");
}

#[test]
fn csv_and_parquet_and_folders_of_both_say_the_same() {
    let files = Files::new();
    let csv = "\u{feff}person,amount,region\n1,10,North\n1,20,South\n\"2\",5.5e1,\"a, b\"\n3,,\n";
    let path = files.write("table.csv", csv);
    let table = open(&path).expect("a table");
    let answers = |table: &Table, query: Query| {
        let mut accounts = open_accounts(None, table, &settings("rho=1e15"), &|_| ()).expect("accounts");
        let mut source = paygo_noise::Source::from_operating_system().expect("a source");
        let answers = ask(table, &layout(vec![query]), &mut accounts, Manner::default(), &mut source, &|_| ());
        answers.expect("answers").answers[0].numbers[0].value
    };
    let present =
        Query::new("q", sum(0.0, 100.0), Some("amount is not null".parse().expect("c")), noise(1e-4)).expect("a query");
    let present = present.skipping_missing();
    assert!((answers(&table, present.clone()) - 85.0).abs() < 0.01);
    let quoted =
        Query::new("q", sum(0.0, 100.0), Some("region = 'a, b' and amount >= 55".parse().expect("c")), noise(1e-4))
            .expect("a query");
    assert!((answers(&table, quoted.skipping_missing()) - 55.0).abs() < 0.01);
    assert!((answers(&table, query(Statistic::People, 1e-4)) - 3.0).abs() < 0.01);

    let folder = Files::new();
    folder.parquet("b.parquet", &common::batch(&[(1, 10.0, "North"), (2, 55.0, "x")]));
    folder.parquet("a.parquet", &common::batch(&[(1, 20.0, "South")]));
    folder.write("notes.txt", "not a table");
    let folder = open(folder.0.path()).expect("a folder");
    assert!((answers(&folder, present) - 85.0).abs() < 0.01);
    let tabs = open(&files.write("table.tsv", "person\tamount\n7\t12\n")).expect("a table");
    assert!((answers(&tabs, query(sum(0.0, 100.0), 1e-4)) - 12.0).abs() < 0.01);
    let empty = Files::new();
    assert!(matches!(open(empty.0.path()), Err(TableError::Kind(_))));
}
