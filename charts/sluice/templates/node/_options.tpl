{{- /*
SPDX-License-Identifier: Apache-2.0
SPDX-FileCopyrightText: The Sluice authors
*/ -}}
{{- /* The options of sluice-noded, from the values of a pair. */ -}}
{{- define "sluice.nodeOptions" -}}
{{- $node := .node -}}
{{- include "sluice.option" (list "grants" .hostPaths.root) }}
{{- include "sluice.option" (list "policy" $node.policy) }}
{{- include "sluice.option" (list "lanes" $node.lanes) }}
{{- include "sluice.option" (list "claims" $node.claims) }}
{{- include "sluice.option" (list "lend" $node.lend) }}
{{- include "sluice.option" (list "reserve" .reserve) }}
{{- include "sluice.option" (list "pool" $node.pool) }}
{{- include "sluice.option" (list "host-memory" $node.hostMemory) }}
{{- include "sluice.option" (list "residents" $node.residents) }}
{{- include "sluice.option" (list "slice" $node.slice) }}
{{- include "sluice.option" (list "lease-wait" $node.leaseWait) }}
{{- include "sluice.option" (list "patience" $node.patience) }}
{{- include "sluice.option" (list "lease-unit" $node.leaseUnit) }}
{{- include "sluice.option" (list "handle" $node.handle) }}
{{- include "sluice.option" (list "event-log" $node.eventLog) }}
{{- /* What a pod's annotations say comes from the device plugin: wait for it, or go by what was granted. */ -}}
{{- include "sluice.option" (list "terms" (.annotations.enabled | ternary "wait" "off")) }}
{{- end }}
