//! Tables of separated values with a declared [`Schema`], plain or compressed.
//!
//! A field may stand in quotes, which then open and close it: no space between separator and quote.

use std::fmt::Write;
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder, Trim};

use super::file::read_all;
use super::schema::{Kind, Missing, Schema, SchemaWords};
use super::{Examples, LoadError, Shape};

/// How a record is not what the schema declares. Says what was allowed, never what stands there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Mismatch {
    /// Another number of fields.
    #[error("{given} fields; the schema declares {expected} columns")]
    Fields {
        /// How many there are.
        given: usize,
        /// How many columns are declared.
        expected: usize,
    },
    /// The file is empty where a header should be.
    #[error("no header; the schema declares one")]
    NoHeader,
    /// A name in the header that is not declared. It may be a value, where the file has no header after all.
    #[error(
        "field {field} of the header is no declared column; expected {}; what is not needed is declared with kind = \"ignore\"",
        list(.allowed)
    )]
    HeaderName {
        /// Which field, from 1.
        field: usize,
        /// The names of all columns.
        allowed: Vec<String>,
    },
    /// A column that the header names twice.
    #[error("the header names column {0:?} twice")]
    HeaderTwice(String),
    /// A field that should be a number.
    #[error("column {column:?} is no finite number; expected a number, which is then clamped to {low}..{high}")]
    Number {
        /// The column.
        column: String,
        /// The declared range starts here.
        low: f64,
        /// The declared range ends here.
        high: f64,
    },
    /// A declared column that a table to be predicted has not.
    #[error("the header does not name column {0:?}, which the model was trained with")]
    Column(String),
    /// Another number of fields than the model has inputs.
    #[error(
        "{given} fields; expected the {expected} numbers that the model takes, or one more: the number of the class"
    )]
    Inputs {
        /// How many there are.
        given: usize,
        /// How many numbers an input has.
        expected: usize,
    },
    /// A field that should be a number of an input.
    #[error("field {0} is no finite number; a model of images takes rows of numbers, and no header")]
    Input(usize),
    /// A field that should be the number of a class.
    #[error("the last field is no class; expected an integer below {classes}")]
    Class {
        /// How many classes there are.
        classes: usize,
    },
    /// A label that is not declared.
    #[error("column {column:?} is no declared label; expected {}", list(.allowed))]
    Label {
        /// The column.
        column: String,
        /// The labels.
        allowed: Vec<String>,
    },
}

/// At most this many words are listed in a message.
const LISTED: usize = 20;

fn list(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().take(LISTED).map(|word| format!("{word:?}")).collect();
    let mut text = quoted.join(", ");
    if let Some(more) = words.len().checked_sub(LISTED).filter(|&more| 0 < more) {
        write!(text, " and {more} more").expect("a string takes everything");
    }
    text
}

/// Reads a table. The features of an example are those of its columns in the order of the schema; its position is that of
/// its row among the rows that are kept, and whether a row is kept depends on that row alone.
///
/// # Errors
/// [`LoadError`] when the file cannot be read or does not match the schema.
pub fn read(path: &Path, schema: &Schema) -> Result<Examples, LoadError> {
    let layout = schema.layout();
    let mut order = (!layout.header).then(|| (0..layout.columns.len()).map(Some).collect::<Vec<_>>());
    let mut row = vec![0.0; schema.features()];
    let (mut inputs, mut labels) = (vec![], vec![]);
    each_record(path, layout, |record| {
        let Some(order) = &order else {
            order = Some(columns_by_name(record, schema)?);
            return Ok(());
        };
        check_fields(record, schema)?;
        if features(record, order, schema, &mut row)? {
            labels.push(label(record, order, schema)?.ok_or_else(|| no_label(schema))?);
            inputs.extend_from_slice(&row);
        }
        Ok(())
    })?;
    if order.is_none() {
        return Err(LoadError::Table { path: path.to_owned(), line: 1, mismatch: Mismatch::NoHeader });
    }
    let shape = Shape::vector(schema.features());
    Examples::new(shape, schema.classes(), inputs, labels).map_err(LoadError::examples(path))
}

