//! Values that depend on the data.

/// A value that depends on somebody's record: a person's spend, who takes part, a true sum. It prints as `Secret(..)`, compares
/// with nothing, and leaves only through [`Secret::expose`], so that every place where it does can be found.
///
/// ```
/// use paygo_accounting::secret::Secret;
/// let active = Secret::new(41).map(|n| n + 1);
/// assert_eq!(format!("{active:?}"), "Secret(..)");
/// ```
#[derive(Clone, Copy)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// From now on it is secret.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// What is computed from a secret is one.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Secret<U> {
        Secret(f(self.0))
    }

    /// The value: for a release that was charged, or for the person it is about.
    pub fn expose(self) -> T {
        self.0
    }
}

impl<T> std::fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
