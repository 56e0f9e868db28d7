// Streams: queues with one thread each, started by the first work.

#include <thread>
#include <utility>

#include "support/fake_cuda/objects.hpp"

namespace fake_cuda {
namespace {

void run_unlocked(Lock& lock, const std::function<void()>& run) {
    if (!run) return;
    lock.unlock();
    run();
    lock.lock();
}

/// Runs the queue, then deletes the stream. Its thread is left for `join_ended`.
void work(CUstream_st* stream) {
    Lock lock(driver().mutex);
    for (;;) {
        driver().changed.wait(lock, [&] {
            if (stream->operations.empty()) return stream->destroyed;
            return !stream->operations.front().ready || stream->operations.front().ready();
        });
        if (stream->operations.empty()) break;
        run_unlocked(lock, stream->operations.front().run);
        stream->operations.pop_front();
        driver().changed.notify_all();
    }
    stream->context->ending.erase(stream);
    driver().ended.push_back(std::move(stream->worker));
    delete stream;
    driver().changed.notify_all();
}

}  // namespace

Driver& driver() {
    static Driver& driver = *new Driver;
    return driver;
}

std::vector<CUctx_st*>& contexts_of_thread() {
    thread_local std::vector<CUctx_st*> contexts;
    return contexts;
}

bool& in_host_function() {
    thread_local bool inside = false;
    return inside;
}

CUstream_st* stream_of(CUctx_st& context, Stream stream) {
    if (stream == nullptr) return context.default_stream;
    return context.streams.count(stream) != 0 && stream != context.default_stream ? stream
                                                                                  : nullptr;
}

CUevent_st* event_of(CUctx_st& context, Event event) {
    return context.events.count(event) != 0 ? event : nullptr;
}

Result give(CUstream_st& stream, Operation operation) {
    if (Capture* const capture = stream.capture.get()) {
        if (capture->invalidated) return Result::stream_capture_invalidated;
        capture->nodes.push_back(std::move(operation.run));
        ++capture->lanes[&stream][&stream];
        return Result::success;
    }
    stream.operations.push_back(std::move(operation));
    if (!stream.worker.joinable()) {
        join_ended();
        stream.worker = std::thread(work, &stream);
    }
    driver().changed.notify_all();
    return Result::success;
}

void wait_until_idle(Lock& lock, const CUstream_st& stream) {
    driver().changed.wait(lock, [&] { return stream.operations.empty(); });
}

// Checks all streams at once, because a stream may end during the wait for another.
void wait_until_idle(Lock& lock, const CUctx_st& context) {
    driver().changed.wait(lock, [&] {
        for (const CUstream_st* const stream : context.streams) {
            if (!stream->operations.empty()) return false;
        }
        return context.ending.empty();
    });
}

CUstream_st* make_stream(CUctx_st& context) {
    auto* const stream = new CUstream_st{.context = &context,
                                         .operations = {},
                                         .destroyed = false,
                                         .capture = nullptr,
                                         .worker = {}};
    context.streams.insert(stream);
    return stream;
}

void end_stream(CUstream_st& stream) {
    stream.context->streams.erase(&stream);
    if (!stream.worker.joinable()) {
        delete &stream;
        return;
    }
    stream.context->ending.insert(&stream);
    stream.destroyed = true;
    driver().changed.notify_all();
}

// Called under the lock, which these threads no longer take.
void join_ended() {
    for (std::thread& worker : std::exchange(driver().ended, {})) worker.join();
}

bool breaks_capture(CUstream_st& stream) {
    if (stream.capture == nullptr) return false;
    stream.capture->invalidated = true;
    return true;
}

}  // namespace fake_cuda
