//! `krane render`

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use krane_domain::kinds::Rules;
use krane_domain::words::chain;
use krane_domain::words::many;
use krane_settings::{LoadInput, Loaded};
use serde_json::{Value, json};

use super::exit;
use super::flags::SettingFlags;
use super::output::{Terminal, printable};
use crate::render::{Fault, FaultKind, Manifests, RenderError, render};

const MORE: &str = concat!(
    "\
The states are a JSON object of lists, `deployments`, `sentinels` and `ciliumNetworkPolicies`;
each may be left out. A state is `{\"apply\": {…}}` or `{\"delete\": {…}}`, as protobuf's JSON
writes the messages of ctrl.v1 (proto/ctrl/v1/cluster.proto has all fields). Of a policy, `policy`
is the base64 of the manifest as JSON. Such as:

",
    include_str!("../render/example.json"),
    "
Of each field of each state the first fault is told, with line and column: 100 at most, and how many
more there are. Without settings the defaults count; with --config or --set the whole configuration
must be valid. Pull secrets are left out, and so are owner references, whose uids only a cluster
knows.

  krane render -f desired.json | kubectl diff --server-side --field-manager=krane -f -

Exit codes: 0 rendered, 1 a state would be set aside, 2 the input cannot be read, 78 the
configuration is wrong."
);

/// Prints the manifests that krane would write for states of the control plane.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(super) struct Render {
    /// The JSON file with the states, --help shows one; `-` is stdin.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,

    /// How to print the manifests.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Output,

    #[command(flatten)]
    settings: SettingFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

impl Render {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        let Self {
            file,
            output,
            settings,
        } = self;
        let rules = if settings.is_empty() {
            Rules::default()
        } else {
            match Loaded::load(&settings.into_input(process)) {
                Ok(loaded) => crate::run::rules(&loaded.settings),
                Err(invalid) => {
                    terminal.invalid_settings(&invalid);
                    return ExitCode::from(exit::CONFIG);
                }
            }
        };
        let unreadable = |cause: &str| {
            let file = file.display().to_string();
            terminal.failure(
                "krane::render::input",
                "the states cannot be read",
                &[("file", &file), ("cause", cause)],
                "krane render --help shows how they are written",
            );
            ExitCode::from(exit::USAGE)
        };
        let text = match read(&file) {
            Ok(text) => text,
            Err(error) => return unreadable(&error.to_string()),
        };
        match render(&text, &rules) {
            Ok(manifests) => output.print(&manifests, terminal),
            Err(RenderError::Input(error)) => unreadable(&chain(&error)),
            Err(RenderError::Faults(faults)) => {
                for fault in &faults.told {
                    tell(fault, terminal);
                }
                let more = faults.count.saturating_sub(faults.told.len());
                if more > 0 {
                    terminal.note(&format!("and {}", many(more, "more fault")));
                }
                let code = if faults.has_unreadable {
                    exit::USAGE
                } else {
                    exit::FINDINGS
                };
                ExitCode::from(code)
            }
        }
    }
}

fn tell(fault: &Fault, terminal: &Terminal) {
    let (code, help) = match &fault.what {
        FaultKind::Unreadable(_) => (
            "krane::render::input",
            "krane render --help shows how states are written",
        ),
        FaultKind::Invalid(_) => (
            "krane::render::invalid_state",
            "krane would set it aside, and nobody else would wait",
        ),
    };
    terminal.failure(code, &printable(&fault.to_string()), &[], help);
}

impl Output {
    fn print(self, manifests: &Manifests, terminal: &Terminal) -> ExitCode {
        if !manifests.pull_secrets.is_empty() {
            let namespaces = manifests.pull_secrets.join(", ");
            terminal.note(&format!("left out: the pull secret in {namespaces}"));
        }
        let text = match self {
            Self::Json => {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests.bodies});
                format!("{list:#}\n")
            }
            Self::Yaml => manifests.bodies.iter().map(yaml).collect(),
        };
        terminal.data(&text)
    }
}

fn read(file: &std::path::Path) -> std::io::Result<String> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
}

/// One document. JSON is YAML, should the writer of YAML ever refuse.
fn yaml(body: &Value) -> String {
    let body = serde_saphyr::to_string(body).unwrap_or_else(|_| format!("{body:#}\n"));
    format!("---\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_back_as_it_was() {
        let body = json!({
            "apiVersion": "v1", "kind": "X", "empty": {}, "list": [], "number": 3, "text": "3",
            "data": {"yes": "yes", "null": "null", "odd": "a: b\n- c #d", "tilde": "~", "no": null},
            "deep": [{"a": [1, 2]}, {"b": ""}],
        });
        let text = yaml(&body);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, body, "{text}");
    }
}
