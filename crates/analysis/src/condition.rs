//! `where`: which rows count.
//!
//! ```text
//! condition  = both { "or" both }          both   = single { "and" single }
//! single     = "not" single | "(" condition ")" | test
//! test       = column ( = | != | < | <= | > | >= ) value
//!            | column ["not"] "in" "(" value { "," value } ")"
//!            | column "is" ["not"] "null"
//! column     = a name, or "any name" in double quotes        value = 18 | 'text' | true | false
//! ```
//!
//! A comparison with null is not true, as in SQL.

use crate::column::{Compared, NoNumber, is_text, numbers, strict};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use std::cmp::Ordering;
use std::sync::Arc;

/// A condition on a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Both.
    And(Box<Condition>, Box<Condition>),
    /// One or both.
    Or(Box<Condition>, Box<Condition>),
    /// The contrary.
    Not(Box<Condition>),
    /// A comparison with a value.
    Compare(String, Comparison, Value),
    /// One of some values.
    In(String, Vec<Value>),
    /// No value.
    IsNull(String),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether it holds of two values that compare so.
    pub(crate) const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// What is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number, as it was written.
    Number(String),
    /// Text.
    Text(String),
    /// A truth value.
    Truth(bool),
}

/// A condition that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "where: {problem} at `{rest}`; expected something like: age >= 18 and region in ('North', 'South') and income is not null"
)]
pub struct ConditionError {
    /// What was met or missed.
    pub problem: String,
    /// Where.
    pub rest: String,
}

/// A column that cannot be compared as asked. Says nothing about the values in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("where: column `{column}` is {given} and cannot be compared with {with}")]
pub struct NotComparable {
    /// The column.
    pub column: String,
    /// Its type.
    pub given: String,
    /// The value.
    pub with: String,
}

impl std::str::FromStr for Condition {
    type Err = ConditionError;
    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0, tests: 0 };
        let condition = parser.any()?;
        match parser.peek() {
            None => Ok(condition),
            Some(_) => Err(parser.complaint("something is left over")),
        }
    }
}

/// As it may be read again.
impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |column: &String| format!("\"{}\"", column.replace('"', "\"\""));
        match self {
            Self::And(a, b) => write!(f, "({a} and {b})"),
            Self::Or(a, b) => write!(f, "({a} or {b})"),
            Self::Not(a) => write!(f, "not ({a})"),
            Self::Compare(column, comparison, value) => write!(f, "{} {} {value}", quoted(column), comparison.sign()),
            Self::In(column, values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "{} in ({})", quoted(column), values.join(", "))
            }
            Self::IsNull(column) => write!(f, "{} is null", quoted(column)),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Truth(truth) => write!(f, "{truth}"),
        }
    }
}

impl Comparison {
    const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl Condition {
    /// The columns it looks at.
    pub(crate) fn columns(&self, found: &mut Vec<String>) {
        match self {
            Self::And(a, b) | Self::Or(a, b) => {
                a.columns(found);
                b.columns(found);
            }
            Self::Not(a) => a.columns(found),
            Self::Compare(column, _, _) | Self::In(column, _) | Self::IsNull(column) => found.push(column.clone()),
        }
    }

    /// For each row whether it is met for certain.
    pub(crate) fn met(&self, batch: &RecordBatch) -> Result<BooleanBuffer, NotComparable> {
        Ok(self.compared(batch)?.yes)
    }

    /// Logic of three values: a row may be met, not met, or neither.
    fn compared(&self, batch: &RecordBatch) -> Result<Compared, NotComparable> {
        Ok(match self {
            Self::And(a, b) => {
                let (a, b) = (a.compared(batch)?, b.compared(batch)?);
                Compared { yes: &a.yes & &b.yes, no: &a.no | &b.no }
            }
            Self::Or(a, b) => either(&a.compared(batch)?, &b.compared(batch)?),
            Self::Not(a) => {
                let Compared { yes, no } = a.compared(batch)?;
                Compared { yes: no, no: yes }
            }
            Self::IsNull(column) => {
                let known = column_of(batch, column).logical_nulls();
                let known = known.map_or_else(|| BooleanBuffer::new_set(batch.num_rows()), |known| known.into_inner());
                Compared { yes: !&known, no: known }
            }
            Self::Compare(column, comparison, value) => compare(batch, column, *comparison, value)?,
            Self::In(column, values) => {
                let rows = batch.num_rows();
                let none = Compared { yes: BooleanBuffer::new_unset(rows), no: BooleanBuffer::new_set(rows) };
                values
                    .iter()
                    .try_fold(none, |any, value| Ok(either(&any, &compare(batch, column, Comparison::Equal, value)?)))?
            }
        })
    }
}

fn either(a: &Compared, b: &Compared) -> Compared {
    Compared { yes: &a.yes | &b.yes, no: &a.no & &b.no }
}

/// The scan reads the columns that conditions name.
fn column_of<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).expect("every column that a condition names is read")
}

