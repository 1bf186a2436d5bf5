//! What a plain server answers, asked of the simulated one and, if `QUARTERMASTER_TEST_JENKINS_URL` names one, of a real
//! one too.
//!
//! The real one is the ancestor that the testbed starts. Asserted is only what has not changed since: it knows neither
//! ranges in a tree nor classes, and sends to the job instead of to the queue item.

use std::time::{Duration, Instant};

use sandbox::jenkins::{BuildScript, JenkinsSeed, JobParameter, SimulatedJob};
use serde_json::{Value, json};

use super::support::{Ci, Line, field};

/// The same job as the simulated one has: parameters, a few seconds of work, an archived file.
const CONFIG: &str = "\
<project><description/><properties><hudson.model.ParametersDefinitionProperty><parameterDefinitions>
<hudson.model.StringParameterDefinition><name>QM_RUN_ID</name><description/><defaultValue/></hudson.model.StringParameterDefinition>
<hudson.model.ChoiceParameterDefinition><name>WHERE</name><description/><choices class=\"java.util.Arrays$ArrayList\">
<a class=\"string-array\"><string>staging</string><string>production</string></a></choices></hudson.model.ChoiceParameterDefinition>
<hudson.model.BooleanParameterDefinition><name>DRY</name><description/><defaultValue>false</defaultValue></hudson.model.BooleanParameterDefinition>
</parameterDefinitions></hudson.model.ParametersDefinitionProperty></properties><scm class=\"hudson.scm.NullSCM\"/>
<builders><hudson.tasks.Shell><command>echo hello; echo out &gt; out.txt; sleep 2</command></hudson.tasks.Shell></builders>
<publishers><hudson.tasks.ArtifactArchiver><artifacts>out.txt</artifacts></hudson.tasks.ArtifactArchiver></publishers></project>
";

/// A server under test, whichever it is.
struct Subject {
    name: &'static str,
    line: Line,
    job: String,
    /// Keeps the simulated one alive.
    _ci: Option<Ci>,
}

/// The simulated server and the real one, each with a job of its own for this test.
async fn subjects(test: &str) -> Vec<Subject> {
    let plan = BuildScript::new().stage("Build", Duration::from_secs(2), &["hello"]).artifact("out.txt", "out\n");
    let job = SimulatedJob::freestyle("plain")
        .plan(plan)
        .parameter(JobParameter::text("QM_RUN_ID", ""))
        .parameter(JobParameter::choice("WHERE", &["staging", "production"]))
        .parameter(JobParameter::flag("DRY", false));
    let ci = Ci::of(JenkinsSeed::empty().job(job)).await;
    let mut subjects =
        vec![Subject { name: "simulated", line: ci.line(), job: "/job/plain".to_owned(), _ci: Some(ci) }];
    if let Some(line) = Line::real() {
        let name = format!("{test}-{}", std::process::id());
        let made = line.send("POST", &format!("/createItem?name={name}"), ("text/xml", CONFIG)).await;
        assert_eq!(made.status, 200, "{}", made.text());
        subjects.push(Subject { name: "real", line, job: format!("/job/{name}"), _ci: None });
    }
    subjects
}

impl Subject {
    async fn get(&self, path: &str) -> Value {
        let reply = self.line.send("GET", path, ("", "")).await;
        assert_eq!(reply.status, 200, "{} {path}: {}", self.name, reply.text());
        reply.json()
    }

    async fn post(&self, path: &str, form: &str) -> u16 {
        let kind = "application/x-www-form-urlencoded";
        self.line.send("POST", &format!("{}{path}", self.job), (kind, form)).await.status
    }

