//! Columns as questions need them: as numbers, as text, compared with a value.
//!
//! The usual types are read by code that is compiled here, for speed; arrow's casts do the rest, and are built to be small.

use crate::condition::Comparison;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, Float64Array, LargeStringArray, PrimitiveArray,
    StringArray, StringViewArray, downcast_primitive_array, types,
};
use arrow_buffer::BooleanBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

/// What becomes of a value that is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// It is null.
    IsNull,
    /// The column has no numbers.
    IsAnError,
}

/// A cast that fails where a value does not fit.
pub(crate) fn strict(column: &dyn Array, target: &DataType) -> Option<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, target, &strict).ok()
}

/// A column as numbers; none where its type has none, or a value that is no number is an error.
pub(crate) fn numbers(column: &ArrayRef, no_number: NoNumber) -> Option<Float64Array> {
    macro_rules! each_as {
        ($type:ident) => {{
            #[expect(clippy::cast_precision_loss, reason = "the nearest number, as SQL has it")]
            #[allow(clippy::cast_lossless, reason = "one line for every type")]
            Some(column.as_primitive::<types::$type>().unary(|value| value as f64))
        }};
    }
    macro_rules! each_from {
        ($type:ident) => {
            Some(column.as_primitive::<types::$type>().unary(f64::from))
        };
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "all else is cast")]
    match column.data_type() {
        DataType::Float64 => Some(column.as_primitive::<types::Float64Type>().clone()),
        DataType::Float32 => each_from!(Float32Type),
        DataType::Int8 => each_from!(Int8Type),
        DataType::Int16 => each_from!(Int16Type),
        DataType::Int32 => each_from!(Int32Type),
        DataType::Int64 => each_as!(Int64Type),
        DataType::UInt8 => each_from!(UInt8Type),
        DataType::UInt16 => each_from!(UInt16Type),
        DataType::UInt32 => each_from!(UInt32Type),
        DataType::UInt64 => each_as!(UInt64Type),
        kind if is_text(kind) => {
            let texts = Texts::of(column)?;
            // Spaces around a number are no part of it: people write `1, 5`.
            let parsed = |row: usize| texts.get(row).map(|text| text.trim_ascii().parse::<f64>().ok());
            match no_number {
                NoNumber::IsNull => Some((0..column.len()).map(|row| parsed(row).flatten()).collect()),
                NoNumber::IsAnError => (0..column.len())
                    .map(|row| parsed(row).map_or(Some(None), |number| number.map(Some)))
                    .collect::<Option<Float64Array>>(),
            }
        }
        _ => {
            let options = CastOptions { safe: no_number == NoNumber::IsNull, ..CastOptions::default() };
            let column = cast_with_options(column, &DataType::Float64, &options).ok()?;
            Some(column.as_primitive::<types::Float64Type>().clone())
        }
    }
}

/// A column as text.
pub(crate) enum Texts {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl Texts {
    /// None where its type cannot be text.
    pub(crate) fn of(column: &ArrayRef) -> Option<Self> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all else is cast")]
        match column.data_type() {
            DataType::Utf8 => Some(Self::Small(column.as_string().clone())),
            DataType::LargeUtf8 => Some(Self::Large(column.as_string().clone())),
            DataType::Utf8View => Some(Self::View(column.as_string_view().clone())),
            _ => Some(Self::Small(strict(column, &DataType::Utf8)?.as_string().clone())),
        }
    }

    /// The text in a row, if there is any.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Small(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Large(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::View(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(texts) => texts.len(),
            Self::Large(texts) => texts.len(),
            Self::View(texts) => texts.len(),
        }
    }
}

pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        || matches!(data_type, DataType::Dictionary(_, values) if is_text(values))
}

/// For each row whether a comparison holds; null rows hold nothing and refute nothing.
pub(crate) struct Compared {
    /// It holds.
    pub(crate) yes: BooleanBuffer,
    /// It does not.
    pub(crate) no: BooleanBuffer,
}

impl Compared {
    fn new(column: &dyn Array, met: BooleanBuffer) -> Self {
        match column.nulls() {
            None => Self { no: !&met, yes: met },
            Some(known) => Self { yes: &met & known.inner(), no: &!&met & known.inner() },
        }
    }

    /// Text with text, byte by byte.
    pub(crate) fn texts(column: &ArrayRef, how: Comparison, with: &str) -> Option<Self> {
        let texts = Texts::of(column)?;
        let held = |row: usize, wanted: bool| texts.get(row).is_some_and(|text| how.holds(text.cmp(with)) == wanted);
        let met = |wanted| BooleanBuffer::collect_bool(texts.len(), |row| held(row, wanted));
        Some(Self { yes: met(true), no: met(false) })
    }

    /// Bytes with the bytes of a text.
    pub(crate) fn bytes(column: &ArrayRef, how: Comparison, with: &str) -> Option<Self> {
        let column = strict(column, &DataType::LargeBinary)?;
        let bytes = column.as_binary_opt::<i64>()?;
        let met = |row: usize| how.holds(bytes.value(row).cmp(with.as_bytes()));
        Some(Self::new(bytes, BooleanBuffer::collect_bool(bytes.len(), met)))
    }

    /// A column with one value of the same type: numbers (floats in their total order), dates, times, truth.
    pub(crate) fn values(column: &ArrayRef, how: Comparison, with: &ArrayRef) -> Option<Self> {
        if let (Some(truths), Some(with)) = (column.as_boolean_opt(), with.as_boolean_opt()) {
            let met = |row: usize| how.holds(truths.value(row).cmp(&with.value(0)));
            return Some(Self::new(truths, BooleanBuffer::collect_bool(truths.len(), met)));
        }
        downcast_primitive_array!(
            column => Self::primitive(column, how, with),
            _ => None
        )
    }

    fn primitive<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, how: Comparison, with: &ArrayRef) -> Option<Self> {
        let with = with.as_primitive_opt::<T>()?.value(0);
        let values = column.values();
        Some(Self::new(column, BooleanBuffer::collect_bool(values.len(), |row| how.holds(values[row].compare(with)))))
    }
}
