// Tokens per second of a language model that decodes on a device: the projection cache against a
// full cache, in one process, with the same weights and kernels.
//
//   cuda_decode_bench --context=8192,32768,131072 --batch=1,8,32 --dtypes=bf16
//   cuda_decode_bench --check=true  on a machine without a device: right results, no figures
//
// Transformer-LS of the published shape (30 layers, d 512, w 512, l 16, r 1) with random weights.
// The first and the last sequence of a case are copies of two on the CPU, the others are random;
// the first two steps' logits of these are held against the model on the CPU (of a full cache at
// the smallest context, where the host has memory for one), and nothing is printed where they
// differ. A step is timed from its tokens to logits on the host. Steps of either cache and a copy
// within the device's memory are timed in turns; medians. Beside a time stands what a step must
// read (weights, state, tables of positions) over the rate of that copy, at most 1 GiB read and
// written. Caches that do not fit beside the others are left out by name.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/plugin.h"
#include "models/device/device.h"
#include "models/device/device_admission.h"
#include "models/device/device_memory.h"
#include "models/layers/span_rows.h"
#include "models/model.h"
#include "tests/bench/full_decoder.h"
#include "tests/bench/lm_contenders.h"
#include "tests/bench/random_cache.h"
#include "tests/bench/random_lm.h"
#include "tests/bench/timed_steps.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/support/cpu_types.h"
#include "tests/support/temp_directory.h"

ABSL_FLAG(std::string, device, "cuda:0", "Where to decode.");
ABSL_FLAG(bool, check, false, "Small cases on a device that the host stands in for; no figures.");
ABSL_FLAG(std::vector<std::string>, context, (std::vector<std::string>{"8192", "32768", "131072"}),
          "Tokens of each sequence.");
ABSL_FLAG(std::vector<std::string>, batch, (std::vector<std::string>{"1", "8", "32"}),
          "Sequences.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"bf16"}),
          "Types of weights and caches: bf16, fp16, fp32.");
ABSL_FLAG(int, layers, 30, "Layers.");
ABSL_FLAG(int, rounds, 5, "Rounds; each times a few steps of both caches.");
ABSL_FLAG(int, steps, 10, "Timed steps of a round, after one that is not.");
ABSL_FLAG(bool, full, true, "Also decode with a full cache.");
ABSL_FLAG(int, threads, 2, "Compute threads of the host.");

namespace longview::bench {
namespace {

constexpr size_t kPinned = size_t{4} << 20;

// The host's bytes into a device's memory, for what fills caches there, through pinned memory;
// waits for each. Borrows the device. Throws DeviceError.
PutBytes PutOnDevice(const models::Device& device) {
  const auto pinned = std::make_shared<models::PinnedBlock>(device, kPinned);
  return [&device, pinned](void* to, const void* from, size_t bytes) {
    for (size_t done = 0; done < bytes; done += kPinned) {
      const size_t part = std::min(kPinned, bytes - done);
      std::memcpy(pinned->data(), static_cast<const std::byte*>(from) + done, part);
      device.Check(device.api().copy_in(device.stream(), static_cast<std::byte*>(to) + done,
                                        pinned->data(), part),
                   "rows of a cache");
      device.Wait();
    }
  };
}

using models::Compute;
using models::Device;
using models::ForwardDecoder;

constexpr double kHostCacheBytes = 4e9;  // For two sequences.

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "cuda_decode_bench: %s\n", what.c_str());
  std::exit(1);
}

Compute ComputeOf(const std::string& dtype) {
  for (const Compute compute : {Compute::kFp32, Compute::kBf16, Compute::kFp16}) {
    if (dtype == models::ComputeName(compute)) return compute;
  }
  Die("no such type: " + dtype);
}

struct Plan {
  std::vector<int64_t> contexts, batches;
  std::vector<std::string> dtypes;
  int layers = 0, rounds = 0, steps = 0;

  // Bytes of a sequence of `context` tokens when all is timed.
  int64_t Longest(int64_t context) const { return context + rounds * (steps + 1) + 3; }
};

// bf16 where the host, whose results are the measure, computes in it.
std::vector<std::string> CheckedTypes() {
  std::vector<std::string> types = models::CpuTypeNames();
  if (!models::CpuComputesIn("bf16")) {
    std::printf("bf16  left out: this CPU does not compute in it\n");
  }
  types.push_back("fp16");
  return types;
}

Plan PlanOfFlags() {
  // A window, pages and a new block, little enough for the stand-in.
  if (absl::GetFlag(FLAGS_check)) return {{640}, {1, 3}, CheckedTypes(), 2, 0, 0};
  return {Contexts(absl::GetFlag(FLAGS_context)),
          PositiveNumbers(absl::GetFlag(FLAGS_batch)),
          absl::GetFlag(FLAGS_dtypes),
          absl::GetFlag(FLAGS_layers),
          absl::GetFlag(FLAGS_rounds),
          absl::GetFlag(FLAGS_steps)};
}

