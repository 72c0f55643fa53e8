//! The pod template of a workload.
