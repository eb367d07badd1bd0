#!/usr/bin/env bash
# The two Secrets that the chart can mount. Keys and certificates are re-read when they change.
set -euo pipefail
namespace=${1:-longview}
kubectl -n "$namespace" create secret generic longview-keys \
  --from-literal=keys="team-a:$(openssl rand -hex 32)"
kubectl -n "$namespace" create secret tls longview-tls --cert=tls.crt --key=tls.key
# Then: helm upgrade longview deploy/helm/longview \
#   --set apiKeys.secretName=longview-keys --set tls.secretName=longview-tls
