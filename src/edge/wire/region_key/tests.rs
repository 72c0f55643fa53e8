//! Bytes in, bytes out, for one region.
