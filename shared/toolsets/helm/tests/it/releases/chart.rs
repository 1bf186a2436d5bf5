//! The chart of these tests: a web server with a secret, notes, a test, and whatever a test switches on.

pub(crate) const VALUES: &str = "replicas: 2
image: registry.example/web:1.0
password: canary-hunter2
greeting: hello
hook: false
role: false
elsewhere: ''
privileged: false
";

pub(crate) const TEMPLATE: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: { name: {{ .Release.Name }}-web }
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: {{ .Release.Name }} } }
  template:
    metadata: { labels: { app: {{ .Release.Name }} } }
    spec:
      containers:
      - name: web
        image: {{ .Values.image | quote }}
        {{- if .Values.privileged }}
        securityContext: { privileged: true }
        {{- end }}
---
apiVersion: v1
kind: Secret
metadata: { name: {{ .Release.Name }}-auth }
stringData: { password: {{ .Values.password | quote }} }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
  {{- with .Values.elsewhere }}
  namespace: {{ . }}
  {{- end }}
data:
  greeting: {{ .Values.greeting | quote }}
  url: "postgres://app:{{ .Values.password }}@db/app"
{{- if .Values.role }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: {{ .Release.Name }}-role }
rules: [{ apiGroups: [""], resources: [pods], verbs: [get] }]
{{- end }}
"#;

pub(crate) const NOTES: &str = "{{ .Release.Name }} is there; its password is {{ .Values.password }}.\n";

pub(crate) const TEST: &str = r#"apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-check
  annotations: { "helm.sh/hook": test, "helm.sh/hook-delete-policy": before-hook-creation }
spec:
  restartPolicy: Never
  containers:
  - { name: check, image: registry.example/tools:1, command: [echo, "all good"] }
"#;

pub(crate) const HOOK: &str = r#"{{- if .Values.hook }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations: { "helm.sh/hook": "pre-upgrade", "helm.sh/hook-delete-policy": before-hook-creation }
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - { name: migrate, image: registry.example/tools:1, command: [sleep, "3600"] }
{{- end }}
"#;

/// Its files.
pub(crate) fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("values.yaml", VALUES),
        ("templates/all.yaml", TEMPLATE),
        ("templates/NOTES.txt", NOTES),
        ("templates/test.yaml", TEST),
        ("templates/hook.yaml", HOOK),
    ]
}

/// An image that is never there, so that what uses it never becomes ready.
pub(crate) const MISSING: &str = "registry.example/web:does-not-exist";
