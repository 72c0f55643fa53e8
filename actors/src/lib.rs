//! How krane behaves.
