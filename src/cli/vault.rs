//! `krane vault`

use std::error::Error as _;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Arg, Args, Subcommand};
use krane_domain::words::chain;
use krane_ports::VaultFailure;
use krane_settings::{self as settings, KEYS, LoadInput, Loaded, SecretSource, Url};
use krane_vault::{
    EmbeddedTiming, EmbeddedVault, RemoteTiming, RemoteVault, Survey, VaultSetupError,
};

use super::exit;
use super::flags::SettingFlags;
use super::output::{Terminal, printable};
use super::run::Failure;

/// Looks after the vault that decrypts the secrets of pods.
#[derive(Debug, Args)]
pub(super) struct Vault {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check that the master keys open every stored key; with vault.url, that the service is alive.
    ///
    /// Reads every stored key of the bucket; decrypts no value and changes nothing. Of a vault
    /// service (vault.url) it asks only for its liveness: neither vault.token nor any key is tried.
    ///
    /// Exit codes: 0 when every key opens or the service is alive, 1 when a key does not open, 69 when
    /// the store or the service cannot be reached, 78 when no vault is configured.
    Verify(Verify),
}

#[derive(Debug, Args)]
#[command(mut_args(only_of_the_vault))]
struct Verify {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

/// The other settings are accepted, and change nothing here.
fn only_of_the_vault(arg: Arg) -> Arg {
    let is_other = KEYS
        .iter()
        .any(|key| key.path == arg.get_id().as_str() && !key.path.starts_with("vault."));
    arg.hide(is_other)
}

/// Why there is no result.
enum VerifyError {
    Settings(VaultSetupError),
    None,
    Store(VaultFailure),
    Service(VaultFailure),
}

impl Vault {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        match self.verb {
            Verb::Verify(verify) => verify.execute(process, terminal),
        }
    }
}

impl Verify {
    fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        let loaded = match Loaded::load(&self.settings.into_input(process)) {
            Ok(loaded) => loaded,
            Err(invalid) => {
                terminal.invalid_settings(&invalid);
                return ExitCode::from(exit::CONFIG);
            }
        };
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => return Failure::threads(&error).tell(terminal),
        };
        let done = match loaded.settings.vault {
            None => Err(VerifyError::None),
            Some(settings::Vault::Remote { url, token }) => {
                runtime.block_on(service(&url, token, self.json, terminal))
            }
            Some(settings::Vault::Embedded { master_keys, s3 }) => {
                runtime.block_on(bucket(master_keys, &s3, self.json, terminal))
            }
        };
        done.unwrap_or_else(|error| Failure::from(error).tell(terminal))
    }
}

async fn service(
    url: &Url,
    token: Option<SecretSource>,
    json: bool,
    terminal: &Terminal,
) -> Result<ExitCode, VerifyError> {
    let vault = RemoteVault::new(url.uri(), token, RemoteTiming::default())
        .map_err(|error| VerifyError::Settings(error.into()))?;
    vault.liveness().await.map_err(VerifyError::Service)?;
    let text = if json {
        let result = serde_json::json!({ "vault": "remote", "alive": true });
        format!("{result:#}\n")
    } else {
        format!("the vault service at {url} is alive; it looks after its keys itself\n")
    };
    Ok(terminal.data(&text))
}

async fn bucket(
    master_keys: SecretSource,
    s3: &settings::S3,
    json: bool,
    terminal: &Terminal,
) -> Result<ExitCode, VerifyError> {
    let vault = EmbeddedVault::new(master_keys, s3, EmbeddedTiming::default())
        .map_err(VerifyError::Settings)?;
    let survey = vault.survey().await.map_err(VerifyError::Store)?;
    let text = if json {
        let mut result = serde_json::json!(survey);
        result["vault"] = "embedded".into();
        result["objects"] = survey.objects().into();
        format!("{result:#}\n")
    } else {
        words(&survey)
    };
    let printed = terminal.data(&text);
    Ok(if survey.is_calm() {
        printed
    } else {
        ExitCode::from(exit::FINDINGS)
    })
}

/// The result for a person. Whoever writes to the bucket chooses the names in it.
fn words(survey: &Survey) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |words: &str| {
        let _ = writeln!(text, "{words}");
    };
    let width = survey.opened.keys().map(String::len).max().unwrap_or(0);
    for (id, opened) in &survey.opened {
        let id = printable(id);
        line(&match opened {
            0 => format!("{id:<width$}  opens nothing that is stored"),
            opened => format!("{id:<width$}  opens {}", stored_keys(*opened)),
        });
    }
    if survey.is_calm() {
        line(&match survey.objects() {
            0 => "\n✔ nothing is stored below keyring/".to_owned(),
            objects => format!("\n✔ every one of {} can be opened", stored_keys(objects)),
        });
    }
    if !survey.locked.is_empty() {
        let count = stored_keys(survey.locked.len());
        line(&format!("\n‼ {count} that no configured master key opens:"));
    }
    for locked in &survey.locked {
        line(&format!("  {}", printable(&locked.object)));
        let id = printable(&locked.master_key);
        line(&if locked.is_configured {
            format!(
                "      {id} is configured and does not open it: altered, or another key of that id"
            )
        } else {
            format!("      needs {id}: add it to vault.master_keys")
        });
    }
    if !survey.damaged.is_empty() {
        let count = survey.damaged.len();
        line(&format!(
            "\n✗ {count} below keyring/ that are no stored keys:"
        ));
    }
    for damaged in &survey.damaged {
        line(&format!("  {}", printable(&damaged.object)));
        line(&format!("      {}", printable(&damaged.why)));
    }
    text
}

fn stored_keys(count: usize) -> String {
    match count {
        1 => "1 stored key".to_owned(),
        many => format!("{many} stored keys"),
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::None => Self {
                code: exit::CONFIG,
                name: "krane::vault::none",
                sentence: "no vault is configured".to_owned(),
                cause: None,
                help: "set vault.master_keys_file and vault.s3.*, or vault.url".to_owned(),
            },
            VerifyError::Settings(error) => Self {
                code: exit::CONFIG,
                name: "krane::vault::settings",
                sentence: error.to_string(),
                cause: error.source().map(chain),
                help: match error {
                    VaultSetupError::Remote(_) => "check vault.url",
                    VaultSetupError::MasterKeys(_) => {
                        "give each key as the base64 text that the vault itself was given"
                    }
                    VaultSetupError::Store(_) => "check vault.s3.url and vault.s3.bucket",
                }
                .to_owned(),
            },
            VerifyError::Store(failure) => Self {
                code: exit::UNAVAILABLE,
                name: "krane::vault::store",
                sentence: "the stored keys cannot be read".to_owned(),
                cause: Some(failure.to_string()),
                help: "check vault.s3.*, and whether the store is up".to_owned(),
            },
            VerifyError::Service(failure) => Self {
                code: exit::UNAVAILABLE,
                name: "krane::vault::service",
                sentence: "the vault service is not well".to_owned(),
                cause: Some(failure.to_string()),
                help: "check vault.url, and whether the vault is up".to_owned(),
            },
        }
    }
}
