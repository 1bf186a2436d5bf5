{{/* The settings file: what the chart sets by itself, and under it what the values say. */}}

{{/* A value as TOML. Numbers of a values file arrive as floats, whole ones included, and the service wants integers. */}}
{{- define "quartermaster.toml" -}}
{{- if kindIs "map" . -}}
{ {{- range $at, $key := keys . | sortAlpha }}{{ if $at }}, {{ end }}{{ toRawJson $key }} = {{ include "quartermaster.toml" (get $ $key) }}{{ end -}} }
{{- else if kindIs "slice" . -}}
[ {{- range $at, $item := . }}{{ if $at }}, {{ end }}{{ include "quartermaster.toml" $item }}{{ end -}} ]
{{- else if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else -}}
{{- toRawJson . -}}
{{- end -}}
{{- end -}}

{{/* Keys that the chart sets, and the value that changes each of them. */}}
{{- define "quartermaster.owned" -}}
listen.address: ports.http
listen.drain: shutdown.drainSeconds
telemetry.metrics_listen: ports.metrics
identity.resource: resource
calls.key_file: serviceKey
calls.older_key_files: serviceKey.older
tenants.dir: tenants
tenants.secrets: tenantSecrets
tenants.report: operator.tenants
upstreams.cache: nothing
upstreams.catalog: servers
store.url: redis
store.sentinel_password: redis.sentinelPasswordSecret
console.enabled: console.enabled
console.listen: nothing, it is served beside the tools
console.address: console.address
{{- end -}}

{{- define "quartermaster.settings" -}}
{{- $given := deepCopy .Values.settings -}}
{{- range $path, $value := include "quartermaster.owned" . | fromYaml -}}
{{- $section := get $given (splitList "." $path | first) | default dict -}}
{{- if hasKey $section (splitList "." $path | last) -}}
{{- fail (printf "settings.%s is set by the chart; the value for it is: %s" $path $value) -}}
{{- end -}}
{{- end -}}
{{- $issuers := get (get $given "identity" | default dict) "issuers" -}}
{{- if not $issuers -}}
{{- fail "settings.identity.issuers is empty, and there is no anonymous access: name at least one issuer of tokens" -}}
{{- end -}}
{{- $name := include "quartermaster.fullname" . -}}
{{- $port := eq (int .Values.service.port) 80 | ternary "" (printf ":%d" (int .Values.service.port)) -}}
{{- /* What agents inside the cluster call it, besides the host of `resource`. */ -}}
{{- $hosts := list -}}
{{- range list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $hosts = append $hosts (printf "%s%s" . $port) -}}
{{- end -}}
{{- $hosts = concat $hosts (get (get $given "listen" | default dict) "hosts" | default list) -}}
{{- $older := list -}}
{{- range .Values.serviceKey.older -}}
{{- $older = append $older (printf "/etc/quartermaster/key/%s" .) -}}
{{- end -}}
{{- $own := dict
  "listen" (dict "address" (printf "0.0.0.0:%d" (int .Values.ports.http)) "drain" (printf "%ds" (int .Values.shutdown.drainSeconds)))
  "telemetry" (dict "metrics_listen" (printf "0.0.0.0:%d" (int .Values.ports.metrics)))
  "identity" (dict "resource" .Values.resource)
  "calls" (dict "key_file" (printf "/etc/quartermaster/key/%s" .Values.serviceKey.key) "older_key_files" $older)
  "tenants" (dict "dir" "/etc/quartermaster/tenants" "secrets" "/etc/quartermaster/tenant-secrets")
  "upstreams" (dict "cache" "/var/cache/quartermaster" "catalog" (ternary "/etc/quartermaster/catalog" "" (not (empty .Values.servers))))
-}}
{{- with include "quartermaster.store" . | fromYaml -}}
{{- $own = mergeOverwrite $own (dict "store" .) -}}
{{- end -}}
{{- /* A service without a console knows no such section, so it is only named when it is wanted. */ -}}
{{- if .Values.console.enabled -}}
{{- $own = mergeOverwrite $own (dict "console" (dict "enabled" true "address" .Values.console.address)) -}}
{{- end -}}
{{- if include "quartermaster.sync" . -}}
{{- $own = mergeOverwrite $own (dict "tenants" (dict "report" "/var/lib/quartermaster/report/tenants.json")) -}}
{{- end -}}
{{- $all := mergeOverwrite $own $given (dict "listen" (dict "hosts" $hosts)) -}}
{{- range $section := keys $all | sortAlpha }}
[{{ $section }}]
{{- range $key := keys (get $all $section) | sortAlpha }}
{{ $key }} = {{ include "quartermaster.toml" (get (get $all $section) $key) }}
{{- end }}
{{ end -}}
{{- end -}}

{{/* The section `store`, as far as it holds no secret. */}}
{{- define "quartermaster.store" -}}
{{- if eq .Values.redis.topology "bundled" -}}
url: redis://{{ include "quartermaster.fullname" . }}-trial-redis:6379
{{- else if not .Values.redis.urlSecret.name -}}
{{- if not .Values.redis.url -}}
{{- fail "redis.url is empty: name a Redis, or redis.urlSecret, or set redis.topology to bundled for a trial" -}}
{{- end -}}
{{- $plus := dict "single" "" "sentinel" "+sentinel" "cluster" "+cluster" -}}
{{- $scheme := get $plus .Values.redis.topology -}}
{{- if not (regexMatch (printf "^rediss?%s://" (regexQuoteMeta $scheme)) .Values.redis.url) -}}
{{- fail (printf "redis.url does not fit redis.topology %s: it begins with redis%s:// or rediss%s://" .Values.redis.topology $scheme $scheme) -}}
{{- end -}}
url: {{ .Values.redis.url | quote }}
{{- end -}}
{{- end -}}
