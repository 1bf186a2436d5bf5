//! The words of the made-up company.

pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) database: &'static str,
    pub(super) purpose: &'static str,
}

pub(super) struct Symptom {
    pub(super) slug: &'static str,
    pub(super) title: &'static str,
    /// How documents tell it.
    pub(super) told: [&'static str; 3],
    /// How people ask for it.
    pub(super) asked: [&'static str; 3],
    pub(super) steps: [&'static str; 3],
}

macro_rules! services {
    ($($name:literal, $database:literal, $purpose:literal;)+) => {
        &[$(Service { name: $name, database: $database, purpose: $purpose }),+]
    };
}

pub(super) const SERVICES: &[Service] = services! {
    "checkout-api", "PostgreSQL", "Takes orders from the shop front.";
    "checkout-worker", "PostgreSQL", "Settles orders after the customer has left.";
    "cart-api", "Redis", "Remembers what a customer picked.";
    "cart-cleaner", "Redis", "Throws abandoned baskets away.";
    "catalog-api", "Elasticsearch", "Shows articles and their pictures.";
    "catalog-indexer", "Elasticsearch", "Feeds articles into the search cluster.";
    "search-gateway", "Elasticsearch", "Answers what shoppers type.";
    "search-suggest", "Redis", "Completes words while they are typed.";
    "billing-api", "Oracle", "Writes invoices.";
    "billing-export", "Oracle", "Hands invoices to accounting every night.";
    "payment-gateway", "Vault", "Talks to banks and card networks.";
    "payment-reconciler", "MySQL", "Compares bank statements with orders.";
    "shipping-planner", "MongoDB", "Chooses a carrier and a day.";
    "shipping-labels", "MinIO", "Prints labels for parcels.";
    "inventory-api", "CockroachDB", "Counts what lies in the warehouses.";
    "inventory-sync", "CockroachDB", "Fetches counts from the warehouses.";
    "identity-provider", "LDAP", "Signs customers in.";
    "identity-audit", "ClickHouse", "Keeps who signed in and when.";
    "pricing-engine", "Cassandra", "Computes prices and rebates.";
    "pricing-importer", "Cassandra", "Reads price lists of suppliers.";
    "ledger-core", "TigerBeetle", "Books every cent twice.";
    "ledger-reports", "ClickHouse", "Adds up books for the quarter.";
    "notification-mailer", "SQS", "Sends mails.";
    "notification-push", "SQS", "Sends messages to phones.";
    "fraud-scorer", "Neo4j", "Judges how odd an order is.";
    "fraud-trainer", "Parquet", "Learns from past fraud.";
    "media-resizer", "MinIO", "Makes thumbnails.";
    "media-uploader", "MinIO", "Takes pictures from sellers.";
    "support-desk", "MySQL", "Where agents answer customers.";
    "support-bot", "Qdrant", "Answers the easy questions.";
    "loyalty-points", "DynamoDB", "Counts points of regular customers.";
    "returns-portal", "MongoDB", "Lets customers send things back.";
    "tax-calculator", "SQLite", "Knows the rates of all countries.";
    "geo-router", "PostGIS", "Sends traffic to the nearest region.";
    "feature-flags", "etcd", "Switches features on and off.";
    "metrics-collector", "Prometheus", "Gathers what everything reports.";
};

macro_rules! symptoms {
    ($($slug:literal, $title:literal, [$($told:literal),+], [$($asked:literal),+], [$($step:literal),+];)+) => {
        &[$(Symptom { slug: $slug, title: $title, told: [$($told),+], asked: [$($asked),+], steps: [$($step),+] }),+]
    };
}

pub(super) const SYMPTOMS: &[Symptom] = symptoms! {
    "oom", "Out of memory",
        ["pods are OOMKilled under load", "the kernel kills the container for its memory", "the heap grows until the container dies"],
        ["pods get OOMKilled", "container memory keeps growing until it is killed", "it runs out of memory"],
        ["Compare the memory limit with the working set.", "Take a heap profile of one pod.", "Raise the limit and roll out."];
    "crash-loop", "Crash loop",
        ["pods are in CrashLoopBackOff right after a deploy", "the process exits with code 1 at start", "the container restarts every minute"],
        ["pods are stuck in CrashLoopBackOff", "the container restarts all the time", "the process exits at start"],
        ["Read the log of the previous container.", "Compare the environment with the last good release.", "Roll back if the cause is not clear."];
    "slow-queries", "Slow queries",
        ["database statements take seconds", "the slow query log fills up", "a missing index makes reads crawl"],
        ["database queries are slow", "reads take seconds because of a missing index", "the slow query log is filling"],
        ["Look at the plan of the slowest statement.", "Create the missing index concurrently.", "Run the statistics job."];
    "connection-pool", "Connection pool exhausted",
        ["no connection is left in the pool", "callers wait for a database connection", "the pool reports too many clients"],
        ["the connection pool is exhausted", "waiting for a free database connection", "too many clients in the pool"],
        ["Count connections by client.", "End sessions that are idle in transaction.", "Lower the pool size of the batch jobs."];
    "disk-full", "Disk full",
        ["the volume has no space left on device", "the persistent volume claim is at one hundred percent", "writes fail with ENOSPC"],
        ["no space left on device", "the persistent volume is full", "ENOSPC on writes"],
        ["Find the largest folders.", "Delete rotated archives.", "Expand the volume claim."];
    "certificate", "Certificate expired",
        ["the TLS certificate is past its end date", "handshakes fail since the certificate expired", "cert-manager did not renew"],
        ["the TLS certificate expired", "handshake fails because of the certificate", "cert-manager does not renew it"],
        ["Look at the order of the certificate.", "Renew the issuer account.", "Restart the ingress after renewal."];
    "dns", "Name resolution fails",
        ["lookups end in NXDOMAIN", "CoreDNS answers SERVFAIL", "names of other services do not resolve"],
        ["DNS lookups give NXDOMAIN", "service names do not resolve", "SERVFAIL from CoreDNS"],
        ["Ask CoreDNS from inside the pod.", "Compare the search domains.", "Scale CoreDNS up."];
    "rate-limited", "Rate limited by a partner",
        ["the partner answers 429 to most calls", "we are throttled by the upstream", "the quota of the partner is used up"],
        ["the partner throttles us with 429", "upstream quota used up", "we are being rate limited"],
        ["Lower the number of parallel calls.", "Ask the partner for a higher quota.", "Turn the retry budget down."];
    "queue-backlog", "Queue backlog",
        ["messages pile up in the queue", "consumer lag grows by the minute", "the oldest message is hours old"],
        ["messages are piling up", "consumer lag keeps growing", "the queue has a huge backlog"],
        ["Scale the consumers.", "Look for a poison message.", "Move what cannot be read to the dead letter queue."];
    "deadlock", "Deadlocks",
        ["transactions wait for each other and are rolled back", "the database reports deadlock detected", "two writers lock rows in another order"],
        ["deadlock detected in the database", "transactions wait for each other", "writers lock rows crosswise"],
        ["Find both statements in the server log.", "Sort rows before locking.", "Retry the loser once."];
    "high-latency", "High latency",
        ["the 99th percentile is above two seconds", "answers are slow during the evening peak", "latency doubles after the cache was flushed"],
        ["latency is too high at the 99th percentile", "slow answers in the evening", "latency doubled"],
        ["Look at the flame graph of one replica.", "Warm the cache.", "Add replicas before the peak."];
    "image-pull", "Image cannot be pulled",
        ["pods are in ImagePullBackOff", "the registry answers unauthorized", "the tag does not exist in the registry"],
        ["ImagePullBackOff", "the registry says unauthorized", "the image tag does not exist"],
        ["Check the pull secret.", "Check the tag in the registry.", "Push the image again from the pipeline."];
    "failed-migration", "Schema migration failed",
        ["the migration job stopped half way", "the schema version is dirty", "a column is missing after the release"],
        ["schema migration stopped half way", "dirty schema version", "a column is missing since the release"],
        ["Read the log of the migration job.", "Mark the version as clean by hand.", "Run the migration again."];
    "stale-cache", "Stale cache",
        ["customers see yesterday's values", "the cache is not invalidated", "replicas show different values"],
        ["customers see old values from the cache", "cache is not invalidated", "stale values on some replicas"],
        ["Flush the keys of the prefix.", "Check the invalidation topic.", "Shorten the time to live."];
    "login-loop", "Login loop",
        ["users are sent back to the sign-in page", "the session cookie is dropped", "the redirect never ends"],
        ["users land on the sign-in page again and again", "session cookie gets dropped", "endless redirect at login"],
        ["Look at the SameSite attribute.", "Compare clocks of the replicas.", "Rotate the cookie key."];
    "clock-skew", "Clock skew",
        ["tokens are refused as issued in the future", "node clocks drift apart", "chrony lost its servers"],
        ["tokens refused because they are from the future", "clocks of the nodes drift", "chrony has no servers"],
        ["Compare the clocks of the nodes.", "Restart chrony.", "Drain nodes that drift."];
    "node-pressure", "Node pressure evictions",
        ["pods are evicted for ephemeral storage", "the node reports DiskPressure", "the kubelet evicts pods"],
        ["pods evicted because of DiskPressure", "kubelet evicts our pods", "evictions for ephemeral storage"],
        ["Cordon the node.", "Prune unused images.", "Set requests for ephemeral storage."];
    "pending-pods", "Pods stay pending",
        ["no node has enough cpu for the pod", "the scheduler reports insufficient resources", "a taint keeps pods away"],
        ["pods stay pending", "insufficient cpu says the scheduler", "a taint keeps the pods from being scheduled"],
        ["Describe the pod.", "Compare requests with what nodes can allocate.", "Let the autoscaler add nodes."];
    "replication-lag", "Replication lag",
        ["the replica is minutes behind the primary", "followers fall behind", "reads miss what was just written"],
        ["the replica lags behind the primary", "followers are behind", "reads do not see recent writes"],
        ["Look for a long transaction.", "Check the network to the replica.", "Rebuild the replica."];
    "failover", "Primary lost",
        ["the primary is gone and no replica was promoted", "the sentinel cannot agree", "writes fail since the leader died"],
        ["the primary died and nothing was promoted", "no leader, writes fail", "sentinel does not agree on a new primary"],
        ["Check which replica is ahead.", "Promote it by hand.", "Point the clients to it."];
    "thread-starvation", "Thread starvation",
        ["all worker threads are busy", "the executor rejects tasks", "health checks time out while the cpu is idle"],
        ["all worker threads are busy", "executor rejects tasks", "health checks time out although the cpu is idle"],
        ["Take a thread dump.", "Look for blocking calls on the event loop.", "Raise the number of workers."];
    "config-drift", "Configuration drift",
        ["the config map differs from the repository", "somebody edited it by hand", "argo shows out of sync"],
        ["config map is different from the repository", "someone changed it by hand", "argo says out of sync"],
        ["Diff live and desired.", "Find who edited it.", "Sync from the repository."];
    "bad-rollout", "Rollout stuck",
        ["the rollout does not progress", "new replicas never become ready", "the progress deadline was exceeded"],
        ["rollout is stuck", "new replicas are never ready", "progress deadline exceeded"],
        ["Look at the readiness probe.", "Compare the replica sets.", "Undo the rollout."];
    "webhook", "Webhook deliveries fail",
        ["deliveries to the partner are refused", "signatures of the hooks do not match", "the hook endpoint answers 410"],
        ["webhook deliveries are refused", "hook signatures do not match", "hook endpoint gives 410"],
        ["Replay one delivery by hand.", "Rotate the signing secret.", "Pause the subscription."];
};

pub(super) const CITIES: &[&str] = &[
    "Frankfurt",
    "Dublin",
    "Ohio",
    "Oregon",
    "Singapore",
    "Sydney",
    "Mumbai",
    "Tokyo",
    "Stockholm",
    "Paris",
    "Montreal",
    "Osaka",
    "Jakarta",
    "Bahrain",
    "Milan",
];

pub(super) const CODES: &[&str] = &["500", "502", "503", "504", "408", "409", "421", "425", "507", "511"];

pub(super) const PEOPLE: &[&str] = &[
    "Amara", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Keiko", "Lars", "Mina",
    "Nadia", "Oskar", "Priya",
];

pub(super) const TOPICS: &[&str] =
    &["Weekly meeting", "Retrospective", "Planning", "Lunch and learn", "Reading club", "Office move", "Hiring round"];

/// What stands between the lines everywhere, made of the words people also ask with.
pub(super) const SMALL_TALK: &[&str] = &[
    "If it is not clear what to do, ask in the channel of the team that is on call.",
    "What we do when it happens again is written down in the plan for the quarter.",
    "There is a list of all the steps, and it is kept up to date by the one who was there.",
    "How do we take it from here, and who is it that has to say yes?",
    "The service is up when the check in the morning says so, and not when it feels like it.",
    "Is there a way to fix it for good, or do we have to do it by hand each time?",
    "It was said that the dashboards are what people look at when they do not know where to look.",
    "In the end it is the customer who has to wait, so take the time to tell them what is going on.",
    "When in doubt, do the safe thing first and the right thing after it.",
    "The incident review is on the Thursday after, and what was learned is for everybody.",
    "Please write the runbook in a way that a new colleague can follow it in the night.",
    "What are the errors that clients had, and which of them are in the log of the service?",
    "All of this is for the case that it gets worse, which is rare, but it was seen on call.",
    "Do not do more than one of the steps at a time, and note what it did and when.",
    "And when it is over, it is not over until the note is in the channel.",
];