fn compare(batch: &RecordBatch, name: &str, how: Comparison, value: &Value) -> Result<Compared, NotComparable> {
    let column = column_of(batch, name);
    compared_with(column, how, value).ok_or_else(|| NotComparable {
        column: name.to_owned(),
        given: if is_text(column.data_type()) { "text".to_owned() } else { column.data_type().to_string() },
        with: match value {
            Value::Number(text) => format!("the number {text}"),
            Value::Text(text) => format!("the text '{text}'"),
            Value::Truth(truth) => truth.to_string(),
        },
    })
}

/// Numbers compare as numbers, also with a column of text, as CSV has it; all else takes the column's type.
fn compared_with(column: &ArrayRef, how: Comparison, value: &Value) -> Option<Compared> {
    let kind = column.data_type();
    if let DataType::Dictionary(_, values) = kind
        && !is_text(kind)
    {
        return compared_with(&strict(column, values)?, how, value);
    }
    let (column, with): (ArrayRef, ArrayRef) = match value {
        Value::Number(text) if is_text(kind) || kind.is_numeric() && !is_whole(text) => {
            let with = Float64Array::from(vec![text.parse::<f64>().ok()?]);
            (Arc::new(numbers(column, NoNumber::IsAnError)?), Arc::new(with))
        }
        Value::Number(_) if *kind == DataType::Boolean => return None,
        Value::Text(_) if kind.is_numeric() => return None,
        Value::Number(text) | Value::Text(text) => {
            if is_text(kind) {
                return Compared::texts(column, how, text);
            }
            if matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView) {
                return Compared::bytes(column, how, text);
            }
            (Arc::clone(column), strict(&StringArray::from(vec![text.as_str()]), kind)?)
        }
        Value::Truth(truth) if is_text(kind) || *kind == DataType::Boolean => {
            (strict(column, &DataType::Boolean)?, Arc::new(BooleanArray::from(vec![*truth])))
        }
        Value::Truth(_) => return None,
    };
    Compared::values(&column, how, &with)
}

/// Whether a number is written as an integer, and so compares exactly with integers beyond 2⁵³.
fn is_whole(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A bare word: a column or a keyword.
    Word(String),
    /// A column in quotes.
    Column(String),
    Value(Value),
    Sign(&'static str),
}

const SIGNS: [&str; 11] = ["==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<Token>, ConditionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let complaint = |problem: &str, rest: &str| ConditionError { problem: problem.to_owned(), rest: rest.to_owned() };
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => {
                let (inside, length) = quoted(rest, first).ok_or_else(|| complaint("a quote is not closed", rest))?;
                tokens.push(match first {
                    '"' => Token::Column(inside),
                    _ => Token::Value(Value::Text(inside)),
                });
                length
            }
            '0'..='9' | '.' | '-' | '+' => {
                let exponent = |before: &str, c: char| matches!(c, '-' | '+') && before.ends_with(['e', 'E']);
                let inside =
                    |(i, c): (usize, char)| i == 0 || c.is_alphanumeric() || c == '.' || exponent(&rest[..i], c);
                let length = rest.char_indices().find(|&pair| !inside(pair)).map_or(rest.len(), |(i, _)| i);
                let number = rest[..length].parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| complaint("not a number", rest))?;
                tokens.push(Token::Value(Value::Number(rest[..length].to_owned())));
                length
            }
            first if first.is_alphabetic() || first == '_' => {
                let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
                let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                tokens.push(match &rest[..length] {
                    word if word.eq_ignore_ascii_case("true") => Token::Value(Value::Truth(true)),
                    word if word.eq_ignore_ascii_case("false") => Token::Value(Value::Truth(false)),
                    word => Token::Word(word.to_owned()),
                });
                length
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.ok_or_else(|| complaint("an unexpected character", rest))?;
                tokens.push(Token::Sign(sign));
                sign.len()
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// The inside of a quoted text, doubled quotes made single, and how long it is with its quotes.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut inside = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((i, c)) = characters.next() {
        if c != quote {
            inside.push(c);
        } else if characters.peek().is_some_and(|&(_, next)| next == quote) {
            characters.next();
            inside.push(quote);
        } else {
            return Some((inside, i + 1));
        }
    }
    None
}

/// Conditions nest no deeper than this.
const MAX_DEPTH: usize = 100;

