//! Rules of the house that no compiler checks.

#![expect(
    clippy::expect_used,
    reason = "a test fails where it meets the unexpected"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use krane_settings::KEYS;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, with its text; `tests` folders and files only when asked for.
pub(crate) fn sources(folder: &str, with_tests: bool) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let is_test = matches!(name, "tests" | "tests.rs" | "testing" | "testing.rs");
            if is_test && !with_tests {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

/// The code of a file: no comments, and nothing from an inline test module on.
pub(crate) fn code(text: &str) -> String {
    let text = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn nobody_says(folder: &str, words: &[&str], except: &[&str], reason: &str) {
    for (path, text) in sources(folder, false) {
        let shown = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .display()
            .to_string();
        if except.iter().any(|known| shown.starts_with(known)) {
            continue;
        }
        let code = code(&text);
        for word in words {
            assert!(!code.contains(word), "{shown} says {word}: {reason}");
        }
    }
}

fn dependencies(manifest: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(manifest)).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.expect("dependencies").keys().cloned().collect()
}

#[test]
fn the_domain_can_do_nothing_but_decide() {
    let known = dependencies("domain/Cargo.toml");
    for banned in [
        "tokio",
        "kube",
        "k8s-openapi",
        "tonic",
        "ractor",
        "tracing",
        "fastrand",
        "jiff",
    ] {
        assert!(!known.contains(banned), "domain depends on {banned}");
    }
    let words = [
        "Instant::now",
        "SystemTime",
        "std::fs",
        "TcpStream",
        "UdpSocket",
        "HashMap",
        "HashSet",
        "async fn",
    ];
    nobody_says(
        "domain/src",
        &words,
        &[],
        "the domain is pure and its order is known",
    );
}

#[test]
fn actors_cannot_touch_the_world() {
    let known = dependencies("actors/Cargo.toml");
    for banned in [
        "kube",
        "k8s-openapi",
        "tonic",
        "axum",
        "hyper",
        "krane-proto",
        "config",
    ] {
        assert!(!known.contains(banned), "actors depend on {banned}");
    }
    let words = [
        "std::fs",
        "std::net",
        "std::env",
        "tokio::spawn",
        "tokio::net",
        "registry::where_is",
    ];
    nobody_says(
        "actors/src",
        &words,
        &[],
        "the world is behind ports, and tasks have owners",
    );
}

/// Where krane touches the world.
pub(crate) const WORLD: [&str; 7] = [
    "admin",
    "demo",
    "edge",
    "server",
    "settings",
    "src",
    "telemetry",
];

/// Which crates a crate may know: those of floors below its own. The binary and the demo put all together.
const FLOORS: [&[&str]; 6] = [
    &["actors/supervision", "domain", "proto"],
    &["ports", "settings"],
    // Side by side: actors and the world meet at the ports.
    &[
        "actors",
        "edge/control-plane",
        "edge/kubernetes",
        "edge/vault",
        "server",
        "sim",
        "telemetry",
    ],
    &["admin"],
    &["."],
    &["demo"],
];

#[test]
fn every_crate_depends_on_floors_below_it_alone() {
    let name = |folder: &str| match folder.rsplit('/').next() {
        Some(".") | None => "krane".to_owned(),
        Some(folder) => format!("krane-{folder}"),
    };
    let mut below = BTreeSet::new();
    for floor in FLOORS {
        let known: Vec<_> = floor
            .iter()
            .map(|folder| dependencies(&format!("{folder}/Cargo.toml")))
            .collect();
        for (folder, known) in floor.iter().zip(known) {
            let ours = known.iter().filter(|name| name.starts_with("krane"));
            let above: Vec<_> = ours.filter(|name| !below.contains(*name)).collect();
            assert!(above.is_empty(), "{folder} depends on {above:?}");
            // The world in memory: what is shipped must not know it.
            let is_shipped = *folder != "demo";
            assert!(!is_shipped || !known.contains("krane-sim"), "{folder}");
        }
        below.extend(floor.iter().map(|folder| name(folder)));
    }
}

#[test]
fn nobody_but_the_settings_reads_the_environment() {
    let words = ["env::var(", "env::vars(", "env::var_os(", "env::vars_os("];
    for folder in WORLD {
        nobody_says(
            folder,
            &words,
            &["settings/src/"],
            "settings have one reader",
        );
    }
}

/// The field of `Settings` behind a key, as code names it.
fn field(path: &str) -> String {
    match path {
        "platform" => "region.platform".to_owned(),
        "k8s.qps" | "k8s.burst" => "k8s.rate_limit".to_owned(),
        "vault.url" | "vault.token" => "Vault::Remote { url, token }".to_owned(),
        "vault.master_keys" => "Vault::Embedded { master_keys, s3 }".to_owned(),
        _ if path.contains('.') => {
            let parts: Vec<_> = path.rsplitn(3, '.').collect();
            format!("{}.{}", parts[1], parts[0])
        }
        _ => format!("settings.{path}"),
    }
}

/// A key that is accepted and changes nothing misleads whoever sets it.
#[test]
fn every_setting_is_used_or_known_not_to_be() {
    let mut reading = String::new();
    let readers = WORLD.into_iter().filter(|folder| *folder != "settings");
    for (_, text) in readers.flat_map(|folder| sources(folder, false)) {
        for line in code(&text).lines() {
            // Texts name keys too, and read nothing.
            line.split('"')
                .step_by(2)
                .for_each(|code| reading.push_str(code.trim()));
        }
    }
    for key in KEYS {
        let field = field(key.path);
        let is_read = reading.contains(&field);
        assert!(is_read, "nobody reads {field}: {} has no effect", key.path);
    }
}

#[test]
fn no_task_is_without_an_owner() {
    for folder in WORLD {
        nobody_says(
            folder,
            &["tokio::spawn(", "task::spawn("],
            &[],
            "spawn into an owned JoinSet",
        );
    }
}

/// Supervision catches panics; a build that aborts on them would be another program.
#[test]
fn no_profile_aborts_on_panics() {
    for folder in FLOORS.into_iter().flatten() {
        let manifest = format!("{folder}/Cargo.toml");
        let text = fs::read_to_string(root().join(&manifest)).expect("a manifest");
        assert!(!text.contains("\"abort\""), "{manifest}");
    }
}

#[test]
fn every_actor_says_what_it_owns_never_does_and_loses() {
    for (path, text) in sources("actors/src", false) {
        if !text.contains("impl Behaviour for ") {
            continue;
        }
        let head: String = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        let places: Vec<_> = ["Owns:", "Never ", "Lost when it dies:"]
            .iter()
            .map(|words| head.find(words))
            .collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{} does not say what it owns, what it never does and what its death costs",
            path.display()
        );
    }
}

