//! Keys, certificates, tokens and the kubeconfig files that carry them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use serde_json::json;

use crate::{Component, Error, folder::write};

/// The user that tests are, member of `system:masters`.
pub const ADMIN_USER: &str = "testcluster-admin";

/// The files with keys and certificates.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    /// PEM of the authority that signed the API server's certificate.
    pub(crate) authority: String,
    pub(crate) authority_file: PathBuf,
    pub(crate) server_certificate: PathBuf,
    pub(crate) server_key: PathBuf,
    /// Signs ServiceAccount tokens; the public half is read from the same file.
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public_key: PathBuf,
    /// The API server's list of static tokens.
    pub(crate) tokens_file: PathBuf,
    /// Token by user.
    pub(crate) tokens: BTreeMap<&'static str, String>,
}

impl Credentials {
    /// Makes everything anew in `folder`.
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority
            .distinguished_name
            .push(DnType::CommonName, "krane test cluster");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::from_params(&authority, &authority_key);

        let server_key = KeyPair::generate()?;
        let mut server = CertificateParams::new(vec![
            "localhost".to_owned(),
            "kubernetes".to_owned(),
            "kubernetes.default.svc".to_owned(),
        ])?;
        server
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        server
            .subject_alt_names
            .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let server_certificate = server.signed_by(&server_key, &issuer)?;

        let service_account_key = KeyPair::generate()?;
        let tokens = tokens()?;
        let authority = authority_certificate.pem();
        Ok(Self {
            authority_file: write(folder, "ca.crt", &authority)?,
            authority,
            server_certificate: write(folder, "apiserver.crt", &server_certificate.pem())?,
            server_key: write(folder, "apiserver.key", &server_key.serialize_pem())?,
            service_account_key: write(folder, "sa.key", &service_account_key.serialize_pem())?,
            service_account_public_key: write(
                folder,
                "sa.pub",
                &service_account_key.public_key_pem(),
            )?,
            tokens_file: write(folder, "tokens.csv", &tokens_csv(&tokens))?,
            tokens,
        })
    }

    /// The text of a kubeconfig with this token. JSON is YAML.
    pub(crate) fn kubeconfig(&self, api_server: &str, user: &str, token: &str) -> String {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testcluster", "cluster": {
                "server": api_server,
                "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "testcluster", "context": {
                "cluster": "testcluster", "user": user, "namespace": crate::objects::KRANE,
            }}],
            "current-context": "testcluster",
        })
        .to_string()
    }
}

fn tokens() -> Result<BTreeMap<&'static str, String>, Error> {
    Component::ALL
        .into_iter()
        .filter_map(Component::user)
        .chain([ADMIN_USER])
        .map(|user| Ok((user, random_token()?)))
        .collect()
}

/// kwok acts for kubelets and everything else on nodes; like the admin it may do anything.
fn tokens_csv(tokens: &BTreeMap<&'static str, String>) -> String {
    let mut csv = String::new();
    for (user, token) in tokens {
        let group = if user.starts_with("system:") {
            ""
        } else {
            ",\"system:masters\""
        };
        csv += &[token, ",", user, ",", user, group, "\n"].concat();
    }
    csv
}

fn random_token() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    let source = Path::new("/dev/urandom");
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error: io::Error| Error::Files {
            path: source.to_owned(),
            source: error,
        })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_only_testers_are_masters() {
        let csv = tokens_csv(&tokens().unwrap());
        assert_eq!(csv.lines().count(), 4);
        for line in csv.lines() {
            assert_eq!(
                line.contains("system:masters"),
                !line.contains(",system:kube-"),
                "{line}"
            );
        }
        assert_ne!(random_token().unwrap(), random_token().unwrap());
    }

    #[test]
    fn kubeconfig_is_read_by_kube() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = Credentials::create(folder.path()).unwrap();
        let text = credentials.kubeconfig("https://127.0.0.1:1", "somebody", "secret");
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("testcluster"));
        assert_eq!(config.auth_infos.len(), 1);
    }
}
