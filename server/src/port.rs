//! What the RPC port serves, from its parts.

use std::sync::Arc;

use krane_ports::SchedulerDesk;
use krane_ports::SecretsDesk;
use krane_settings::SecretSource;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use super::calls::{CallFamilies, Calls};
use super::health::{self, HealthView, grpc_health};
use super::scheduler::Scheduler;
use super::serve::App;
use super::{reflection, scheduler, secrets};

/// The methods of gRPC health.
const HEALTH: [&str; 2] = [
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
];

/// What the RPC port serves.
#[derive(Clone)]
pub struct RpcPort {
    /// How the process is.
    pub health: Arc<dyn HealthView>,
    /// Who answers pods; without a vault there is nobody, and no such service.
    pub secrets: Option<Arc<dyn SecretsDesk>>,
    /// Who does what the scheduler calls for, and the token that it has to bring.
    pub scheduler: Option<(Arc<dyn SchedulerDesk>, Option<SecretSource>)>,
    /// Whether reflection is served.
    pub reflection: bool,
    /// Where calls are counted.
    pub families: CallFamilies,
}

impl RpcPort {
    /// The routes for a server that ends at `stop`.
    pub fn app(&self, stop: CancellationToken) -> App {
        let mut http = health::router(Arc::clone(&self.health));
        let mut grpc = Routes::default();
        let mut services = Vec::new();
        let mut methods = HEALTH.to_vec();
        if let Some(desk) = &self.secrets {
            http = http.merge(secrets::connect(Arc::clone(desk)));
            grpc = grpc.add_service(secrets::grpc(Arc::clone(desk)));
            services.push(secrets::SERVICE);
        } else {
            http = http.merge(secrets::without_a_vault());
        }
        // Pods that ask in vain are counted too.
        methods.push(secrets::DECRYPT);
        if let Some((desk, token)) = &self.scheduler {
            let scheduler = Scheduler::new(Arc::clone(desk), token.clone(), stop.clone());
            http = http.merge(scheduler.connect());
            grpc = grpc.add_service(scheduler.grpc());
            services.push(scheduler::SERVICE);
            methods.extend(scheduler::METHODS);
        }
        if self.reflection {
            match reflection::add(grpc.clone(), &services) {
                Ok(with_reflection) => {
                    grpc = with_reflection;
                    methods.extend(reflection::METHODS);
                }
                // The contract is compiled in: a test has seen it read.
                Err(error) => tracing::error!(%error, "reflection cannot be served"),
            }
        }
        let health = grpc_health(Arc::clone(&self.health), services, stop);
        App::new(http)
            .with_grpc(grpc.add_service(health))
            .with_calls(Calls::new(self.families.clone(), methods))
    }
}
