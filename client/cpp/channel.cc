#include "client/cpp/channel.h"

#include <chrono>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace longview::client {
namespace {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ChannelOptions& options) {
  if (!options.tls && options.ca_file.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  if (!options.ca_file.empty()) {
    std::ifstream file(options.ca_file, std::ios::binary);
    ssl.pem_root_certs.assign(std::istreambuf_iterator<char>(file), {});
    if (!file || ssl.pem_root_certs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ca: cannot read certificates from ", options.ca_file));
    }
  }
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ChannelOptions& options) {
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials = MakeCredentials(options);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  return grpc::CreateCustomChannel(options.server, *credentials, arguments);
}

bool WaitUntilConnected(grpc::Channel& channel, double seconds) {
  const auto patience = std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
  return channel.WaitForConnected(std::chrono::system_clock::now() + patience);
}

}  // namespace longview::client
