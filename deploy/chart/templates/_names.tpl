{{/* Names and labels that all objects share. */}}

{{- define "quartermaster.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "quartermaster.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "quartermaster.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "quartermaster.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "quartermaster.selector" -}}
app.kubernetes.io/name: {{ include "quartermaster.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "quartermaster.redis.selector" -}}
app.kubernetes.io/name: {{ include "quartermaster.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: trial-redis
{{- end -}}

{{- define "quartermaster.common" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "quartermaster.labels" -}}
{{ include "quartermaster.selector" . }}
{{ include "quartermaster.common" . }}
{{- end -}}

{{- define "quartermaster.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "quartermaster.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "quartermaster.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s:%s@%s" .Values.image.repository $tag .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{/* The hosts of `resource` and of the console, as YAML; without ports, for which a route has no place. */}}
{{- define "quartermaster.hosts" -}}
{{- $hosts := list (urlParse .Values.resource).hostname -}}
{{- if and .Values.console.enabled .Values.console.address -}}
{{- $hosts = append $hosts (urlParse .Values.console.address).hostname -}}
{{- end -}}
{{- $hosts | uniq | toYaml -}}
{{- end -}}

{{- define "quartermaster.tenantsConfigMap" -}}
{{- default (printf "%s-tenants" (include "quartermaster.fullname" .)) .Values.tenantsConfigMap -}}
{{- end -}}

{{/* Whether tenants are resources, and a container beside the gateway writes its folder. */}}
{{- define "quartermaster.sync" -}}
{{- if .Values.operator.tenants.enabled -}}
{{- if not .Values.operator.enabled -}}
{{- fail "operator.tenants.enabled needs operator.enabled: the operator says what became of a Tenant" -}}
{{- end -}}
{{- if or .Values.tenants .Values.tenantsConfigMap .Values.tenantSecrets -}}
{{- fail "operator.tenants.enabled makes tenants resources: tenants, tenantsConfigMap and tenantSecrets must be empty" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}
