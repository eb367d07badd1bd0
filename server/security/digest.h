// SHA-256: lets the server compare secrets without keeping them.
//
// Thread-safe.
#pragma once

#include <array>
#include <string_view>

namespace longview::server {

using Digest = std::array<unsigned char, 32>;

Digest Sha256(std::string_view bytes);

// Takes equally long whatever the difference.
bool SameDigest(const Digest& a, const Digest& b);

}  // namespace longview::server
