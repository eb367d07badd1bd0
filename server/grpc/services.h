// The methods of each service of api.md, over the Api.
#pragma once

#include "server/api/api.h"
#include "server/grpc/byte_service.h"
#include "server/grpc/open_streams.h"

namespace longview::server {

// Each adds the methods of one service; handlers only hand over and return. The Api and the list of
// streams are borrowed.
void AddTextMethods(Api& api, ByteService& service);
void AddVisionMethods(Api& api, ByteService& service);
void AddModelMethods(Api& api, ByteService& service);
void AddInferenceMethods(Api& api, OpenStreams& streams, ByteService& service);

}  // namespace longview::server
