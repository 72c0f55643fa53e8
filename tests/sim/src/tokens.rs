//! Every wrong token, every wrong question and every state of the vault, put to the whole agent in
//! a cluster in memory.

mod forgery;
mod load;
mod world;

use std::collections::BTreeMap;

use krane_domain::secret::Secret;
use krane_ports::{DecryptRequest, Refused, SecretsDesk};
use krane_testcontract::tokens::{Answer, Ask, Backend, Class, Table};

pub use self::load::{Load, decrypt_load};
use self::world::{Subject, TokenWorld};

/// All cells of one table: `audience` is the setting `secrets.audience`.
pub fn token_table(audience: Option<&'static str>) -> Result<Table, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|problem| problem.to_string())?;
    runtime.block_on(fill(audience))
}

async fn fill(audience: Option<&'static str>) -> Result<Table, String> {
    let world = TokenWorld::start(audience).await?;
    let mut table = Table::default();
    for class in Class::ALL {
        let subject = world.subject(class).await?;
        let token = world.token(class, &subject).await?;
        for ask in Ask::ALL {
            for backend in Backend::ALL {
                world.vault.set(backend);
                let before = world.vault.calls();
                let request = asked(ask, &subject, token.clone());
                let answer = world.desk.decrypt(request).await;
                let asked = world.vault.calls() - before;
                table.fill(class, ask, backend, judged(&subject, answer), asked);
            }
        }
    }
    world.stop().await;
    Ok(table)
}

fn asked(ask: Ask, subject: &Subject, token: Secret) -> DecryptRequest {
    let mut request = DecryptRequest {
        blob: subject.blob.clone(),
        environment_id: subject.environment_id.clone(),
        deployment_id: subject.deployment_id.clone(),
        token,
        peer: None,
    };
    match ask {
        Ask::Own => {}
        Ask::OtherDeployment => "d_foreign".clone_into(&mut request.deployment_id),
        Ask::OtherEnvironment => "env_foreign".clone_into(&mut request.environment_id),
        Ask::ForeignBlob => request.blob.clone_from(&subject.foreign_blob),
    }
    request
}

/// An answer as the table has it: plaintext only when it is all of it and nothing else.
fn judged(subject: &Subject, answer: Result<BTreeMap<String, Secret>, Refused>) -> Answer {
    match answer {
        Ok(secrets) => {
            let secrets: Vec<_> = secrets
                .iter()
                .map(|(name, value)| (name.as_str(), value.expose()))
                .collect();
            let own = [("A", &*subject.plaintext), ("B", "second")];
            if secrets == own {
                Answer::Plaintext
            } else {
                Answer::Other
            }
        }
        Err(Refused::Unauthenticated) => Answer::Unauthenticated,
        Err(Refused::Unavailable) => Answer::Unavailable,
        Err(Refused::Internal | Refused::ResourceExhausted) => Answer::Other,
    }
}
