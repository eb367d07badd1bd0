{{- /* Models, keys and certificates: what is mounted where, and how models are downloaded. */ -}}
{{- define "longview.mounts" -}}
{{- if ne .Values.models.source "bundled" }}
- name: models
  mountPath: /mnt/models
  readOnly: true
  {{- if and (eq .Values.models.source "volume") .Values.models.volume.subPath }}
  subPath: {{ .Values.models.volume.subPath }}
  {{- end }}
{{- end }}
{{- if .Values.apiKeys.secretName }}
- name: keys
  mountPath: /etc/longview/keys
  readOnly: true
{{- end }}
{{- if .Values.tls.secretName }}
- name: tls
  mountPath: /etc/longview/tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "longview.volumes" -}}
{{- if eq .Values.models.source "volume" }}
- name: models
  persistentVolumeClaim:
    claimName: {{ required "models.volume.claimName is needed with models.source=volume" .Values.models.volume.claimName }}
    readOnly: true
{{- else if eq .Values.models.source "image" }}
- name: models
  image:
    reference: {{ required "models.image.reference is needed with models.source=image" .Values.models.image.reference }}
    pullPolicy: {{ .Values.models.image.pullPolicy }}
{{- else if eq .Values.models.source "download" }}
- name: models
  emptyDir:
    sizeLimit: {{ .Values.models.download.sizeLimit }}
{{- end }}
{{- if .Values.apiKeys.secretName }}
- name: keys
  secret:
    secretName: {{ .Values.apiKeys.secretName }}
    defaultMode: 0440
{{- end }}
{{- if .Values.tls.secretName }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "longview.download" -}}
{{- $download := .Values.models.download }}
{{- $repository := required "models.download.repository is needed with models.source=download" $download.repository }}
{{- $revision := required "models.download.revision is needed with models.source=download" $download.revision }}
- name: download
  image: {{ $download.image }}
  command: ["/bin/sh", "-ec"]
  args:
    - |
      mkdir -p "/mnt/models/{{ base $repository }}"
      cd "/mnt/models/{{ base $repository }}"
      {{- range $download.files }}
      mkdir -p "$(dirname '{{ .path }}')"
      curl --fail --silent --show-error --location --retry 5 --output '{{ .path }}' \
        '{{ $download.endpoint | trimSuffix "/" }}/{{ $repository }}/resolve/{{ $revision }}/{{ .path }}'
      echo '{{ .sha256 }}  {{ .path }}' | sha256sum -c -
      {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: ["ALL"]
  resources:
    requests: {cpu: 100m, memory: 64Mi}
    limits: {memory: 256Mi}
  volumeMounts:
    - name: models
      mountPath: /mnt/models
{{- end }}
