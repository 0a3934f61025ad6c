{{- /*
SPDX-License-Identifier: Apache-2.0
SPDX-FileCopyrightText: The Sluice authors
*/ -}}
{{- /* The options of sluice-device-plugin: (dict "values" VALUES_OF_A_PAIR "library" FOLDER). */ -}}
{{- define "sluice.pluginOptions" -}}
{{- $values := .values -}}
{{- $plugin := $values.devicePlugin -}}
{{- include "sluice.option" (list "resource" $plugin.resource) }}
{{- include "sluice.option" (list "root" $values.hostPaths.root) }}
{{- include "sluice.option" (list "library" .library) }}
{{- include "sluice.option" (list "ready-file" "/run/sluice-device-plugin/registered") }}
{{- include "sluice.option" (list "gpus" $values.node.gpus) }}
{{- include "sluice.option" (list "granule" $plugin.granule) }}
{{- include "sluice.option" (list "reserve" $values.reserve) }}
{{- include "sluice.option" (list "packing" $plugin.packing) }}
{{- include "sluice.option" (list "probation" $plugin.probation) }}
{{- range $plugin.ignoreXids }}
{{- include "sluice.option" (list "ignore-xid" .) }}
{{- end }}
{{- include "sluice.option" (list "foreign-gpus" $plugin.foreignGpus) }}
{{- include "sluice.option" (list "driver-limit" (include "sluice.onOff" $plugin.driverLimit)) }}
{{- include "sluice.option" (list "driver-charges" $plugin.driverCharges) }}
{{- include "sluice.option" (list "visible-devices" ($plugin.visibleDevices | ternary "on" "off")) }}
{{- if eq $values.compute "mps" }}
{{- include "sluice.option" (list "compute" "mps") }}
{{- include "sluice.option" (list "mps-dir" (printf "%s/mps" $values.hostPaths.root)) }}
{{- include "sluice.option" (list "mps-version" $values.mpsVersion) }}
{{- end }}
{{- range $name, $value := $plugin.containerEnv }}
{{- include "sluice.option" (list "env" (printf "%s=%s" $name $value)) }}
{{- end }}
{{- range $plugin.containerMounts }}
{{- $mode := (eq (toString .readOnly) "false") | ternary "rw" "ro" }}
{{- include "sluice.option" (list "mount" (printf "%s:%s:%s" .hostPath .mountPath $mode)) }}
{{- end }}
{{- $metrics := "off" -}}
{{- with $plugin.metricsPort }}{{ $metrics = printf "%s:%v" $values.metricsAddress . }}{{ end -}}
{{- include "sluice.option" (list "metrics" $metrics) }}
{{- if or $values.annotations.enabled $plugin.metricsPort }}
{{- include "sluice.option" (list "node" "$(NODE_NAME)") }}
{{- end }}
{{- include "sluice.option" (list "annotations" ($values.annotations.enabled | ternary "on" "off")) }}
{{- if $values.annotations.enabled }}
{{- include "sluice.option" (list "trust" $values.annotations.trust) }}
{{- if $values.annotations.namespaces }}
{{- include "sluice.option" (list "namespaces" "/etc/sluice/namespaces.yaml") }}
{{- end }}
{{- end }}
{{- end }}
{{- /* YAML takes on and off without quotes for true and false. */ -}}
{{- define "sluice.onOff" -}}
{{- $text := toString . -}}
{{- if eq $text "true" }}on{{ else if eq $text "false" }}off{{ else }}{{ $text }}{{ end -}}
{{- end }}