#[test]
fn files_are_short_enough_to_be_read() {
    for (path, text) in CODE.into_iter().flat_map(|folder| sources(folder, true)) {
        let lines = text.lines().count();
        assert!(
            lines <= 500,
            "{} has {lines} lines: split it",
            path.display()
        );
    }
}

#[test]
fn the_picture_in_the_readme_exists_in_light_and_dark() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for picture in [
        "docs/picture/krane-light.svg",
        "docs/picture/krane-dark.svg",
    ] {
        assert!(
            readme.contains(picture) && root().join(picture).is_file(),
            "{picture}"
        );
    }
}

/// A panel over a metric that nobody exports stays empty, and nobody notices.
#[test]
fn every_metric_of_the_dashboard_is_exported() {
    let folder = root().join("charts/krane/dashboards");
    let exported: String = WORLD
        .into_iter()
        .chain(["actors"])
        .flat_map(|folder| sources(folder, false))
        .map(|(_, text)| text)
        .collect();
    let mut checked = 0;
    for entry in fs::read_dir(folder).expect("dashboards") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("text");
        for word in text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            if !word.starts_with("krane_") {
                continue;
            }
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .unwrap_or(word);
            assert!(
                exported.contains(&format!("\"{family}\"")),
                "nobody exports {word}"
            );
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} metrics named");
}

/// The text behind `//` or `#` of each line that has one.
fn comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let start = line.find("//").or_else(|| line.find("# "))?;
        line.get(start..)
    })
}

/// Marks such as D15 in a text; those of hexadecimal words are none.
fn marks(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_mark = |word: &&str| {
        let Some(rest) = word.strip_prefix('D') else {
            return false;
        };
        let number = rest.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        (1..=2).contains(&number.len())
            && number.bytes().all(|digit| digit.is_ascii_digit())
            && rest.len() <= number.len() + 1
    };
    words.filter(is_mark).map(str::to_owned).collect()
}

/// Every folder with Rust files.
pub(crate) const CODE: [&str; 13] = [
    "actors",
    "admin",
    "demo",
    "domain",
    "edge",
    "ports",
    "proto",
    "server",
    "settings",
    "sim",
    "src",
    "telemetry",
    "tests",
];

/// A comment must not send anybody to a paper that is not here.
#[test]
fn every_mark_and_page_that_a_comment_names_is_in_the_repository() {
    let rules = fs::read_to_string(root().join("docs/rules.md")).expect("the rules");
    let known: BTreeSet<String> = rules
        .lines()
        .filter_map(|line| line.strip_prefix("| D")?.split(' ').next())
        .map(|number| format!("D{number}"))
        .collect();
    let mut used = BTreeSet::new();
    for (path, text) in CODE.into_iter().flat_map(|folder| sources(folder, true)) {
        // This file gives examples.
        if path.ends_with("tidy.rs") {
            continue;
        }
        for comment in comments(&text) {
            used.extend(marks(comment));
            let pages =
                comment.split(|letter: char| letter.is_whitespace() || "()`,:;".contains(letter));
            let is_page = |word: &&str| Path::new(word).extension().is_some_and(|it| it == "md");
            for page in pages.filter(is_page) {
                let is_here = root().join(page).is_file() || comment.contains("acto");
                assert!(is_here, "{} names {page}", path.display());
            }
        }
    }
    assert_eq!(used, known, "the marks in comments and in docs/rules.md");
}

/// The page that newcomers start with sends nobody to a file that moved.
#[test]
fn every_path_that_the_architecture_names_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let named = page.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let is_file = Path::new(word).extension().is_some();
        word.contains('/') && (is_file || word.ends_with('/')) && !word.contains("NAME")
    };
    let paths: BTreeSet<&str> = named.filter(is_path).collect();
    assert!(paths.len() > 25, "{paths:?}");
    for path in paths {
        assert!(root().join(path).exists(), "{path}");
    }
}
