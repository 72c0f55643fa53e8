//! Waiting for states of a cluster, with a reason when they do not come.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use tokio::{net::TcpStream, time::sleep};

use crate::{Cluster, Component, Error, process::Process};

const PERIOD: Duration = Duration::from_millis(40);

impl Cluster {
    /// Asks until the answer is `Ok`. `Err` of the closure says what is still missing. Ends early when `component`,
    /// the one that should bring the state about, is gone.
    pub(crate) async fn wait_for<T>(
        &self,
        what: &str,
        component: Component,
        limit: Duration,
        mut ask: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        loop {
            let last = match ask().await {
                Ok(value) => return Ok(value),
                Err(last) => last,
            };
            self.with(component, Process::check)??;
            if started.elapsed() > limit {
                let tail = self.with(component, |process| process.tail())?;
                return Err(Error::NotReady {
                    what: what.to_owned(),
                    waited: limit,
                    last,
                    component,
                    tail,
                });
            }
            sleep(PERIOD).await;
        }
    }

    /// Waits until a component listens on its port.
    pub(crate) async fn wait_for_port(
        &self,
        component: Component,
        port: u16,
        limit: Duration,
    ) -> Result<(), Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.wait_for("listening", component, limit, async || {
            TcpStream::connect(address)
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await
    }
}
