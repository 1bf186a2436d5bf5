//! The codes that the toolsets `k8s` and `argo` raise. Helm raises some of them too.

domain::tool_codes! {
    /// The cluster knows no such kind.
    UNKNOWN_KIND = "unknown_kind": NotFound,
    /// Several kinds answer to the name.
    AMBIGUOUS_KIND = "ambiguous_kind": Invalid,
    /// The kind has no such field.
    UNKNOWN_FIELD = "unknown_field": NotFound,
    /// The manifest cannot be read, or is none.
    INVALID_MANIFEST = "invalid_manifest": Invalid,
    /// The tenant has several clusters, and none was named.
    CLUSTER_REQUIRED = "cluster_required": Invalid,
    /// The tenant has no cluster of that name.
    CLUSTER_UNKNOWN = "cluster_unknown": NotFound,
    /// The namespace is not one of those the tenant may use.
    NAMESPACE_DENIED = "namespace_denied": Forbidden,
    /// What the product or the tenant protects is left alone.
    PROTECTED = "protected": Forbidden,
    /// The image's registry is not one of those the tenant may use.
    IMAGE_DENIED = "image_denied": Forbidden,
    /// There would be more replicas than the tenant allows.
    REPLICAS_DENIED = "replicas_denied": Forbidden,
    /// An admission rule of the target said no.
    DENIED_BY_ADMISSION = "denied_by_admission": Forbidden,
    /// The field cannot be changed once set.
    IMMUTABLE_FIELD = "immutable_field": Conflict,
    /// Something of that name is there already.
    ALREADY_EXISTS = "already_exists": Conflict,
    /// Fields belong to another manager.
    FIELD_CONFLICT = "field_conflict": Conflict,
    /// The workload does not run as many replicas as was said.
    REPLICAS_CHANGED = "replicas_changed": Conflict,
    /// Another object has taken the name meanwhile.
    UID_CHANGED = "uid_changed": Conflict,
    /// Manifest and argument name different namespaces.
    NAMESPACE_CONFLICT = "namespace_conflict": Invalid,
    /// The kind has no replicas to set.
    NOT_SCALABLE = "not_scalable": Unprocessable,
    /// The server of the kind may not know dry runs.
    DRY_RUN_UNSUPPORTED = "dry_run_unsupported": Unprocessable,
    /// The kind cannot be patched strategically.
    STRATEGIC_UNSUPPORTED = "strategic_unsupported": Unprocessable,
    /// The tool does not work with that kind.
    UNSUPPORTED_KIND = "unsupported_kind": Unprocessable,
    /// The workload has no such revision.
    REVISION_NOT_FOUND = "revision_not_found": NotFound,
    /// The rollout is paused.
    ROLLOUT_PAUSED = "rollout_paused": Conflict,
    /// The pod has several containers, and none was named.
    CONTAINER_REQUIRED = "container_required": Invalid,
    /// The pod has no such container.
    CONTAINER_NOT_FOUND = "container_not_found": NotFound,
    /// The container has not run before.
    NO_PREVIOUS_LOGS = "no_previous_logs": NotFound,
    /// More pods match than one call may look at.
    TOO_MANY_PODS = "too_many_pods": Unprocessable,
    /// A disruption budget does not allow it now.
    PDB_BLOCKED = "pdb_blocked": Conflict retry,
    /// A pod keeps data that would be lost.
    EMPTYDIR_DATA = "emptydir_data": Conflict,
    /// A pod has nobody who would start it again.
    UNMANAGED_PODS = "unmanaged_pods": Conflict,
    /// The container has no such command.
    COMMAND_NOT_FOUND = "command_not_found": Unprocessable,
    /// Nothing listens there.
    CONNECTION_REFUSED = "connection_refused": BadGateway,
    /// The service has nobody behind it.
    NO_ENDPOINTS = "no_endpoints": BadGateway,
    /// The cluster measures nothing.
    METRICS_UNAVAILABLE = "metrics_unavailable": Unavailable,
    /// The cluster does not know Argo Rollouts.
    ARGO_NOT_INSTALLED = "argo_not_installed": Conflict,
    /// The rollout waits for nothing.
    NOTHING_TO_PROMOTE = "nothing_to_promote": Conflict,
    /// The newest version serves already.
    ALREADY_STABLE = "already_stable": Conflict,
    /// The rollout is not on its way.
    NOT_IN_PROGRESS = "not_in_progress": Conflict,
    /// The rollout was not aborted.
    NOT_ABORTED = "not_aborted": Conflict,
    /// The rollout takes its template from a kind that cannot be changed here.
    UNSUPPORTED_WORKLOAD = "unsupported_workload": Unprocessable,
}
