//! One context of an operator's kubeconfig as a text that stands by itself: its certificates and keys are inside.
//!
//! For `quartermaster dev --cluster`, which hands a person's own context to a tenant as a secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;
use std::path::Path;

/// Why a context cannot be handed on.
#[derive(Debug, thiserror::Error)]
pub enum NoExcerpt {
    /// The kubeconfig is not there or not one.
    #[error("the kubeconfig cannot be read: {0}")]
    Unreadable(String),
    /// It has no such context.
    #[error("the kubeconfig has no context `{wanted}`; there are: {known}")]
    UnknownContext {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// The context is incomplete.
    #[error("the context `{0}` names a cluster or a user that is not there")]
    Incomplete(String),
    /// The context signs in by a program, and the service starts none.
    #[error("the context `{0}` signs in by a program or an auth-provider; use one with a token or a certificate")]
    Program(String),
    /// A file it names cannot be read.
    #[error("cannot read {0}, which the context names")]
    File(String),
}

/// Picks a context from the kubeconfig that kubectl would read.
pub fn excerpt(context: &str) -> Result<String, NoExcerpt> {
    // Reads KUBECONFIG or the file in the home folder, and makes the names of files absolute.
    let whole = Kubeconfig::read().map_err(|error| NoExcerpt::Unreadable(error.to_string()))?;
    pick(whole, context)
}

fn pick(whole: Kubeconfig, wanted: &str) -> Result<String, NoExcerpt> {
    let known = || whole.contexts.iter().map(|context| context.name.as_str()).collect::<Vec<_>>().join(", ");
    let unknown = || NoExcerpt::UnknownContext { wanted: wanted.to_owned(), known: known() };
    let incomplete = || NoExcerpt::Incomplete(wanted.to_owned());
    let named = whole.contexts.iter().find(|context| context.name == wanted).cloned().ok_or_else(unknown)?;
    let context = named.context.clone().ok_or_else(incomplete)?;
    let mut cluster =
        whole.clusters.iter().find(|known| known.name == context.cluster).cloned().ok_or_else(incomplete)?;
    let user = context.user.clone().unwrap_or_default();
    let mut user = whole.auth_infos.iter().find(|known| known.name == user).cloned().ok_or_else(incomplete)?;
    if let Some(cluster) = &mut cluster.cluster {
        inline(&mut cluster.certificate_authority, |data| cluster.certificate_authority_data = Some(data))?;
    }
    if let Some(user) = &mut user.auth_info {
        if user.exec.is_some() || user.auth_provider.is_some() {
            return Err(NoExcerpt::Program(wanted.to_owned()));
        }
        inline(&mut user.client_certificate, |data| user.client_certificate_data = Some(data))?;
        inline(&mut user.client_key, |data| user.client_key_data = Some(data.into()))?;
        if let Some(file) = user.token_file.take() {
            let token = std::fs::read_to_string(&file).map_err(|_| NoExcerpt::File(file))?;
            user.token = Some(token.trim().to_owned().into());
        }
    }
    let alone = Kubeconfig {
        clusters: vec![cluster],
        auth_infos: vec![user],
        contexts: vec![named],
        current_context: Some(wanted.to_owned()),
        ..Kubeconfig::default()
    };
    // JSON is YAML, so this is a kubeconfig.
    serde_json::to_string_pretty(&alone).map_err(|error| NoExcerpt::Unreadable(error.to_string()))
}

/// Takes the name of a file and hands on what is in it.
fn inline(file: &mut Option<String>, keep: impl FnOnce(String)) -> Result<(), NoExcerpt> {
    if let Some(name) = file.take() {
        let bytes = std::fs::read(Path::new(&name)).map_err(|_| NoExcerpt::File(name))?;
        keep(STANDARD.encode(bytes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(user: &str) -> Kubeconfig {
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- {{ name: one, cluster: {{ server: 'https://one.example' }} }}\n\
             - {{ name: two, cluster: {{ server: 'https://two.example' }} }}\nusers:\n- {{ name: me, user: {user} }}\n\
             contexts:\n- {{ name: a, context: {{ cluster: one, user: me }} }}\n- {{ name: b, context: {{ cluster: gone, user: me }} }}\n"
        );
        Kubeconfig::from_yaml(&text).unwrap()
    }

    #[test]
    fn a_context_is_picked_alone_with_its_files_inside() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "s3cret\n").unwrap();
        let text = pick(whole(&format!("{{ tokenFile: '{}' }}", token.display())), "a").unwrap();
        let alone = Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!((alone.clusters.len(), alone.contexts.len(), alone.current_context.as_deref()), (1, 1, Some("a")));
        assert!(text.contains("s3cret") && !text.contains("tokenFile") && !text.contains("two.example"), "{text}");
    }

    #[test]
    fn what_cannot_be_handed_on_says_why() {
        let told = |user: &str, context: &str| pick(whole(user), context).unwrap_err().to_string();
        assert!(told("{ token: x }", "c").contains("there are: a, b"));
        assert!(told("{ token: x }", "b").contains("not there"));
        assert!(told("{ exec: { command: aws } }", "a").contains("program"));
        assert!(told("{ tokenFile: /nowhere/at/all }", "a").contains("/nowhere/at/all"));
    }
}
