//! What an `Authorization` header brings, and whether it is the token that is asked for.

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// What comes after the name of this scheme, which may be written as one likes.
pub fn credentials<'a>(authorization: &'a [u8], scheme: &str) -> Option<&'a [u8]> {
    let (name, rest) = authorization.split_at_checked(scheme.len())?;
    let rest = rest.strip_prefix(b" ")?;
    name.eq_ignore_ascii_case(scheme.as_bytes())
        .then(|| rest.trim_ascii())
}

/// Whether this is the token; an empty one is none. How long it takes does not tell how much of a
/// guess was right.
pub fn is_token(given: &[u8], token: &SecretString) -> bool {
    let token = token.expose_secret().as_bytes();
    !token.is_empty() && given.ct_eq(token).into()
}
