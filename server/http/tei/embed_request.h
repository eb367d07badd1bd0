// The bodies of /embed and /similarity.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/copies.h"
#include "server/api/calls/list_answer.h"
#include "server/http/members.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {

using EmbedListRequest = ListRequest<longview::v1::EmbedRequest>;

struct TeiEmbedBody {
  Like<longview::v1::EmbedRequest> like;  // Has every member but the text.
  nlohmann::json inputs;                  // Never null.
};

// INVALID_ARGUMENT names the member. `normalize` is true where it is not given.
absl::StatusOr<TeiEmbedBody> ReadTeiEmbed(nlohmann::json object);

// The call of `items`, which errors call `inputs`.
EmbedListRequest TeiEmbedList(const std::string& model,
                              std::vector<longview::v1::EmbedRequest> items);

// For tests.
std::vector<MemberInfo> TeiEmbedMembers();

}  // namespace longview::server
