//! The parsed forms of settings: what the rest of krane sees instead of strings.

use std::fmt;
use std::time::Duration;

/// A setting that takes one word out of a fixed list.
pub(super) trait Choice: Sized + 'static {
    /// The words a configuration may use, in the order they are documented.
    const WORDS: &'static [&'static str];

    fn from_word(word: &str) -> Option<Self>;
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// The word a configuration uses for this choice.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

choice! {
    /// Whether pods roll only because another renderer made their template (`safety.upgrades`).
    UpgradesMode {
        /// One sentinel at a time, the next when the last is available.
        On = "on",
        /// They run on until their state changes.
        Off = "off",
    }
}

choice! {
    /// Whether krane writes to the cluster (`safety.writes`).
    WritesMode {
        /// Objects are applied and deleted.
        On = "on",
        /// Nothing is written; reports and secrets go on.
        Off = "off",
    }
}

choice! {
    /// Which health paths a sentinel pod is probed on (`sentinel.probe_paths`).
    ProbePaths {
        /// Both probes on `/_unkey/internal/health`.
        Legacy = "legacy",
        /// Liveness and readiness on paths of their own.
        Split = "split",
    }
}

choice! {
    /// The form of an instance's address in a report (`report.address`).
    ReportAddress {
        /// The pod's DNS name.
        Dns = "dns",
        /// The pod's IP.
        Ip = "ip",
    }
}

choice! {
    /// What happens to pods made from an older template (`deployments.replace_outdated_pods`).
    ReplaceOutdatedPods {
        /// They are left alone and shown as outdated.
        Never = "never",
        /// Those that are not Ready are replaced, slowly.
        Unready = "unready",
    }
}

choice! {
    /// How log lines look (`observability.logging.format`).
    LogFormat {
        /// Pretty on a terminal, JSON elsewhere.
        Auto = "auto",
        /// One JSON object per line.
        Json = "json",
        /// For people.
        Pretty = "pretty",
    }
}

choice! {
    /// The least important log line that is written (`observability.logging.level`).
    LogLevel {
        /// Failures only.
        Error = "error",
        /// And what somebody should look at.
        Warn = "warn",
        /// And one line per decision.
        Info = "info",
        /// And the steps to a decision.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

/// Why a value was refused; the key, its value and its origin are added by the reader.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Refusal {
    /// The value has another TOML type.
    WrongType(&'static str),
    /// The value has the right type and is outside the accepted range or list.
    OutOfRange,
    /// The value has the right type and the wrong form.
    Malformed(String),
}

/// The region this agent serves, as every request to the control plane names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The provider: `aws`, `gcp`, `local`.
    pub platform: String,
    /// The region's name within the provider: `us-east-1`.
    pub name: String,
}

impl Region {
    /// Splits a region that carries its platform: `us-east-1.aws` or `aws:us-east-1`.
    pub(super) fn from_combined(text: &str) -> Option<Self> {
        let (platform, name) = match text.split_once(':') {
            Some(parts) => parts,
            None => text
                .rsplit_once('.')
                .map(|(name, platform)| (platform, name))?,
        };
        if platform.is_empty() || name.is_empty() {
            return None;
        }
        Some(Self {
            platform: platform.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.platform, self.name)
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    /// A size of `bytes` bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A size of `mebibytes` × 1,048,576 bytes.
    #[must_use]
    pub const fn from_mebibytes(mebibytes: u64) -> Self {
        Self(mebibytes << 20)
    }

    /// The size in bytes.
    #[must_use]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit: u64 = match unit.trim() {
            "" | "B" => 1,
            "KiB" | "Ki" => 1 << 10,
            "MiB" | "Mi" => 1 << 20,
            "GiB" | "Gi" => 1 << 30,
            "KB" | "k" => 1_000,
            "MB" | "M" => 1_000_000,
            "GB" | "G" => 1_000_000_000,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(unit).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        for (shift, unit) in units {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// An `http://` or `https://` address without credentials, query or fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    text: String,
    uri: http::Uri,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let refuse = |reason: &str| Err(Refusal::Malformed(reason.to_owned()));
        let Some((scheme, rest)) = text.split_once("://") else {
            return refuse("must start with http:// or https://");
        };
        if scheme != "http" && scheme != "https" {
            return refuse("must start with http:// or https://");
        }
        if rest.contains(['?', '#']) {
            return refuse("must not have a query or a fragment");
        }
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() || host.starts_with(':') {
            return refuse("must name a host");
        }
        if host.contains('@') {
            return refuse("must not hold credentials");
        }
        if text.contains(char::is_whitespace) {
            return refuse("must not hold spaces or line breaks");
        }
        // A trailing slash would become `//` in front of every path.
        let text = text.trim_end_matches('/');
        let Ok(uri) = text.parse::<http::Uri>() else {
            return refuse("is not an address");
        };
        // `Uri::port` is also empty for a port that is no number or too large.
        let authority = uri
            .authority()
            .map(http::uri::Authority::as_str)
            .unwrap_or_default();
        let port = authority
            .strip_prefix(uri.host().unwrap_or_default())
            .unwrap_or_default();
        if !port.is_empty() && uri.port_u16().is_none_or(|port| port == 0) {
            return refuse("must have a port from 1 to 65535");
        }
        Ok(Self {
            text: text.to_owned(),
            uri,
        })
    }

    /// The address as it was configured, without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address for an HTTP client.
    #[must_use]
    pub fn uri(&self) -> &http::Uri {
        &self.uri
    }

    /// Whether connections use TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.uri.scheme() == Some(&http::uri::Scheme::HTTPS)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads `1m30s`, `500ms`, `1.5h`, as Go writes them; a bare number is only valid as `0`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = tail;
    }
    // Rounded to a microsecond: 0.3 s must not become 299.999999 ms.
    Duration::try_from_secs_f64((total * 1e6).round() / 1e6).ok()
}

/// Writes a duration the way a configuration would: `500ms`, `60s`, `24h`.
pub(super) fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        "0".to_owned()
    } else if millis.is_multiple_of(3_600_000) {
        format!("{}h", millis / 3_600_000)
    } else if millis.is_multiple_of(1_000) {
        format!("{}s", millis / 1_000)
    } else {
        format!("{millis}ms")
    }
}
