#include "server/security/roles.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace longview::server {
namespace {

struct Rule {
  std::string_view method;
  Permission permission;
};

constexpr Rule kRules[] = {
    {"/", Permission::kOpen},
    {"/livez", Permission::kOpen},
    {"/readyz", Permission::kOpen},
    {"/metrics", Permission::kOpen},
    {"/version", Permission::kOpen},
    {"/api/version", Permission::kOpen},
    {"/health", Permission::kOpen},
    {"/v2/health/live", Permission::kOpen},
    {"/v2/health/ready", Permission::kOpen},
    {"/v2/models/{m}/ready", Permission::kOpen},
    {"/v2/models/{m}/versions/{v}/ready", Permission::kOpen},
    {"ServerLive", Permission::kOpen},
    {"ServerReady", Permission::kOpen},
    {"ModelReady", Permission::kOpen},

    {"other", Permission::kAnyKey},
    {"", Permission::kAnyKey},
    {"/openapi.json", Permission::kAnyKey},
    {"/docs", Permission::kAnyKey},
    {"/tokenize", Permission::kInfer},
    {"/detokenize", Permission::kInfer},
    {"/v2", Permission::kAnyKey},
    {"/v2/models/{m}", Permission::kAnyKey},
    {"/v2/models/{m}/versions/{v}", Permission::kAnyKey},
    {"/v2/models/{m}/config", Permission::kAnyKey},
    {"/v2/models/{m}/versions/{v}/config", Permission::kAnyKey},
    {"/v2/repository/index", Permission::kAnyKey},
    {"/v1/models", Permission::kAnyKey},
    {"/v1/models/{id}", Permission::kAnyKey},
    {"/api/tags", Permission::kAnyKey},
    {"ServerMetadata", Permission::kAnyKey},
    {"ModelMetadata", Permission::kAnyKey},
    {"ModelConfig", Permission::kAnyKey},
    {"RepositoryIndex", Permission::kAnyKey},
    {"ListModels", Permission::kAnyKey},
    {"GetModel", Permission::kAnyKey},
    {"ServerReflectionInfo", Permission::kAnyKey},
    {"List", Permission::kAnyKey},

    {"/v2/models/{m}/infer", Permission::kInfer},
    {"/v2/models/{m}/versions/{v}/infer", Permission::kInfer},
    {"/v1/embeddings", Permission::kInfer},
    {"/v1/completions", Permission::kInfer},
    {"/v1/rerank", Permission::kInfer},
    {"/v2/rerank", Permission::kInfer},
    {"/v1/embed", Permission::kInfer},
    {"/v2/embed", Permission::kInfer},
    {"/api/embed", Permission::kInfer},
    {"/api/embeddings", Permission::kInfer},
    {"/score", Permission::kInfer},
    {"/similarity", Permission::kInfer},
    {"/embed", Permission::kInfer},
    {"/rerank", Permission::kInfer},
    {"/predict", Permission::kInfer},
    {"/v1/classify", Permission::kInfer},
    {"/v1/classify-tokens", Permission::kInfer},
    {"/v1/answer", Permission::kInfer},
    {"/v1/fill-mask", Permission::kInfer},
    {"/v1/estimate", Permission::kInfer},
    {"/v1/detect", Permission::kInfer},
    {"/v1/features", Permission::kInfer},
    {"/v1/search/files", Permission::kInfer},
    {"/v1/search/file", Permission::kInfer},
    {"ModelInfer", Permission::kInfer},
    {"ModelStreamInfer", Permission::kInfer},
    {"Classify", Permission::kInfer},
    {"ClassifyTokens", Permission::kInfer},
    {"AnswerQuestion", Permission::kInfer},
    {"FillMask", Permission::kInfer},
    {"Embed", Permission::kInfer},
    {"Rerank", Permission::kInfer},
    {"Generate", Permission::kInfer},
    {"OpenDocument", Permission::kInfer},
    {"CloseDocument", Permission::kInfer},
    {"ClassifyImage", Permission::kInfer},
    {"DetectObjects", Permission::kInfer},
    {"ExtractFeatures", Permission::kInfer},
    {"Estimate", Permission::kInfer},

    {"/v2/repository/models/{m}/load", Permission::kControl},
    {"/v2/repository/models/{m}/unload", Permission::kControl},
    {"RepositoryModelLoad", Permission::kControl},
    {"RepositoryModelUnload", Permission::kControl},
    {"LoadModel", Permission::kControl},
    {"UnloadModel", Permission::kControl},

    {"/v2/models/stats", Permission::kMetrics},
    {"/v2/models/{m}/stats", Permission::kMetrics},
    {"/v2/models/{m}/versions/{v}/stats", Permission::kMetrics},
    {"ModelStatistics", Permission::kMetrics},
};

constexpr Role kRoles[] = {Role::kInfer, Role::kControl, Role::kMetrics};

absl::Status CheckRole(Role role, Roles roles, std::string_view key_name) {
  if (roles.Has(role)) return absl::OkStatus();
  return MakeError(absl::StatusCode::kPermissionDenied,
                   absl::StrCat("the key ", Quoted(key_name), " lacks the role ",
                                std::string(RoleName(role)), ", which this call needs"),
                   {.reason = "ROLE_MISSING"});
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kInfer:
      return "infer";
    case Role::kControl:
      return "control";
    case Role::kMetrics:
      break;
  }
  return "metrics";
}

std::optional<Role> ParseRole(std::string_view name) {
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

Permission PermissionOf(std::string_view method) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& known) { return known.method == method; });
  return rule == std::end(kRules) ? Permission::kControl : rule->permission;
}

bool IsLimited(std::string_view method) {
  return PermissionOf(method) == Permission::kInfer && method != "CloseDocument" &&
         method != "ModelStreamInfer";
}

absl::Status CheckPermission(Permission permission, Roles roles, std::string_view key_name) {
  switch (permission) {
    case Permission::kInfer:
      return CheckRole(Role::kInfer, roles, key_name);
    case Permission::kControl:
      return CheckRole(Role::kControl, roles, key_name);
    case Permission::kMetrics:
      return CheckRole(Role::kMetrics, roles, key_name);
    case Permission::kOpen:
    case Permission::kAnyKey:
      break;
  }
  return absl::OkStatus();
}

}  // namespace longview::server
