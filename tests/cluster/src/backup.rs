//! Backups of etcd, and a cluster that is restored from one.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{task::spawn_blocking, time::sleep};

use crate::{Cluster, Component, Error, flags, folder, tail::tail_of};

/// etcd writes what it has taken in to its file in batches: after this long the file has it.
const BATCH: Duration = Duration::from_millis(500);
/// How far revisions jump when they are bumped; etcd's documentation advises as much.
const BUMP: &str = "1000000000";

/// What etcd held at a moment: a file in the cluster's folder.
#[derive(Debug)]
pub struct Backup(PathBuf);

/// What becomes of etcd's revisions, which are resource versions, in a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revisions {
    /// They count from the backup again, and so are lower than before.
    Plain,
    /// They jump beyond all that were used, and earlier ones count as compacted
    /// (`--bump-revision --mark-compacted`).
    Bumped,
}

impl Cluster {
    /// Saves what etcd holds, while it is frozen for a moment.
    pub async fn back_up(&self, name: &str) -> Result<Backup, Error> {
        let from = flags::etcd_data(self.folder()).join("member/snap/db");
        let to = self.folder().join(format!("backup-{name}.db"));
        sleep(BATCH).await;
        self.pause(Component::Etcd)?;
        let copied = fs::copy(&from, &to);
        self.resume(Component::Etcd)?;
        copied.map_err(|source| Error::Files { path: from, source })?;
        Ok(Backup(to))
    }

    /// Restores the whole cluster, as Kubernetes' documentation says it: everything stops, etcd gets a new data folder
    /// made of the backup, and everything starts again. Returns when the API server is ready.
    pub async fn restore(&self, backup: &Backup, revisions: Revisions) -> Result<(), Error> {
        let others = [
            Component::ControllerManager,
            Component::Scheduler,
            Component::Kwok,
        ];
        let others = || others.into_iter().filter(|other| self.has(*other));
        for component in others().chain([Component::ApiServer, Component::Etcd]) {
            self.kill(component)?;
        }
        let data = flags::etcd_data(self.folder());
        fs::remove_dir_all(&data).map_err(|source| Error::Files {
            path: data.clone(),
            source,
        })?;
        let command = self.etcdutl(&backup.0, &data, revisions)?;
        let log = folder::log(self.folder(), Component::EtcdUtl);
        spawn_blocking(move || run(command, &log))
            .await
            .map_err(Error::Interrupted)??;
        self.restart(Component::Etcd).await?;
        self.restart(Component::ApiServer).await?;
        for component in others() {
            self.restart(component).await?;
        }
        Ok(())
    }

    fn etcdutl(&self, backup: &Path, data: &Path, revisions: Revisions) -> Result<Command, Error> {
        use std::os::unix::process::CommandExt as _;

        let log = folder::log(self.folder(), Component::EtcdUtl);
        let output = File::options().create(true).append(true).open(&log);
        let output = output.map_err(|source| Error::Files { path: log, source })?;
        let peer = format!("http://127.0.0.1:{}", self.ports().etcd_peer);
        let mut command = Command::new(self.program(Component::EtcdUtl));
        command
            .args(["snapshot", "restore"])
            .arg(backup)
            // The hash that a snapshot over the network ends with is not in the file.
            .args(["--skip-hash-check", "--name=testcluster"])
            .arg(format!("--initial-cluster=testcluster={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg("--data-dir")
            .arg(data);
        if revisions == Revisions::Bumped {
            command.args(["--bump-revision", BUMP, "--mark-compacted"]);
        }
        command
            .process_group(self.process_group())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        Ok(command)
    }
}

fn run(mut command: Command, log: &Path) -> Result<(), Error> {
    let program = PathBuf::from(command.get_program());
    let status = command.status().map_err(|source| Error::Spawn {
        component: Component::EtcdUtl,
        program,
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    let tail = tail_of(log);
    Err(Error::Restore { status, tail })
}
