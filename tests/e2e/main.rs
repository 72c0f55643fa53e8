//! Tests on a real cluster.

mod cluster_contract;
