//! The service as others meet it: real HTTP on loopback, a real store, several replicas, one module per behaviour.
//!
//! Every test builds a world of its own, and every world asserts when it ends that nothing was left lying about.
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod alerts;
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod argo_bounds;
#[cfg(test)]
mod argo_story;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod audit_archive;
#[cfg(test)]
mod audit_killed;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod carried_over;
#[cfg(test)]
mod catalog_api;
#[cfg(test)]
mod config_commands;
#[cfg(test)]
mod console;
#[cfg(test)]
mod console_configure;
#[cfg(test)]
mod console_desk;
#[cfg(test)]
mod console_inbox;
#[cfg(test)]
mod console_watch;
#[cfg(test)]
mod corpora;
#[cfg(test)]
mod dev_files;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod error_log;
#[cfg(test)]
mod first_minutes;
#[cfg(test)]
mod guarantees;
#[cfg(test)]
mod helm_story;
#[cfg(test)]
mod here;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod issuers;
#[cfg(test)]
mod jenkins_story;
#[cfg(test)]
mod k8s_bulk;
#[cfg(test)]
mod k8s_faults;
#[cfg(test)]
mod k8s_gate;
#[cfg(test)]
mod k8s_injection;
#[cfg(test)]
mod k8s_masking;
#[cfg(test)]
mod k8s_refusals;
#[cfg(test)]
mod k8s_story;
#[cfg(test)]
mod k8s_tenancy;
#[cfg(test)]
mod k8s_tools;
#[cfg(test)]
mod k8s_yard;
#[cfg(test)]
mod ladder;
#[cfg(test)]
mod languagetool;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod loading;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod memory_beyond;
#[cfg(test)]
mod memory_files;
#[cfg(test)]
mod memory_people;
#[cfg(test)]
mod memory_sessions;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod modern;
#[cfg(test)]
mod new_toolset;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod operator_bounds;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod reviews;
#[cfg(test)]
mod routes;
#[cfg(test)]
mod runbooks_cluster;
#[cfg(test)]
mod runbooks_seed;
#[cfg(test)]
mod runbooks_yard;
#[cfg(test)]
mod runner_api;
#[cfg(test)]
mod runner_crash;
#[cfg(test)]
mod runner_desk;
#[cfg(test)]
mod runner_process;
#[cfg(test)]
mod runs_agent;
#[cfg(test)]
mod runs_cost;
#[cfg(test)]
mod runs_crash;
#[cfg(test)]
mod runs_decide;
#[cfg(test)]
mod runs_desk;
#[cfg(test)]
mod runs_failover;
#[cfg(test)]
mod runs_frozen;
#[cfg(test)]
mod runs_integrity;
#[cfg(test)]
mod runs_invariants;
#[cfg(test)]
mod runs_killed;
#[cfg(test)]
mod runs_lease;
#[cfg(test)]
mod runs_list;
#[cfg(test)]
mod runs_matrix;
#[cfg(test)]
mod runs_replica;
#[cfg(test)]
mod runs_scene;
#[cfg(test)]
mod runs_store;
#[cfg(test)]
mod runs_target;
#[cfg(test)]
mod runs_unrecorded;
#[cfg(test)]
mod runs_yard;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod servers_api;
#[cfg(test)]
mod shown_whole;
#[cfg(test)]
mod stdio_bridge;
#[cfg(test)]
mod stdio_client;
#[cfg(test)]
mod stdio_local;
#[cfg(test)]
mod stock;
#[cfg(test)]
mod store_faults;
#[cfg(test)]
mod switches;
#[cfg(test)]
mod taint;
#[cfg(test)]
mod tenant_config;
#[cfg(test)]
mod tenant_docs;
#[cfg(test)]
mod tenant_report;
#[cfg(test)]
mod tenant_secrets;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod toolset_codes;
#[cfg(test)]
mod toolset_docs;
#[cfg(test)]
mod toolset_hints;
#[cfg(test)]
mod toolset_tokens;
#[cfg(test)]
mod trace_backend;
#[cfg(test)]
mod trace_tables;
#[cfg(test)]
mod traces;
mod turn_api;
#[cfg(test)]
mod unrecorded;
#[cfg(test)]
mod untrusted_store;
#[cfg(test)]
mod upstream_assignment;
mod upstream_canary;
#[cfg(test)]
mod upstream_fetch;
#[cfg(test)]
mod upstream_hostile;
#[cfg(test)]
mod upstream_real;
#[cfg(test)]
mod upstream_ssrf;
#[cfg(test)]
mod upstream_tokens;
#[cfg(test)]
mod upstream_yard;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod webhooks;
