//! One of the two processes, with its own way to the API server.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use krane_testharness::{Action, Agent, Call, Outcome, Proxy, World, limits};

use super::{DURATION, RENEW, RETRY, elected};

/// One process over its life: its mark in the audit log, and what happened to it.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) mark: String,
    pub(super) pauses: usize,
}

pub(super) struct Side {
    name: &'static str,
    agent: Agent,
    proxy: Proxy,
    pub(super) lives: Vec<Life>,
}

impl Side {
    pub(super) async fn start(world: &World, name: &'static str) -> Outcome<Self> {
        let mark = format!("{name}-0");
        let (agent, proxy) = begin(world, &mark).await?;
        let lives = vec![Life { mark, pauses: 0 }];
        Ok(Self {
            name,
            agent,
            proxy,
            lives,
        })
    }

    async fn again(&mut self, world: &World) -> Outcome {
        let mark = format!("{}-{}", self.name, self.lives.len());
        (self.agent, self.proxy) = begin(world, &mark).await?;
        self.lives.push(Life { mark, pauses: 0 });
        Ok(())
    }

    /// SIGKILL, and another process at once.
    pub(super) async fn kill(&mut self, world: &World) -> Outcome {
        self.agent.kill().await?;
        self.again(world).await
    }

    /// SIGTERM, and another process when it has ended.
    pub(super) async fn restart(&mut self, world: &World) -> Outcome {
        self.agent.signal(krane_testharness::Signal::TERM)?;
        self.agent.wait(limits::SHORT).await?;
        self.again(world).await
    }

    /// SIGSTOP for a while.
    pub(super) async fn pause(&mut self, time: Duration) -> Outcome {
        self.agent.pause()?;
        tokio::time::sleep(time).await;
        if let Some(life) = self.lives.last_mut() {
            life.pauses += 1;
        }
        self.agent.resume()
    }

    /// Nothing reaches the API server, and nothing comes back.
    pub(super) async fn part(&self, time: Duration) {
        self.proxy.script(|_| Action::Hang);
        self.proxy.cut();
        tokio::time::sleep(time).await;
        self.proxy.pass();
        self.proxy.cut();
    }

    /// The API server answers 503.
    pub(super) async fn refuse(&self, time: Duration) {
        self.proxy
            .script(|_| Action::status(503, "ServiceUnavailable", "as the test wants it"));
        tokio::time::sleep(time).await;
        self.proxy.pass();
    }

    /// Writes of the Lease take effect, and nobody hears of it.
    pub(super) async fn lose_answers(&self, time: Duration) {
        self.proxy.script(|call: &Call| {
            if call.writes("leases") {
                Action::DropAnswer
            } else {
                Action::Pass
            }
        });
        tokio::time::sleep(time).await;
        self.proxy.pass();
    }

    pub(super) async fn leads(&self) -> Outcome<bool> {
        super::is_leader(&self.agent).await
    }

    pub(super) async fn stop(self) -> Outcome<Vec<Life>> {
        self.agent.stop().await?;
        Ok(self.lives)
    }
}

async fn begin(world: &World, mark: &str) -> Outcome<(Agent, Proxy)> {
    let proxy = Proxy::marked(world, mark).await?;
    let agent = elected(world)
        .set("instance_id", mark)
        .set("lease.duration", &format!("{}s", DURATION.as_secs()))
        .set("lease.renew", &format!("{}ms", RENEW.as_millis()))
        .set("lease.retry", &format!("{}ms", RETRY.as_millis()))
        .kubeconfig(proxy.kubeconfig())
        .spawn()?;
    Ok((agent, proxy))
}

/// No test waits for the lease of an earlier one to run out.
pub(crate) async fn forget_the_lease(world: &World) -> Outcome {
    let leases = world.api.within::<Lease>("krane");
    match leases
        .delete("krane", &kube::api::DeleteParams::default())
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
