//! The names of the variables that krane gives to containers, and which values may be shown.

/// Optional variables in the order of the protocol.
pub(crate) const DESCRIPTIVE: [&str; 6] = [
    "UNKEY_ENVIRONMENT_SLUG",
    "UNKEY_REGION",
    "UNKEY_GIT_COMMIT_SHA",
    "UNKEY_GIT_BRANCH",
    "UNKEY_GIT_REPO",
    "UNKEY_GIT_COMMIT_MESSAGE",
];

/// Name of the variable that holds the encrypted ones.
pub(crate) const ENCRYPTED: &str = "UNKEY_ENCRYPTED_ENV";

/// Name of the variable that says where the scratch volume is.
pub(crate) const EPHEMERAL_DISK_PATH: &str = "UNKEY_EPHEMERAL_DISK_PATH";

/// Names of the variables that krane itself makes.
const IDENTITY: [&str; 7] = [
    "PORT",
    "UNKEY_WORKSPACE_ID",
    "UNKEY_PROJECT_ID",
    "UNKEY_ENVIRONMENT_ID",
    "UNKEY_DEPLOYMENT_ID",
    "UNKEY_INSTANCE_ID",
    EPHEMERAL_DISK_PATH,
];

/// Whether krane itself makes this variable, and not in secret: its value may be shown (D38).
pub(crate) fn is_public(name: &str) -> bool {
    IDENTITY.contains(&name) || DESCRIPTIVE.contains(&name)
}
