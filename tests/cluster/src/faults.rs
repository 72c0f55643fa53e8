//! Faults: programs that stop answering, die and come back.

use std::time::Duration;

use tokio::time::sleep;

use crate::{Cluster, Component, Error, process::Process};

const RESTART_ATTEMPTS: usize = 20;
const RESTART_PAUSE: Duration = Duration::from_millis(250);

impl Cluster {
    /// The process id of a running component.
    pub fn pid(&self, component: Component) -> Option<u32> {
        self.with(component, |process| process.id()).ok().flatten()
    }

    /// Freezes a component (SIGSTOP): its connections stay open and nobody answers on them.
    pub fn pause(&self, component: Component) -> Result<(), Error> {
        self.with(component, |process| process.pause())?
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self, component: Component) -> Result<(), Error> {
        self.with(component, |process| process.resume())?
    }

    /// Kills a component (SIGKILL) and returns when it is gone; fine when it does not run.
    pub fn kill(&self, component: Component) -> Result<(), Error> {
        self.with(component, Process::kill)?
    }

    /// Starts a killed component again, with the same port and data, and waits until etcd listens or the API server
    /// is ready; the others are only started.
    pub async fn restart(&self, component: Component) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            self.launch(component)?;
            let ready = match component {
                Component::Etcd => self.wait_for_etcd().await,
                Component::ApiServer => self.wait_for_api_server().await,
                Component::ControllerManager
                | Component::Scheduler
                | Component::Kwok
                | Component::EtcdUtl => Ok(()),
            };
            match ready {
                // Somebody has our port for a moment.
                Err(error) if error.is_port_collision() && attempt < RESTART_ATTEMPTS => {
                    attempt += 1;
                    self.kill(component)?;
                    sleep(RESTART_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    /// Takes the API server away: connections break, new ones are refused.
    pub fn kill_api_server(&self) -> Result<(), Error> {
        self.kill(Component::ApiServer)
    }

    /// Brings the API server back, on the same port and with the same data.
    pub async fn start_api_server(&self) -> Result<(), Error> {
        self.restart(Component::ApiServer).await
    }
}
