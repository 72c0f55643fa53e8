//! Builds missing parts with Go, once per pin, whoever else is building.
//!
//! A part is built in a scratch folder and renamed to its final name when complete, so a folder that exists is whole.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    Error,
    guard::Guard,
    parts::{GO_ENV, MIN_GO, MIN_GO_TEXT, Order, Recipe},
    tail::tail_of,
};

/// How often a build says that it goes on.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// The Go toolchain that was found.
#[derive(Debug)]
pub(crate) struct Go {
    version: String,
}

impl Go {
    /// Asks `go` for its version and refuses one that cannot build the pins.
    pub(crate) fn find(orders: &[Order]) -> Result<Self, Error> {
        let missing = || {
            orders
                .iter()
                .flat_map(Order::products)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let output = Command::new("go")
            .args(["env", "GOVERSION"])
            .envs(GO_ENV)
            .current_dir(std::env::temp_dir())
            .output()
            .map_err(|source| Error::GoMissing {
                missing: missing(),
                needed: MIN_GO_TEXT,
                source,
            })?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if is_new_enough(&version) {
            Ok(Self { version })
        } else {
            Err(Error::GoTooOld {
                missing: missing(),
                found: version,
                needed: MIN_GO_TEXT,
            })
        }
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("go").split(['.', '-', 'r', 'b']);
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let Some(major) = next() else {
        return false;
    };
    (major, next().unwrap_or(0)) >= MIN_GO
}

/// The folders of all orders, in their order; builds those that are missing.
pub(crate) fn ensure(cache: &Path, go: &Go, orders: &[Order]) -> Result<Vec<PathBuf>, Error> {
    let folders: Vec<PathBuf> = orders
        .iter()
        .map(|order| cache.join(order.folder(&go.version)))
        .collect();
    if folders.iter().all(|folder| folder.is_dir()) {
        return Ok(folders);
    }
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Cache { path, source }
    };
    fs::create_dir_all(cache).map_err(at(cache))?;
    let _lock = lock(cache)?;
    for (order, folder) in orders.iter().zip(&folders) {
        // Another process may have built it while this one waited for the lock.
        if folder.is_dir() {
            continue;
        }
        let scratch = tempfile::Builder::new()
            .prefix(&format!(".building-{}-", order.part.name))
            .tempdir_in(cache)
            .map(TempDir::keep)
            .map_err(at(cache))?;
        // Ends the compilers and removes the scratch folder, also when this process is killed.
        let guard = Guard::start(Some(&scratch)).map_err(Error::Guard)?;
        let started = Instant::now();
        say(&format!(
            "{}: {} with {}",
            order.part.name,
            order.products().join(", "),
            go.version
        ));
        let output = scratch.join("out");
        fs::create_dir(&output).map_err(at(&output))?;
        make(order, &guard, &scratch, &output)?;
        fs::rename(&output, folder).map_err(at(folder))?;
        say(&format!(
            "{}: done in {} s",
            order.part.name,
            started.elapsed().as_secs()
        ));
    }
    Ok(folders)
}

/// Held while building; a second process waits and says so.
fn lock(cache: &Path) -> Result<File, Error> {
    let path = cache.join("lock");
    let failed = |source| Error::Cache {
        path: path.clone(),
        source,
    };
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say("another process is building; waiting for it");
            file.lock().map_err(failed)?;
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    Ok(file)
}

fn make(order: &Order, guard: &Guard, scratch: &Path, output: &Path) -> Result<(), Error> {
    let module = scratch.join("module");
    let failed = |path: PathBuf| move |source| Error::Cache { path, source };
    fs::create_dir(&module).map_err(failed(module.clone()))?;
    for (name, text) in order.part.files {
        let file = module.join(name);
        fs::write(&file, text).map_err(failed(file.clone()))?;
    }
    match order.part.recipe {
        Recipe::Build { .. } => {
            let mut arguments = order.build_flags();
            arguments.push("-o".to_owned());
            // With one package `-o` names the file: etcd's package is not called etcd.
            let target = match order.programs.as_slice() {
                [(program, _)] => output.join(program.program()),
                _ => output.to_owned(),
            };
            // `go build` takes a folder only when it ends like one.
            let target = if order.programs.len() == 1 {
                target
            } else {
                target.join("")
            };
            arguments.push(target.to_string_lossy().into_owned());
            arguments.extend(
                order
                    .programs
                    .iter()
                    .map(|(_, package)| (*package).to_owned()),
            );
            run_go(order, guard, &module, &arguments).map(drop)
        }
        Recipe::File {
            module: name,
            version,
            path,
            name: file,
        } => {
            let arguments =
                ["mod", "download", "-json", &format!("{name}@{version}")].map(str::to_owned);
            let printed = run_go(order, guard, &module, &arguments)?;
            let download: Download =
                serde_json::from_slice(&printed).map_err(|source| Error::GoOutput {
                    part: order.part.name,
                    source,
                })?;
            let pinned = pinned_sum(order, name, version);
            if download.sum != pinned {
                return Err(Error::ModuleSum {
                    module: name,
                    found: download.sum,
                    pinned,
                });
            }
            let from = download.folder.join(path);
            fs::copy(&from, output.join(file))
                .map(drop)
                .map_err(failed(from))
        }
    }
}

/// What `go mod download -json` prints, as far as it is needed.
#[derive(Debug, serde::Deserialize)]
struct Download {
    #[serde(rename = "Dir")]
    folder: PathBuf,
    #[serde(rename = "Sum")]
    sum: String,
}

fn pinned_sum(order: &Order, module: &str, version: &str) -> String {
    let prefix = format!("{module} {version} ");
    let sums = order.part.files.iter().find(|(name, _)| *name == "go.sum");
    sums.and_then(|(_, text)| text.lines().find_map(|line| line.strip_prefix(&prefix)))
        .unwrap_or_default()
        .to_owned()
}

/// Runs `go` in a module's folder and returns what it printed; says every now and then that it is still at it.
fn run_go(
    order: &Order,
    guard: &Guard,
    module: &Path,
    arguments: &[String],
) -> Result<Vec<u8>, Error> {
    let part = order.part.name;
    let log = module.join("log");
    let failed = |source| Error::Cache {
        path: log.clone(),
        source,
    };
    let started = Instant::now();
    let child = Command::new("go")
        .args(arguments)
        .envs(GO_ENV)
        .current_dir(module)
        .process_group(guard.group())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log).map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let (done, waiting) = mpsc::channel::<()>();
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            while waiting.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                say(&format!("{part}: {} s …", started.elapsed().as_secs()));
            }
        });
        let output = child.wait_with_output();
        drop(done);
        output
    })
    .map_err(failed)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Error::GoBuild {
            part,
            status: output.status,
            tail: tail_of(&log),
        })
    }
}

/// A progress line. Written to the stream itself: the test harness shows it at once instead of holding it back.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "krane-testcluster: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::CILIUM;

    #[test]
    fn go_versions() {
        assert!(is_new_enough("go1.26.8"));
        assert!(is_new_enough("go1.27rc1"));
        assert!(is_new_enough("go2.0"));
        assert!(!is_new_enough("go1.25.9"));
        assert!(!is_new_enough("go1.9"));
        assert!(!is_new_enough(""));
        assert!(!is_new_enough("devel"));
    }

    #[test]
    fn the_sum_of_a_module_is_found() {
        let order = Order::new(CILIUM, |_| false);
        assert!(pinned_sum(&order, "github.com/cilium/cilium", "v1.18.0").starts_with("h1:"));
        assert_eq!(
            pinned_sum(&order, "github.com/cilium/cilium", "v1.17.0"),
            ""
        );
    }

    #[test]
    fn a_second_builder_waits() {
        let cache = tempfile::tempdir().unwrap();
        let first = lock(cache.path()).unwrap();
        let path = cache.path().to_owned();
        let second = thread::spawn(move || lock(&path).map(drop));
        thread::sleep(Duration::from_millis(50));
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
    }
}
