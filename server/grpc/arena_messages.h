// Requests of one RPC on an arena: a parsed inference request is many small objects, and one
// arena frees them together (twice as fast for requests of 256 KiB to 1 MiB).
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/message_allocator.h>

namespace longview::server {

// Thread-safe. The response stays on the heap, so that an answer built elsewhere can be moved
// into it.
template <typename Request, typename Response>
class ArenaMessages final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override { return new Holder(); }

 private:
  class Holder final : public grpc::MessageHolder<Request, Response> {
   public:
    Holder() {
      this->set_request(google::protobuf::Arena::CreateMessage<Request>(&arena_));
      this->set_response(&response_);
    }
    void Release() override { delete this; }

   private:
    google::protobuf::Arena arena_;
    Response response_;
  };
};

}  // namespace longview::server
