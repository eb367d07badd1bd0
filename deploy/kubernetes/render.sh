#!/usr/bin/env bash
# Writes base/ and the generated files of overlays/ from the Helm chart, so that both come from
# one set of facts (helm/longview/values.yaml). Needs helm 3.
#
#   deploy/kubernetes/render.sh [FOLDER]      # FOLDER instead of deploy/kubernetes
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
chart=$here/../helm/longview
out=${1:-$here}
mkdir -p "$out"/{base,overlays/{cpu,monitoring,secured},samples}

# $1: template, $2: file, $3...: values
render() {
  local template=$1 file=$2 rendered
  shift 2
  rendered=$(helm template longview "$chart" --namespace longview --kube-version 1.33 \
    --show-only "templates/$template.yaml" "$@")
  {
    echo "# Written by deploy/kubernetes/render.sh from the Helm chart; edit that."
    grep -v '^# Source:' <<<"$rendered" | sed 's/[ \t]*$//'
  } >"$out/$file"
}

# Nobody's count of pods: the Deployments have none, so that applying them leaves the one that an
# autoscaler or `kubectl scale` has set.
for part in deployment services serviceaccount poddisruptionbudget networkpolicy; do
  render $part base/$part.yaml --set autoscaling.kind=hpa
  render $part overlays/secured/$part.yaml --set autoscaling.kind=hpa \
    --set apiKeys.secretName=longview-keys --set tls.secretName=longview-tls
done
render autoscaling overlays/cpu/hpa.yaml --set autoscaling.kind=hpa
render autoscaling samples/keda-scaledobject.yaml --set autoscaling.kind=keda
render podmonitor overlays/monitoring/podmonitor.yaml --set monitoring.podMonitor=true
render prometheusrule overlays/monitoring/prometheusrule.yaml --set monitoring.rules=true
render dashboards overlays/monitoring/dashboards.yaml --set monitoring.dashboards=true
