//! Who may ask: tokens, sessions and crumbs.

use sandbox::jenkins::JenkinsSeed;
use serde_json::json;

use super::support::Ci;

#[tokio::test]
async fn a_wrong_token_is_unauthorized_and_none_is_forbidden() {
    let ci = Ci::shop().await;

    let wrong = ci.send("GET", "/api/json", "", &[("Authorization", "Basic cm9ib3Q6bm8=")]).await.unwrap();
    let none = ci.send("GET", "/api/json", "", &[]).await.unwrap();
    let anonymous = ci.send("GET", "/whoAmI/api/json", "", &[]).await.unwrap();

    assert_eq!((wrong.status, wrong.header("www-authenticate")), (401, Some("Basic realm=\"Jenkins\"")));
    assert_eq!((none.status, none.header("x-you-are-authenticated-as")), (403, Some("anonymous")));
    assert_eq!(anonymous.json()["anonymous"], true);
    ci.jenkins.rotate_token();
    assert_eq!(ci.get("/me/api/json").await["id"], "robot");
}

#[tokio::test]
async fn the_server_tells_its_version_and_agents() {
    let ci = Ci::shop().await;

    let reply = ci.ask("GET", "/whoAmI/api/json?tree=name,anonymous,authorities", "", &[]).await;
    let agents = ci.get("/computer/api/json?tree=computer[displayName,offline,numExecutors]").await;

    assert!(reply.header("x-jenkins").is_some_and(|version| version.starts_with("2.")));
    assert_eq!(
        reply.json(),
        json!({ "_class": "hudson.security.WhoAmI", "name": "robot", "anonymous": false, "authorities": ["authenticated"] })
    );
    assert_eq!(agents["computer"][2]["offline"], true);
}

#[tokio::test]
async fn a_crumb_is_good_for_its_session_only() {
    let ci = Ci::of(JenkinsSeed::shop().with_crumbs()).await;

    let refused = ci.post("/job/smoke/build", "").await;
    let issued = ci.ask("GET", "/crumbIssuer/api/json", "", &[]).await;
    let crumb = issued.json()["crumb"].as_str().unwrap().to_owned();
    let field = issued.json()["crumbRequestField"].as_str().unwrap().to_owned();
    let cookie = issued.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let headers = [(field.as_str(), crumb.as_str()), ("Cookie", cookie.as_str())];

    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("No valid crumb was included in the request"));
    assert_eq!(ci.ask("POST", "/job/smoke/build", "", &headers[..1]).await.status, 403, "without the cookie");
    assert_eq!(ci.ask("POST", "/job/smoke/build", "", &headers).await.status, 201);
    ci.jenkins.expire_sessions();
    assert_eq!(ci.ask("POST", "/job/smoke/build", "", &headers).await.status, 403, "after the session");
    assert_eq!(ci.jenkins.writes(), ["POST /job/smoke/build"]);
}
