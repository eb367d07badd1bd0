// Precompiled for server/ and client/: as models.h, with protobuf, gRPC and the generated messages.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "deploy/cmake/precompiled/models.h"
#include "inference/grpc_service.grpc.pb.h"
#include "longview/v1/models.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "longview/v1/vision.grpc.pb.h"
