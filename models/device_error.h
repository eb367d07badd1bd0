// Errors of a device.
#pragma once

#include <stdexcept>
#include <string>

namespace longview::models {

class DeviceError : public std::runtime_error {
 public:
  // `lost`: the device answers nobody any more; else this one call failed.
  explicit DeviceError(const std::string& what, bool lost = false)
      : std::runtime_error(what), lost_(lost) {}

  bool lost() const { return lost_; }

 private:
  const bool lost_;
};

}  // namespace longview::models