std::unique_ptr<Device> OpenDevice() {
  if (absl::GetFlag(FLAGS_check)) return Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(absl::GetFlag(FLAGS_device));
  if (!device.ok()) Die(std::string(device.status().message()));
  return *std::move(device);
}

void PrintDevice() {
  const std::unique_ptr<Device> device = OpenDevice();
  if (absl::GetFlag(FLAGS_check)) {
    std::printf("on a device that the host stands in for: right results, no figures\n");
    return;
  }
  const auto found = kernels::cuda::ListDevices(device->api());
  const auto index = static_cast<size_t>(device->index());
  std::printf("%s: %s\n", device->name().c_str(),
              index < found.size() ? found[index].name : "of unknown name");
}

double Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Compares two steps of both; first sequence against first and last against last.
double ErrorOfSteps(Contender& host, int host_batch, Contender& device, int batch) {
  double most = 0;
  for (int step = 0; step < 2; ++step) {
    const std::vector<float> want = host.Step(), got = device.Step();
    const size_t vocab = want.size() / static_cast<size_t>(host_batch);
    const auto row = [&](const std::vector<float>& rows, int index) {
      return std::span(rows).subspan(static_cast<size_t>(index) * vocab, vocab);
    };
    const auto error = [&](int at, int host_at) {
      const std::span<const float> wanted = row(want, host_at);
      return RelativeError(row(got, at), std::vector<double>(wanted.begin(), wanted.end()));
    };
    most = std::max({most, error(0, 0), error(batch - 1, host_batch - 1)});
  }
  return most;
}

// Steps beside a copy within the device's memory.
class TimedOnDevice {
 public:
  TimedOnDevice(Contender& contender, double error, const Device& device)
      : device_(device),
        half_(std::min(static_cast<int64_t>(contender.read_bytes()), kMostPlainBytes) / 2),
        from_(device, static_cast<size_t>(half_)),
        to_(device, static_cast<size_t>(half_)),
        steps_(contender, error, {2 * half_, [this] { Copy(); }}, Now) {}

  TimedSteps& steps() { return steps_; }

 private:
  void Copy() {
    device_.Check(device_.api().copy(device_.stream(), to_.data(), from_.data(),
                                     static_cast<uint64_t>(half_)),
                  "a copy");
    device_.Wait();
  }

  const Device& device_;
  const int64_t half_;
  const models::DeviceBlock from_, to_;
  TimedSteps steps_;
};

// One context, batch and type on a device.
class CaseOnDevice {
 public:
  CaseOnDevice(const Plan& plan, const DecodeCase& what, ForwardDecoder& host,
               const ForwardDecoder& decoder)
      : plan_(plan),
        what_(what),
        of_host_{what.context, std::min(what.batch, 2), what.dtype},
        host_(host),
        host_model_{LmOf(host).config(), host.frame().compute, host.host().block_type()},
        decoder_(decoder),
        device_(decoder.placement()->device()),
        model_{LmOf(decoder).config(), decoder.frame().compute,
               models::SpanType(decoder.frame().compute)},
        put_(PutOnDevice(device_)) {}

  // False where a result is wrong.
  bool Run(ForwardDecoder& decoder, bool check_full) {
    std::unique_ptr<Projections> own;
    double own_error = 0, full_error = 0;
    {
      Projections on_host(host_, host_model_, of_host_, RandomOnHost(of_host_));
      own = std::make_unique<Projections>(decoder, model_, what_, Copies(on_host));
      own_error = ErrorOfSteps(on_host, of_host_.batch, *own, what_.batch);
    }
    TimedOnDevice timed_own(*own, own_error, device_);
    const std::unique_ptr<FullCache> full = MakeFull(check_full, full_error);
    if (!(own_error <= model_.MostError()) || !(full_error <= model_.MostError())) {
      std::fprintf(stderr, "%s  wrong: errors %g and %g of the largest logit, more than %g\n",
                   what_.Text().c_str(), own_error, full_error, model_.MostError());
      return false;
    }
    if (plan_.rounds == 0) {
      std::printf("%s  errors: projection %.2g, full %.2g of the largest logit\n",
                  what_.Text().c_str(), own_error, full_error);
      return true;
    }
    std::unique_ptr<TimedOnDevice> timed_full;
    if (full) timed_full = std::make_unique<TimedOnDevice>(*full, full_error, device_);
    Race(what_, plan_.rounds, plan_.steps, timed_own.steps(),
         timed_full ? &timed_full->steps() : nullptr);
    own->PrintState();
    return true;
  }

