//! A cluster that is written to in dry runs alone, and looks as if it had been written to.
//!
//! The answer to a dry run never stands for a live object: a change leaves the real one as it is,
//! and what would be made or gone is a shadow that the first real object of that name ends. Lanes
//! come to rest because each write is answered as a real one would be.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Deletion, Item, Listed, WatchEvent};
use serde_json::json;

use super::journal::{Journal, What, differing};
use super::rehearsed::{Answers, Rehearsed};
use super::shadows::{Shadow, Shadows};

/// A [`Cluster`] in front of another one, whose writes must be dry runs.
pub struct Rehearsal {
    inner: Arc<dyn Cluster>,
    shadows: Arc<Shadows>,
    journal: Arc<Journal>,
    answers: Arc<Answers>,
}

impl Rehearsal {
    /// Rehearses on `dry`, a cluster on which a write changes nothing.
    pub fn new(dry: Arc<dyn Cluster>, shadows: Arc<Shadows>, journal: Arc<Journal>) -> Self {
        Self {
            inner: dry,
            shadows,
            journal,
            answers: Arc::default(),
        }
    }

    /// A list as it would be after what was rehearsed.
    fn rehearsed(&self, mut listed: Listed, spec: &WatchSpec) -> Listed {
        listed.items.retain(|item| match item {
            Item::Object(live) => {
                self.answers.saw(live);
                self.shadows.shows(live)
            }
            Item::Pod(_) => true,
        });
        listed.items.extend(self.shadows.added_to(spec));
        listed
    }

    async fn change(&self, object: &Rendered, uid: &str) -> Result<LiveObject, Refusal> {
        let reference = &object.reference;
        let what = Rehearsed::apply(object);
        if let Some(known) = self.answers.again(reference, uid, what, &self.journal) {
            return Ok(known);
        }
        let before = self.inner.get(reference).await?;
        let after = self.tell(reference, self.inner.apply(object, Some(uid)).await)?;
        let mut paths = Vec::new();
        if let Some(before) = before {
            paths = differing(&before.value(), &after.value());
            self.answers.keep(what, &before, &after, paths.clone());
        }
        self.journal.note(reference, What::Update, paths);
        Ok(after)
    }

    async fn make(&self, object: &Rendered) -> Result<LiveObject, Refusal> {
        let reference = &object.reference;
        let made = match self.inner.apply(object, None).await {
            // A namespace that was only rehearsed holds nothing, so nobody can be asked.
            Err(refusal)
                if refusal.class == RefusalClass::NamespaceMissing
                    && self.shadows.has_namespace(&reference.namespace) =>
            {
                as_if_made(object)?
            }
            answer => self.tell(reference, answer)?,
        };
        self.journal.note(reference, What::Create, Vec::new());
        self.shadows.made(&made);
        Ok(made)
    }

    /// Notes a refusal that a real write would meet, too.
    fn tell<T>(&self, reference: &ObjectRef, answer: Result<T, Refusal>) -> Result<T, Refusal> {
        if let Err(refusal) = &answer
            && matches!(
                refusal.class,
                RefusalClass::Permanent | RefusalClass::Configuration
            )
        {
            self.journal.refused(reference, refusal.to_string());
        }
        answer
    }
}

/// The object as it was sent, for want of an API server that would take it.
fn as_if_made(object: &Rendered) -> Result<LiveObject, Refusal> {
    let mut body = object.body.clone();
    body["metadata"]["uid"] = json!(format!("rehearsed:{}", object.reference));
    body["metadata"]["resourceVersion"] = json!("1");
    let made = LiveObject::from_json(object.reference.resource, body);
    made.map_err(|problem| Refusal {
        class: RefusalClass::Permanent,
        code: 0,
        message: problem.to_string(),
        retry_after: None,
    })
}

