//! Who may call (D32).

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// Whether a request brings the token as `Authorization: Bearer`. Without a token (`scheduler.token`
/// empty) none does. How long it takes does not tell how much of a guess was right.
pub(super) fn is_authorized(authorization: Option<&[u8]>, token: Option<&SecretString>) -> bool {
    let (Some(authorization), Some(token)) = (authorization, token) else {
        return false;
    };
    let token = token.expose_secret().as_bytes();
    let given = bearer(authorization);
    !token.is_empty() && given.is_some_and(|given| given.ct_eq(token).into())
}

/// The token of a header; the scheme's name may be written as one likes.
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = authorization.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}
