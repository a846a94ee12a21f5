//! Errors: invalid settings, or data that gives no estimate.

/// A setting that no algorithm here can work with, or data that no estimate can be made from.
///
/// Bad documents are never errors: any text has tokens, even if none. Settings fail once, where
/// they are created. Samples fail if they do not determine the requested estimate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside the values its algorithm is defined for.
    #[error("`{name}` is {value}, expected {expected}")]
    Parameter {
        /// The parameter's name as its configuration spells it.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// The data do not determine the estimate.
    #[error("no estimate of {quantity}: {reason}")]
    NoEstimate {
        /// What was to be estimated.
        quantity: &'static str,
        /// What the data lack.
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
