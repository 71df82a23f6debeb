//! Rows that a model is to tell apart: inputs, and classes only where somebody knows them.

use super::csv::{Mismatch, each_record, features, label};
use super::schema::{Kind, Schema, SchemaWords};
use super::{Examples, LoadError, Shape};
use ::csv::ByteRecord;
use std::path::Path;

/// Rows in the order of their file.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Their inputs, and their classes; 0 where a class is not known.
    pub examples: Examples,
    /// Whose class is known.
    pub labelled: Vec<bool>,
    /// Who has all values, where the schema leaves rows out that miss one.
    pub complete: Vec<bool>,
}

/// Rows while they are read.
#[derive(Default)]
struct Reading {
    inputs: Vec<f32>,
    labels: Vec<Option<u32>>,
    complete: Vec<bool>,
}

impl Reading {
    fn push(&mut self, input: &[f32], label: Option<u32>, complete: bool) {
        self.inputs.extend_from_slice(input);
        self.labels.push(label);
        self.complete.push(complete);
    }

    fn finish(self, path: &Path, shape: Shape, classes: usize) -> Result<Rows, LoadError> {
        let labels = self.labels.iter().map(|label| label.unwrap_or(0)).collect();
        let examples = Examples::new(shape, classes, self.inputs, labels).map_err(LoadError::examples(path))?;
        let labelled = self.labels.iter().map(Option::is_some).collect();
        Ok(Rows { examples, labelled, complete: self.complete })
    }
}

/// Rows of a table with the columns of a schema. The label may be missing, and with a header so may columns that are ignored, and others
/// may be there; an empty label is an unknown one.
///
/// # Errors
/// [`LoadError`] when the file cannot be read, or a column is missing or has something else than declared.
pub fn read_table(path: &Path, schema: &Schema) -> Result<Rows, LoadError> {
    let layout = schema.layout();
    let mut order: Option<Vec<Option<usize>>> = None;
    let mut row = vec![0.0; schema.features()];
    let mut reading = Reading::default();
    each_record(path, layout, |record| {
        let Some(order) = &order else {
            let found = if layout.header { by_name(record, schema)? } else { by_place(record, schema)? };
            let order = order.insert(found);
            return if layout.header { Ok(()) } else { push(record, order, schema, &mut row, &mut reading) };
        };
        push(record, order, schema, &mut row, &mut reading)
    })?;
    reading.finish(path, Shape::vector(schema.features()), schema.classes())
}

fn push(
    record: &ByteRecord,
    order: &[Option<usize>],
    schema: &Schema,
    row: &mut [f32],
    reading: &mut Reading,
) -> Result<(), Mismatch> {
    let expected = 1 + order.iter().flatten().copied().max().unwrap_or(0);
    if record.len() < expected {
        return Err(Mismatch::Fields { given: record.len(), expected });
    }
    let complete = features(record, order, schema, row)?;
    let is_empty = order[schema.label()].is_some_and(|field| record[field].is_empty());
    let class = if is_empty || !complete { None } else { label(record, order, schema)? };
    reading.push(row, class, complete);
    Ok(())
}

/// For each column of the schema the field of that name; the label and what is ignored may be missing.
fn by_name(header: &ByteRecord, schema: &Schema) -> Result<Vec<Option<usize>>, Mismatch> {
    let find = |name: &str| header.iter().position(|field| field == name.as_bytes());
    let columns = schema.layout().columns.iter();
    columns
        .map(|column| match (find(&column.name), &column.kind) {
            (None, Kind::Number { .. } | Kind::Category { .. }) => Err(Mismatch::Column(column.name.clone())),
            (field, Kind::Ignore | Kind::Label { .. } | Kind::Number { .. } | Kind::Category { .. }) => Ok(field),
        })
        .collect()
}

/// All columns in their order, or all but the label.
fn by_place(record: &ByteRecord, schema: &Schema) -> Result<Vec<Option<usize>>, Mismatch> {
    let (expected, label) = (schema.layout().columns.len(), schema.label());
    match record.len() {
        given if given == expected => Ok((0..expected).map(Some).collect()),
        given if given + 1 == expected => {
            Ok((0..expected).map(|at| (at != label).then(|| at - usize::from(at > label))).collect())
        }
        given => Err(Mismatch::Fields { given, expected }),
    }
}

