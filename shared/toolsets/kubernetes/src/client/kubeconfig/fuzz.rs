//! What every kubeconfig of a stranger is held to.

use super::*;
use egress::AddressGuard;
use std::cell::RefCell;

thread_local! {
    static RUNTIME: RefCell<Option<tokio::runtime::Runtime>> =
        RefCell::new(tokio::runtime::Builder::new_current_thread().build().ok());
}

/// Whatever it says: it is refused without a word of it, or it starts nothing, reads no file, acts as nobody else,
/// switches no check off and leads only where it may.
pub fn kubeconfig(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let guard = AddressGuard { private: false, ports: vec![443] };
    for reach in [ClusterReach::of_operator(false), ClusterReach::of_tenant(&guard, false)] {
        let kept = SecretText::new(text);
        let secret = KeptSecret::new("kubeconfig", move || Ok(kept.clone()));
        let source = ClusterEndpoint::Kept(vec![KeptKubeconfig { secret, reach: reach.clone() }]);
        let config = ClusterConfig::new("c", source);
        let loaded = RUNTIME.with_borrow(|runtime| runtime.as_ref().map(|runtime| runtime.block_on(load(&config))));
        let Some(Ok(loaded)) = loaded else { continue };
        let (built, user) = (&loaded.config, &loaded.config.auth_info);
        assert!(user.exec.is_none() && user.auth_provider.is_none(), "it starts a program");
        assert!(user.token_file.is_none() && user.client_certificate.is_none() && user.client_key.is_none(), "a file");
        assert!(user.impersonate.is_none() && user.impersonate_groups.is_none(), "somebody else");
        assert!(built.proxy_url.is_none() && !built.accept_invalid_certs, "a check is off");
        // The address was judged as one type and is dialled as another.
        let dialled = built.cluster_url.to_string();
        assert_eq!(reach.check(&dialled), Ok(()), "{dialled}");
    }
}