/// A condition has no more tests than this.
const MAX_TESTS: usize = 1000;

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    tests: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn complaint(&self, problem: &str) -> ConditionError {
        let rest = match self.peek() {
            Some(Token::Word(text) | Token::Column(text) | Token::Value(Value::Number(text) | Value::Text(text))) => {
                text
            }
            Some(Token::Sign(sign)) => *sign,
            Some(Token::Value(Value::Truth(truth))) => {
                if *truth {
                    "true"
                } else {
                    "false"
                }
            }
            None => "the end",
        };
        ConditionError { problem: problem.to_owned(), rest: rest.to_owned() }
    }

    /// Takes a keyword if it is next.
    fn word(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    /// Takes a sign if it is next.
    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Condition, ConditionError> {
        let mut condition = self.both()?;
        while self.word("or") {
            condition = Condition::Or(Box::new(condition), Box::new(self.both()?));
        }
        Ok(condition)
    }

    fn both(&mut self) -> Result<Condition, ConditionError> {
        let mut condition = self.single()?;
        while self.word("and") {
            condition = Condition::And(Box::new(condition), Box::new(self.single()?));
        }
        Ok(condition)
    }

    fn single(&mut self) -> Result<Condition, ConditionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.complaint("conditions nest too deeply"));
        }
        let condition = if self.word("not") {
            Condition::Not(Box::new(self.single()?))
        } else if self.sign("(") {
            let condition = self.any()?;
            if !self.sign(")") {
                return Err(self.complaint("a parenthesis is not closed"));
            }
            condition
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn test(&mut self) -> Result<Condition, ConditionError> {
        self.tests += 1;
        if self.tests > MAX_TESTS {
            return Err(self.complaint("more than 1000 tests (use `in` for many values)"));
        }
        let column = match self.peek() {
            Some(Token::Word(name) | Token::Column(name)) => name.clone(),
            Some(Token::Value(_) | Token::Sign(_)) | None => return Err(self.complaint("a column is missing")),
        };
        self.at += 1;
        if self.word("is") {
            let negated = self.word("not");
            if !self.word("null") {
                return Err(self.complaint("`null` is missing after `is`"));
            }
            return Ok(negate(negated, Condition::IsNull(column)));
        }
        let negated = self.word("not");
        if self.word("in") {
            if !self.sign("(") {
                return Err(self.complaint("`(` is missing after `in`"));
            }
            let mut values = vec![self.value()?];
            while self.sign(",") {
                values.push(self.value()?);
            }
            if !self.sign(")") {
                return Err(self.complaint("a parenthesis is not closed"));
            }
            return Ok(negate(negated, Condition::In(column, values)));
        }
        let comparison = match self.peek() {
            Some(Token::Sign("=" | "==")) if !negated => Comparison::Equal,
            Some(Token::Sign("!=" | "<>")) if !negated => Comparison::NotEqual,
            Some(Token::Sign("<")) if !negated => Comparison::Less,
            Some(Token::Sign("<=")) if !negated => Comparison::AtMost,
            Some(Token::Sign(">")) if !negated => Comparison::Greater,
            Some(Token::Sign(">=")) if !negated => Comparison::AtLeast,
            _ => return Err(self.complaint("a comparison is missing")),
        };
        self.at += 1;
        Ok(Condition::Compare(column, comparison, self.value()?))
    }

    fn value(&mut self) -> Result<Value, ConditionError> {
        match self.peek() {
            Some(Token::Value(value)) => {
                let value = value.clone();
                self.at += 1;
                Ok(value)
            }
            Some(Token::Word(_) | Token::Column(_) | Token::Sign(_)) | None => {
                Err(self.complaint("a value is missing (text stands in single quotes)"))
            }
        }
    }
}

