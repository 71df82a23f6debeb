//! What a table holds, declared beforehand. Ranges and categories come from here and never from the data, so that no
//! feature of one person depends on another.
//!
//! ```
//! use paygo_training::data::schema::Schema;
//!
//! let schema = Schema::from_toml(
//!     r#"
//!     header = true
//!     columns = [
//!         { name = "id", kind = "ignore" },
//!         { name = "age", kind = "number", low = 0, high = 120 },
//!         { name = "job", kind = "category", values = ["clerk", "miner", "nurse"] },
//!         { name = "sick", kind = "label", values = ["no", "yes"] },
//!     ]
//!     "#,
//! )?;
//! assert_eq!((schema.features(), schema.classes()), (4, 2));
//! # Ok::<(), paygo_training::data::schema::SchemaError>(())
//! ```

use std::collections::HashSet;

use serde::Deserialize;

/// A schema as somebody writes it; [`Schema::new`] checks it. Every field but `columns` has a default: a comma, no header,
/// spaces kept, nothing missing, no comments, no suffix.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaWords {
    /// What stands between two fields: an ASCII character.
    #[serde(default = "comma")]
    pub separator: char,
    /// Whether the first record names the columns. Then columns are found by name, else by their order.
    #[serde(default)]
    pub header: bool,
    /// Whether spaces around a field are no part of it.
    #[serde(default)]
    pub trim: bool,
    /// Lines that start with this ASCII character are no records. Blank lines never are.
    #[serde(default)]
    pub comment: Option<char>,
    /// The text of a value that is missing, such as `?`. Goes together with `missing`.
    #[serde(default)]
    pub missing_text: Option<String>,
    /// What becomes of a value that is missing.
    #[serde(default)]
    pub missing: Option<Missing>,
    /// What may follow a label and is no part of it, such as a full stop.
    #[serde(default)]
    pub label_suffix: Option<String>,
    /// All columns of the file.
    pub columns: Vec<Column>,
}

impl SchemaWords {
    /// Plain numbers, whose columns are not declared.
    pub(super) const fn of_numbers() -> Self {
        Self {
            separator: ',',
            header: false,
            trim: true,
            comment: None,
            missing_text: None,
            missing: None,
            label_suffix: None,
            columns: Vec::new(),
        }
    }
}

const fn comma() -> char {
    ','
}

/// What becomes of a value that is missing. Columns that are ignored are not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Missing {
    /// Its features are 0; a label cannot be missing.
    #[serde(rename = "zero")]
    Zero,
    /// Its row is left out.
    #[serde(rename = "skip row")]
    SkipRow,
}

/// One column of a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct Column {
    /// Its name, in the header if there is one, and in messages.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing that is looked at.
    Ignore,
    /// A number, clamped to this range and scaled to 0..1: one feature.
    Number {
        /// What becomes 0, as does everything below.
        low: f64,
        /// What becomes 1, as does everything above.
        high: f64,
    },
    /// One of these: one feature for each, 1 for the value and 0 for the others. A value that is not declared is 0 in all.
    Category {
        /// The values, in the order of their features.
        values: Vec<String>,
    },
    /// What is to be learned. Any other value is an error.
    Label {
        /// The values, in the order of their classes.
        values: Vec<String>,
    },
}

/// A column in a configuration file: name and kind side by side.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum ColumnText {
    Ignore { name: String },
    Number { name: String, low: f64, high: f64 },
    Category { name: String, values: Vec<String> },
    Label { name: String, values: Vec<String> },
}

impl TryFrom<toml::Table> for Column {
    type Error = String;

