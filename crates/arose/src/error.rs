//! What can be wrong with a setting.

/// A setting that no algorithm here can work with.
///
/// Bad documents are never errors: any text has tokens, even if none. Only settings fail, and they
/// fail once, where they are made.
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
}
