//! The registry and the vault: groups of keys that only work together.

use super::super::problem::ProblemKind;
use super::super::reader::{Group, Read, Reader, Setting};
use super::super::{Registry, S3, SecretSource, Url, Vault};
use super::{all_or_none, are_complete};

pub(in super::super) fn registry(r: &mut Reader<'_>, section: &str) -> Read<Option<Registry>> {
    if r.has_section(section) && !Registry::PATHS.iter().any(|path| r.mentions(path)) {
        let help = format!("set {}, or remove the section", Registry::PATHS.join(", "));
        let kind = ProblemKind::HalfSet("its keys".to_owned());
        return Err(r.wrong(section, kind, help));
    }
    let registry: Option<Registry> = all_or_none(r, section)?;
    if registry
        .as_ref()
        .is_some_and(|it| it.url.contains(['@', ' ']))
    {
        let kind = ProblemKind::Malformed("must be the registry without credentials".to_owned());
        let help = "use registry.username and registry.password_file".to_owned();
        return Err(r.wrong("registry.url", kind, help));
    }
    Ok(registry)
}

pub(in super::super) fn vault(r: &mut Reader<'_>, _: &str) -> Read<Option<Vault>> {
    let url = <Option<Url>>::read(r, "vault.url");
    let token = <Option<SecretSource>>::read(r, "vault.token");
    let embedded = embedded_vault(r);
    let (url, token, embedded) = (url?, token?, embedded?);
    Ok(match url {
        Some(url) => Some(Vault::Remote { url, token }),
        None => embedded,
    })
}

fn embedded_vault(r: &mut Reader<'_>) -> Read<Option<Vault>> {
    const MASTER_KEYS: &str = "vault.master_keys";
    let complete = are_complete(r, &[&[MASTER_KEYS], S3::PATHS].concat());
    let master_keys = <Option<SecretSource>>::read(r, MASTER_KEYS);
    let s3 = S3::parts(r);
    if !complete? {
        return Ok(None);
    }
    let parts = master_keys?.zip(s3?);
    Ok(parts.map(|(master_keys, s3)| Vault::Embedded { master_keys, s3 }))
}
