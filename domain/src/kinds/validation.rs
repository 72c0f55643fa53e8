//! Checks that several kinds share: what the API server would refuse for ever is caught before
//! anything is written, with the field and the remedy named.

mod names;
mod numbers;

pub(super) use names::{
    dns_label, dns_subdomain, image, label_value, quoted, required, workload_namespace,
};
pub(super) use numbers::{at_most_allowed, cpu_millicores, memory_mib, positive, replicas};
