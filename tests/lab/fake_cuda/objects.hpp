#pragma once

/// The objects of a fake CUDA driver over host memory, and what its functions have in common. One
/// lock guards everything. It is made for tests of code that calls a driver, and is as strict as
/// the reference allows.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/driver_api.hpp"

namespace fake_cuda {

using namespace tensorpool::device::cuda;
using Lock = std::unique_lock<std::mutex>;

/// Work of a stream. `run` is called without the lock, once `ready`, called under it, returns true.
struct Operation {
    std::function<bool()> ready;
    std::function<void()> run;
};

/// The point that a record of an event stands for.
struct Mark {
    bool done = false;
    std::chrono::steady_clock::time_point at;
};

/// Streams of a capture are lanes. A clock holds how much of each lane it is ordered after.
using Clock = std::map<CUstream_st*, std::size_t>;
struct Capture {
    std::uint64_t id = 0;
    CaptureMode mode = CaptureMode::global;
    std::thread::id thread;  // that began it
    CUstream_st* origin = nullptr;
    bool invalidated = false;
    std::map<CUstream_st*, Clock> lanes;
    std::vector<std::function<void()>> nodes;  // in the order of submission
};

/// What was advised for managed memory, by processor. The fake driver keeps it for whole ranges.
struct Advised {
    static constexpr DeviceNumber none = -2;  // CU_DEVICE_INVALID
    bool read_mostly = false;
    DeviceNumber preferred = none;
    std::set<DeviceNumber> accessed_by = {};
    DeviceNumber prefetched = none;
};

/// Memory that the device finds at an address; `memory` is its real address.
struct Range {
    enum class Kind { device, managed, host, registered };
    Kind kind = Kind::device;
    std::size_t bytes = 0;
    int device = 0;
    char* memory = nullptr;
    bool pooled = false;              // stream-ordered
    CUstream_st* freed_on = nullptr;  // whose order the free waits for
    int reuses = 0;                   // allocations while a free waited
    Advised advised = {};
};

/// Physical memory, which is freed by the destructor. If it can be exported, it is a file in
/// memory, so that processes share it.
struct Physical {
    Physical(std::size_t its_bytes, int its_device, int its_file);
    ~Physical();
    Physical(const Physical&) = delete;
    Physical& operator=(const Physical&) = delete;

    const std::size_t bytes;
    const int device;
    const int file;  // -1 if it cannot be exported
    bool imported = false;
    char* memory = nullptr;
};
struct Mapping {
    std::size_t bytes = 0;
    std::shared_ptr<Physical> physical;
    std::set<int> readers;  // devices that have access
};

}  // namespace fake_cuda

/// A device's default pool, for stream-ordered allocation. Its memory counts as used.
struct CUmemPoolHandle_st {
    int device = 0;
    std::size_t in_use = 0;
    std::size_t kept = 0;  // free
    std::uint64_t release_threshold = 0;
};

namespace fake_cuda {

struct DeviceState {
    int retained = 0;
    CUctx_st* context = nullptr;
    std::size_t used = 0;
    CUmemPoolHandle_st pool = {};
};

}  // namespace fake_cuda

struct CUctx_st {
    int device = 0;
    fake_cuda::Result lost = fake_cuda::Result::success;  // returned by all later calls
    std::set<CUctx_st*> peers;
    std::set<CUstream_st*> streams;  // including the default stream
    std::set<CUstream_st*> ending;   // destroyed, with work left
    std::set<CUevent_st*> events;
    CUstream_st* default_stream = nullptr;
    std::map<std::thread::id, CUstream_st*> of_threads;  // the default stream of each thread
};

struct CUstream_st {
    CUctx_st* context = nullptr;
    std::uint64_t id = 0;
    std::deque<fake_cuda::Operation> operations;  // the first may be running
    bool destroyed = false;
    std::shared_ptr<fake_cuda::Capture> capture;
    std::thread worker;  // started by the first operation
    int priority = 0;
};

struct CUevent_st {
    CUctx_st* context = nullptr;
    bool timing = false;
    unsigned flags = 0;
    std::shared_ptr<fake_cuda::Mark> mark;
    std::shared_ptr<fake_cuda::Capture> capture;  // in which it was recorded last
    fake_cuda::Clock clock;
};

struct CUgraph_st {
    std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<const std::vector<std::function<void()>>> nodes;
};

namespace fake_cuda {

struct Driver {
    static constexpr int max_devices = 8;
    static constexpr int greatest_priority = -5;  // the least is 0
    static constexpr std::size_t total_bytes = std::size_t{1} << 30;
    static constexpr std::size_t granularity = std::size_t{2} << 20;

