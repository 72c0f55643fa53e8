//! One program of the cluster: how it is started, watched, stopped for a while and ended.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Component, Error, tail::tail_of};

/// Everything that is needed to start a program again.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) component: Component,
    pub(crate) file: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) log: PathBuf,
}

impl Program {
    /// Starts it as a member of `group`; its output is appended to its log.
    pub(crate) fn spawn(&self, group: i32) -> Result<Child, Error> {
        let failed = |source| Error::Files {
            path: self.log.clone(),
            source,
        };
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(failed)?;
        let output = log.try_clone().map_err(failed)?;
        let mut command = Command::new(&self.file);
        command
            .args(&self.arguments)
            .env_remove("KUBECONFIG")
            // Memory for time: collecting garbage was a fifth of what an API server does.
            .env("GOGC", "400")
            .process_group(group)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(log);
        if let Some(folder) = self.log.parent() {
            command.current_dir(folder);
        }
        command.spawn().map_err(|source| Error::Spawn {
            component: self.component,
            program: self.file.clone(),
            source,
        })
    }
}

/// A program and, while it runs, its process.
#[derive(Debug)]
pub(crate) struct Process {
    program: Program,
    child: Option<Child>,
}

impl Process {
    pub(crate) fn new(program: Program) -> Self {
        Self {
            program,
            child: None,
        }
    }

    pub(crate) fn component(&self) -> Component {
        self.program.component
    }

    pub(crate) fn start(&mut self, group: i32) -> Result<(), Error> {
        if self.child.is_some() {
            return Err(Error::WrongState {
                component: self.component(),
                state: "running already",
            });
        }
        self.child = Some(self.program.spawn(group)?);
        Ok(())
    }

    /// The process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// An error when the program ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        let component = self.component();
        let Some(child) = &mut self.child else {
            return Err(Error::WrongState {
                component,
                state: "not running",
            });
        };
        match child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                self.child = None;
                Err(Error::Exited {
                    component,
                    status,
                    tail: self.tail(),
                })
            }
            Err(source) => Err(Error::Signal { component, source }),
        }
    }

    /// SIGSTOP: it keeps its connections and answers nothing. Returns when its last thread has stopped: the signal
    /// reaches them one by one.
    pub(crate) fn pause(&self) -> Result<(), Error> {
        self.signal(Signal::STOP)?;
        let limit = Instant::now() + Duration::from_secs(10);
        while Instant::now() < limit && !self.id().is_none_or(is_stopped) {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let component = self.component();
        let id = self.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or(Error::WrongState {
            component,
            state: "not running",
        })?;
        kill_process(id, signal).map_err(|errno| Error::Signal {
            component,
            source: io::Error::from(errno),
        })
    }

    /// SIGKILL, and waits until it is gone; nothing when it does not run.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let component = self.component();
        let failed = |source| Error::Signal { component, source };
        child.kill().map_err(failed)?;
        child.wait().map(drop).map_err(failed)
    }

    /// The end of its log.
    pub(crate) fn tail(&self) -> String {
        tail_of(&self.program.log)
    }
}

/// Whether every thread of this process has stopped. Where that cannot be read, nobody can wait for it.
fn is_stopped(id: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{id}/task")) else {
        return true;
    };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // `pid (name) state …`, and the name may hold anything.
        stat.rsplit_once(')')
            .is_none_or(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
    })
}
