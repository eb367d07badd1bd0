#include "server/http/transport/listener.h"

#include <openssl/ssl.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "boost/asio/buffer.hpp"
#include "boost/asio/co_spawn.hpp"
#include "boost/asio/detached.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/redirect_error.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/strand.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "models/status_macros.h"
#include "server/http/transport/connection.h"
#include "server/retry_delay.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/thread_loop.h"
#include "server/security/proxy_header.h"
#include "server/security/tls_material.h"

namespace longview::server {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// The protocols of ALPN, each behind its length.
constexpr std::string_view kProtocols = "\x08http/1.1";

// A client that offers only other protocols is served without one: its first line will tell.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  const auto* own = reinterpret_cast<const unsigned char*>(kProtocols.data());
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, chosen_size, own, kProtocols.size(), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

asio::const_buffer Bytes(const std::string& text) { return asio::buffer(text); }

// HTTP's side of TLS, what asio needs of a certificate: TLS 1.2 and above, ALPN http/1.1; with a
// client CA, clients must show a certificate it signed. Null if OpenSSL refuses the material, which
// it should not once that is checked.
std::shared_ptr<asio::ssl::context> MakeTlsContext(const TlsMaterial& material) {
  auto tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = tls->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_alpn_select_cb(native, ChooseProtocol, nullptr);
  // Without it, clients that resume a session are refused when certificates are asked for.
  SSL_CTX_set_session_id_context(native, reinterpret_cast<const unsigned char*>("longview"), 8);
  boost::system::error_code error;
  tls->use_certificate_chain(Bytes(material.certificate_chain), error);
  if (!error) tls->use_private_key(Bytes(material.private_key), asio::ssl::context::pem, error);
  if (!error && !material.client_ca.empty()) {
    tls->add_certificate_authority(Bytes(material.client_ca), error);
    tls->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  }
  return error ? nullptr : tls;
}

// The answer to a connection that finds no room.
std::string NoRoom() {
  const absl::Duration delay = SpreadDelay("CONNECTIONS", absl::Seconds(1));
  return absl::StrCat("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: ",
                      absl::ToInt64Seconds(absl::Ceil(delay, absl::Seconds(1))),
                      "\r\nretry-after-ms: ", absl::ToInt64Milliseconds(delay),
                      "\r\nConnection: close\r\n\r\n");
}

// How long the last answers may take, after the deadline of a stop.
constexpr absl::Duration kGoodbye = absl::Seconds(1);

// Most connections of proxies whose header has not come: none of them counts in the ledger yet.
constexpr int kMostUnnamed = 1024;

}  // namespace

class Listener::Impl {
 public:
  explicit Impl(TransportOptions options)
      : service_{std::move(options)},
        options_(service_.options),
        context_(std::make_shared<asio::io_context>(options_.threads)),
        wakes_(std::make_shared<WakeQueue>(*context_)),
        ledger_(std::make_shared<ConnectionLedger>(options_.connections)),
        work_(context_->get_executor()),
        acceptor_(asio::make_strand(*context_)),
        retry_(acceptor_.get_executor()) {}

  absl::StatusOr<int> Start();
  void Leave() { service_.leaving = true; }
  void Stop(absl::Time deadline);

 private:
  absl::Status Bind();
  asio::awaitable<void> Accept();
  // Asks for the client's address where a proxy has to tell it, then serves.
  asio::awaitable<void> AwaitProxyHeader(tcp::socket accepted, std::string proxy);
  // `address`: the client's.
  void Serve(tcp::socket socket, const std::string& address);
  void Refuse(tcp::socket socket);
  // Tells of a connection that is refused or closed.
  void Tell(EndCause cause, const std::string& address) const;
  std::shared_ptr<asio::ssl::context> CurrentTls();

  ConnectionService service_;
  const TransportOptions& options_;
  const std::shared_ptr<asio::io_context> context_;
  const std::shared_ptr<WakeQueue> wakes_;
  const std::shared_ptr<ConnectionLedger> ledger_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  int unnamed_ = 0;  // Connections whose header has not come; of the accepting strand.
  std::vector<std::thread> threads_;
  std::shared_ptr<const TlsMaterial> material_;  // Given to tls_; the accepting strand's.
  std::shared_ptr<asio::ssl::context> tls_;

