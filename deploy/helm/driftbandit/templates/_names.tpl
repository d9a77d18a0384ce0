{{- define "driftbandit.labels" -}}
app.kubernetes.io/name: driftbandit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
