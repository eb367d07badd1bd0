{{- define "longview.labels" -}}
{{ include "longview.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "longview.selector" -}}
app.kubernetes.io/name: longview
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "longview.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{- define "longview.flags" -}}
- --host=0.0.0.0
- --grpc_port={{ .Values.server.grpcPort }}
- --http_port={{ .Values.server.httpPort }}
- --device={{ .Values.server.device }}
- --dtype={{ .Values.server.dtype }}
- --drain_seconds={{ .Values.server.drainSeconds }}
- --shutdown_seconds={{ .Values.server.shutdownSeconds }}
- --max_connection_age_seconds={{ .Values.server.maxConnectionAgeSeconds }}
- --max_queue_seconds={{ .Values.server.maxQueueSeconds }}
- --cache_bytes={{ .Values.server.cacheBytes }}
- --log_format=json
- --log_level={{ .Values.server.logLevel }}
{{- if ne .Values.models.source "bundled" }}
- --models=/mnt/models
{{- end }}
{{- if .Values.apiKeys.secretName }}
- --api_keys_file=/etc/longview/keys/keys
{{- end }}
{{- if .Values.tls.secretName }}
- --admin_port={{ .Values.server.adminPort }}
- --tls_cert=/etc/longview/tls/tls.crt
- --tls_key=/etc/longview/tls/tls.key
{{- if .Values.tls.mutual }}
- --tls_client_ca=/etc/longview/tls/ca.crt
{{- end }}
{{- end }}
{{- range .Values.server.extraFlags }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- /* One probe; the gRPC kind speaks plaintext only, so TLS moves it to the admin port. */ -}}
{{- define "longview.probe" -}}
{{- if .root.Values.tls.secretName -}}
httpGet:
  port: {{ .root.Values.server.adminPort }}
  path: {{ if eq .service "liveness" }}/livez{{ else }}/readyz{{ end }}
{{- else -}}
grpc:
  port: {{ .root.Values.server.grpcPort }}
  service: {{ .service }}
{{- end }}
{{- end }}
