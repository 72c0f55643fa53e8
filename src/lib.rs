//! krane.
