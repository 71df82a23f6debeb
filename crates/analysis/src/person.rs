//! Who a row belongs to.

use crate::column::Texts;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

/// A person in the accounts: a keyed hash of 128 bits of their id, as text. Accounts hold no ids.
///
/// Two people with one key would share an account and be clipped together, which no theorem here covers. With a random salt the
/// chance is below n²·2⁻¹²⁹, 10⁻²¹ for a billion people, and nobody who does not know the salt can raise it by choosing ids.
pub type Key = u128;

/// The key of the hash, drawn when the accounts are opened for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

impl Salt {
    /// From the operating system.
    ///
    /// # Errors
    /// When it has none.
    pub fn random() -> std::io::Result<Self> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(salt))
    }

    /// The key of an id. An integer has the key of its decimal text, so that a CSV and a Parquet file agree.
    #[must_use]
    pub fn key(&self, id: &str) -> Key {
        self.key_of_bytes(id.as_bytes())
    }

    fn key_of_bytes(&self, id: &[u8]) -> Key {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(id);
        hasher.finish128().as_u128()
    }
}

/// Why a column cannot say who a row belongs to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersonError {
    /// Not text and not an integer.
    #[error("column `{column}` is {given}; a person's id must be text or an integer")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        given: String,
    },
    /// A row that belongs to nobody.
    #[error("column `{column}` is empty in some rows; every row must belong to a person")]
    Missing {
        /// The column.
        column: String,
    },
}

/// Whether a column of this type can hold ids.
pub(crate) fn check_type(column: &str, data_type: &DataType) -> Result<(), PersonError> {
    let text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let ok = data_type.is_integer()
        || text(data_type)
        || matches!(data_type, DataType::Dictionary(_, values) if text(values) || values.is_integer());
    if ok {
        return Ok(());
    }
    Err(PersonError::Type { column: column.to_owned(), given: data_type.to_string() })
}

/// Calls `f` with the key of each row, in order.
pub(crate) fn for_each_key(
    salt: &Salt,
    column: &str,
    ids: &ArrayRef,
    mut f: impl FnMut(usize, Key),
) -> Result<(), PersonError> {
    let missing = || PersonError::Missing { column: column.to_owned() };
    check_type(column, ids.data_type())?;
    if ids.logical_null_count() > 0 {
        return Err(missing());
    }
    macro_rules! integers {
        ($type:ty) => {{
            let mut text = Digits([0; 40]);
            for (row, id) in ids.as_primitive::<$type>().values().iter().enumerate() {
                f(row, salt.key_of_bytes(text.of(i128::from(*id))));
            }
        }};
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "everything that is no integer is text")]
    match ids.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        other => {
            let wrong = || PersonError::Type { column: column.to_owned(), given: other.to_string() };
            let texts = Texts::of(ids).ok_or_else(wrong)?;
            for row in 0..texts.len() {
                let id = texts.get(row).filter(|id| !id.is_empty()).ok_or_else(missing)?;
                f(row, salt.key(id));
            }
        }
    }
    Ok(())
}

/// The decimal text of an integer, in place.
struct Digits([u8; 40]);

impl Digits {
    fn of(&mut self, n: i128) -> &[u8] {
        let (mut at, mut rest) = (self.0.len(), n.unsigned_abs());
        // Most ids fit in 64 bits, where division is fast.
        let mut put = |digit: u8| {
            at -= 1;
            self.0[at] = b'0' + digit;
        };
        loop {
            let (quotient, digit) = match u64::try_from(rest) {
                Ok(rest) => (u128::from(rest / 10), rest % 10),
                Err(_) => (rest / 10, u64::try_from(rest % 10).unwrap_or(0)),
            };
            put(u8::try_from(digit).unwrap_or(0));
            rest = quotient;
            if rest == 0 {
                break;
            }
        }
        if n < 0 {
            at -= 1;
            self.0[at] = b'-';
        }
        &self.0[at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array, LargeStringArray, StringArray, StringViewArray, UInt64Array};
    use std::sync::Arc;

    fn keys(ids: ArrayRef) -> Result<Vec<Key>, PersonError> {
        let mut keys = Vec::new();
        for_each_key(&Salt([7; 16]), "id", &ids, |row, key| {
            assert_eq!(row, keys.len());
            keys.push(key);
        })?;
        Ok(keys)
    }

    #[test]
    fn an_id_has_one_key_whatever_its_type() {
        let text = ["7", "-12", "9223372036854775807"];
        let expected = keys(Arc::new(StringArray::from(text.to_vec()))).expect("keys");
        assert_eq!(keys(Arc::new(Int64Array::from(vec![7, -12, i64::MAX]))).expect("keys"), expected);
        assert_eq!(keys(Arc::new(LargeStringArray::from(text.to_vec()))).expect("keys"), expected);
        assert_eq!(keys(Arc::new(StringViewArray::from(text.to_vec()))).expect("keys"), expected);
        assert_eq!(keys(Arc::new(UInt64Array::from(vec![7]))).expect("keys")[0], expected[0]);
        assert_eq!(Salt([7; 16]).key("7"), expected[0]);
        assert_ne!(Salt([8; 16]).key("7"), expected[0]);
        let dictionary = arrow_cast::cast(
            &StringArray::from(text.to_vec()),
            &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        );
        assert_eq!(keys(dictionary.expect("a dictionary")).expect("keys"), expected);
        let mut digits = Digits([0; 40]);
        for n in [0, 9, 10, i128::from(u64::MAX), i128::from(i64::MIN), i128::from(u64::MAX) * 100] {
            assert_eq!(digits.of(n), n.to_string().as_bytes());
        }
    }

    #[test]
    fn rows_of_nobody_are_refused() {
        for nobody in [StringArray::from(vec![Some("a"), None]), StringArray::from(vec!["a", ""])] {
            assert!(matches!(keys(Arc::new(nobody)), Err(PersonError::Missing { .. })));
        }
        let wrong = keys(Arc::new(Float64Array::from(vec![1.0]))).expect_err("no ids");
        assert_eq!(wrong.to_string(), "column `id` is Float64; a person's id must be text or an integer");
    }
}
