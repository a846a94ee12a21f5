//! Errors: invalid settings, or data that gives no estimate.

/// An invalid setting, or data that does not determine an estimate.
///
/// Bad documents are never errors: every text has a list of tokens, possibly empty. Settings fail
/// once, where they are created. Samples fail if they do not determine the requested estimate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside the values its algorithm is defined for.
    #[error("`{name}` is {value}, expected {expected}")]
    Parameter {
        /// The parameter's name, spelled as in its configuration.
        name: &'static str,
        /// The value given.
        value: String,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// The data do not determine the estimate.
    #[error("no estimate of {quantity}: {reason}")]
    NoEstimate {
        /// The quantity to be estimated.
        quantity: &'static str,
        /// The reason why the data are insufficient.
        reason: String,
    },
}

impl Error {
    pub(crate) fn parameter(
        name: &'static str,
        value: impl ToString,
        expected: &'static str,
    ) -> Self {
        let value = value.to_string();
        Self::Parameter {
            name,
            value,
            expected,
        }
    }

    pub(crate) fn no_estimate(quantity: &'static str, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::NoEstimate { quantity, reason }
    }
}
