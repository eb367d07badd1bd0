// CPU time of turning HTTP bodies into requests: 4,096 token ids in every form, against
// nlohmann::json alone on the same text. Checks each result, then prints microseconds and the
// ratio.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "longview/v1/text.pb.h"
#include "nlohmann/json.hpp"
#include "server/http/json/message.h"
#include "server/http/json/parse.h"
#include "server/http/v1/embeddings_request.h"
#include "server/http/v2/infer_request.h"

namespace longview::server {
namespace {

constexpr int kTokens = 4096;
constexpr int kRounds = 400;

double CpuMicros() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// The median of kRounds runs; exits if one does not read all tokens.
double Measure(const char* name, const std::function<int()>& tokens_read) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const double start = CpuMicros();
    const int tokens = tokens_read();
    times.push_back(CpuMicros() - start);
    if (tokens != kTokens) {
      std::fprintf(stderr, "%s: read %d tokens, expected %d\n", name, tokens, kTokens);
      std::exit(1);
    }
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

void Report(const char* name, const std::string& body, double micros, double plain) {
  std::printf("%-36s %7zu bytes %8.1f us   nlohmann alone %8.1f us   ratio %.2f\n", name,
              body.size(), micros, plain, plain / micros);
}

int Main() {
  std::string ids;
  for (int i = 0; i < kTokens; ++i) {
    ids += (i > 0 ? ", " : "") + std::to_string((i * 7919) % 50265);
  }
  const std::string infer =
      R"({"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 4096], "data": [)" +
      ids + "]}]}";
  const std::string classify = R"({"model": "m", "token_ids": [)" + ids + "]}";
  const std::string embed = R"({"model": "m", "input": [)" + ids + "]}";
  const std::string header =
      R"({"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 4096],)"
      R"( "parameters": {"binary_data_size": 32768}}]})";
  const std::string binary(kTokens * sizeof(int64_t), '\1');

  const auto plain = [](const std::string& body) {
    return Measure("nlohmann", [&] {
      const auto value = nlohmann::json::parse(body);
      return value.empty() ? 0 : kTokens;
    });
  };
  Report("POST /v2/.../infer, JSON", infer,
         Measure("infer",
                 [&] {
                   const auto parsed = ParseInference(infer, "");
                   return static_cast<int>(parsed->request.raw_input_contents(0).size() /
                                           sizeof(int64_t));
                 }),
         plain(infer));
  Report("POST /v2/.../infer, binary", header + binary,
         Measure("binary",
                 [&] {
                   const auto parsed = ParseInference(header, binary);
                   return static_cast<int>(parsed->request.raw_input_contents(0).size() /
                                           sizeof(int64_t));
                 }),
         plain(header));
  Report("POST /v1/classify", classify,
         Measure("classify",
                 [&] {
                   longview::v1::ClassifyRequest request;
                   auto body = ParseJson(classify);
                   return ReadMessage(*std::move(body), &request).ok() ? request.token_ids_size()
                                                                       : 0;
                 }),
         plain(classify));
  Report("POST /v1/embeddings", embed,
         Measure("embeddings", [&] { return ParseEmbeddings(embed)->items[0].token_ids_size(); }),
         plain(embed));
  return 0;
}

}  // namespace
}  // namespace longview::server

int main() { return longview::server::Main(); }
