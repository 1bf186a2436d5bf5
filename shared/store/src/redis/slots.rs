//! Which node serves which slot, as a node of the cluster says.

use super::address::NodeAddress;
use super::replicas::clamped;
use crate::keys::SLOTS;
use redis::{FromRedisValue, Value};
use std::collections::{BTreeMap, HashMap};

/// An answer to `CLUSTER SLOTS`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SlotRanges {
    /// The primaries, each with its ranges of slots.
    pub(super) ranges: BTreeMap<NodeAddress, Vec<(u16, u16)>>,
    /// The cluster's name for each of them.
    ids: BTreeMap<NodeAddress, String>,
    /// How many replicas each of them has, those that are away included; `None` if the node does not tell.
    followers: Option<HashMap<String, usize>>,
    /// How many primaries failed and lost their slots: each is somebody's replica when it is back.
    fallen: usize,
}

impl SlotRanges {
    /// Reads the answer. Nodes that are told without a host are at the host that was asked.
    pub(super) fn parse(answer: Value, asked: &str) -> Option<SlotRanges> {
        let mut ranges: BTreeMap<NodeAddress, Vec<(u16, u16)>> = BTreeMap::new();
        let mut ids = BTreeMap::new();
        for range in Vec::<Vec<Value>>::from_redis_value(answer).ok()? {
            let mut parts = range.into_iter();
            let (from, to) = (u16::from_redis_value(parts.next()?).ok()?, u16::from_redis_value(parts.next()?).ok()?);
            if from > to || to >= SLOTS {
                return None;
            }
            let mut primary = Vec::<Value>::from_redis_value(parts.next()?).ok()?.into_iter();
            let host = Option::<String>::from_redis_value(primary.next()?).ok()?.unwrap_or_default();
            let port = u16::from_redis_value(primary.next()?).ok()?;
            let host = if host.is_empty() || host == "?" { asked.to_owned() } else { host };
            let address = NodeAddress { host, port };
            ids.insert(address.clone(), String::from_redis_value(primary.next()?).ok()?);
            ranges.entry(address).or_default().push((from, to));
        }
        ranges.values_mut().for_each(|of_node| of_node.sort_unstable());
        Some(SlotRanges { ranges, ids, followers: None, fallen: 0 })
    }

    /// The same with the answer to `CLUSTER NODES`. It has the replicas that failed too, until they are forgotten;
    /// `CLUSTER SLOTS` leaves them out.
    pub(super) fn with_nodes(self, nodes: &str) -> SlotRanges {
        let (mut followers, mut fallen) = (HashMap::new(), 0);
        for line in nodes.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, _, flags, primary, _, _, _, _, ref slots @ ..] = words[..] else { continue };
            let is = |wanted: &str| flags.split(',').any(|flag| flag == wanted);
            if is("slave") {
                *followers.entry(primary.to_owned()).or_default() += 1;
            } else if is("master") && is("fail") && slots.is_empty() {
                fallen += 1;
            }
        }
        SlotRanges { followers: Some(followers), fallen, ..self }
    }

    /// How many replicas a primary has. One without any may have taken over from one that failed.
    pub(super) fn replicas(&self, primary: &NodeAddress) -> Option<u8> {
        let (followers, id) = (self.followers.as_ref()?, self.ids.get(primary)?);
        Some(clamped(followers.get(id).copied().unwrap_or(self.fallen)))
    }
}

/// The number behind a name in `CLUSTER INFO`.
pub(super) fn epoch(info: &str) -> u64 {
    super::server::field(info, "cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}

/// Ranges as people write them: `0-5460,9000`.
pub(super) fn written(ranges: &[(u16, u16)]) -> String {
    let one = |(from, to): &(u16, u16)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec()), Value::Array(vec![])])
    }

    fn range(from: i64, to: i64, primary: Value) -> Value {
        Value::Array(vec![Value::Int(from), Value::Int(to), primary, node(Value::BulkString(b"replica".to_vec()), 1)])
    }

    #[test]
    fn ranges_gather_by_their_primary_and_a_node_without_a_host_is_the_one_asked() {
        let host = |name: &str| Value::BulkString(name.as_bytes().to_vec());
        let answer = Value::Array(vec![
            range(9_000, 9_000, node(host("a"), 1)),
            range(0, 99, node(host("a"), 1)),
            range(100, 8_999, node(Value::Nil, 2)),
            range(9_001, 16_383, node(host("?"), 3)),
        ]);
        let SlotRanges { ranges, .. } = SlotRanges::parse(answer, "asked").unwrap();
        let shown: Vec<String> = ranges.iter().map(|(node, of)| format!("{node} {}", written(of))).collect();
        assert_eq!(shown, ["a:1 0-99,9000", "asked:2 100-8999", "asked:3 9001-16383"]);
    }

    #[test]
    fn replicas_that_failed_count_until_they_are_forgotten() {
        let host = Value::BulkString(b"a".to_vec());
        let slots = SlotRanges::parse(Value::Array(vec![range(0, 16_383, node(host, 1))]), "asked").unwrap();
        let primary = NodeAddress { host: "a".to_owned(), port: 1 };
        assert_eq!(slots.replicas(&primary), None, "nobody has told");
        let nodes = "id 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-16383\n\
                     r1 127.0.0.1:2@3 slave id 0 0 1 connected\n\
                     r2 127.0.0.1:3@4 slave,fail id 0 0 1 disconnected\n\
                     r3 127.0.0.1:4@5 slave other 0 0 1 connected\n";
        assert_eq!(slots.clone().with_nodes(nodes).replicas(&primary), Some(2));
        assert_eq!(slots.clone().with_nodes("").replicas(&primary), Some(0));
        let fallen = "f1 127.0.0.1:5@6 master,fail - 0 0 1 disconnected\n\
                      e1 127.0.0.1:6@7 master - 0 0 1 connected\n";
        assert_eq!(slots.clone().with_nodes(fallen).replicas(&primary), Some(1), "it may have been its primary");
        assert_eq!(slots.with_nodes(&format!("{nodes}{fallen}")).replicas(&primary), Some(2), "it has its own");
    }

    #[test]
    fn an_answer_of_another_shape_is_none() {
        let host = || Value::BulkString(b"a".to_vec());
        for odd in [
            Value::Int(1),
            Value::Array(vec![Value::Array(vec![Value::Int(0)])]),
            Value::Array(vec![range(0, 16_384, node(host(), 1))]),
            Value::Array(vec![range(5, 4, node(host(), 1))]),
        ] {
            assert_eq!(SlotRanges::parse(odd, "asked"), None);
        }
    }
}