    /// An error says in which column.
    fn try_from(table: toml::Table) -> Result<Self, String> {
        let name = table.get("name").map_or_else(|| "without a name".to_owned(), ToString::to_string);
        let text = ColumnText::deserialize(toml::Value::Table(table))
            .map_err(|error| format!("column {name}: {}", error.message()))?;
        Ok(match text {
            ColumnText::Ignore { name } => Self { name, kind: Kind::Ignore },
            ColumnText::Number { name, low, high } => Self { name, kind: Kind::Number { low, high } },
            ColumnText::Category { name, values } => Self { name, kind: Kind::Category { values } },
            ColumnText::Label { name, values } => Self { name, kind: Kind::Label { values } },
        })
    }
}

impl Kind {
    /// How many features.
    fn features(&self) -> usize {
        match self {
            Self::Ignore | Self::Label { .. } => 0,
            Self::Number { .. } => 1,
            Self::Category { values } => values.len(),
        }
    }
}

/// A schema that cannot be meant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SchemaError {
    /// No TOML, or TOML of something else.
    #[error(transparent)]
    Toml(#[from] Box<toml::de::Error>),
    /// A character that cannot have this meaning.
    #[error("{field} = {given:?}; expected an ASCII character that is no quote, no line end and no other field's")]
    Character {
        /// `separator` or `comment`.
        field: &'static str,
        /// What was given.
        given: char,
    },
    /// One of two fields that need each other.
    #[error("only one of missing and missing_text is given; expected both or neither")]
    Missing,
    /// A column without a name.
    #[error("column {0} has an empty name; expected a name that no other column has")]
    Nameless(usize),
    /// A name that two columns have.
    #[error("two columns are named {0:?}; expected a name that no other column has")]
    NameTwice(String),
    /// Not one label.
    #[error("{0} columns are labels; expected exactly one")]
    Labels(usize),
    /// Nothing to learn from.
    #[error("no column is a number or a category; expected at least one")]
    NoInputs,
    /// A range that cannot be scaled.
    #[error(
        "column {column:?} has low = {low}, high = {high}; expected finite numbers, low < high and a finite difference"
    )]
    Range {
        /// The column.
        column: String,
        /// Its `low`.
        low: f64,
        /// Its `high`.
        high: f64,
    },
    /// Too few values.
    #[error("column {column:?} has {given} values; expected at least {allowed}")]
    TooFew {
        /// The column.
        column: String,
        /// How many values it has.
        given: usize,
        /// How many it needs.
        allowed: usize,
    },
    /// A value that is declared twice.
    #[error("column {column:?} declares {value:?} twice")]
    ValueTwice {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
    /// A value that no field can ever have.
    #[error("column {column:?} declares {value:?}, which no field can be: {reason}")]
    Unmatchable {
        /// The column.
        column: String,
        /// The value.
        value: String,
        /// Why.
        reason: &'static str,
    },
}

/// A checked schema: named columns, exactly one of them a label, at least one feature.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "SchemaWords")]
pub struct Schema {
    layout: SchemaWords,
    /// Where the features of each column start, and at the end how many there are.
    starts: Vec<usize>,
    label: usize,
}

impl TryFrom<SchemaWords> for Schema {
    type Error = SchemaError;

    fn try_from(layout: SchemaWords) -> Result<Self, SchemaError> {
        Self::new(layout)
    }
}

