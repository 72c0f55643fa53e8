//! `krane allow-deletes`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use krane_domain::ids;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use super::exit;
use super::output::{Terminal, printable};
use crate::admin::held;
use crate::settings::{SecretError, SecretSource};

/// How long krane may take to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// No list of held deletions is longer, in bytes.
const LONGEST_ANSWER: usize = 16 << 20;

/// Shows the deletions that the brake holds, and with `--yes` lets them go.
#[derive(Debug, Args)]
pub(super) struct AllowDeletes {
    /// Whose deletions.
    #[arg(value_name = "CONTROLLER", value_parser = ids::Controller::ALL.map(ids::Controller::name))]
    controller: String,

    /// Delete them now.
    #[arg(long)]
    yes: bool,

    /// Where the running krane has its page (admin.listen, or the local end of a port-forward).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9091")]
    admin: SocketAddr,

    /// A file with the token of admin.token, if one is set.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Controller {
    deletes_held: Vec<String>,
}

#[derive(Deserialize)]
struct Allowed {
    deleted: Vec<String>,
}

/// Why krane was not heard, with what to do.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("no threads could be started")]
    Runtime(#[source] std::io::Error),
    #[error("the token cannot be read from {file}")]
    Token {
        file: PathBuf,
        #[source]
        error: SecretError,
    },
    #[error("the token is no header value")]
    TokenForm(#[from] http::header::InvalidHeaderValue),
    #[error("{admin} does not answer: {error}")]
    Unreachable { admin: SocketAddr, error: String },
    #[error("krane answered {code}: {words}")]
    Refused { code: u16, words: String },
    #[error("the answer makes no sense: {0}")]
    Answer(#[from] serde_json::Error),
}

impl AskError {
    const fn code(&self) -> u8 {
        match self {
            Self::Refused {
                code: 401 | 403, ..
            } => exit::NO_PERMISSION,
            Self::Refused { code: 404, .. } | Self::Token { .. } | Self::TokenForm(_) => {
                exit::USAGE
            }
            Self::Runtime(_)
            | Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Answer(_) => exit::UNAVAILABLE,
        }
    }

    fn help(&self) -> String {
        let help = match self {
            Self::Runtime(_) => "raise the limit on processes",
            Self::Token { .. } | Self::TokenForm(_) => {
                "give a file that holds nothing but the token"
            }
            Self::Unreachable { .. } => {
                "forward the port (kubectl -n krane port-forward deploy/krane 9091) or say where \
                 it is with --admin"
            }
            Self::Refused { code: 401, .. } => "give the token of admin.token with --token-file",
            Self::Refused { code: 404, .. } => {
                let controllers = ids::Controller::ALL.map(ids::Controller::name).join(", ");
                return format!("name one of the controllers: {controllers}");
            }
            Self::Refused { .. } | Self::Answer(_) => "see krane's log; its version may be another",
        };
        help.to_owned()
    }
}

impl AllowDeletes {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let done = match runtime {
            Ok(runtime) => runtime.block_on(self.run(terminal)),
            Err(error) => Err(AskError::Runtime(error)),
        };
        done.unwrap_or_else(|error| {
            let sentence = error.to_string();
            terminal.failure("krane::allow_deletes", &sentence, &[], &error.help());
            ExitCode::from(error.code())
        })
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        if self.yes {
            let allowed: Allowed = self
                .ask(Method::POST, &held::path(&self.controller))
                .await?;
            terminal.data(&lines(&allowed.deleted));
            terminal.success(&format!("{} deleted", objects(allowed.deleted.len())));
            return Ok(ExitCode::from(exit::OK));
        }
        let path = format!("/api/v1/controllers/{}", self.controller);
        let controller: Controller = self.ask(Method::GET, &path).await?;
        let held = controller.deletes_held;
        terminal.data(&lines(&held));
        if held.is_empty() {
            terminal.success("no deletion is held");
            return Ok(ExitCode::from(exit::OK));
        }
        terminal.success(&format!(
            "{} held because the control plane does not know them any more; --yes deletes them",
            objects(held.len())
        ));
        Ok(ExitCode::from(exit::FINDINGS))
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, AskError> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = method;
        // Checked by clap or made here: a path that is none is refused by the server.
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.admin.to_string())?);
        let (header, value) = held::CONFIRMATION;
        headers.insert(header, HeaderValue::from_static(value));
        if let Some(file) = &self.token_file {
            let token = SecretSource::file(file).map_err(|error| AskError::Token {
                file: file.clone(),
                error,
            })?;
            let token = token.current();
            let mut bearer =
                HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()))?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let unreachable = |error: String| AskError::Unreachable {
            admin: self.admin,
            error,
        };
        let exchange = async {
            let stream = TcpStream::connect(self.admin).await?;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream))
                    .await
                    .map_err(std::io::Error::other)?;
            let answer = async {
                let answer = sender
                    .send_request(request)
                    .await
                    .map_err(std::io::Error::other)?;
                let code = answer.status();
                let body = Limited::new(answer.into_body(), LONGEST_ANSWER);
                let body = body.collect().await.map_err(std::io::Error::other)?;
                Ok::<_, std::io::Error>((code, body.to_bytes()))
            };
            // The connection works for as long as its answer is awaited. One that has ended well
            // has brought all it will.
            let broken = async {
                match connection.await {
                    Ok(()) => std::future::pending().await,
                    Err(error) => error,
                }
            };
            tokio::select! {
                biased;
                answer = answer => answer,
                error = broken => Err(std::io::Error::other(error)),
            }
        };
        let (code, body) = tokio::time::timeout(LIMIT, exchange)
            .await
            .map_err(|_| unreachable("no answer within 10 s".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        if !code.is_success() {
            let words = printable(String::from_utf8_lossy(&body).trim());
            return Err(AskError::Refused {
                code: code.as_u16(),
                words,
            });
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

/// One key in a line, and nothing in it that a terminal would obey.
fn lines(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| printable(key)).collect();
    let mut text = keys.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn objects(count: usize) -> String {
    match count {
        1 => "1 object".to_owned(),
        many => format!("{many} objects"),
    }
}