#[async_trait]
impl Cluster for Rehearsal {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        match (self.shadows.of(&object.reference), uid) {
            // The name is still taken, so that nobody can be asked about what comes after.
            (Some(Shadow::Gone(_)), _) => {
                let made = as_if_made(object)?;
                let paths = vec!["deleted and made anew".to_owned()];
                self.journal.note(&object.reference, What::Update, paths);
                Ok(made)
            }
            (None, Some(uid)) => self.change(object, uid).await,
            (Some(Shadow::Made(_)), _) | (None, None) => self.make(object).await,
        }
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        let what = Rehearsed::Adopt;
        if let Some(known) = self.answers.again(object, uid, what, &self.journal) {
            return Ok(known);
        }
        let adopted = self.tell(object, self.inner.adopt(object, uid).await)?;
        let paths = vec!["metadata.managedFields".to_owned()];
        // A dry run stores nothing, so that its answer has the version of what is there.
        self.answers.keep(what, &adopted, &adopted, paths.clone());
        self.journal.note(object, What::Update, paths);
        Ok(adopted)
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        if let Some(Shadow::Made(_)) = self.shadows.of(object) {
            self.shadows.lift(object);
            self.journal.forget(object);
            return Ok(Deletion::Gone);
        }
        self.tell(object, self.inner.delete(object, uid).await)?;
        self.journal.note(object, What::Delete, Vec::new());
        // A pod is made anew by its owner, and who replaces one expects it to end by itself.
        if object.resource == Resource::Pod {
            return Ok(Deletion::Begun);
        }
        self.shadows.gone(object, uid);
        Ok(Deletion::Gone)
    }

    /// A person's word would be a write, too.
    async fn hold(
        &self,
        object: &ObjectRef,
        _: &str,
        _: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        Err(Refusal {
            class: RefusalClass::Configuration,
            code: 0,
            message: format!("{object} is left as it is: krane observes and writes nothing"),
            retry_after: None,
        })
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        match self.shadows.of(object) {
            Some(Shadow::Made(live)) => Ok(Some(Metadata {
                uid: Arc::clone(&live.uid),
                labels: live.labels.clone(),
                is_terminating: false,
            })),
            Some(Shadow::Gone(uid)) => {
                let found = self.inner.metadata(object).await?;
                Ok(found.filter(|found| found.uid != uid))
            }
            None => self.inner.metadata(object).await,
        }
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        let found = self.inner.get(object).await?;
        match &found {
            Some(live) => self.answers.saw(live),
            None => self.answers.forget(object),
        }
        match (found, self.shadows.of(object)) {
            (Some(live), _) => Ok(self.shadows.shows(&live).then_some(live)),
            (None, Some(Shadow::Made(live))) => Ok(Some((*live).clone())),
            (None, Some(Shadow::Gone(_)) | None) => Ok(None),
        }
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let listed = self.inner.list(spec).await?;
        Ok(self.rehearsed(listed, spec))
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let listed = self.inner.list_anew(spec).await?;
        Ok(self.rehearsed(listed, spec))
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        let events = self.inner.watch(spec, resource_version).await?;
        let (shadows, answers) = (Arc::clone(&self.shadows), Arc::clone(&self.answers));
        let events = events.map(move |event| {
            match &event {
                WatchEvent::Applied(Item::Object(live)) => answers.saw(live),
                WatchEvent::Deleted(Item::Object(live)) => answers.forget(&live.reference),
                WatchEvent::Applied(Item::Pod(_))
                | WatchEvent::Deleted(Item::Pod(_))
                | WatchEvent::Bookmark(_)
                | WatchEvent::Undecodable(_)
                | WatchEvent::Ended(_) => {}
            }
            seen(event, &shadows)
        });
        Ok(events.boxed())
    }
}

fn seen(event: WatchEvent, shadows: &Shadows) -> WatchEvent {
    match event {
        WatchEvent::Applied(Item::Object(live)) if !shadows.shows(&live) => {
            WatchEvent::Bookmark(live.resource_version.to_string())
        }
        WatchEvent::Deleted(Item::Object(live)) => {
            shadows.lift(&live.reference);
            WatchEvent::Deleted(Item::Object(live))
        }
        WatchEvent::Applied(_)
        | WatchEvent::Deleted(_)
        | WatchEvent::Bookmark(_)
        | WatchEvent::Undecodable(_)
        | WatchEvent::Ended(_) => event,
    }
}
