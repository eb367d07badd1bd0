#include "client/cpp/channel.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace longview::client {
namespace {

// Leaves `pem` as it is if there is no file.
absl::Status ReadPem(const char* what, const std::string& path, std::string& pem) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  pem.assign(std::istreambuf_iterator<char>(file), {});
  if (file && !pem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": cannot read ", path));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ChannelOptions& options) {
  if (options.cert_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError("cert and key: one was given without the other");
  }
  if (!options.tls && options.ca_file.empty() && options.cert_file.empty()) {
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions ssl;
  absl::Status read = ReadPem("ca", options.ca_file, ssl.pem_root_certs);
  read.Update(ReadPem("cert", options.cert_file, ssl.pem_cert_chain));
  read.Update(ReadPem("key", options.key_file, ssl.pem_private_key));
  if (!read.ok()) return read;
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