    /// Asks until it is as wanted.
    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let value = self.get(path).await;
            if wanted(&value) {
                return value;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{} {path}: {value}", self.name);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn both_servers_build_log_and_archive_alike() {
    for subject in subjects("build").await {
        let (name, job) = (subject.name, &subject.job);
        let started = subject.post("/buildWithParameters", "WHERE=production&QM_RUN_ID=run_1&NOBODY=x").await;
        let joined = subject.post("/buildWithParameters", "WHERE=production&QM_RUN_ID=run_1").await;
        assert!(matches!((started, joined), (201 | 302, 201 | 302)), "{name}");

        let queue = subject.get("/queue/api/json?tree=items[why,task[name],actions[parameters[name,value]]]").await;
        let ours = queue["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| job.ends_with(item["task"]["name"].as_str().unwrap()));
        assert!(ours.count() <= 1, "{name}: an equal item is joined");

        let build = subject
            .until(&format!("{job}/api/json?tree=lastBuild[number,building]"), |job| {
                job["lastBuild"]["building"] == false
            })
            .await;
        assert_eq!(build["lastBuild"]["number"], 1, "{name}");
        let build = subject.get(&format!("{job}/1/api/json")).await;
        let parameters =
            build["actions"].as_array().unwrap().iter().find_map(|action| action["parameters"].as_array()).unwrap();
        let values: Vec<_> = parameters.iter().map(|each| each["value"].clone()).collect();
        assert_eq!(
            (&build["result"], values),
            (&json!("SUCCESS"), vec![json!("run_1"), json!("production"), json!(false)]),
            "{name}"
        );
        let causes =
            build["actions"].as_array().unwrap().iter().find_map(|action| action["causes"].as_array()).unwrap();
        assert_eq!(causes[0]["userId"], "robot", "{name}");
        assert_eq!(
            build["artifacts"],
            json!([{ "displayPath": "out.txt", "fileName": "out.txt", "relativePath": "out.txt" }]),
            "{name}"
        );
        let file = subject.line.send("GET", &format!("{job}/1/artifact/out.txt"), ("", "")).await;
        assert_eq!((file.header("content-type"), file.text().as_str()), (Some("text/plain"), "out\n"), "{name}");

        let log = subject.line.send("GET", &format!("{job}/1/logText/progressiveText?start=0"), ("", "")).await;
        let beyond = subject.line.send("GET", &format!("{job}/1/logText/progressiveText?start=99999"), ("", "")).await;
        let text = subject.line.send("GET", &format!("{job}/1/consoleText"), ("", "")).await;
        assert!(
            log.text().starts_with("Started by user robot\r\n") && log.text().ends_with("Finished: SUCCESS\r\n"),
            "{name}"
        );
        assert_eq!((log.text(), log.header("x-more-data")), (beyond.text(), None), "{name}");
        assert_eq!(log.text().replace("\r\n", "\n"), text.text(), "{name}");
        assert!(log.header("x-text-size").is_some(), "{name}");
    }
}

#[tokio::test]
async fn both_servers_refuse_alike() {
    for subject in subjects("refuse").await {
        let (name, job) = (subject.name, &subject.job);

        assert_eq!(subject.post("/build", "").await, 400, "{name}: a form is wanted");
        assert_eq!(subject.post("/buildWithParameters", "WHERE=moon").await, 500, "{name}: no such choice");
        for (path, status) in [("/api/json?tree=jobs[name", 500), ("/job/nobody/api/json", 404)] {
            assert_eq!(subject.line.send("GET", path, ("", "")).await.status, status, "{name} {path}");
        }
        assert_eq!(subject.line.send("GET", &format!("{job}/77/api/json"), ("", "")).await.status, 404, "{name}");
        let nobody = subject.line.anonymous().send("GET", "/api/json", ("", "")).await;
        assert_eq!(nobody.status, 403, "{name}");
        assert_eq!(subject.get(&format!("{job}/api/json?tree=builds[number]")).await["builds"], json!([]), "{name}");
        assert_eq!(subject.get("/me/api/json").await["id"], "robot", "{name}");
    }
}

#[tokio::test]
async fn both_servers_stop_and_label_builds_alike() {
    for subject in subjects("stop").await {
        let (name, job) = (subject.name, &subject.job);
        subject.post("/buildWithParameters?delay=0sec", "").await;
        subject
            .until(&format!("{job}/api/json?tree=lastBuild[number,building]"), |job| {
                job["lastBuild"]["building"] == true
            })
            .await;

        let stopped = subject.post("/1/stop", "").await;
        let build = subject.until(&format!("{job}/1/api/json"), |build| build["building"] == false).await;
        let form = json!({ "displayName": "one", "description": "by hand" }).to_string();
        let labelled = subject.post("/1/configSubmit", &format!("json={}", field(&form))).await;
        let kept = subject.post("/1/toggleLogKeep", "").await;

        assert_eq!((stopped, labelled, kept), (302, 302, 302), "{name}");
        assert_eq!(build["result"], "ABORTED", "{name}");
        let after = subject.get(&format!("{job}/1/api/json?tree=description,keepLog")).await;
        assert_eq!((&after["description"], &after["keepLog"]), (&json!("by hand"), &json!(true)), "{name}");
    }
}
