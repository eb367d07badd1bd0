#!/usr/bin/env bash
# Installs what the tests of the manifests use beyond Python packages: helm and kustomize (Go
# modules, three minutes of compiling) and the schemas of the projects that the
# manifests speak to, under .deps/. Idempotent; tests/run.sh --slow calls it.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"

HELM=v3.16.4
KUSTOMIZE=v5.4.3
go=$(command -v go || find "$DEPS_DIR/go" -path '*bin/go' -type f | head -1)
export GOBIN=$DEPS_DIR/bin GOPATH=$DEPS_DIR/gopath GOFLAGS=-modcacherw GOTOOLCHAIN=local

mkdir -p "$DEPS_DIR/bin" "$DEPS_DIR/schemas"
[ -x "$DEPS_DIR/bin/helm" ] || "$go" install "helm.sh/helm/v3/cmd/helm@$HELM" >&2
[ -x "$DEPS_DIR/bin/kustomize" ] ||
  "$go" install "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE" >&2

# $1: module, $2: version, $3: folder of its schemas, $4: how their names end (yaml)
schemas() {
  local target
  target=$DEPS_DIR/schemas/$(basename "${1%/v[0-9]}")
  [ ! -d "$target" ] || return 0
  note "schemas of $1 $2"
  "$go" mod download "$1@$2" >&2
  mkdir -p "$target.part"
  cp "$GOPATH/pkg/mod/$1@$2/$3"/*."${4:-yaml}" "$target.part/"
  chmod -R u+w "$target.part"
  mv "$target.part" "$target"
}
schemas github.com/kserve/kserve v0.13.0 config/crd/full
schemas github.com/prometheus-operator/prometheus-operator v0.85.0 \
  example/prometheus-operator-crd
schemas github.com/kedacore/keda/v2 v2.21.0 config/crd/bases
schemas github.com/compose-spec/compose-go/v2 v2.9.1 schema json
schemas sigs.k8s.io/gateway-api-inference-extension v1.0.0 config/crd/bases
