#include "client/cli/over_inputs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/connection.h"
#include "client/cli/inputs.h"
#include "client/cli/json_lines.h"
#include "client/cli/summary.h"
#include "client/cli/terminal.h"

namespace longview::client {
namespace {

// The outcomes by input; workers fill, the printing thread takes in order.
class Outcomes {
 public:
  explicit Outcomes(size_t count) : outcomes_(count) {}

  void Put(size_t index, Outcome outcome) {
    absl::MutexLock lock(&mutex_);
    outcomes_[index] = std::move(outcome);
  }

  Outcome Take(size_t index) {
    const auto arrived = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return outcomes_[index].has_value();
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&arrived));
    Outcome outcome = *std::move(outcomes_[index]);
    outcomes_[index].reset();
    return outcome;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::optional<Outcome>> outcomes_ ABSL_GUARDED_BY(mutex_);
};

Outcome ReadAndSend(const Input& input, const CommandLine& line, Console& console,
                    const NamedRequest& request) {
  const absl::StatusOr<std::string> text = ReadInput(
      input,
      ReadOptions{
          .binary = ReadsPictures(line), .pictures = TakesPictures(line), .lossy = line.lossy},
      console.in);
  if (text.ok()) return request(input.path, *text);
  Outcome outcome;
  outcome.status = grpc::Status(static_cast<grpc::StatusCode>(text.status().code()),
                                std::string(text.status().message()));
  return outcome;
}

void Print(const std::string& path, const Outcome& outcome, bool json, Console& console) {
  if (json) {
    console.out << (outcome.status.ok() ? AnswerLine(path, outcome.json)
                                        : ErrorLine(path, outcome.status))
                << "\n";
  } else if (outcome.status.ok()) {
    console.out << path << "\t" << outcome.text << "\n";
  } else {
    Error(console) << path << ": " << CodeName(outcome.status.error_code()) << ": "
                   << outcome.status.error_message() << "\n";
  }
  console.out.flush();
}

}  // namespace

ExitCode RunOverInputs(const CommandLine& line, Console& console, const Request& request) {
  return RunOverNamedInputs(line, console, [&](const std::string&, const std::string& content) {
    return request(content);
  });
}

ExitCode RunOverNamedInputs(const CommandLine& line, Console& console,
                            const NamedRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Input> inputs = ListInputs(line.inputs);
  Outcomes outcomes(inputs.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> workers;
  const size_t count = std::min(static_cast<size_t>(line.jobs), inputs.size());
  for (size_t i = 0; i < count; ++i) {
    workers.emplace_back([&] {
      for (size_t index = next++; index < inputs.size(); index = next++) {
        outcomes.Put(index, ReadAndSend(inputs[index], line, console, request));
      }
    });
  }
  bool failed = false;
  Summary summary;
  const bool progress = console.err_is_terminal && inputs.size() > 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Outcome outcome = outcomes.Take(i);
    failed |= !outcome.status.ok();
    summary.Add(outcome);
    if (progress) console.err << "\r\033[K";
    Print(inputs[i].path, outcome, line.json, console);
    if (progress) console.err << i + 1 << " of " << inputs.size() << std::flush;
  }
  for (std::thread& worker : workers) worker.join();
  if (progress) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    console.err << "\r\033[K" << summary.Text(seconds.count()) << "\n";
  }
  return failed ? kSomeInputFailed : kAllWell;
}

}  // namespace longview::client