/// Every record of a table but blank lines. What is wrong with one is said with its line.
pub(super) fn each_record(
    path: &Path,
    layout: &SchemaWords,
    mut take: impl FnMut(&ByteRecord) -> Result<(), Mismatch>,
) -> Result<(), LoadError> {
    let text = read_all(path)?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(ascii(layout.separator))
        .comment(layout.comment.map(ascii))
        .trim(if layout.trim { Trim::All } else { Trim::None })
        .from_reader(text.as_slice());
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| LoadError::read(path)(error.into()))? {
        // A line of spaces. A table has two columns or more, so this is no record.
        if record.len() == 1 && record[0].trim_ascii().is_empty() {
            continue;
        }
        take(&record).map_err(|mismatch| {
            let start = record.position().map_or(0, ::csv::Position::byte);
            LoadError::Table { path: path.to_owned(), line: line_at(&text, start, layout.comment), mismatch }
        })?;
    }
    Ok(())
}

fn ascii(c: char) -> u8 {
    u8::try_from(c).expect("the schema has checked that this is ASCII")
}

fn check_fields(record: &ByteRecord, schema: &Schema) -> Result<(), Mismatch> {
    let expected = schema.layout().columns.len();
    if record.len() == expected { Ok(()) } else { Err(Mismatch::Fields { given: record.len(), expected }) }
}

/// For each column of the schema, which field it is.
fn columns_by_name(header: &ByteRecord, schema: &Schema) -> Result<Vec<Option<usize>>, Mismatch> {
    check_fields(header, schema)?;
    let columns = &schema.layout().columns;
    let mut order = vec![None; columns.len()];
    for (field, name) in header.iter().enumerate() {
        let Some(column) = columns.iter().position(|column| column.name.as_bytes() == name) else {
            let allowed = columns.iter().map(|column| column.name.clone()).collect();
            return Err(Mismatch::HeaderName { field: field + 1, allowed });
        };
        if order[column].replace(field).is_some() {
            return Err(Mismatch::HeaderTwice(columns[column].name.clone()));
        }
    }
    Ok(order)
}

/// Writes the features of a record into `row`; `false` when the row is to be left out. Fields of columns that are not there are nothing.
pub(super) fn features(
    record: &ByteRecord,
    order: &[Option<usize>],
    schema: &Schema,
    row: &mut [f32],
) -> Result<bool, Mismatch> {
    let layout = schema.layout();
    let is_missing = |field: &[u8]| layout.missing_text.as_ref().is_some_and(|text| text.as_bytes() == field);
    let fields = || layout.columns.iter().zip(order.iter().map(|&field| field.map(|field| &record[field])));
    if layout.missing == Some(Missing::SkipRow)
        && fields().any(|(column, field)| column.kind != Kind::Ignore && field.is_some_and(is_missing))
    {
        return Ok(false);
    }
    row.fill(0.0);
    for (index, (column, field)) in fields().enumerate() {
        let features = &mut row[schema.start(index)..schema.start(index + 1)];
        let Some(field) = field else { continue };
        match &column.kind {
            Kind::Ignore | Kind::Label { .. } => {}
            Kind::Number { .. } | Kind::Category { .. } if is_missing(field) => {}
            &Kind::Number { low, high } => {
                let scaled = scale(field, low, high);
                features[0] = scaled.ok_or_else(|| Mismatch::Number { column: column.name.clone(), low, high })?;
            }
            Kind::Category { values } => {
                if let Some(value) = values.iter().position(|value| value.as_bytes() == field) {
                    features[value] = 1.0;
                }
            }
        }
    }
    Ok(true)
}

/// The class of a record, if there is a column for it.
pub(super) fn label(record: &ByteRecord, order: &[Option<usize>], schema: &Schema) -> Result<Option<u32>, Mismatch> {
    let field = order[schema.label()].map(|field| &record[field]);
    field.map(|field| class_of(field, schema).ok_or_else(|| no_label(schema))).transpose()
}

fn no_label(schema: &Schema) -> Mismatch {
    let column = schema.layout().columns[schema.label()].name.clone();
    Mismatch::Label { column, allowed: schema.label_values().to_vec() }
}

