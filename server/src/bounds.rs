//! Every limit on what senders may have of a server, in one table with its reasons.
//!
//! docs/dev/bounds.md computes from it how much memory an attack can cost: who changes a number here
//! changes that sum.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::connect::LARGEST_REQUEST;
use super::health::port::PROBES;

/// How much there is of one thing, for all senders and for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// For who comes first.
    pub shared: usize,
    /// Beside it, for the guarantees: `reserved / guaranteed` senders have theirs at the same time.
    pub reserved: usize,
    /// What a sender gets of the reserve, however much others have taken of the rest.
    pub guaranteed: usize,
    /// All that one sender gets.
    pub per_sender: usize,
}

/// The limits of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections; at this number the busiest sender's are closed for those of others.
    pub connections: usize,
    /// Of one sender; its further ones are closed immediately.
    pub connections_per_sender: usize,
    /// HTTP/2 streams of one connection.
    pub streams: u32,
    /// With so many connections or more, a new one has only [`Self::few_streams`].
    pub crowded: usize,
    /// Of a connection that comes later.
    pub few_streams: u32,
    /// Requests, each from its header to the last byte of its answer; more are answered with an
    /// empty 503.
    pub requests: Quota,
    /// Bytes of answers that their peers have not taken; an answer beyond them is broken off.
    pub answers: Quota,
}

const MEBIBYTE: usize = 1024 * 1024;
/// No limit of its own.
const UNLIMITED: Quota = Quota {
    shared: usize::MAX,
    reserved: 0,
    guaranteed: 0,
    per_sender: usize::MAX,
};

// What is in the table, and why:
//
// | limit | number | reason |
// |---|---|---|
// | RPC connections | 768, 256 of one sender | a pod needs one for seconds; a node behind one address starts 256 pods together |
// | RPC streams | 256 of a connection, 8 from the 33rd connection on | a Scheduler API client has all its calls on one; a stream that is refused costs 2 KiB until it is |
// | RPC requests | 512, and 4 for each of 128 senders; 384 of one | three services of 128 calls, and probes |
// | RPC answers | 8 MiB, and 128 KiB for each of 128 senders; 4 MiB of one | an answer is as large as a pod's variables, at most 96 KiB |
// | calls, for each service | 256, and 2 for each of 128 senders; 128 of one | the secrets actor answers 512 at once |
// | requests being sent | 1,024, and 4 for each of 256 senders; 128 of one | no more than connections; one for each call |
// | bytes of requests | 8 MiB, and 160 KiB for each of 128 senders; 4 MiB of one | a blob of 96 KiB is 128 KiB in JSON, with a token beside it |
// | metrics connections | 256, 8 of one sender | a scraper has one or two |
// | metrics streams | 16 of a connection | a scraper has one at a time |
// | metrics requests | 128, and 2 for each of 64 senders; 16 of one | what they share is a rendering, at most one a second |
// | admin connections | 256, 256 of one sender | everybody comes through one port-forward |
// | admin requests | 512 | 64 viewers, and what they ask |

/// Calls of one service at once.
pub const CALLS: Quota = Quota {
    shared: 256,
    reserved: 256,
    guaranteed: 2,
    per_sender: 128,
};
/// Requests that are being sent.
pub const SENDING: Quota = Quota {
    shared: 1_024,
    reserved: 1_024,
    guaranteed: 4,
    per_sender: 128,
};
/// Bytes of requests, from their arrival until their calls were answered.
pub const BYTES: Quota = Quota {
    shared: 8 * MEBIBYTE,
    reserved: 20 * MEBIBYTE,
    guaranteed: 160 * 1024,
    per_sender: 2 * LARGEST_REQUEST,
};

/// Connections that were closed for those of others, and still end: no more are accepted meanwhile.
pub(super) const LEAVING: usize = 64;

/// Files that are not for connections of [`Bounds`]: 256 that krane needs for itself (requests to
/// the API server, control plane and vault, and the listeners), those of connections of the three
/// ports that are being closed, and the probes of the health port.
const OWN_FILES: usize = 256 + 3 * LEAVING + PROBES;

impl Bounds {
    /// Of the port that every pod of the cluster calls.
    pub const RPC: Self = Self {
        connections: 768,
        connections_per_sender: 256,
        streams: 256,
        crowded: 32,
        few_streams: 8,
        requests: Quota {
            shared: 512,
            reserved: 512,
            guaranteed: 4,
            per_sender: 384,
        },
        answers: Quota {
            shared: 8 * MEBIBYTE,
            reserved: 16 * MEBIBYTE,
            guaranteed: 128 * 1024,
            per_sender: 4 * MEBIBYTE,
        },
    };
    /// Of the metrics port.
    pub const METRICS: Self = Self {
        connections: 256,
        connections_per_sender: 8,
        streams: 16,
        crowded: 256,
        few_streams: 16,
        requests: Quota {
            shared: 128,
            reserved: 128,
            guaranteed: 2,
            per_sender: 16,
        },
        answers: UNLIMITED,
    };
    /// Of the admin UI: operators with a port-forward, or a token.
    pub const ADMIN: Self = Self {
        connections: 256,
        connections_per_sender: 256,
        streams: 64,
        crowded: 256,
        few_streams: 64,
        requests: Quota {
            shared: 512,
            reserved: 0,
            guaranteed: 0,
            per_sender: 512,
        },
        answers: UNLIMITED,
    };

    /// With no more connections than a process with so many files can have: an eighth for each of
    /// the small ports, the rest for the RPC port.
    #[must_use]
    pub fn within(self, files: usize) -> Self {
        let left = files.saturating_sub(OWN_FILES);
        let small = |wanted: usize| wanted.min(left / 8).max(1);
        let connections = if self.connections <= Self::ADMIN.connections {
            small(self.connections)
        } else {
            let others = small(Self::METRICS.connections) + small(Self::ADMIN.connections);
            self.connections.min(left.saturating_sub(others)).max(1)
        };
        Self {
            connections,
            connections_per_sender: self.connections_per_sender.min(connections),
            ..self
        }
    }
}

/// How many files this process may have open.
#[must_use]
pub fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// Lets this process have as many files open as it may allow itself.
pub fn raise_open_files() -> std::io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

#[cfg(test)]
mod tests {
    use super::Bounds;

    /// (X2): there are files for the connections of all ports, and for krane itself.
    #[test]
    fn connections_are_never_more_than_files() {
        for files in [0, 64, 512, 576, 1_024, 4_096, 20_000, usize::MAX] {
            let of = |bounds: Bounds| bounds.within(files).connections;
            let (rpc, metrics) = (of(Bounds::RPC), of(Bounds::METRICS));
            let all = rpc + metrics + of(Bounds::ADMIN);
            assert!(rpc > 0 && metrics > 0, "{files}");
            if files >= 576 {
                assert!(all <= files - 512, "{files}: {all}");
            }
        }
        assert_eq!(Bounds::RPC.within(usize::MAX), Bounds::RPC);
        assert_eq!(Bounds::RPC.within(1_024).connections, 384);
    }
}
