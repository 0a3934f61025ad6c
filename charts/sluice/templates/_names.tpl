{{- /*
SPDX-License-Identifier: Apache-2.0
SPDX-FileCopyrightText: The Sluice authors
*/ -}}
{{- /* Names, labels and the image. A context is the chart's, or that of a pair (_pairs.tpl). */ -}}

{{- define "sluice.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.fullname" -}}
{{- $name := include "sluice.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "sluice.namespace" -}}
{{ default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "sluice.serviceAccount" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "sluice.fullname" .) "default" -}}
{{ default $own .Values.serviceAccount.name }}
{{- end }}

{{- /* What all pods of the release have in common. */ -}}
{{- define "sluice.releaseLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "sluice.releaseLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The version of the programs in the image. */ -}}
{{- define "sluice.version" -}}
{{ default .Chart.AppVersion .Values.image.version }}
{{- end }}

{{- define "sluice.image" -}}
{{- $image := .Values.image -}}
{{- with default $image.registry .Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end }}
