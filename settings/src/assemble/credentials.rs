//! The registry and the vault: groups of keys that only work together.

use super::super::problem::ProblemKind;
use super::super::reader::{Read, Reader};
use super::super::{Registry, S3, Vault};
use super::all_or_none;

pub(super) fn registry(r: &mut Reader) -> Read<Option<Registry>> {
    let paths = ["registry.url", "registry.username", "registry.password"];
    if r.has_section("registry") && !paths.iter().any(|path| r.mentions(path)) {
        let help = format!("set {}, or remove the section", paths.join(", "));
        return Err(r.wrong(
            "registry",
            ProblemKind::HalfSet("its keys".to_owned()),
            help,
        ));
    }
    let complete = all_or_none(r, &paths);
    let url = r.optional::<String>("registry.url");
    let username = r.optional("registry.username");
    let password = r.optional_secret("registry.password");
    if !complete? {
        return Ok(None);
    }
    let (url, username, password) = (url?, username?, password?);
    if url.as_ref().is_some_and(|url| url.contains(['@', ' '])) {
        let kind = ProblemKind::Malformed("must be the registry without credentials".to_owned());
        let help = "use registry.username and registry.password_file".to_owned();
        return Err(r.wrong("registry.url", kind, help));
    }
    let parts = url.zip(username).zip(password);
    Ok(parts.map(|((url, username), password)| Registry {
        url,
        username,
        password,
    }))
}

pub(super) fn vault(r: &mut Reader) -> Read<Option<Vault>> {
    let url = r.optional("vault.url");
    let token = r.optional_secret("vault.token");
    let embedded = embedded_vault(r);
    let (url, token, embedded) = (url?, token?, embedded?);
    Ok(match url {
        Some(url) => Some(Vault::Remote { url, token }),
        None => embedded,
    })
}

fn embedded_vault(r: &mut Reader) -> Read<Option<Vault>> {
    let complete = all_or_none(
        r,
        &[
            "vault.master_keys",
            "vault.s3.url",
            "vault.s3.bucket",
            "vault.s3.access_key_id",
            "vault.s3.access_key_secret",
        ],
    );
    let master_keys = r.optional_secret("vault.master_keys");
    let url = r.optional("vault.s3.url");
    let bucket = r.optional("vault.s3.bucket");
    let access_key_id = r.optional("vault.s3.access_key_id");
    let access_key_secret = r.optional_secret("vault.s3.access_key_secret");
    if !complete? {
        return Ok(None);
    }
    let (master_keys, url, bucket) = (master_keys?, url?, bucket?);
    let parts = master_keys
        .zip(url)
        .zip(bucket)
        .zip(access_key_id?.zip(access_key_secret?));
    Ok(parts.map(
        |(((master_keys, url), bucket), (access_key_id, access_key_secret))| Vault::Embedded {
            master_keys,
            s3: S3 {
                url,
                bucket,
                access_key_id,
                access_key_secret,
            },
        },
    ))
}
