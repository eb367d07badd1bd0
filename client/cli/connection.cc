#include "client/cli/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command_line.h"
#include "client/cli/terminal.h"
#include "client/cpp/channel.h"

namespace longview::client {
namespace {

constexpr int kPatienceMs = 1000;  // Time-out of one step.

struct Address {
  std::string host, port;
};

// The scheme before "://" of an address as browsers have it, in lower case; "" for others.
std::string SchemeOf(const std::string& server) {
  const size_t colon = server.find("://");
  if (colon == std::string::npos) return "";
  std::string scheme = absl::AsciiStrToLower(server.substr(0, colon));
  return scheme == "http" || scheme == "https" || scheme == "grpc" || scheme == "grpcs" ? scheme
                                                                                        : "";
}

// The address behind a scheme, without a path.
std::string WithoutScheme(const std::string& server) {
  if (SchemeOf(server).empty()) return server;
  const std::string rest = server.substr(server.find("://") + 3);
  return rest.substr(0, rest.find('/'));
}

// host:port, [v6]:port; without a port it is empty.
Address Split(const std::string& server) {
  const size_t bracket = server.rfind(']');
  const size_t colon = server.rfind(':');
  const bool six = bracket != std::string::npos;
  const bool has_port =
      colon != std::string::npos && (six ? colon > bracket : server.find(':') == colon);
  std::string host = server.substr(0, has_port ? colon : std::string::npos);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, has_port ? server.substr(colon + 1) : ""};
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  bool Wait(short events) const {
    pollfd waiting = {descriptor_, events, 0};
    return poll(&waiting, 1, kPatienceMs) == 1;
  }
  bool Connect(const addrinfo& to) const {
    if (connect(descriptor_, to.ai_addr, to.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS || !Wait(POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  // The first bytes that come back for these.
  std::string Ask(std::string_view bytes) const {
    char answer[16];
    if (send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 || !Wait(POLLIN)) return "";
    const ssize_t count = recv(descriptor_, answer, sizeof answer, 0);
    return count <= 0 ? "" : std::string(answer, static_cast<size_t>(count));
  }

 private:
  const int descriptor_;
};

struct Resolved {
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> list = {nullptr, freeaddrinfo};
  std::string error;
};

Resolved Resolve(const Address& address) {
  Resolved out;
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int code = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &list);
  if (code != 0) {
    out.error = gai_strerror(code);
  } else {
    out.list.reset(list);
  }
  return out;
}

// A connection to the first address that takes one.
std::unique_ptr<Socket> Open(const Resolved& resolved) {
  for (const addrinfo* each = resolved.list.get(); each != nullptr; each = each->ai_next) {
    auto socket = std::make_unique<Socket>(
        ::socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket->Connect(*each)) return socket;
  }
  return nullptr;
}

constexpr std::string_view kHttp1Request = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

bool IsHttp1(std::string_view answer) { return answer.starts_with("HTTP/1."); }
// A frame of settings, with which HTTP/2 begins.
bool IsHttp2(std::string_view answer) {
  return answer.size() >= 9 && answer[0] == 0 && answer[3] == 4;
}

// A URL where an address is wanted: which address it should be.
std::string DiagnoseScheme(const std::string& server) {
  const std::string scheme = SchemeOf(server);
  const std::string plain = WithoutScheme(server);
  const Address address = Split(plain);
  const std::string takes = "--server takes the gRPC port's address without " + scheme + "://";
  const std::string tls = scheme.ends_with('s') ? " --tls" : "";
  const Resolved resolved = address.port.empty() ? Resolved{.error = "no port"} : Resolve(address);
  const std::unique_ptr<Socket> socket = resolved.error.empty() ? Open(resolved) : nullptr;
  if (socket == nullptr) return absl::StrCat(takes, ", as ", address.host, ":9000", tls);
  if (IsHttp1(socket->Ask(kHttp1Request))) {
    return absl::StrCat(takes, ", as ", address.host, ":9000", tls, "; ", plain,
                        " is the HTTP port");
  }
  return absl::StrCat(takes, ": ", plain, tls);
}

// Whether anything accepts connections at the address: cheap, at once on the same machine.
bool AcceptsConnections(const std::string& server) {
  // Names for gRPC's own resolvers: unix:, dns:///, ipv6:[...].
  for (const std::string_view scheme : {"unix:", "dns:", "ipv4:", "ipv6:", "xds:"}) {
    if (server.starts_with(scheme)) return true;
  }
  const Address address = Split(server);
  if (address.port.empty()) return false;
  const Resolved resolved = Resolve(address);
  return resolved.error.empty() && Open(resolved) != nullptr;
}

// One line for a person, within about two seconds; what can be done about it stands in it.
std::string DiagnoseConnection(const CommandLine& line) {
  if (!SchemeOf(line.server).empty()) return DiagnoseScheme(line.server);
  const Address address = Split(line.server);
  if (address.port.empty()) {
    return absl::StrCat(line.server, " has no port; --server takes HOST:PORT, as ", address.host,
                        ":9000");
  }
  const Resolved resolved = Resolve(address);
  if (!resolved.error.empty()) {
    return absl::StrCat("the host ", address.host, " is not known: ", resolved.error);
  }
  const std::unique_ptr<Socket> socket = Open(resolved);
  if (socket == nullptr) {
    return absl::StrCat("no server at ", line.server,
                        ": nothing takes connections there (--server or LONGVIEW_SERVER names "
                        "another)");
  }
  const bool tls = line.tls || !line.ca.empty() || !line.cert.empty();
  const std::string answer = socket->Ask(kHttp1Request);
  if (IsHttp1(answer)) {
    return absl::StrCat(line.server,
                        " is an HTTP port; --server takes the gRPC port, 9000 unless the server "
                        "was told otherwise");
  }
  if (tls && IsHttp2(answer)) {
    return absl::StrCat(line.server, " does not speak TLS: leave out --tls, --ca and --cert");
  }
  if (tls) {
    return absl::StrCat("no TLS with ", line.server,
                        ": --ca FILE trusts the server's certificate, --cert and --key show one's "
                        "own");
  }
  // gRPC's servers close a plain connection without a word where they speak TLS.
  return absl::StrCat(line.server,
                      " does not answer without TLS, or is no gRPC server: give --tls, or --ca "
                      "FILE with its certificate");
}

constexpr double kConnectSeconds = 5;
// A shorter --timeout is for the calls to miss, which then say so.
constexpr double kLeastConnectSeconds = 1;

// The names of the models in a state that have the task; *chosen is the last of them. If several
// can do it and it is what one of them is for, that one alone.
std::vector<std::string> Choose(const v1::ListModelsResponse& listed, const std::string& task,
                                const std::string& state, v1::Model* chosen) {
  std::vector<std::string> names;
  std::vector<const v1::Model*> made_for_it;
  for (const v1::Model& model : listed.models()) {
    if (model.state() != state || !HasTask(model, task)) continue;
    names.push_back(model.name());
    *chosen = model;
    if (model.task() == task) made_for_it.push_back(&model);
  }
  if (names.size() < 2 || made_for_it.size() != 1) return names;
  *chosen = *made_for_it[0];
  return {chosen->name()};
}

// False as soon as a try has failed: the diagnosis says more than another try.
bool ConnectsWithin(grpc::Channel& channel, double seconds) {
  constexpr double kSlice = 0.1;
  for (double waited = 0; waited < seconds; waited += kSlice) {
    if (WaitUntilConnected(channel, std::min(kSlice, seconds - waited))) return true;
    if (channel.GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
  }
  return false;
}

}  // namespace

std::string CodeName(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

std::string Explain(const grpc::Status& status, const CommandLine& line) {
  std::string text = absl::StrCat(CodeName(status.error_code()), ": ", status.error_message());
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && line.timeout_seconds > 0) {
    absl::StrAppend(&text, " (--timeout is ", line.timeout_seconds, " s)");
  }
  return text;
}

bool HasTask(const v1::Model& model, const std::string& task) {
  return task.empty() || model.task() == task ||
         std::find(model.tasks().begin(), model.tasks().end(), task) != model.tasks().end();
}

ExitCode Connect(const CommandLine& line, Console& console, Connection* connection) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel({.server = line.server,
                                                                        .tls = line.tls,
                                                                        .ca_file = line.ca,
                                                                        .cert_file = line.cert,
                                                                        .key_file = line.key});
  if (!channel.ok()) {
    Error(console) << channel.status().message() << "\n";
    return kUsage;
  }
  const double patience =
      line.timeout_seconds > 0
          ? std::clamp(line.timeout_seconds, kLeastConnectSeconds, kConnectSeconds)
          : kConnectSeconds;
  if (!AcceptsConnections(line.server) || !ConnectsWithin(**channel, patience)) {
    Error(console) << DiagnoseConnection(line) << "\n";
    return kServerNotReached;
  }
  connection->channel = *channel;
  ClientOptions options;
  options.timeout_seconds = line.timeout_seconds;
  options.api_key = line.api_key;
  connection->client = std::make_unique<Client>(*channel, std::move(options));
  return kAllWell;
}

ExitCode ChooseModel(const Client& client, const CommandLine& line, const std::string& task,
                     Console& console, v1::Model* model) {
  v1::ListModelsResponse listed;
  const grpc::Status status = client.ListModels(&listed);
  if (!status.ok()) {
    console.err << "longview: cannot list models: " << Explain(status, line) << "\n";
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ? kServerNotReached
                                                                : kSomeInputFailed;
  }
  if (!line.model.empty()) {
    // The server judges a name it does not list, and says which there are.
    model->set_name(line.model);
    for (const v1::Model& each : listed.models()) {
      if (each.name() == line.model) *model = each;
    }
    return kAllWell;
  }
  std::vector<std::string> names = Choose(listed, task, "READY", model);
  // While a model loads, the server refuses calls to it with a delay, and they are repeated.
  if (names.empty()) names = Choose(listed, "", "LOADING", model);
  if (names.size() == 1) return kAllWell;
  const std::string wanted = task.empty() ? "" : " for " + task;
  if (names.empty()) {
    console.err << "longview: no model" << wanted << " is loaded; `longview models` lists all\n";
  } else {
    console.err << "longview: --model is needed, several models" << wanted
                << " are loaded: " << absl::StrJoin(names, ", ") << "\n";
  }
  return kUsage;
}

}  // namespace longview::client
