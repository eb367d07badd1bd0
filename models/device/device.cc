#include "models/device/device.h"

#include <dlfcn.h>

#include <charconv>
#include <optional>
#include <utility>

#include "ATen/Context.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/mm.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "c10/core/StreamGuard.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "kernels/cuda/plugin.h"
#include "kernels/cuda/span/span_api.h"
#include "models/status_macros.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

using kernels::cuda::PluginApi;

// Opens LibTorch's CUDA half, which the program does not link. It must come before LibTorch is
// first asked whether there is CUDA: it remembers the answer.
absl::Status LoadTorchCuda(const std::string& device) {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(device, ": LibTorch's CUDA half does not load: ", dlerror()));
  }
  bool there = false;
  const absl::Status asked = GuardTorch(device, [&] { there = at::hasCUDA(); });
  if (!asked.ok() || there) return asked;
  return absl::FailedPreconditionError(absl::StrCat(device, ": LibTorch sees no CUDA device"));
}

absl::StatusOr<int> IndexOf(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda:";
  int index = -1;
  if (name.starts_with(kPrefix)) {
    const auto [end, error] =
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), index);
    if (error == std::errc() && end == name.data() + name.size()) return index;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device: \"", std::string(name.substr(0, 64)), "\" is not one such as cuda:0"));
}

// Products as they are written: no TF32, no sums of parts in 16 bits, no sums split over blocks.
void AskForFullPrecision() {
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false,
                                                  /*allow_splitk=*/false);
  at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false,
                                                  /*allow_splitk=*/false);
  at::globalContext().setAllowFP16AccumulationCuBLAS(false);
}

at::ScalarType TorchType(Compute compute) {
  switch (compute) {
    case Compute::kBf16:
      return at::kBFloat16;
    case Compute::kFp16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

}  // namespace

struct Device::Torch {
  explicit Torch(at::Device device) : device(device) {
    if (!device.is_cuda()) return;
    // LibTorch's own streams are the only ones it can be told of without linking its CUDA half.
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    stream = guard.getNewStream(device);
  }

  const at::Device device;
  std::optional<c10::Stream> stream;
};

absl::StatusOr<std::unique_ptr<Device>> Device::Open(std::string_view name) {
  ASSIGN_OR_RETURN(const int index, IndexOf(name));
  const std::string text(name);
  const kernels::cuda::LoadedPlugin plugin = kernels::cuda::FindPlugin();
  if (plugin.api == nullptr) {
    return absl::NotFoundError(absl::StrCat("device: \"", text, "\": ", plugin.reason));
  }
  int32_t devices = 0;
  if (plugin.api->device_count(&devices) != 0 || index >= devices) {
    return absl::NotFoundError(
        absl::StrCat("device: \"", text, "\" is not there; there are ", devices));
  }
  RETURN_IF_ERROR(LoadTorchCuda(text));
  std::unique_ptr<Device> device;
  RETURN_IF_ERROR(GuardTorch(text, [&] {
    AskForFullPrecision();
    const at::Device torch(at::kCUDA, static_cast<c10::DeviceIndex>(index));
    device.reset(new Device(text, index, *plugin.api, std::make_unique<Torch>(torch)));
  }));
  return device;
}

std::unique_ptr<Device> Device::OnHost(const PluginApi& api) {
  return std::unique_ptr<Device>(
      new Device("host", 0, api, std::make_unique<Torch>(at::Device(at::kCPU))));
}

Device::Device(std::string name, int index, const PluginApi& api, std::unique_ptr<Torch> torch)
    : name_(std::move(name)), index_(index), api_(api), torch_(std::move(torch)) {
  if (torch_->stream) {
    Check(api_.adopt_stream(index_, torch_->stream->native_handle(), &stream_), "a stream");
  } else {
    Check(api_.create_stream(index_, &stream_), "a stream");
  }
  Check(api_.span.prepare(index_), "its attention kernels");
  warpgroups_ = api_.span.warpgroups(index_) != 0;
}

absl::StatusOr<std::unique_ptr<Device>> DeviceForModel(const std::string& name,
                                                       std::vector<std::string>& notes) {
  if (!name.starts_with("cuda:")) return nullptr;
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(name);
  if (device.ok() || !absl::IsFailedPrecondition(device.status())) return device;
  notes.push_back(absl::StrCat("runs on the CPU: ", std::string(device.status().message())));
  return nullptr;
}

absl::Status GuardDevice(const std::string& what, absl::FunctionRef<void()> body) {
  return GuardTorch(what, body);
}

Device::~Device() { (void)api_.destroy_stream(stream_); }

int64_t Device::FreeBytes() const {
  uint64_t bytes = 0;
  Check(api_.free_memory(index_, &bytes), "its free memory");
  return static_cast<int64_t>(bytes);
}

void Device::Check(kernels::cuda::Status status, const char* what) const {
  if (status == 0) return;
  uint64_t bytes = 0;
  const bool lost = api_.free_memory(index_, &bytes) != 0;
  throw DeviceError(absl::StrCat(name_, ": ", what, ": ", api_.error_text(status)), lost);
}

struct Device::Turn::Guard {
  explicit Guard(c10::Stream stream) : stream(stream) {}
  c10::StreamGuard stream;
};

Device::Turn::Turn(const Device& device) {
  if (device.torch_->stream) guard_ = std::make_unique<Guard>(*device.torch_->stream);
}

Device::Turn::~Turn() = default;

void Device::Multiply(const Product& product) const {
  const c10::InferenceMode inference;
  const auto view = [&](const void* data, int64_t rows, int64_t columns) {
    return at::from_blob(
        const_cast<void*>(data), {rows, columns}, [](void*) {},
        at::TensorOptions().dtype(TorchType(product.compute)).device(torch_->device),
        torch_->device);
  };
  at::Tensor y = view(product.y, product.rows, product.out);
  const at::Tensor x = view(product.x, product.rows, product.in);
  const at::Tensor weight = view(product.weight, product.out, product.in).t();
  if (torch_->device.is_cpu() && y.scalar_type() != at::kFloat) {
    // The emulated device sums in fp32 and rounds once, as a GPU does. LibTorch's own 16-bit
    // products on a CPU with AMX have answered NaN for finite operands.
    y.copy_(at::mm(x.to(at::kFloat), weight.to(at::kFloat)));
    return;
  }
  at::mm_out(y, x, weight);
}

}  // namespace longview::models