/// A number clamped to its range and scaled to 0..1.
fn scale(field: &[u8], low: f64, high: f64) -> Option<f32> {
    let number: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    let scaled = (number.clamp(low, high) - low) / (high - low);
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1; features have single precision")]
    number.is_finite().then_some(scaled as f32)
}

/// The class of a label, with or without the suffix.
fn class_of(field: &[u8], schema: &Schema) -> Option<u32> {
    let position = |field: &[u8]| schema.label_values().iter().position(|value| value.as_bytes() == field);
    let suffix = schema.layout().label_suffix.as_ref();
    let class = position(field).or_else(|| position(field.strip_suffix(suffix?.as_bytes())?))?;
    Some(u32::try_from(class).expect("a schema has fewer than 2³² labels"))
}

/// The line on which a record starts, from 1. The reader's own count stops before the blank lines and comments that come
/// first.
fn line_at(text: &[u8], start: u64, comment: Option<char>) -> u64 {
    let mut start = usize::try_from(start).expect("the text is in memory");
    while let Some(&byte) = text.get(start) {
        if byte == b'\n' || byte == b'\r' {
            start += 1;
        } else if Some(char::from(byte)) == comment {
            start += text[start..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - start);
        } else {
            break;
        }
    }
    1 + text[..start].iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const COLUMNS: &str = r#"
        [[columns]]
        name = "id"
        kind = "ignore"
        [[columns]]
        name = "age"
        kind = "number"
        low = 20
        high = 60
        [[columns]]
        name = "job"
        kind = "category"
        values = ["clerk", "miner"]
        [[columns]]
        name = "sick"
        kind = "label"
        values = ["no", "yes"]
    "#;

    fn read_text(head: &str, text: &[u8]) -> Result<Examples, LoadError> {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        read(&path, &Schema::from_toml(&format!("{head}\n{COLUMNS}")).unwrap())
    }

    #[track_caller]
    fn check(head: &str, text: &str, inputs: &[[f32; 3]], labels: &[u32]) {
        let examples = read_text(head, text.as_bytes()).unwrap();
        assert_eq!(examples.labels(), labels);
        assert_eq!(examples.shape(), Shape::vector(3));
        for (index, input) in inputs.iter().enumerate() {
            assert_eq!(examples.input(index), input, "row {index}");
        }
    }

    /// The line and the mismatch; the whole message must keep the secret `4711` that every file here holds.
    #[track_caller]
    fn check_error(head: &str, text: &str, line: u64, message: &str) {
        assert!(text.contains("4711"));
        let error = read_text(head, text.as_bytes()).unwrap_err();
        let LoadError::Table { line: at, mismatch, .. } = &error else { panic!("{error}") };
        assert_eq!((*at, mismatch.to_string().as_str()), (line, message));
        assert!(!format!("{error} {error:?}").contains("4711"), "{error:?}");
    }

    #[test]
    fn numbers_are_clamped_and_scaled_and_categories_spread() {
        let text = "1,30,clerk,no\n2,20,miner,yes\n3,60,baker,no\n4,-5e3,,no\n5,1e300,clerk,yes\n";
        let inputs = [[0.25, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]];
        check("", text, &inputs, &[0, 1, 0, 0, 1]);
    }

    #[test]
    fn separators_quotes_spaces_and_line_ends() {
        let expected = [[0.25, 1.0, 0.0], [0.5, 0.0, 1.0]];
        check("separator = \";\"", "1;30;clerk;no\r\n\r\n2;40;miner;yes", &expected, &[0, 1]);
        check("separator = \"\\t\"", "1\t30\tclerk\tno\n2\t40\tminer\tyes\n", &expected, &[0, 1]);
        check("", "\"1,\n2\",\"30\",\"clerk\",no\n2,40,miner,yes\n", &expected, &[0, 1]);
        check("trim = true", " 1,  30 , clerk, no \n   \n2,\t40,miner ,yes\n", &expected, &[0, 1]);
        // Without trim a space belongs to the field: the category is another one.
        check("", "1,30, clerk,no\n   \n", &[[0.25, 0.0, 0.0]], &[0]);
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = "\u{feff}sick,job,id,age\nno,clerk,1,30\nyes,miner,2,40\n";
        check("header = true", text, &[[0.25, 1.0, 0.0], [0.5, 0.0, 1.0]], &[0, 1]);
        check("header = true", "age,id,job,sick\n", &[], &[]);
    }

    #[test]
    fn missing_values_become_zero_or_take_their_row_along() {
        let text = "?,30,?,no\n2,?,miner,yes\n?,60,clerk,yes\n";
        let zero = "missing = \"zero\"\nmissing_text = \"?\"";
        check(zero, text, &[[0.25, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]], &[0, 1, 1]);
        let skip = "missing = \"skip row\"\nmissing_text = \"?\"";
        check(skip, &format!("{text}5,not looked at,clerk,?\n"), &[[1.0, 1.0, 0.0]], &[1]);
        check_error(zero, "4711,30,clerk,?\n", 1, "column \"sick\" is no declared label; expected \"no\", \"yes\"");
    }

    #[test]
    fn comments_and_suffixes_are_left_out() {
        let text = "|1x3 Cross validator\n\n1,30,clerk,no.\n2,40,miner,yes\n| the end\n\n";
        check("comment = \"|\"\nlabel_suffix = \".\"", text, &[[0.25, 1.0, 0.0], [0.5, 0.0, 1.0]], &[0, 1]);
    }

    #[test]
    fn compressed_tables_are_read() {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"1,30,clerk,yes\n").unwrap();
        assert_eq!(read_text("", &encoder.finish().unwrap()).unwrap().labels(), [1]);
    }

    #[test]
    fn a_table_that_does_not_match_is_refused() {
        let label = "column \"sick\" is no declared label; expected \"no\", \"yes\"";
        check_error("", "1,30,clerk,no\n4711,30,clerk\n", 2, "3 fields; the schema declares 4 columns");
        check_error("", "4711,30,clerk,no,4711\n", 1, "5 fields; the schema declares 4 columns");
        check_error("", "1,30,clerk,4711\n", 1, label);
        check_error("", "4711,30,clerk,no.\n", 1, label);
        check_error("", "4711,30,\"clerk,no\n1,30,clerk,no\n", 1, "3 fields; the schema declares 4 columns");
        let number = "column \"age\" is no finite number; expected a number, which is then clamped to 20..60";
        for text in ["4711 years", "", "nan", "inf", "-Infinity", "4711\u{e9}", "1e999"] {
            check_error("", &format!("4711,{text},clerk,no\n"), 1, number);
        }
        assert!(matches!(
            read_text("", b"1,\xff,clerk,no"),
            Err(LoadError::Table { mismatch: Mismatch::Number { .. }, .. })
        ));
    }

    #[test]
    fn a_header_that_does_not_match_is_refused() {
        let name = |field| {
            format!(
                "field {field} of the header is no declared column; expected \"id\", \"age\", \"job\", \"sick\"; what is \
                 not needed is declared with kind = \"ignore\""
            )
        };
        check_error("header = true", "4711,30,clerk,no\n", 1, &name(1));
        check_error("header = true", "id,age,job,4711\n", 1, &name(4));
        check_error("header = true", "id,age,age,sick\n4711", 1, "the header names column \"age\" twice");
        check_error("header = true", "id,age,job\n4711", 1, "3 fields; the schema declares 4 columns");
        check_error("header = true\ncomment = \"#\"", "\n# 4711\n", 1, "no header; the schema declares one");
    }

    #[test]
    fn lines_are_counted_as_an_editor_does() {
        let fields = "1 fields; the schema declares 4 columns";
        for end in ["\n", "\r\n"] {
            let good = format!("1,30,clerk,no{end}");
            check_error("comment = \"|\"", &format!("|a{end}{end}{good}{end}|b{end}{end}4711{end}"), 7, fields);
            check_error("comment = \"|\"", &format!("|a{end}4711"), 2, fields);
            check_error("", &format!("{good}\"2{end}2\",30,clerk,no{end}4711"), 4, fields);
            check_error("trim = true", &format!("{good}  {end}{good}4711"), 4, fields);
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let words: Vec<String> = (0..25).map(|word| word.to_string()).collect();
        assert!(list(&words).ends_with("\"19\" and 5 more"));
        assert!(list(&words[..20]).ends_with("\"18\", \"19\""));
    }
}