/// Rows of numbers as the model takes them, each followed by the number of its class or not.
///
/// # Errors
/// [`LoadError`] when the file cannot be read or has other numbers.
pub fn read_numbers(path: &Path, shape: Shape, classes: usize) -> Result<Rows, LoadError> {
    let mut reading = Reading::default();
    let expected = shape.len();
    let mut row = vec![0.0; expected];
    each_record(path, &SchemaWords::of_numbers(), |record| {
        let given = record.len();
        if given != expected && given != expected + 1 {
            return Err(Mismatch::Inputs { given, expected });
        }
        let text = |field: usize| std::str::from_utf8(&record[field]).ok();
        for (field, number) in row.iter_mut().enumerate() {
            let parsed = text(field).and_then(|text| text.parse().ok()).filter(|number: &f32| number.is_finite());
            *number = parsed.ok_or(Mismatch::Input(field + 1))?;
        }
        let class = || text(expected)?.parse().ok().filter(|&class: &u32| (class as usize) < classes);
        let class = if given > expected { Some(class().ok_or(Mismatch::Class { classes })?) } else { None };
        reading.push(&row, class, true);
        Ok(())
    })?;
    reading.finish(path, shape, classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &str = r#"columns = [
        { name = "id", kind = "ignore" },
        { name = "age", kind = "number", low = 0, high = 100 },
        { name = "job", kind = "category", values = ["clerk", "miner"] },
        { name = "sick", kind = "label", values = ["no", "yes"] },
    ]"#;

    fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, text).expect("written");
        (folder, path)
    }

    fn table(head: &str, text: &str) -> Result<Rows, LoadError> {
        let (_folder, path) = written(text);
        read_table(&path, &Schema::from_toml(&format!("{head}\n{COLUMNS}")).expect("a schema"))
    }

    #[test]
    fn labels_may_be_there_or_not() {
        let by_name = "header = true";
        for (head, text, labelled) in [
            (by_name, "id,age,job,sick\n7,50,miner,yes\n", true),
            (by_name, "job,more,age\nminer,1,50\n", false),
            (by_name, "age,sick,job\n50,,miner\n", false),
            ("", "7,50,miner,yes\n", true),
            ("", "7,50,miner\n", false),
        ] {
            let rows = table(head, text).expect("rows");
            assert_eq!((rows.examples.input(0), &rows.labelled[..]), (&[0.5, 0.0, 1.0][..], &[labelled][..]), "{text}");
            assert_eq!(rows.examples.label(0), u32::from(labelled));
        }
        for (head, text, word) in [
            (by_name, "id,job\n1,miner\n", "does not name column \"age\""),
            (by_name, "age,job\n1\n", "1 fields"),
            ("", "1,2\n", "2 fields"),
            ("", "7,old,miner\n", "no finite number"),
            ("", "7,50,miner,perhaps\n", "no declared label"),
        ] {
            let said = table(head, text).expect_err("wrong").to_string();
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn rows_that_training_leaves_out_keep_their_places() {
        let head = "missing_text = \"?\"\nmissing = \"skip row\"";
        let rows = table(head, "1,50,miner,no\n2,?,clerk,yes\n3,10,clerk,yes\n").expect("rows");
        assert_eq!((rows.complete, rows.labelled), (vec![true, false, true], vec![true, false, true]));
    }

    #[test]
    fn numbers_with_a_class_or_without() {
        let read = |text: &str| {
            let (_folder, path) = written(text);
            read_numbers(&path, Shape::vector(2), 3)
        };
        let rows = read("0.5, 1,2\n-1,2e3\n").expect("rows");
        assert_eq!((rows.examples.input(1), rows.examples.label(0)), (&[-1.0, 2000.0][..], 2));
        assert_eq!(rows.labelled, [true, false]);
        let header = "field 1 is no finite number; a model of images takes rows of numbers, and no header";
        for (text, word) in [
            ("left,right\n1,2\n", header),
            ("1\n", "1 fields"),
            ("1,x\n", "field 2"),
            ("1,inf\n", "field 2"),
            ("1,2,3\n", "below 3"),
        ] {
            let said = read(text).expect_err("wrong").to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
