//! Asks the running krane: what its page shows, as JSON.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use krane_domain::ids;
use krane_domain::words::cut;
use krane_settings::{SecretError, SecretSource};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;

use super::bundle::kept::BundleError;
use super::exit;
use super::output::{Terminal, printable};

/// How long krane may take to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// No answer is longer, in bytes.
const LONGEST_ANSWER: usize = 64 << 20;

/// Where the running krane is asked.
#[derive(Debug, Args)]
pub(super) struct AdminFlags {
    /// Where the running krane has its page (admin.listen, or the local end of a port-forward).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9091", value_parser = address)]
    pub(super) admin: SocketAddr,

    /// A file with the token of admin.token, if one is set.
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
}

/// `127.0.0.1:9091`, `localhost:9091`, or the link of the page.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix("http://").unwrap_or(text);
    let bare = bare.split('/').next().unwrap_or(bare);
    let bare = bare.replacen("localhost:", "127.0.0.1:", 1);
    let example = || "an address such as 127.0.0.1:9091, or the link of the page".to_owned();
    bare.parse().map_err(|_| example())
}

/// Why krane was not heard, with what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
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
    #[error("krane does not take the token of {file}")]
    WrongToken { file: String },
    #[error("the answer makes no sense: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("{0}")]
    NoSuch(String),
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl AskError {
    /// What docs/errors.md has it under.
    const fn name(&self) -> &'static str {
        match self {
            Self::Runtime(_) => "krane::admin::threads",
            Self::Token { .. } | Self::TokenForm(_) => "krane::admin::token",
            Self::Unreachable { .. } => "krane::admin::unreachable",
            Self::Refused { .. } | Self::WrongToken { .. } => "krane::admin::refused",
            Self::Answer(_) => "krane::admin::answer",
            Self::NoSuch(_) => "krane::admin::no_such",
            Self::Bundle(_) => "krane::admin::bundle",
        }
    }

    const fn code(&self) -> u8 {
        match self {
            Self::WrongToken { .. }
            | Self::Refused {
                code: 401 | 403, ..
            } => exit::NO_PERMISSION,
            Self::Refused {
                code: 400 | 404, ..
            }
            | Self::Token { .. }
            | Self::TokenForm(_)
            | Self::NoSuch(_) => exit::USAGE,
            Self::Bundle(error) => error.code(),
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
            Self::WrongToken { .. } => {
                "give the one of admin.token; krane reads its file again when that changes"
            }
            Self::Refused { code: 401, .. } => "give the token of admin.token with --token-file",
            Self::Refused { code: 403, .. } => {
                "actions need admin.actions = true and a token (admin.token)"
            }
            Self::Refused { code: 404, .. } => {
                let controllers = ids::Controller::ALL.map(ids::Controller::name).join(", ");
                return format!("name one of the controllers: {controllers}");
            }
            Self::NoSuch(_) => "`krane status -o wide` lists all that is wanted",
            Self::Bundle(error) => error.help(),
            Self::Refused { .. } | Self::Answer(_) => "see krane's log; its version may be another",
        };
        help.to_owned()
    }
}

/// Runs what asks krane to its end, and tells what went wrong.
pub(super) fn block_on(
    terminal: &Terminal,
    asking: impl Future<Output = Result<ExitCode, AskError>>,
) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(asking),
        Err(error) => Err(AskError::Runtime(error)),
    };
    done.unwrap_or_else(|error| {
        let sentence = printable(&error.to_string());
        terminal.failure(error.name(), &sentence, &[], &error.help());
        ExitCode::from(error.code())
    })
}

/// Waits between two looks; whoever has seen enough interrupts the process.
#[expect(clippy::disallowed_methods, reason = "no actor waits here")]
pub(super) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

impl AdminFlags {
    /// Reads something.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        Ok(serde_json::from_slice(&self.ask(path, None).await?)?)
    }

    /// Changes something; `header` says that a program asks and no page.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        header: (&'static str, &'static str),
        body: &Value,
    ) -> Result<T, AskError> {
        let answer = self.ask(path, Some((header, body))).await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    async fn ask(
        &self,
        path: &str,
        change: Option<((&'static str, &'static str), &Value)>,
    ) -> Result<Bytes, AskError> {
        let mut request = Request::new(Full::<Bytes>::default());
        // Checked by clap or made here: a path that is none is refused by the server.
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.admin.to_string())?);
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
        if let Some(((name, value), body)) = change {
            headers.insert(name, HeaderValue::from_static(value));
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.method_mut() = Method::POST;
            *request.body_mut() = Full::from(body.to_string());
        }
        let unreachable = |error: String| AskError::Unreachable {
            admin: self.admin,
            error,
        };
        let (code, body) = tokio::time::timeout(LIMIT, self.exchange(request))
            .await
            .map_err(|_| unreachable("no answer within 10 s".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        if code.is_success() {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body);
        if text.trim_start().starts_with('<') || code.is_redirection() {
            let error = format!("what answers there ({code}) is not krane");
            return Err(unreachable(error));
        }
        // The JSON API says why in a field.
        let words = serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|answer| Some(answer.get("error")?.as_str()?.to_owned()))
            .unwrap_or_else(|| text.trim().to_owned());
        if let (StatusCode::UNAUTHORIZED, Some(file)) = (code, &self.token_file) {
            let file = printable(&file.display().to_string());
            return Err(AskError::WrongToken { file });
        }
        Err(AskError::Refused {
            code: code.as_u16(),
            words: cut(words),
        })
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> std::io::Result<(StatusCode, Bytes)> {
        let stream = TcpStream::connect(self.admin).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
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
        // The connection works for as long as its answer is awaited. One that has ended well has
        // brought all it will.
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
    }
}
