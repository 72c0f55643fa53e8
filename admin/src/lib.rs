//! What operators look at: metrics, the page and its API.

pub mod actions;
mod api;
pub mod feed;
pub mod guard;
mod history;
pub mod metrics;
pub mod model;
pub mod operate;
mod page;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use actions::Controls;
use api::ApiState;
use feed::Feed;
use guard::{Access, guard};
use operate::Hands;
use page::{DemoDesk, PageState};

/// The controls of a demo, if there is one, with the secret of its forms.
#[derive(Clone, Default)]
pub struct Desk(Option<Arc<DemoDesk>>);

impl Desk {
    /// Production has no controls, and then no route that changes anything.
    #[must_use]
    pub fn new(controls: Controls, form_token: String) -> Self {
        Self(controls.map(|controls| {
            Arc::new(DemoDesk {
                controls,
                form_token,
                said: Mutex::default(),
            })
        }))
    }
}

/// The page and its API. Streams end with `stop`; somebody has to [run](Feed::run) the feed for
/// them.
pub fn router(
    feed: &Arc<Feed>,
    access: &Arc<Access>,
    desk: &Desk,
    hands: &Hands,
    stop: CancellationToken,
) -> Router {
    let api = api::router(ApiState {
        feed: Arc::clone(feed),
        stop,
    });
    let page = page::router(PageState {
        feed: Arc::clone(feed),
        demo: desk.0.clone(),
    });
    page.merge(api)
        .merge(
            operate::router(hands.clone()).layer(middleware::from_fn_with_state(
                Arc::clone(feed),
                feed::refresh,
            )),
        )
        .layer(middleware::from_fn_with_state(Arc::clone(access), guard))
}
