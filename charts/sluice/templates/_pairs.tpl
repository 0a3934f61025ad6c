{{- /*
SPDX-License-Identifier: Apache-2.0
SPDX-FileCopyrightText: The Sluice authors
*/ -}}
{{- /*
There is a pair of DaemonSets, sluice-node and sluice-device-plugin, for the nodes without a configuration of their own
("default"), and one for each of nodeConfigs. The context of a pair has its name and its values.
*/ -}}

{{- /* The name of a pair's DaemonSet: (dict "context" C "component" NAME). */ -}}
{{- define "sluice.daemonSetName" -}}
{{ include "sluice.fullname" .context }}-{{ .component }}{{ if ne .context.pair "default" }}-{{ .context.pair }}{{ end }}
{{- end }}

{{- /* The pair is in it from the beginning, because a selector never changes. */ -}}
{{- define "sluice.selectorLabels" -}}
{{ include "sluice.releaseLabels" .context }}
app.kubernetes.io/component: {{ .component }}
sluice.dev/config: {{ .context.pair }}
{{- end }}
