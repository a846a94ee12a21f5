//! Parses numbers from servers.

/// Parses decimal digits. A number that does not fit into 64 bits becomes the largest one, so that
/// it is capped and not ignored.
pub(crate) fn saturating(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_alone_are_numbers() {
        assert_eq!(saturating("0120"), Some(120));
        assert_eq!(saturating(&"9".repeat(400)), Some(u64::MAX));
        for text in ["", "-1", "+1", "1.5", " 1", "1e3"] {
            assert_eq!(saturating(text), None, "{text}");
        }
    }
}
