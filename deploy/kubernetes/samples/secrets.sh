#!/usr/bin/env bash
# The two Secrets that the chart can mount, from tls.crt and tls.key here, and ca.crt where it is:
# tls.mutual=true asks clients for certificates of that authority. Keys and certificates are re-read
# when they change.
set -euo pipefail
namespace=${1:-longview}
authority=()
[ ! -f ca.crt ] || authority=(--from-file=ca.crt)
kubectl -n "$namespace" create secret generic longview-keys \
  --from-literal=keys="team-a:$(openssl rand -hex 32)"
kubectl -n "$namespace" create secret generic longview-tls --type=kubernetes.io/tls \
  --from-file=tls.crt --from-file=tls.key ${authority[@]+"${authority[@]}"}
# Then: helm upgrade longview deploy/helm/longview \
#   --set apiKeys.secretName=longview-keys --set tls.secretName=longview-tls
