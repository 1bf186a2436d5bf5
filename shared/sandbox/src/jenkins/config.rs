//! `config.xml`: how a job is set up, in Jenkins' own words.

use super::job::{JobParameter, ParameterForm, SimulatedJob, SimulatedJobKind, SimulatedScm};
use super::page::escaped;

/// The whole file.
pub(super) fn xml(job: &SimulatedJob) -> String {
    let (element, inside) = match job.kind {
        SimulatedJobKind::Folder => ("com.cloudbees.hudson.plugins.folder.Folder", String::new()),
        SimulatedJobKind::Multibranch => (
            "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject",
            job.source.as_ref().map(branches).unwrap_or_default(),
        ),
        SimulatedJobKind::Pipeline => ("flow-definition", definition(job)),
        SimulatedJobKind::Freestyle => {
            ("project", job.source.as_ref().map_or("<scm class=\"hudson.scm.NullSCM\"/>\n".to_owned(), git))
        }
    };
    format!(
        "<?xml version='1.1' encoding='UTF-8'?>\n<{element} plugin=\"sandbox@1\">\n<description>{}</description>\n\
         <properties>\n{}</properties>\n{inside}<disabled>{}</disabled>\n</{element}>\n",
        escaped(&job.description),
        parameters(&job.parameters),
        job.disabled
    )
}

fn parameters(parameters: &[JobParameter]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let shown: String = parameters.iter().map(parameter).collect();
    format!(
        "<hudson.model.ParametersDefinitionProperty>\n<parameterDefinitions>\n{shown}</parameterDefinitions>\n\
         </hudson.model.ParametersDefinitionProperty>\n"
    )
}

fn parameter(parameter: &JobParameter) -> String {
    let class = format!("hudson.model.{}", parameter.class());
    let default = match &parameter.form {
        ParameterForm::Text(text) | ParameterForm::Lines(text) => {
            format!("<defaultValue>{}</defaultValue>", escaped(text))
        }
        ParameterForm::Flag(flag) => format!("<defaultValue>{flag}</defaultValue>"),
        ParameterForm::Choice(choices) => {
            let choices: String =
                choices.iter().map(|choice| format!("<string>{}</string>", escaped(choice))).collect();
            format!("<choices class=\"java.util.Arrays$ArrayList\"><a class=\"string-array\">{choices}</a></choices>")
        }
        // Stored enciphered; here only the form of it.
        ParameterForm::Password(_) => {
            "<defaultValue>{AQAAABAAAAAQc2FuZGJveC1zYW5kYm94LXNhbmRib3g=}</defaultValue>".to_owned()
        }
    };
    format!(
        "<{class}>\n<name>{}</name>\n<description>{}</description>\n{default}\n</{class}>\n",
        escaped(&parameter.name),
        escaped(&parameter.description)
    )
}

fn definition(job: &SimulatedJob) -> String {
    match &job.source {
        Some(source) => format!(
            "<definition class=\"org.jenkinsci.plugins.workflow.cps.CpsScmFlowDefinition\">\n{}\
             <scriptPath>Jenkinsfile</scriptPath>\n<lightweight>true</lightweight>\n</definition>\n",
            git(source)
        ),
        None => format!(
            "<definition class=\"org.jenkinsci.plugins.workflow.cps.CpsFlowDefinition\">\n<script>{}</script>\n\
             <sandbox>true</sandbox>\n</definition>\n",
            escaped(&job.script)
        ),
    }
}

fn git(source: &SimulatedScm) -> String {
    let credentials = if source.credentials { "<credentialsId>git-robot</credentialsId>\n" } else { "" };
    format!(
        "<scm class=\"hudson.plugins.git.GitSCM\">\n<userRemoteConfigs>\n<hudson.plugins.git.UserRemoteConfig>\n\
         <url>{}</url>\n{credentials}</hudson.plugins.git.UserRemoteConfig>\n</userRemoteConfigs>\n<branches>\n\
         <hudson.plugins.git.BranchSpec>\n<name>*/{}</name>\n</hudson.plugins.git.BranchSpec>\n</branches>\n</scm>\n",
        escaped(&source.url),
        escaped(&source.branch)
    )
}

fn branches(source: &SimulatedScm) -> String {
    let credentials = if source.credentials { "<credentialsId>git-robot</credentialsId>\n" } else { "" };
    format!(
        "<sources>\n<data>\n<jenkins.branch.BranchSource>\n<source class=\"jenkins.plugins.git.GitSCMSource\">\n\
         <remote>{}</remote>\n{credentials}</source>\n</jenkins.branch.BranchSource>\n</data>\n</sources>\n\
         <factory class=\"org.jenkinsci.plugins.workflow.multibranch.WorkflowBranchProjectFactory\">\n\
         <scriptPath>Jenkinsfile</scriptPath>\n</factory>\n",
        escaped(&source.url)
    )
}
