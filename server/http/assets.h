// Files of server/http/assets, embedded at build time (embed.cmake).
#pragma once

#include <string_view>

namespace longview::server {

std::string_view ConsolePage();      // assets/console/page.html and its parts
std::string_view DocsPage();         // assets/docs.html
std::string_view OpenApiDocument();  // assets/openapi.json

}  // namespace longview::server
