//! Ends everything together with this process, however it ends.
//!
//! All programs of a cluster are in one process group, made by the *anchor*: a shell that blocks on a pipe only this
//! process holds open. When this process is gone (exit, panic, SIGKILL), the pipe closes, and the anchor kills its
//! group. The *janitor*, a second shell outside the group, waits on a pipe of its own, makes sure of that and removes
//! the cluster's folder.
//!
//! - The standard library opens pipes close-on-exec, so no other child keeps one open by accident.
//! - A program that is being spawned holds a copy of the pipe until its exec, when it is in the group already: none
//!   can slip through.
//! - A death signal bound to the parent (`PR_SET_PDEATHSIG`) would follow the spawning *thread*, and test harnesses
//!   end those.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// `read` is built into the shell: a child of the anchor would be one more member to reap.
const ANCHOR: &str = "read -r _; kill -KILL 0";
/// `$1` is the group, `$2` the folder. A line on the input says that the group is gone already. A member that is being
/// killed may still write into the folder, hence the repetition.
const JANITOR: &str = "read -r word; n=0; while [ $n -lt 50 ]; do \
    [ \"$word\" = gone ] || kill -KILL \"-$1\" 2>/dev/null; \
    [ -n \"$2\" ] || exit 0; \
    rm -rf -- \"$2\" 2>/dev/null; \
    [ -e \"$2\" ] || exit 0; \
    n=$((n+1)); sleep 0.1; done";

/// The two shells.
#[derive(Debug)]
pub(crate) struct Guard {
    anchor: Child,
    janitor: Child,
}

impl Guard {
    /// Starts both. `folder` is removed at the end; `None` keeps it.
    pub(crate) fn start(folder: Option<&Path>) -> io::Result<Self> {
        let mut anchor = shell(ANCHOR).spawn()?;
        let janitor = shell(JANITOR)
            .arg("janitor")
            .arg(anchor.id().to_string())
            .arg(folder.map_or_else(OsString::new, Into::into))
            .spawn();
        match janitor {
            Ok(janitor) => Ok(Self { anchor, janitor }),
            Err(error) => {
                drop(anchor.stdin.take());
                anchor.wait()?;
                Err(error)
            }
        }
    }

    /// The process group that members are spawned into.
    pub(crate) fn group(&self) -> i32 {
        self.anchor.id().cast_signed()
    }

    /// Kills every member at once. The caller reaps its children and then drops the guard.
    pub(crate) fn kill_all(&self) {
        if let Some(group) = Pid::from_raw(self.group()) {
            // Fails only when nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.kill_all();
        let _ = self.anchor.wait();
        if let Some(mut janitor) = self.janitor.stdin.take() {
            // The group's number may belong to somebody else from now on.
            let _ = janitor.write_all(b"gone\n");
        }
        let _ = self.janitor.wait();
    }
}

/// A shell in a process group of its own that blocks on its input.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::{fs, thread, time::Duration};

    use super::*;

    fn member(guard: &Guard) -> Child {
        Command::new("sleep")
            .arg("600")
            .process_group(guard.group())
            .spawn()
            .unwrap()
    }

    fn ends(child: &mut Child) -> bool {
        (0..100).any(|_| {
            thread::sleep(Duration::from_millis(20));
            child.try_wait().unwrap().is_some()
        })
    }

    #[test]
    fn dropping_kills_members_and_removes_the_folder() {
        let folder = tempfile::tempdir().unwrap().keep();
        fs::write(folder.join("file"), "x").unwrap();
        let guard = Guard::start(Some(&folder)).unwrap();
        let mut member = member(&guard);
        drop(guard);
        assert!(ends(&mut member));
        assert!(!folder.exists());
    }

    #[test]
    fn a_closed_pipe_is_enough() {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut guard = Guard::start(Some(&folder)).unwrap();
        let mut member = member(&guard);
        // What the system does when this process is killed.
        drop(guard.anchor.stdin.take());
        drop(guard.janitor.stdin.take());
        assert!(ends(&mut member));
        assert!(ends(&mut guard.janitor));
        assert!(!folder.exists());
    }

    #[test]
    fn the_folder_can_be_kept() {
        let folder = tempfile::tempdir().unwrap();
        drop(Guard::start(None).unwrap());
        assert!(folder.path().exists());
    }
}
