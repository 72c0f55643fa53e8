//! Calls with one answer.

use std::time::Duration;

use krane_proto::ctrl::v1::{
    GetDesiredDeploymentStateRequest, HeartbeatRequest, RegionKey, ReportDeploymentStatusRequest,
    report_deployment_status_request as report,
    report_deployment_status_request::update::instance::Status::{Pending, Running},
};
use krane_sim::control_plane::{Answer, Asked, Code, Kind, Method, State as _, samples};
use tonic::Request;

use crate::support::{LIMIT, client, control, region, watch, with_token};

fn question(id: &str) -> Request<GetDesiredDeploymentStateRequest> {
    with_token(GetDesiredDeploymentStateRequest {
        region: region(),
        deployment_id: id.to_owned(),
    })
}

#[tokio::test]
async fn requests_without_token_or_region_are_refused_as_the_go_server_does() {
    let control = control().await;
    let mut client = client(&control).await;
    let heartbeat = || HeartbeatRequest { region: region() };

    for authorization in [
        None,
        Some("token"),
        Some("bearer token"),
        Some("Bearer  token"),
        Some("Bearer other"),
    ] {
        let mut request = Request::new(heartbeat());
        if let Some(text) = authorization {
            request
                .metadata_mut()
                .insert("authorization", text.parse().unwrap());
        }
        let status = client.heartbeat(request).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{authorization:?}");
    }
    let blank = RegionKey {
        platform: " ".to_owned(),
        name: "r".to_owned(),
    };
    for region in [None, Some(RegionKey::default()), Some(blank)] {
        let request = with_token(HeartbeatRequest { region });
        let status = client.heartbeat(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    client.heartbeat(with_token(heartbeat())).await.unwrap();
    assert_eq!(
        client
            .get_desired_deployment_state(question(""))
            .await
            .unwrap_err()
            .code(),
        Code::InvalidArgument
    );

    let recorded = control.look(|seen| {
        seen.of(Method::Heartbeat)
            .map(krane_sim::control_plane::Request::code)
            .collect::<Vec<_>>()
    });
    assert_eq!(recorded.len(), 9);
    assert_eq!(recorded.last(), Some(&Some(Code::Ok)));
}

#[tokio::test]
async fn questions_are_answered_from_the_newest_row_unless_told_otherwise() {
    let control = control().await;
    let mut client = client(&control).await;
    let web = samples::deployment("ws", "web");
    let id = web.deployment_id.clone();
    let code = |result: Result<_, tonic::Status>| {
        result.map(|_: tonic::Response<_>| ()).unwrap_err().code()
    };

    assert_eq!(
        code(client.get_desired_deployment_state(question(&id)).await),
        Code::NotFound
    );
    control.push(samples::apply(web.clone()));
    let answer = client
        .get_desired_deployment_state(question(&id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer, samples::apply(web.clone()));
    assert_eq!(answer.version(), 0);

    control.push(samples::delete(&web));
    let answer = client
        .get_desired_deployment_state(question(&id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer, samples::delete(&web));

    control.set_answer(Kind::Deployments, &id, Answer::Code(Code::Internal));
    assert_eq!(
        code(client.get_desired_deployment_state(question(&id)).await),
        Code::Internal
    );
    control.set_answer(Kind::Deployments, &id, Answer::Empty);
    let answer = client
        .get_desired_deployment_state(question(&id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.state, None);

    control.set_answer(Kind::Deployments, &id, None);
    control.forget(Kind::Deployments, &id);
    assert_eq!(
        code(client.get_desired_deployment_state(question(&id)).await),
        Code::NotFound
    );
}

#[tokio::test]
async fn the_newest_report_of_each_name_is_kept_once_it_was_accepted() {
    let control = control().await;
    let mut client = client(&control).await;
    let update = |status: report::update::instance::Status| ReportDeploymentStatusRequest {
        region: region(),
        change: Some(report::Change::Update(report::Update {
            k8s_name: "web".to_owned(),
            instances: vec![report::update::Instance {
                k8s_name: "web-1".to_owned(),
                status: status.into(),
                ..report::update::Instance::default()
            }],
        })),
    };
    client
        .report_deployment_status(with_token(update(Pending)))
        .await
        .unwrap();
    assert!(!control.look(|seen| seen.running("web")));
    control.fail(Method::ReportDeployment, Code::Internal, 1);
    client
        .report_deployment_status(with_token(update(Running)))
        .await
        .unwrap_err();
    assert!(
        !control.look(|seen| seen.running("web")),
        "a refused report counts for nothing"
    );
    client
        .report_deployment_status(with_token(update(Running)))
        .await
        .unwrap();
    assert!(control.look(|seen| seen.running("web")));

    let gone = report::Change::Delete(report::Delete {
        k8s_name: "web".to_owned(),
    });
    let gone = ReportDeploymentStatusRequest {
        region: region(),
        change: Some(gone),
    };
    client
        .report_deployment_status(with_token(gone))
        .await
        .unwrap();
    assert!(control.look(|seen| seen.deleted("web") && !seen.running("web")));
    assert_eq!(control.reports()["web"].count, 3);
    assert_eq!(control.look(|seen| seen.reports_of("web").count()), 4);
}

#[tokio::test]
async fn a_client_that_goes_away_is_recorded_as_cancelled() {
    let control = control().await;
    let mut client = client(&control).await;
    control.delay(Method::Heartbeat, Duration::from_secs(3600));
    let mut slow = client.clone();
    let heartbeat = slow.heartbeat(with_token(HeartbeatRequest { region: region() }));
    let watching = watch(&mut client, 7);
    {
        let arrived = control.wait_for("both requests", LIMIT, |seen| {
            (seen.requests.len() == 2).then_some(())
        });
        tokio::select! {
            biased;
            _ = heartbeat => panic!("answered in spite of its delay"),
            _ = watching => panic!("answered without a message"),
            arrived = arrived => arrived.unwrap(),
        }
    }
    control
        .wait_for("both cancels", LIMIT, |seen| {
            let mut codes = seen
                .requests
                .iter()
                .map(krane_sim::control_plane::Request::code);
            codes
                .all(|code| code == Some(Code::Cancelled))
                .then_some(())
        })
        .await
        .unwrap();
    assert_eq!(
        control.look(|seen| seen
            .of(Method::Watch(Kind::Deployments))
            .next()
            .map(|request| request.asked.clone())),
        Some(Asked::Watch { cursor: 7 })
    );
}

#[tokio::test]
async fn only_so_many_requests_are_remembered_and_open_streams_with_them() {
    let control = control().await;
    let mut client = client(&control).await;
    control.keep_requests(5);
    control.push(samples::apply(samples::deployment("ws", "web")));
    let mut stream = watch(&mut client, 0).await.unwrap();
    stream.message().await.unwrap();
    for _ in 0..40 {
        let heartbeat = HeartbeatRequest { region: region() };
        client.heartbeat(with_token(heartbeat)).await.unwrap();
    }
    let kept = control.look(|seen| seen.requests.len());
    assert!((5..=11).contains(&kept), "{kept}");
    assert_eq!(control.look(|seen| seen.open_watches(Kind::Deployments)), 1);
    control.cut_streams(Code::Ok);
    assert!(stream.message().await.unwrap().is_none());
    let heartbeat = HeartbeatRequest { region: region() };
    client.heartbeat(with_token(heartbeat)).await.unwrap();
    let newest = control.look(|seen| seen.requests.last().map(|request| request.number));
    assert_eq!(newest, Some(41));
}
