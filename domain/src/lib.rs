//! What krane decides.
