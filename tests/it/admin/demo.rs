//! The buttons of a demo.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use futures::StreamExt;
use http::{Request, StatusCode};
use krane_admin::actions::{Button, DemoAction, DemoControls, DemoError, Said};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::world::{Answer, World};

#[derive(Default)]
struct Hands {
    done: Mutex<Vec<DemoAction>>,
}

#[async_trait]
impl DemoControls for Hands {
    fn buttons(&self) -> Vec<Button> {
        vec![Button {
            action: DemoAction::CutStream,
            label: "Cut the stream",
            hint: "krane connects again",
        }]
    }

    fn story(&self) -> Vec<String> {
        vec![
            "the control plane wants <web>".to_owned(),
            "someone edits web".to_owned(),
        ]
    }

    async fn act(&self, action: DemoAction) -> Result<Said, DemoError> {
        if action == DemoAction::EditObject {
            return Err(DemoError::NothingThere);
        }
        self.done.lock().push(action);
        let (said, told) = watch::channel("done <as> told".to_owned());
        said.send_modify(|said| *said += "\nand this came of it");
        Ok(told)
    }
}

async fn post(world: &World, form: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::post("/demo")
        .header("host", "localhost:9091")
        .header("content-type", "application/x-www-form-urlencoded");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world
        .send(request.body(Body::from(form.to_owned())).unwrap())
        .await
}

fn demo() -> (World, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let world = World::with("127.0.0.1:9091", None, Some(hands.clone()));
    (world, hands)
}

#[tokio::test(start_paused = true)]
async fn buttons_work_without_a_script() {
    let (world, hands) = demo();
    let page = world.get("/").await.text;
    for said in [
        "value=\"cut_stream\"",
        "krane connects again",
        "name=\"path\" value=\"root/deployments/intake/stream\"",
        "value=\"form-token\"",
        "A story goes on by itself",
        "Now: the control plane wants &#60;web&#62;",
        "someone edits web",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let own = [
        ("origin", "http://localhost:9091"),
        ("sec-fetch-site", "same-origin"),
    ];
    let answer = post(&world, "form_token=form-token&action=cut_stream", &own).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.headers["location"], "/#demo");
    assert!(world.get("/").await.text.contains("done &#60;as&#62; told"));
    let kill = "form_token=form-token&action=kill_actor&path=root%2Fheartbeat";
    let answer = post(&world, kill, &[("accept", "text/plain")]).await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::OK, "done <as> told\nand this came of it")
    );
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    let path = "root/heartbeat".to_owned();
    assert_eq!(
        *hands.done.lock(),
        [DemoAction::CutStream, DemoAction::KillActor { path }]
    );
    let edit = "form_token=form-token&action=edit_object";
    let answer = post(&world, edit, &[("accept", "text/plain")]).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("no app runs yet"), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn forms_of_others_do_nothing() {
    let (world, hands) = demo();
    let good = "form_token=form-token&action=cut_stream";
    for (form, headers) in [
        ("form_token=guessed&action=cut_stream", &[][..]),
        (
            "form_token=guessed&action=cut_stream",
            &[("sec-fetch-site", "same-origin")],
        ),
        (good, &[("origin", "http://evil.example")]),
        (good, &[("origin", "null")]),
        (good, &[("sec-fetch-site", "cross-site")]),
        (good, &[("sec-fetch-site", "same-site")]),
    ] {
        let answer = post(&world, form, headers).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{form} {headers:?}");
    }
    let unknown = post(&world, "form_token=form-token&action=rm", &[]).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let unnamed = post(&world, "form_token=form-token&action=kill_actor", &[]).await;
    assert_eq!(unnamed.status, StatusCode::BAD_REQUEST);
    assert_eq!(*hands.done.lock(), []);
}

/// A body that never ends would hold its connection, and those are counted.
#[tokio::test(start_paused = true)]
async fn a_form_that_does_not_come_to_an_end_is_answered() {
    let (world, hands) = demo();
    let start = futures::stream::once(async { Ok::<_, std::io::Error>("form_token=form-token") });
    let body = Body::from_stream(start.chain(futures::stream::pending()));
    let request = Request::post("/demo")
        .header("host", "localhost:9091")
        .header("content-type", "application/x-www-form-urlencoded");
    let began = tokio::time::Instant::now();
    let answer = world.send(request.body(body).unwrap()).await;
    assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(*hands.done.lock(), []);
}
