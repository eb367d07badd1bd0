"""Rules for every pod and service of ours; each yields its violations, in words."""

from manifests import flags, pods


def seconds(container, name):
    return int(flags(container)[name])


def pod_rules(name, pod):
    """Rules of one pod spec."""
    server = next(c for c in pod["containers"] if c["name"] in ("server", "kserve-container"))
    if pod.get("enableServiceLinks") is not False:
        yield "enableServiceLinks must be false: LONGVIEW_*_PORT would reach the server"
    if pod.get("automountServiceAccountToken") is not False:
        yield "no token of a service account may be mounted"
    grace = seconds(server, "drain_seconds") + seconds(server, "shutdown_seconds") + 10
    if pod.get("terminationGracePeriodSeconds") != grace:
        yield f"terminationGracePeriodSeconds must be {grace}: drain + shutdown + 10"
    keys = {constraint["topologyKey"] for constraint in pod.get("topologySpreadConstraints", [])}
    if keys != {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}:
        yield "pods must spread over nodes and zones"
    context = pod.get("securityContext", {})
    if not context.get("runAsNonRoot") or context.get("runAsUser") != 10001:
        yield "must run as user 10001"
    if context.get("runAsGroup") != 0:
        yield "must run in group 0"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "seccomp profile must be RuntimeDefault"
    for container in pod["containers"] + pod.get("initContainers", []):
        for problem in container_rules(container):
            yield f"{container['name']}: {problem}"
    yield from probe_rules(server)
    if "lifecycle" in server:
        yield "needs no hook: the server drains by itself"


def container_rules(container):
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation must be false"
    if not context.get("readOnlyRootFilesystem"):
        yield "the root file system must be read-only"
    if context.get("capabilities", {}).get("drop") != ["ALL"]:
        yield "all capabilities must be dropped"
    resources = container.get("resources", {})
    if "memory" not in resources.get("limits", {}) or "cpu" not in resources.get("requests", {}):
        yield "needs a memory limit and a CPU request"
    image = container["image"]
    if image.endswith(":latest") or (":" not in image.rpartition("/")[2] and "@" not in image):
        yield f"image {image} must have a version"


def probe_rules(server):
    """gRPC probes by number in the clear; on the admin port where TLS is on."""
    given = flags(server)
    secured = "tls_cert" in given
    ports = {port["containerPort"] for port in server["ports"]}
    for name, service, path in (("startupProbe", "readiness", "/readyz"),
                                ("readinessProbe", "readiness", "/readyz"),
                                ("livenessProbe", "liveness", "/livez")):
        probe = server.get(name, {})
        if secured:
            wanted = {"port": int(given["admin_port"]), "path": path}
            if probe.get("httpGet") != wanted:
                yield f"{name} must ask {wanted} with TLS"
        elif probe.get("grpc") != {"port": int(given["grpc_port"]), "service": service}:
            yield f"{name} must ask gRPC service {service} on the number of the gRPC port"
        asked = probe.get("httpGet", probe.get("grpc", {})).get("port")
        if asked not in ports:
            yield f"{name} asks port {asked}, which the container does not name"
    if server.get("startupProbe", {}).get("failureThreshold", 0) * 5 < 300:
        yield "startup must be given at least 5 minutes"


def service_rules(service, secured):
    ports = {port["name"]: port for port in service["spec"]["ports"]}
    wanted = {"grpc": "https" if secured else "kubernetes.io/h2c",
              "http": "https" if secured else "http"}
    for name, port in ports.items():
        if port.get("appProtocol") != wanted.get(name):
            yield f"port {name} must have appProtocol {wanted.get(name)}"
    if "grpc" not in ports:
        yield "needs a port named grpc"


def whole_rules(documents):
    """Rules of a complete deployment."""
    kinds = {}
    for document in documents:
        kinds.setdefault(document["kind"], []).append(document)
    for deployment in kinds.get("Deployment", []):
        rolling = deployment["spec"]["strategy"]["rollingUpdate"]
        if rolling["maxUnavailable"] != 0:
            yield "a roll-out must never take a server away before its successor is ready"
    secured = any("tls_cert" in flags(pod["containers"][0]) for _, pod in pods(documents))
    services = kinds.get("Service", [])
    for service in services:
        yield from service_rules(service, secured)
    if not any(service["spec"].get("clusterIP") == "None" for service in services):
        yield "needs a headless service for clients that balance themselves"
    for kind in ("PodDisruptionBudget", "NetworkPolicy", "ServiceAccount"):
        if kind not in kinds:
            yield f"needs a {kind}"
    for policy in kinds.get("NetworkPolicy", []):
        if sorted(policy["spec"]["policyTypes"]) != ["Egress", "Ingress"]:
            yield "the network policy must name both directions"
    for account in kinds.get("ServiceAccount", []):
        if account.get("automountServiceAccountToken") is not False:
            yield "the service account must not hand out tokens"
    scaled = {"HorizontalPodAutoscaler", "ScaledObject"} & set(kinds)
    for deployment in kinds.get("Deployment", []):
        if scaled and "replicas" in deployment["spec"]:
            yield "replicas and an autoscaler must not fight"


def violations(documents):
    found = [f"{name}: {problem}" for name, pod in pods(documents)
             for problem in pod_rules(name, pod)]
    return found + list(whole_rules(documents))
