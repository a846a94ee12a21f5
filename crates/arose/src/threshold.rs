//! A minimum similarity.

use crate::Error;

/// A similarity in `0..=1`: pairs at or above it count.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Threshold(f64);

impl Threshold {
    /// Checks that `value` is a similarity.
    ///
    /// # Errors
    ///
    /// Returns an error if `value` is not a number in `0..=1`.
    ///
    /// ```
    /// use arose::Threshold;
    /// assert_eq!(Threshold::new(0.8).unwrap().get(), 0.8);
    /// assert!(Threshold::new(80.0).is_err());
    /// assert!(Threshold::new(f64::NAN).is_err());
    /// ```
    pub fn new(value: f64) -> Result<Self, Error> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Error::parameter("threshold", value, "0..=1"))
        }
    }

    /// Returns the similarity itself.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns whether `similarity` reaches the threshold. NaN never does.
    pub fn reached_by(self, similarity: f64) -> bool {
        similarity >= self.0
    }
}