impl Schema {
    /// Checks a layout.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn new(layout: SchemaWords) -> Result<Self, SchemaError> {
        check_characters(&layout)?;
        if layout.missing.is_some() != layout.missing_text.is_some() {
            return Err(SchemaError::Missing);
        }
        let mut names = HashSet::new();
        let mut starts = vec![0];
        let mut labels = vec![];
        for (index, column) in layout.columns.iter().enumerate() {
            if column.name.is_empty() {
                return Err(SchemaError::Nameless(index + 1));
            }
            if !names.insert(&column.name) {
                return Err(SchemaError::NameTwice(column.name.clone()));
            }
            match &column.kind {
                Kind::Ignore => {}
                &Kind::Number { low, high } => {
                    let scalable = low < high && (high - low).is_finite();
                    if !scalable {
                        return Err(SchemaError::Range { column: column.name.clone(), low, high });
                    }
                }
                Kind::Category { values } => check_values(&layout, &column.name, values, 1)?,
                Kind::Label { values } => {
                    check_values(&layout, &column.name, values, 2)?;
                    labels.push(index);
                }
            }
            starts.push(starts[index] + column.kind.features());
        }
        let &[label] = labels.as_slice() else { return Err(SchemaError::Labels(labels.len())) };
        if starts.ends_with(&[0]) {
            return Err(SchemaError::NoInputs);
        }
        Ok(Self { layout, starts, label })
    }

    /// Reads a schema that is a TOML document of its own.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn from_toml(text: &str) -> Result<Self, SchemaError> {
        // In two steps, so that what is wrong with a layout keeps its type.
        Self::new(toml::from_str(text).map_err(Box::new)?)
    }

    /// The layout that was checked.
    #[must_use]
    pub const fn layout(&self) -> &SchemaWords {
        &self.layout
    }

    /// How many features a row has.
    #[must_use]
    pub fn features(&self) -> usize {
        self.starts[self.layout.columns.len()]
    }

    /// How many classes there are.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.label_values().len()
    }

    /// The values of the label, in the order of their classes.
    #[must_use]
    pub fn label_values(&self) -> &[String] {
        match &self.layout.columns[self.label].kind {
            Kind::Label { values } => values,
            Kind::Ignore | Kind::Number { .. } | Kind::Category { .. } => {
                unreachable!("checked: this column is the label")
            }
        }
    }

    /// Where the features of a column start in a row, by the column's position in the schema.
    pub(super) fn start(&self, column: usize) -> usize {
        self.starts[column]
    }

    /// The position of the label in the schema.
    pub(super) const fn label(&self) -> usize {
        self.label
    }
}

fn check_characters(layout: &SchemaWords) -> Result<(), SchemaError> {
    let possible = |c: char| c.is_ascii() && !['"', '\r', '\n'].contains(&c);
    if !possible(layout.separator) {
        return Err(SchemaError::Character { field: "separator", given: layout.separator });
    }
    match layout.comment {
        Some(given) if !possible(given) || given == layout.separator => {
            Err(SchemaError::Character { field: "comment", given })
        }
        Some(_) | None => Ok(()),
    }
}

