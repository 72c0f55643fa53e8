//! Integration tests.

mod cluster_edge;
