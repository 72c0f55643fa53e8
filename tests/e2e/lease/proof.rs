//! What the audit log proves about who wrote when.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use krane_testcluster::AuditEntry;

use super::{DURATION, side::Life};

/// What was found.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "they are printed")]
pub(super) struct Proof {
    pub(super) writes: usize,
    pub(super) renewals: usize,
    /// Times that the Lease went from one process to another.
    pub(super) handovers: usize,
    /// Writes that came after the deadline, or while another process held the Lease, each by a
    /// process that had been paused while it was under way.
    pub(super) late: usize,
    pub(super) pauses: usize,
    /// The longest time between the last renewal and a write, in milliseconds.
    pub(super) oldest: i64,
}

fn mark(entry: &AuditEntry) -> &str {
    entry.user_agent.rsplit(' ').next().unwrap_or_default()
}

/// Every write reached the API server within its process's own window, and while no other process
/// held the Lease. The API server's clock is the only one used.
pub(super) fn check(entries: &[AuditEntry], lives: &[Life]) -> Result<Proof, String> {
    let mut entries: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.is_write()).collect();
    entries.sort_by_key(|entry| entry.received);
    let window = SignedDuration::try_from(DURATION.mul_f64(5.0 / 6.0)).unwrap_or_default();
    let is_grant = |entry: &&AuditEntry| entry.resource == "leases" && entry.code < 300;
    let grants: Vec<&AuditEntry> = entries.iter().copied().filter(is_grant).collect();
    let mut proof = Proof {
        renewals: grants.len(),
        pauses: lives.iter().map(|life| life.pauses).sum(),
        ..Proof::default()
    };
    let mut by_commit = grants.clone();
    by_commit.sort_by_key(|grant| grant.answered);
    proof.handovers = by_commit
        .windows(2)
        .filter(|pair| mark(pair[0]) != mark(pair[1]))
        .count();
    let mut late: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for write in entries.iter().filter(|entry| entry.resource != "leases") {
        proof.writes += 1;
        let who = mark(write);
        let of = |grant: &&&AuditEntry| mark(grant) == who && grant.received <= write.received;
        let own: Option<Timestamp> = grants.iter().filter(of).map(|grant| grant.received).max();
        let age = own.map(|own| write.received.duration_since(own));
        // The last one that was sure to be done before this write came.
        let before = |grant: &&&AuditEntry| grant.answered < write.received;
        let holding = by_commit.iter().rev().find(before).map(|it| mark(it));
        let is_in_time = age.is_some_and(|age| age <= window);
        if let Some(age) = age.filter(|_| is_in_time) {
            proof.oldest = proof
                .oldest
                .max(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        }
        if is_in_time && holding == Some(who) {
            continue;
        }
        let line = format!(
            "{who} wrote {} {}/{} at {} ({}), {age:?} after its last renewal, held by {holding:?}",
            write.verb, write.namespace, write.name, write.received, write.code
        );
        println!("late: {line}");
        late.entry(who).or_default().push(line);
    }
    for life in lives {
        let writes = late.remove(life.mark.as_str()).unwrap_or_default();
        proof.late += writes.len();
        if writes.len() > life.pauses {
            return Err(format!(
                "{} was paused {} times, and wrote late: {writes:#?}",
                life.mark, life.pauses
            ));
        }
    }
    if late.is_empty() {
        Ok(proof)
    } else {
        Err(format!("written by nobody: {late:#?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(who: &str, resource: &str, received: i64, answered: i64) -> AuditEntry {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        AuditEntry {
            verb: "patch".to_owned(),
            group: String::new(),
            resource: resource.to_owned(),
            subresource: String::new(),
            namespace: "ns".to_owned(),
            name: "d".to_owned(),
            user: "krane".to_owned(),
            user_agent: format!("krane/1 {who}"),
            code: 200,
            uri: "/x".to_owned(),
            received: at(received),
            answered: at(answered),
        }
    }

    fn found(entries: &[AuditEntry], pauses: usize) -> Option<usize> {
        let life = |mark: &str, pauses| Life {
            mark: mark.to_owned(),
            pauses,
        };
        let lives = [life("a-0", pauses), life("b-0", 0)];
        check(entries, &lives).ok().map(|proof| proof.late)
    }

    /// What the suite would say of a krane that writes when it must not.
    #[test]
    fn a_write_beside_its_lease_is_found_and_excused_only_by_a_pause() {
        let renewed = entry("a-0", "leases", 0, 10);
        let write = |at| entry("a-0", "replicasets", at, at + 5);
        assert_eq!(found(&[renewed.clone(), write(2_400)], 0), Some(0));
        let late = [renewed.clone(), write(2_600)];
        assert_eq!((found(&late, 0), found(&late, 1)), (None, Some(1)));
        let twice = [renewed.clone(), write(2_600), write(2_700)];
        assert_eq!(found(&twice, 1), None);
        let taken = entry("b-0", "leases", 1_000, 1_010);
        assert_eq!(found(&[renewed, taken, write(1_500)], 0), None);
        assert_eq!(found(&[write(1)], 0), None, "without any lease");
    }
}
