//! The page: HTML from templates that escape whatever they show. It says everything without
//! JavaScript; the script only fetches parts again when they changed.

mod show;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{Form, Path, Query, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures::Stream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode, Uri};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::actions::{DemoAction, DemoControls, Said};
use super::feed::Feed;
use super::guard;
use show::{Demo, Show};

/// How long an answer waits for what comes of an action: a browser has few connections.
const OUTCOME: Duration = Duration::from_secs(30);

const STYLE: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");
const ICON: &str = include_str!("../../templates/krane.svg");

/// The controls of a demo with what its forms need.
pub(super) struct DemoDesk {
    pub(super) controls: Arc<dyn DemoControls>,
    /// Proves that a form was made by this process.
    pub(super) form_token: String,
    /// What the last action said.
    pub(super) said: Mutex<Option<Said>>,
}

#[derive(Clone)]
pub(super) struct PageState {
    pub(super) feed: Arc<Feed>,
    pub(super) demo: Option<Arc<DemoDesk>>,
}

pub(super) fn router(state: PageState) -> Router {
    let mut router = Router::new()
        .route("/", get(page))
        .route("/parts/{name}", get(part))
        .route(
            "/assets/page.css",
            get(asset("text/css; charset=utf-8", STYLE)),
        )
        .route(
            "/assets/page.js",
            get(asset("text/javascript; charset=utf-8", SCRIPT)),
        )
        .route("/assets/krane.svg", get(asset("image/svg+xml", ICON)));
    if state.demo.is_some() {
        router = router.route("/demo", post(act));
    }
    router.with_state(state)
}

fn asset(
    content_type: &'static str,
    text: &'static str,
) -> impl Fn() -> std::future::Ready<([(http::HeaderName, &'static str); 1], &'static str)> + Clone
{
    move || std::future::ready(([(CONTENT_TYPE, content_type)], text))
}

#[derive(Default, Deserialize)]
struct PageQuery {
    #[serde(default)]
    filter: String,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPart<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "tree.html")]
struct TreePart<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "controllers.html")]
struct ControllersPart<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "workloads.html")]
struct WorkloadsPart<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "story.html")]
struct StoryPart<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPart<'a> {
    show: Show<'a>,
}

async fn page(State(state): State<PageState>, Query(query): Query<PageQuery>) -> Response {
    state.render(&query, |show| Page { show }.render())
}

async fn part(
    State(state): State<PageState>,
    Path(name): Path<String>,
    Query(query): Query<PageQuery>,
) -> Response {
    type Render = fn(Show<'_>) -> Result<String, askama::Error>;
    let render: Render = match name.as_str() {
        "health" => |show| HealthPart { show }.render(),
        "tree" => |show| TreePart { show }.render(),
        "controllers" => |show| ControllersPart { show }.render(),
        "workloads" => |show| WorkloadsPart { show }.render(),
        "events" => |show| EventsPart { show }.render(),
        "story" => |show| StoryPart { show }.render(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    state.render(&query, render)
}

impl PageState {
    fn render(
        &self,
        query: &PageQuery,
        render: impl FnOnce(Show<'_>) -> Result<String, askama::Error>,
    ) -> Response {
        let view = self.feed.view();
        let demo = self.demo.as_ref().map(|desk| Demo {
            buttons: desk.controls.buttons(),
            form_token: &desk.form_token,
            said: desk.said.lock().as_ref().map(|said| said.borrow().clone()),
            story: desk.controls.story(),
        });
        let identity = &self.feed.sources().identity;
        match render(Show::new(&view, identity, demo, &query.filter)) {
            Ok(html) => Html(html).into_response(),
            Err(error) => {
                tracing::error!(%error, "the page could not be written");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

#[derive(Deserialize)]
struct ActionForm {
    form_token: String,
    action: String,
    path: Option<String>,
}

/// Does what a button of the demo says. Without a script the answer is the page again.
async fn act(
    State(state): State<PageState>,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<ActionForm>,
) -> Response {
    let Some(desk) = &state.demo else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let given = form.form_token.as_bytes();
    let is_ours: bool = given.ct_eq(desk.form_token.as_bytes()).into();
    if !is_ours || !guard::is_from_here(&uri, &headers) {
        let words = "this form was not made by the page, or the demo was started anew: reload it\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    let action = match form.path {
        Some(path) => json!({"action": form.action, "path": path}),
        None => json!({"action": form.action}),
    };
    let Ok(action) = serde_json::from_value::<DemoAction>(action) else {
        return (StatusCode::BAD_REQUEST, "there is no such action\n").into_response();
    };
    let (status, said) = match desk.controls.act(action).await {
        Ok(said) => (StatusCode::OK, said),
        Err(error) => {
            let words = format!("nothing was done: {error}");
            (StatusCode::CONFLICT, watch::channel(words).1)
        }
    };
    *desk.said.lock() = Some(said.clone());
    let wants_text = headers
        .get(ACCEPT)
        .is_some_and(|accept| accept == "text/plain");
    if wants_text {
        let content_type = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
        (status, content_type, Body::from_stream(as_it_is_said(said))).into_response()
    } else {
        Redirect::to("/#demo").into_response()
    }
}

/// What is said, and what is added to it while somebody listens.
fn as_it_is_said(said: Said) -> impl Stream<Item = Result<String, Infallible>> {
    let end = Instant::now() + OUTCOME;
    futures::stream::unfold((said, 0), move |(mut said, told)| async move {
        loop {
            let words = said.borrow_and_update().clone();
            let news = words.get(told..).unwrap_or_default().to_owned();
            if !news.is_empty() {
                return Some((Ok(news), (said, words.len())));
            }
            match timeout_at(end, said.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    })
}
