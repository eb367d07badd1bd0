#include "server/http/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"

namespace longview::server {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;
constexpr int kZlib = MAX_WBITS;
constexpr int kRawDeflate = -MAX_WBITS;
constexpr size_t kFirstChunk = 64 * 1024;

bool Is(std::string_view coding, const char* name) {
  return absl::EqualsIgnoreCase({coding.data(), coding.size()}, name);
}

// A zlib wrapper begins with method 8 and a checksum divisible by 31 (RFC 1950).
bool HasZlibHeader(std::string_view body) {
  if (body.size() < 2) return false;
  const int first = static_cast<unsigned char>(body[0]);
  const int second = static_cast<unsigned char>(body[1]);
  return (first & 0x0F) == Z_DEFLATED && (first * 256 + second) % 31 == 0;
}

class Inflater {
 public:
  explicit Inflater(int window_bits) { ok_ = inflateInit2(&stream_, window_bits) == Z_OK; }
  ~Inflater() {
    if (ok_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  absl::StatusOr<std::string> Run(std::string_view coding, std::string_view body, size_t limit) {
    if (!ok_) return absl::ResourceExhaustedError("no memory to decompress the body");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
    size_t left = body.size();
    std::string out;
    size_t used = 0;
    for (int result = Z_OK; result != Z_STREAM_END;) {
      if (used == out.size()) {
        // One byte over the limit tells "exactly full" from "too large".
        if (used > limit) return BodyTooLarge(limit);
        out.resize(std::min(limit + 1, std::max(kFirstChunk, 2 * out.size())));
      }
      const size_t in = std::min<size_t>(left, std::numeric_limits<uInt>::max());
      const size_t room = std::min<size_t>(out.size() - used, std::numeric_limits<uInt>::max());
      stream_.avail_in = static_cast<uInt>(in);
      stream_.avail_out = static_cast<uInt>(room);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + used);
      result = inflate(&stream_, Z_NO_FLUSH);
      left -= in - stream_.avail_in;
      used += room - stream_.avail_out;
      const bool stuck = result == Z_BUF_ERROR && left == 0;
      if (stuck || (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)) {
        return Damaged(coding, body.size() - left);
      }
      // gzip files may be concatenated (RFC 1952, 2.2).
      if (result == Z_STREAM_END && left > 0) {
        if (!Is(coding, "deflate") && inflateReset(&stream_) == Z_OK) {
          result = Z_OK;
        } else {
          return Damaged(coding, body.size() - left);
        }
      }
    }
    if (used > limit) return BodyTooLarge(limit);
    out.resize(used);
    return out;
  }

 private:
  static absl::Status Damaged(std::string_view coding, size_t at) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("body is not valid ", std::string(coding), ": damaged at byte ",
                                  at, " of the compressed data"),
                     {.reason = "BAD_BODY", .retry_after = {}, .param = ""});
  }

  z_stream stream_{};
  bool ok_ = false;
};

}  // namespace

bool IsCompressed(std::string_view coding) {
  return Is(coding, "gzip") || Is(coding, "x-gzip") || Is(coding, "deflate");
}

absl::StatusOr<std::string> Decompress(std::string_view coding, std::string_view body,
                                       size_t limit) {
  int window_bits = kGzip;
  if (Is(coding, "deflate")) window_bits = HasZlibHeader(body) ? kZlib : kRawDeflate;
  return Inflater(window_bits).Run(coding, body, limit);
}

}  // namespace longview::server
