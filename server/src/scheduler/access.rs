//! Who may call (D32).

use secrecy::SecretString;

use crate::authorization::{credentials, is_token};

/// Whether a request brings the token as `Authorization: Bearer`. Without a token (`scheduler.token`
/// empty) none does.
pub(super) fn is_authorized(authorization: Option<&[u8]>, token: Option<&SecretString>) -> bool {
    let given = authorization.and_then(|authorization| credentials(authorization, "bearer"));
    given
        .zip(token)
        .is_some_and(|(given, token)| is_token(given, token))
}
