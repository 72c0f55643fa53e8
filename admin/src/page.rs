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
use krane_domain::ids::{Controller, ObjectKey};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use show::{Demo, PageQuery, Show};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::actions::{DemoAction, DemoControls, Said};
use super::feed::Feed;
use super::guard;
use super::model::{ObjectView, Sort};

/// How long an answer waits for what comes of an action: a browser has few connections.
const OUTCOME: Duration = Duration::from_secs(30);

const STYLE: &str = include_str!("../templates/page.css");
const SCRIPT: &str = include_str!("../templates/page.js");
const ICON: &str = include_str!("../templates/krane.svg");

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
        .route("/log", get(log))
        .route("/parts/{name}", get(part))
        .route("/workloads/{controller}/{namespace}/{name}", get(object))
        .route(
            "/parts/workloads/{controller}/{namespace}/{name}",
            get(object_part),
        )
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

/// The query of the page's address; unlike a program a person may be careless with it.
type Asked = Vec<(String, String)>;

impl From<Asked> for PageQuery {
    fn from(asked: Asked) -> Self {
        let mut query = Self::default();
        for (name, value) in asked {
            match name.as_str() {
                "filter" => query.list.filter = value,
                "sort" => {
                    query.list.sort = serde_json::from_value(json!(value)).unwrap_or_default();
                }
                "page" => query.list.page = value.parse().unwrap_or_default(),
                "events" => query.events = value,
                _ => {}
            }
        }
        query
    }
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

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPart<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "log-page.html")]
struct LogPage<'a> {
    show: Show<'a>,
}

#[derive(Template)]
#[template(path = "log.html")]
struct LogPart<'a> {
    show: Show<'a>,
}

/// Controller, namespace and name, as they stand in an address.
type Object = (String, String, String);

#[derive(Template)]
#[template(path = "object-page.html")]
struct ObjectPage<'a> {
    show: Show<'a>,
    object: Option<ObjectView>,
    controller: String,
    key: ObjectKey,
}

#[derive(Template)]
#[template(path = "object.html")]
struct ObjectPart<'a> {
    show: Show<'a>,
    object: Option<ObjectView>,
    controller: String,
    key: ObjectKey,
}

async fn page(State(state): State<PageState>, Query(asked): Query<Asked>) -> Response {
    state.render(&asked.into(), |show| Page { show }.render())
}

async fn log(State(state): State<PageState>, Query(asked): Query<Asked>) -> Response {
    state.render(&asked.into(), |show| LogPage { show }.render())
}

async fn part(
    State(state): State<PageState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    type Render = fn(Show<'_>) -> Result<String, askama::Error>;
    let render: Render = match name.as_str() {
        "health" => |show| HealthPart { show }.render(),
        "tree" => |show| TreePart { show }.render(),
        "controllers" => |show| ControllersPart { show }.render(),
        "workloads" => |show| WorkloadsPart { show }.render(),
        "events" => |show| EventsPart { show }.render(),
        "story" => |show| StoryPart { show }.render(),
        "history" => |show| HistoryPart { show }.render(),
        "log" => |show| LogPart { show }.render(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    state.render(&asked.into(), render)
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
        answer(render(Show {
            view: &view,
            identity,
            demo,
            query,
            feed: &self.feed,
        }))
    }

    /// A workload's page, or the part of it that changes.
    fn object(&self, (controller, namespace, name): Object, is_whole: bool) -> Response {
        let view = self.feed.view();
        let sources = self.feed.sources();
        let key = ObjectKey::new(namespace, name);
        let object = sources.object(&view, &controller, &key);
        if !Controller::ALL.iter().any(|it| it.name() == controller) {
            return (StatusCode::NOT_FOUND, "there is no such controller\n").into_response();
        }
        let status = match &object {
            Some(_) => StatusCode::OK,
            None => StatusCode::NOT_FOUND,
        };
        let query = PageQuery::default();
        let show = Show {
            view: &view,
            identity: &sources.identity,
            demo: None,
            query: &query,
            feed: &self.feed,
        };
        let html = if is_whole {
            ObjectPage {
                show,
                object,
                controller,
                key,
            }
            .render()
        } else {
            ObjectPart {
                show,
                object,
                controller,
                key,
            }
            .render()
        };
        (status, answer(html)).into_response()
    }
}

fn answer(html: Result<String, askama::Error>) -> Response {
    match html {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "the page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn object(State(state): State<PageState>, Path(object): Path<Object>) -> Response {
    state.object(object, true)
}

async fn object_part(State(state): State<PageState>, Path(object): Path<Object>) -> Response {
    state.object(object, false)
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