 private:
  // First and last sequence as a contender on the host has them.
  MakeSequence Copies(const Contender& on_host) const {
    return [this, &on_host](kernels::ProjectionCache* cache, int index) {
      if (index > 0 && index + 1 < what_.batch) return Random(cache, index);
      const int copied = index == 0 ? 0 : of_host_.batch - 1;
      return CopiedSequence(on_host.cache(), on_host.sequence(copied), cache, put_);
    };
  }
  kernels::CacheSequence Random(kernels::ProjectionCache* cache, int index) const {
    return RandomSequence(cache, what_.context, static_cast<uint32_t>(index), put_);
  }

  // Null where it is not wanted or has no room. `error`: of its first step, if that is checked.
  std::unique_ptr<FullCache> MakeFull(bool check, double& error) const {
    if (!absl::GetFlag(FLAGS_full)) return nullptr;
    const int64_t longest = plan_.Longest(what_.context) + kernels::kBlockSlots;
    const auto need = static_cast<double>(FullDecoder::CacheBytes(decoder_, what_.batch, longest)) +
                      models::kDeviceLibraryBytes;
    const auto free = static_cast<double>(device_.FreeBytes());
    if (need > free) {
      std::printf("%s  full       left out: %.1f GB, and %.1f are free\n", what_.Text().c_str(),
                  need * 1e-9, free * 1e-9);
      return nullptr;
    }
    const auto make = [&](const MakeSequence& sequences) {
      return std::make_unique<FullCache>(
          std::make_unique<FullDecoder>(decoder_, what_.batch, longest), model_, what_, sequences);
    };
    if (!check) {
      return make(
          [this](kernels::ProjectionCache* cache, int index) { return Random(cache, index); });
    }
    FullCache on_host(std::make_unique<FullDecoder>(host_, of_host_.batch, longest), host_model_,
                      of_host_, RandomOnHost(of_host_));
    std::unique_ptr<FullCache> full = make(Copies(on_host));
    error = ErrorOfSteps(on_host, of_host_.batch, *full, what_.batch);
    return full;
  }

  const Plan& plan_;
  const DecodeCase what_, of_host_;
  ForwardDecoder& host_;
  const DecodedModel host_model_;
  const ForwardDecoder& decoder_;
  const Device& device_;
  const DecodedModel model_;
  const PutBytes put_;
};

// False where a result is wrong.
bool RunCase(const Plan& plan, const DecodeCase& what, const std::string& directory,
             bool check_full, ForwardDecoder& host) {
  const int64_t longest = plan.Longest(what.context);
  const Compute compute = ComputeOf(what.dtype);
  const kernels::CacheShape shape = LmOf(host).Shape(models::SpanType(compute));
  const auto bytes = static_cast<double>(what.batch * shape.SequenceBytes(0, longest, 1));
  bool right = false;
  const absl::Status status = models::GuardDevice(what.Text(), [&] {
    std::string reason;
    const std::unique_ptr<ForwardDecoder> decoder =
        LoadLmOn(OpenDevice(), directory, compute, static_cast<int>(longest), bytes, &reason);
    if (decoder == nullptr) {
      std::printf("%s  left out: %s\n", what.Text().c_str(), reason.c_str());
      right = true;
    } else {
      right = CaseOnDevice(plan, what, host, *decoder).Run(*decoder, check_full);
    }
  });
  if (!status.ok()) Die(std::string(status.message()));
  std::fflush(stdout);
  return right;
}

int Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_check) ? 1 : absl::GetFlag(FLAGS_threads));
  const Plan plan = PlanOfFlags();
  PrintDevice();
  const longview::testing::TempDirectory folder;
  const std::string& directory = folder.path();
  WriteRandomLm(directory, plan.layers);
  const auto [shortest, longest] = std::minmax_element(plan.contexts.begin(), plan.contexts.end());
  bool right = true;
  for (const std::string& dtype : plan.dtypes) {
    // No CPU computes in fp16.
    const Compute on_host = dtype == "bf16" ? Compute::kBf16 : Compute::kFp32;
    const std::unique_ptr<ForwardDecoder> host =
        LoadLm(directory, on_host, static_cast<int>(plan.Longest(*longest)), kHostCacheBytes);
    for (const int64_t context : plan.contexts) {
      for (const int64_t batch : plan.batches) {
        const DecodeCase what{context, static_cast<int>(batch), dtype};
        right = RunCase(plan, what, directory, context == *shortest, *host) && right;
      }
    }
  }
  return right ? 0 : 1;
}

}  // namespace

}  // namespace longview::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return longview::bench::Main();
}