    std::mutex mutex;
    std::condition_variable changed;
    bool initialised = false;
    int device_count = 2;
    int version = 12020;
    Result init_result = Result::success;
    bool rdma = true;                      // whether devices report RDMA
    bool refuses_rdma = false;             // whether memory for RDMA is refused nevertheless
    bool peers = true;                     // whether devices can access each other's memory
    std::map<std::string, Result> faults;  // results of the next calls, by function
    std::map<std::string, unsigned long long> calls;
    std::string violation;
    DeviceState devices[max_devices];
    std::map<DeviceAddress, Range> ranges;
    std::map<DeviceAddress, std::size_t> reservations;
    std::map<DeviceAddress, Mapping> mappings;
    std::map<MemoryNumber, std::shared_ptr<Physical>> physical;
    MemoryNumber last_memory = 0;
    std::set<CUgraph_st*> graphs;
    std::set<CUgraphExec_st*> execs;
    std::uint64_t last_capture = 0;
    std::uint64_t last_stream = 0;
    // Handles that were destroyed. The last one is given out again first, as real drivers do.
    std::vector<std::unique_ptr<CUstream_st>> ended_streams;
    std::set<std::shared_ptr<Capture>> captures;  // under way
    std::vector<std::thread> ended;               // workers of deleted streams
};

/// Returns the driver. It is never destroyed, because workers may outlive static objects.
Driver& driver();
/// Returns the calling thread's stack of contexts.
std::vector<CUctx_st*>& contexts_of_thread();
/// The calling thread's capture mode (cuThreadExchangeStreamCaptureMode).
CaptureMode& capture_mode_of_thread();
/// Whether the calling thread is inside a host function, which may not call the driver.
bool& in_host_function();

/// Calls `body(lock)` under the lock, unless the call fails before: by an injected fault, inside a
/// host function, or before cuInit.
template <class Body>
Result enter(const char* name, Body body) {
    if (in_host_function()) return Result{800};  // CUDA_ERROR_NOT_PERMITTED
    Lock lock(driver().mutex);
    ++driver().calls[name];
    if (const auto fault = driver().faults.find(name); fault != driver().faults.end()) {
        const Result result = fault->second;
        driver().faults.erase(fault);
        return result;
    }
    if (!driver().initialised) return Result::not_initialized;
    return body(lock);
}

/// Like `enter`, with the thread's context: calls `body(lock, context)`. Fails if there is none, or
/// if an earlier error made it unusable.
template <class Body>
Result enter_context(const char* name, Body body) {
    return enter(name, [&](Lock& lock) {
        if (contexts_of_thread().empty()) return Result::invalid_context;
        CUctx_st& context = *contexts_of_thread().back();
        return context.lost != Result::success ? context.lost : body(lock, context);
    });
}

/// Invalidates the captures that a potentially unsafe call of this thread breaks, and returns
/// whether there are any. Source: "CUDA Driver API", cuThreadExchangeStreamCaptureMode. The lock
/// must be held.
bool breaks_captures_by_unsafe_call();

/// Like `enter_context`, for calls that are potentially unsafe during a capture, such as those that
/// allocate memory, query or wait.
template <class Body>
Result enter_unsafe(const char* name, Body body) {
    return enter_context(name, [&](Lock& lock, CUctx_st& context) {
        return breaks_captures_by_unsafe_call() ? Result::stream_capture_unsupported
                                                : body(lock, context);
    });
}

// Streams. The lock must be held.

/// Returns the context's stream of this handle, or nullptr. The handles 0 and 1 mean its default
/// stream, 2 that of the calling thread. A destroyed stream is noted as a violation.
CUstream_st* stream_of(CUctx_st& context, Stream stream);
CUevent_st* event_of(CUctx_st& context, Event event);
/// Submits the operation to the stream's queue, or records it in the stream's capture.
Result give(CUstream_st& stream, Operation operation);
void wait_until_idle(Lock& lock, const CUstream_st& stream);
/// Waits for all streams of the context.
void wait_until_idle(Lock& lock, const CUctx_st& context);
CUstream_st* make_stream(CUctx_st& context);
void end_stream(CUstream_st& stream);
/// Joins the workers of deleted streams, so that a leak checker sees no thread that is ending.
void join_ended();
/// Whether the stream is being captured; if so, invalidates the capture.
bool breaks_capture(CUstream_st& stream);

// Memory. The lock must be held.

/// Returns free memory of the pool to the device, up to `bytes`, for an allocation of so many.
void take_from_pool(int device, std::size_t bytes);
/// Makes the memory of a freed block free memory of the pool.
void return_to_pool(int device, std::size_t bytes);
/// Returns free memory of the pool to the device until the pool holds at most `bytes`.
void trim_pool(int device, std::uint64_t bytes);
/// Called at the end of each wait.
void release_above_threshold(int device);

/// Whether `device` can use the whole range.
bool is_usable(int device, DeviceAddress address, std::size_t bytes);
/// Calls `visit(pointer, bytes)` for each piece of the range, in order. REQUIRES: it is usable.
void visit_pieces(DeviceAddress address, std::size_t bytes,
                  const std::function<void(char*, std::size_t)>& visit);

}  // namespace fake_cuda
