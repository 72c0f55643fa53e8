//! Names that become part of an object's key in the bucket. No I/O.

use std::fmt;

use object_store::path::Path;

/// Below it are all keys.
pub(super) const ROOT: &str = "keyring";
/// What a label of Kubernetes takes is the most that a key ring can have; ids are shorter.
const LONGEST: usize = 128;

/// Which data key: its key ring and its id.
///
/// Both are single, harmless parts of a path: whoever names a key must not reach another ring's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyName {
    ring: String,
    id: String,
}

/// A name that is no single part of a path, or has characters that no key ring and no id has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadName {
    Ring,
    Id,
}

impl KeyName {
    pub(super) fn new(ring: &str, id: &str) -> Result<Self, BadName> {
        check_ring(ring)?;
        if !is_part(id) {
            return Err(BadName::Id);
        }
        Ok(Self {
            ring: ring.to_owned(),
            id: id.to_owned(),
        })
    }

    /// Where the key is.
    pub(super) fn path(&self) -> Path {
        Path::from_iter([ROOT, &self.ring, &self.id])
    }
}

impl fmt::Debug for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ring, self.id)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} of key ring {}", self.id, self.ring)
    }
}

pub(super) fn check_ring(ring: &str) -> Result<(), BadName> {
    if is_part(ring) {
        Ok(())
    } else {
        Err(BadName::Ring)
    }
}

/// Letters, digits, `.`, `_` and `-`, and not only points.
fn is_part(name: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=LONGEST).contains(&name.len())
        && name.bytes().all(is_harmless)
        && !name.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BadName, KeyName};

    #[test]
    fn a_key_is_below_its_ring() {
        let name = KeyName::new("env_1", "dek_1").unwrap();
        assert_eq!(name.path().as_ref(), "keyring/env_1/dek_1");
    }

    #[test]
    fn no_name_leaves_the_folder_of_its_ring() {
        for bad in [
            "", ".", "..", "...", "/", "a/b", "/a", "../a", "a/..", "a\0", "a\\b", "a b", "a%2fb",
            "ä", "a\n",
        ] {
            assert_eq!(
                KeyName::new(bad, "dek_1").unwrap_err(),
                BadName::Ring,
                "{bad:?}"
            );
            assert_eq!(
                KeyName::new("env_1", bad).unwrap_err(),
                BadName::Id,
                "{bad:?}"
            );
        }
        assert!(KeyName::new(&"a".repeat(129), "dek_1").is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_taken_stays_in_its_place(ring in ".{0,12}", id in ".{0,12}") {
            if let Ok(name) = KeyName::new(&ring, &id) {
                let path = name.path();
                prop_assert_eq!(path.as_ref(), format!("keyring/{ring}/{id}"));
                prop_assert_eq!(path.parts().count(), 3);
            }
        }
    }
}
