// Values that every element of a list gets a copy of: the way to the copies is through a check of
// the memory that they take.
// Thread-safe: pure functions, and values.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/status_macros.h"

namespace longview::server {

// A member that is copied, and the bytes that a copy of it takes.
struct CopiedMember {
  std::string name;
  size_t bytes = 0;
};

// The copies of one request's options may take so much.
inline constexpr size_t kMostCopiedBytes = size_t{16} << 20;

// How a caller's request speaks of its list.
struct CopyTerms {
  size_t limit = kMostCopiedBytes;
  std::string_view elements = "items";
  std::string_view text = "text";  // The caller's name of models::Request::text.
};

// Members that take memory beside their struct.
std::vector<CopiedMember> MembersOf(const google::protobuf::Message& message,
                                    const CopyTerms& terms);
std::vector<CopiedMember> MembersOf(const models::Request& request, const CopyTerms& terms);

// INVALID_ARGUMENT names the longest members, their bytes, the elements and the limit.
absl::Status CheckCopies(std::vector<CopiedMember> members, size_t elements,
                         const CopyTerms& terms);

// A value like the elements of a list. Filled through `->`, it leaves as copies alone: code that
// makes one for each element cannot forget the check.
template <typename T>
class Like {
 public:
  Like() = default;
  Like(Like&&) noexcept = default;
  Like& operator=(Like&&) noexcept = default;
  Like(const Like&) = delete;
  Like& operator=(const Like&) = delete;

  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

  // One copy for each element. INVALID_ARGUMENT if several take more than the limit.
  absl::StatusOr<std::vector<T>> Copies(size_t elements, const CopyTerms& terms = {}) const {
    RETURN_IF_ERROR(CheckCopies(MembersOf(value_, terms), elements, terms));
    return std::vector<T>(elements, value_);
  }

 private:
  T value_;
};

}  // namespace longview::server
