//! A text that nobody may read by accident.

use std::fmt;

use zeroize::Zeroizing;

/// A token or a decrypted value. `Debug` does not show it; its memory is wiped when it goes.
/// Copies that buffers of a transport made are not wiped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes this text over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_not_in_its_debug_output() {
        let secret = Secret::new("canary".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_eq!(secret.expose(), "canary");
    }
}