fn check_values(layout: &SchemaWords, column: &str, values: &[String], allowed: usize) -> Result<(), SchemaError> {
    if values.len() < allowed {
        return Err(SchemaError::TooFew { column: column.to_owned(), given: values.len(), allowed });
    }
    let mut seen = HashSet::new();
    for value in values {
        let reason = if layout.trim && value.trim_ascii() != value {
            "spaces around fields are cut off"
        } else if layout.missing_text.as_ref() == Some(value) {
            "it is the missing_text"
        } else {
            ""
        };
        if !reason.is_empty() {
            return Err(SchemaError::Unmatchable { column: column.to_owned(), value: value.clone(), reason });
        }
        if !seen.insert(value) {
            return Err(SchemaError::ValueTwice { column: column.to_owned(), value: value.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &str = r#"{ name = "y", kind = "label", values = ["a", "b"] }"#;
    const NUMBER: &str = r#"{ name = "x", kind = "number", low = 0, high = 1 }"#;

    fn schema(head: &str, columns: &[&str]) -> Result<Schema, SchemaError> {
        Schema::from_toml(&format!("{head}\ncolumns = [{}]", columns.join(",")))
    }

    #[track_caller]
    fn check(head: &str, columns: &[&str], message: &str) {
        let error = schema(head, columns).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn a_layout_has_defaults() {
        let schema = schema("", &[NUMBER, LABEL]).unwrap();
        let layout = schema.layout();
        assert_eq!((layout.separator, layout.header, layout.trim), (',', false, false));
        assert_eq!((layout.comment, &layout.missing_text, layout.missing), (None, &None, None));
        assert_eq!((schema.features(), schema.classes(), schema.label()), (1, 2, 1));
    }

    #[test]
    fn features_follow_the_order_of_columns() {
        let category = r#"{ name = "z", kind = "category", values = ["p", "q", "r"] }"#;
        let schema = schema("", &[category, LABEL, r#"{ name = "i", kind = "ignore" }"#, NUMBER]).unwrap();
        assert_eq!(schema.starts, [0, 3, 3, 3, 4]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let column = |text: &str| format!("{{ name = \"c\", {text} }}");
        let check_column = |text: &str, message: &str| check("", &[NUMBER, LABEL, &column(text)], message);
        check("", &[NUMBER], "0 columns are labels; expected exactly one");
        check("", &[NUMBER, LABEL, &LABEL.replace("\"y\"", "\"z\"")], "2 columns are labels");
        check("", &[LABEL], "no column is a number or a category");
        check("", &[NUMBER, NUMBER, LABEL], "two columns are named \"x\"");
        check("", &[&NUMBER.replace("\"x\"", "\"\""), LABEL], "column 1 has an empty name");
        check_column("kind = \"number\", low = 1, high = 1", "low = 1, high = 1; expected finite numbers");
        check_column("kind = \"number\", low = nan, high = 1", "low = NaN");
        check_column("kind = \"number\", low = 0, high = inf", "high = inf");
        check_column("kind = \"number\", low = -1e308, high = 1e308", "a finite difference");
        check_column("kind = \"category\", values = []", "has 0 values; expected at least 1");
        check_column("kind = \"category\", values = [\"v\", \"v\"]", "declares \"v\" twice");
        check("", &[NUMBER, &LABEL.replace(", \"b\"", "")], "has 1 values; expected at least 2");
        check("separator = \"é\"", &[NUMBER, LABEL], "separator = 'é'; expected an ASCII character");
        check("separator = '\"'", &[NUMBER, LABEL], "separator = '\"'");
        check("comment = \",\"", &[NUMBER, LABEL], "comment = ','");
        check("missing = \"zero\"", &[NUMBER, LABEL], "expected both or neither");
        check("missing_text = \"?\"", &[NUMBER, LABEL], "expected both or neither");
        check("missing = \"zero\"\nmissing_text = \"a\"", &[NUMBER, LABEL], "it is the missing_text");
        check("trim = true", &[NUMBER, &LABEL.replace("\"a\"", "\" a\"")], "spaces around fields are cut off");
    }

    #[test]
    fn unknown_words_are_refused() {
        check("headers = true", &[NUMBER, LABEL], "unknown field `headers`");
        check("missing = \"drop\"", &[NUMBER, LABEL], "unknown variant `drop`");
        check("", &[&NUMBER.replace("low", "lower"), LABEL], "unknown field `lower`");
        check("", &[&NUMBER.replace("number", "integer"), LABEL], "unknown variant `integer`");
        check("", &[r#"{ name = "i", kind = "ignore", low = 1 }"#, NUMBER, LABEL], "unknown field `low`");
    }

    /// Inside another document a schema passes the same checks.
    #[test]
    fn a_schema_can_stand_in_a_larger_document() {
        #[derive(Debug, Deserialize)]
        struct Settings {
            schema: Schema,
        }
        let text = |low: &str| {
            format!(
                "[schema]\ntrim = true\n[[schema.columns]]\nname = \"x\"\nkind = \"number\"\nlow = {low}\nhigh = 1\n\
                     [[schema.columns]]\nname = \"y\"\nkind = \"label\"\nvalues = [\"a\", \"b\"]"
            )
        };
        assert!(toml::from_str::<Settings>(&text("0")).unwrap().schema.layout().trim);
        let error = toml::from_str::<Settings>(&text("2")).unwrap_err().to_string();
        assert!(error.contains("low = 2, high = 1"), "{error}");
    }
}
