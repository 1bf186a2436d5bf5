//! How a tool is asked what it offers, without a cluster: servers of both eras, tokens, and servers that do harm.

use egress::Lookup;
use operator::discover::{DiscoverError, ToolAddress, list_tools};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use testkit::upstream::{Era, Harm, McpServer};

fn here(server: &McpServer, token: Option<&str>) -> ToolAddress {
    let lookup: Lookup = Arc::new(|_| Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) }));
    let url = format!("http://tool.space.svc.cluster.local:{}/mcp", server.port());
    ToolAddress { url, token: token.map(str::to_owned), lookup: Some(lookup) }
}

async fn server(era: Era) -> McpServer {
    let server = McpServer::start(era).await;
    let tool = |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
    server.offer(vec![tool("a"), tool("b"), tool("c")]);
    server
}

fn names(tools: &[operator::resources::ToolSchema]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn a_list_is_read_in_both_eras_page_by_page_and_from_streams() {
    for era in [Era::Legacy, Era::LegacyDiscovered, Era::Modern, Era::Both] {
        let server = server(era).await;
        server.page(1);
        server.answer_in_streams();
        let tools = list_tools(&here(&server, None)).await.unwrap();
        assert_eq!(names(&tools), ["a", "b", "c"], "{era:?}");
    }
}

#[tokio::test]
async fn a_token_is_shown_and_a_refusal_is_told_apart() {
    for era in [Era::Legacy, Era::Modern] {
        let server = server(era).await;
        server.require("authorization", "Bearer good");
        assert_eq!(names(&list_tools(&here(&server, Some("good\n"))).await.unwrap()), ["a", "b", "c"]);
        for wrong in [None, Some("bad")] {
            let refused = list_tools(&here(&server, wrong)).await.unwrap_err();
            assert!(matches!(refused, DiscoverError::Unauthorized(401)), "{era:?} {wrong:?}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn a_name_that_leads_out_of_the_cluster_is_not_asked() {
    let server = server(Era::Both).await;
    let mut address = here(&server, Some("secret"));
    address.lookup = Some(Arc::new(|_| Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254))]) })));
    assert_eq!(list_tools(&address).await.unwrap_err().reason(), "NoAnswer");
    address.url = "http://user:pass@tool.space.svc.cluster.local/mcp".to_owned();
    assert_eq!(list_tools(&address).await.unwrap_err().reason(), "BadAddress");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_harmful_answer_is_an_error_that_repeats_nothing_of_the_token() {
    let elsewhere = Harm::Redirect { status: 307, to: "http://169.254.169.254/".to_owned() };
    let broken = Harm::Status { status: 500, body: "oops".to_owned() };
    for harm in [
        Harm::EndlessPages,
        Harm::Huge(6 << 20),
        Harm::NotJson,
        Harm::NoMessage,
        Harm::WrongId,
        Harm::Cut,
        Harm::HangUp,
        Harm::EchoInError,
        elsewhere,
        broken,
    ] {
        let server = server(Era::Both).await;
        server.plant("tools/list", harm.clone());
        let failed = list_tools(&here(&server, Some("canary"))).await.unwrap_err();
        assert!(["Malformed", "Refused", "NoAnswer"].contains(&failed.reason()), "{harm:?}: {failed:?}");
        assert!(!format!("{failed} {failed:?}").contains("canary"), "{harm:?}");
    }
}