fn negate(negated: bool, condition: Condition) -> Condition {
    if negated { Condition::Not(Box::new(condition)) } else { condition }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Date32Array, Int64Array, TimestampMillisecondArray};

    fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("age", Arc::new(Int64Array::from(vec![Some(17), Some(18), Some(40), None]))),
            ("region", Arc::new(StringArray::from(vec![Some("North"), Some("South"), None, Some("O'Hara")]))),
            ("income", Arc::new(StringArray::from(vec!["10", "20.5", "-3", "1e3"]))),
            ("member", Arc::new(BooleanArray::from(vec![true, false, true, false]))),
            ("an odd name", Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, 3.5]))),
            ("day", Arc::new(Date32Array::from(vec![0, 365, 20000, 1]))),
            ("at", Arc::new(TimestampMillisecondArray::from(vec![0, 86_400_000, 1, 2]).with_timezone("UTC"))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .expect("b")
    }

    #[track_caller]
    fn check(text: &str, expected: [bool; 4]) {
        let condition: Condition = text.parse().expect(text);
        assert_eq!(condition.to_string().parse(), Ok(condition.clone()), "{condition}");
        let met = condition.met(&batch()).expect(text);
        let met: Vec<bool> = met.iter().collect();
        assert_eq!(met, expected, "{text}");
    }

    #[test]
    fn conditions_mean_what_they_say() {
        check("age >= 18", [false, true, true, false]);
        check("age >= 18 and region = 'South'", [false, true, false, false]);
        check("age < 18 or age > 30", [true, false, true, false]);
        check("not age < 18", [false, true, true, false]);
        check("region in ('North', 'O''Hara')", [true, false, false, true]);
        check("region NOT IN ('North')", [false, true, false, true]);
        check("region is null", [false, false, true, false]);
        check("age is not null AND (member = true or income > 20)", [true, true, true, false]);
        check("income <= 10", [true, false, true, false]);
        check("income = 1000", [false, false, false, true]);
        check("member = false", [false, true, false, true]);
        check("\"an odd name\" != 1.5", [true, false, true, true]);
        check("\"an odd name\" == 1.5 or age <> 17", [false, true, true, false]);
        check("day >= '1971-01-01'", [false, true, true, false]);
        check("at >= '1970-01-02'", [false, true, false, false]);
        check("at < '1970-01-01T00:00:00.002Z'", [true, false, true, false]);
        check("age = -5 or age = +17", [true, false, false, false]);
        check("age > 1.7e1", [false, true, true, false]);
    }

    /// Columns as other programs write them: dictionaries of numbers, bytes that are no text, numbers with spaces around them.
    #[test]
    fn columns_of_other_programs() {
        let ages = Int64Array::from(vec![Some(9), Some(40), None, Some(9)]);
        let coded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Int64));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("coded", arrow_cast::cast(&ages, &coded).expect("a dictionary")),
            ("bytes", Arc::new(arrow_array::BinaryArray::from_vec(vec![b"x", b"\xff\xfe", b"y", b""]))),
            ("spaced", Arc::new(StringArray::from(vec![" 5", "100", "7 ", "\t9"]))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, of)| (name, of, true)));
        let batch = batch.expect("a batch");
        for (text, expected) in [
            ("coded >= 18", [false, true, false, false]),
            ("coded = 040", [false, true, false, false]),
            ("coded >= 8.5 and coded < 10", [true, false, false, true]),
            ("coded is null", [false, false, true, false]),
            ("not coded = 9", [false, true, false, false]),
            ("bytes = 'x'", [true, false, false, false]),
            ("bytes > 'x'", [false, true, true, false]),
            ("spaced < 8", [true, false, true, false]),
        ] {
            let met: Vec<bool> = text.parse::<Condition>().expect(text).met(&batch).expect(text).iter().collect();
            assert_eq!(met, expected, "{text}");
        }
        assert!("coded >= 'old'".parse::<Condition>().expect("words").met(&batch).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, problem) in [
            ("", "a column is missing at `the end`"),
            ("age", "a comparison is missing"),
            ("age >", "a value is missing"),
            ("age > south", "a value is missing (text stands in single quotes) at `south`"),
            ("age > 1 2", "something is left over at `2`"),
            ("(age > 1", "a parenthesis is not closed"),
            ("age in 1", "`(` is missing"),
            ("age is 1", "`null` is missing"),
            ("age not > 1", "a comparison is missing"),
            ("age > 1; drop", "an unexpected character at `; drop`"),
            ("region = 'x", "a quote is not closed"),
            ("age > 1..2", "not a number"),
            ("age > 1e999", "not a number"),
        ] {
            let error = text.parse::<Condition>().expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        assert!("not ".repeat(5000).parse::<Condition>().is_err());
        assert!("(".repeat(100_000).parse::<Condition>().is_err());
        assert!(format!("age = 1{}", " or age = 1".repeat(20_000)).parse::<Condition>().is_err());
        assert!(format!("age = 1{}", " or age = 1".repeat(990)).parse::<Condition>().is_ok());
    }

    #[test]
    fn what_cannot_be_compared_is_named_without_its_values() {
        for (text, said) in [
            ("region > 3", "column `region` is text and cannot be compared with the number 3"),
            ("age = 'old'", "column `age` is Int64 and cannot be compared with the text 'old'"),
            ("age = true", "column `age` is Int64 and cannot be compared with true"),
            ("member > 3", "column `member` is Boolean and cannot be compared with the number 3"),
            ("day > 'soon'", "column `day` is Date32 and cannot be compared with the text 'soon'"),
        ] {
            let error = text.parse::<Condition>().expect(text).met(&batch()).expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
