//! "Did you mean": what a typo was probably meant to be.

/// How alike two words must be, from 0 to 1.
const ALIKE: f64 = 0.6;

/// The word that was probably meant, where a message complains about an unknown one and lists those that are known.
pub(crate) fn did_you_mean(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("unknown variant `").or_else(|| message.split_once("unknown field `"))?;
    let (given, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2);
    let alike = known.map(|word| (strsim::normalized_damerau_levenshtein(given, word), word));
    let (score, word) = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= ALIKE).then(|| format!("did you mean `{word}`?"))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn the_nearest_word_if_it_is_near() {
        let unknown = |word: &str| format!("unknown variant `{word}`, expected one of `gaussian`, `laplace`, `zcdp`");
        assert_eq!(did_you_mean(&unknown("gausian")).as_deref(), Some("did you mean `gaussian`?"));
        assert_eq!(did_you_mean(&unknown("zdcp")).as_deref(), Some("did you mean `zcdp`?"));
        assert_eq!(did_you_mean(&unknown("cauchy")), None);
        assert_eq!(did_you_mean("unknown field `rh`, expected `rho`").as_deref(), Some("did you mean `rho`?"));
        assert_eq!(did_you_mean("something else"), None);
    }
}