  absl::Mutex mutex_;
  SteadyCondVar closed_;  // Signalled at the end of each connection once it stops.
  std::set<std::shared_ptr<HttpConnection>> connections_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status Listener::Impl::Bind() {
  boost::system::error_code error;
  const std::string where = absl::StrCat(options_.host, ":", options_.port);
  tcp::resolver resolver(*context_);
  const auto found =
      resolver.resolve(options_.host, std::to_string(options_.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot resolve ", where, ": ", error.message()));
  }
  const tcp::endpoint endpoint = *found.begin();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen for HTTP on ", where, ": ", error.message()));
}

absl::StatusOr<int> Listener::Impl::Start() {
  if (options_.tls != nullptr && CurrentTls() == nullptr) {
    return absl::UnavailableError("the certificate cannot be used for HTTP over TLS");
  }
  RETURN_IF_ERROR(Bind());
  asio::co_spawn(acceptor_.get_executor(), Accept(), asio::detached);
  for (int i = 0; i < options_.threads; ++i) {
    threads_.push_back(StartThread([context = context_] { context->run(); }));
  }
  return acceptor_.local_endpoint().port();
}

asio::awaitable<void> Listener::Impl::Accept() {
  while (acceptor_.is_open()) {
    boost::system::error_code error;
    tcp::socket socket(asio::make_strand(*context_));
    co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      std::string address = socket.remote_endpoint(error).address().to_string();
      if (!options_.proxy_protocol || !options_.proxies.Trusts(address)) {
        Serve(std::move(socket), address);
      } else if (unnamed_ < kMostUnnamed) {
        asio::co_spawn(acceptor_.get_executor(),
                       AwaitProxyHeader(std::move(socket), std::move(address)), asio::detached);
      } else {
        Tell(EndCause::kLimit, address);
      }
    } else if (error != asio::error::operation_aborted) {
      // Out of file descriptors, most likely: wait for some to come back.
      retry_.expires_after(std::chrono::milliseconds(50));
      co_await retry_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

std::shared_ptr<asio::ssl::context> Listener::Impl::CurrentTls() {
  if (options_.tls == nullptr) return nullptr;
  std::shared_ptr<const TlsMaterial> material = options_.tls->Current();
  if (material != material_) {
    if (auto next = MakeTlsContext(*material)) tls_ = std::move(next);
    material_ = std::move(material);
  }
  return tls_;
}

void Listener::Impl::Tell(EndCause cause, const std::string& address) const {
  if (options_.ends) options_.ends(cause, address);
}

void Listener::Impl::Refuse(tcp::socket socket) {
  // Non-blocking: what the socket does not take at once is lost, since the accepting strand must
  // not wait for a client at the limit. Over TLS a plain answer would be noise.
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  if (options_.tls == nullptr) socket.write_some(asio::buffer(NoRoom()), ignored);
  socket.shutdown(tcp::socket::shutdown_both, ignored);
}

asio::awaitable<void> Listener::Impl::AwaitProxyHeader(tcp::socket accepted, std::string proxy) {
  const auto socket = std::make_shared<tcp::socket>(std::move(accepted));
  asio::steady_timer timer(acceptor_.get_executor(),
                           absl::ToChronoNanoseconds(options_.header_timeout));
  timer.async_wait([weak = std::weak_ptr(socket)](boost::system::error_code cancelled) {
    const auto late = cancelled ? nullptr : weak.lock();
    boost::system::error_code ignored;
    if (late != nullptr) late->close(ignored);
  });
  ++unnamed_;
  boost::system::error_code error;
  ProxyHeader header{.kind = ProxyHeader::Kind::kPartial};
  while (!error && header.kind == ProxyHeader::Kind::kPartial) {
    co_await socket->async_wait(tcp::socket::wait_read,
                                asio::redirect_error(asio::use_awaitable, error));
    if (!error) header = TakeProxyHeader(socket->native_handle());
  }
  --unnamed_;
  if (!acceptor_.is_open()) co_return;
  if (error || header.kind != ProxyHeader::Kind::kWhole) {
    co_return Tell(EndCause::kProxyHeader, proxy);
  }
  Serve(std::move(*socket), header.client.empty() ? proxy : header.client);
}

void Listener::Impl::Serve(tcp::socket socket, const std::string& address) {
  auto connection = std::make_shared<HttpConnection>(context_, wakes_, std::move(socket),
                                                     CurrentTls(), address, service_);
  using PerAddress = ConnectionLedger::PerAddress;
  auto entry = ledger_->Admit(
      FairnessUnit(address),
      [this, address, weak = std::weak_ptr(connection)] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->MakeRoom();
        Tell(EndCause::kRoom, address);
      },
      options_.proxies.Trusts(address) ? PerAddress::kUnlimited : PerAddress::kLimited);
  if (entry == nullptr) {
    Tell(EndCause::kLimit, address);
    return Refuse(connection->TakeSocket());
  }
  connection->Count(ledger_, std::move(entry));
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    connections_.insert(connection);
  }
  connection->Start([this, key = std::weak_ptr(connection)] {
    absl::MutexLock lock(&mutex_);
    connections_.erase(key.lock());
    if (stopping_) closed_.SignalAll();
  });
}

void Listener::Impl::Stop(absl::Time deadline) {
  if (threads_.empty()) return;
  asio::post(acceptor_.get_executor(), [this] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  });
  std::vector<std::shared_ptr<HttpConnection>> open;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    open.assign(connections_.begin(), connections_.end());
  }
  // All connections know it before the first closes, so that a client that sees one close finds no
  // other that still takes requests.
  for (const auto& connection : open) connection->TakeNoMore();
  for (const auto& connection : open) connection->Drain();
  open.clear();
  {
    const auto all_closed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return connections_.empty();
    };
    absl::MutexLock lock(&mutex_);
    const absl::Condition closed(&all_closed);
    if (!closed_.AwaitUntil(&mutex_, closed, deadline)) {
      // Calls that still run are told that they end; a client that does not read that is cut.
      for (const auto& connection : connections_) connection->GiveUp();
      if (!closed_.AwaitFor(&mutex_, closed, kGoodbye)) {
        for (const auto& connection : connections_) connection->Abort();
        closed_.AwaitFor(&mutex_, closed, kGoodbye);
      }
    }
  }
  work_.reset();
  context_->stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Listener::Listener(TransportOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Listener::~Listener() { Stop(SteadyNow()); }

absl::StatusOr<int> Listener::Start() { return impl_->Start(); }
void Listener::Leave() { impl_->Leave(); }
void Listener::Stop(absl::Time deadline) { impl_->Stop(deadline); }

}  // namespace longview::server
