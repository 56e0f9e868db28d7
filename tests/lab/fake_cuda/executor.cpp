// Streams: queues with one thread each, started by the first work.

#include <algorithm>
#include <thread>
#include <utility>

#include "lab/fake_cuda/objects.hpp"

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
    driver().ended_streams.emplace_back(stream);
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

CaptureMode& capture_mode_of_thread() {
    thread_local CaptureMode mode = CaptureMode::global;
    return mode;
}

bool breaks_captures_by_unsafe_call() {
    const CaptureMode mode = capture_mode_of_thread();
    if (mode == CaptureMode::relaxed) return false;
    bool breaks = false;
    for (const std::shared_ptr<Capture>& capture : driver().captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool forbids =
            own ? capture->mode != CaptureMode::relaxed
                : capture->mode == CaptureMode::global && mode == CaptureMode::global;
        if (!forbids) continue;
        capture->invalidated = true;
        breaks = true;
    }
    return breaks;
}

bool& in_host_function() {
    thread_local bool inside = false;
    return inside;
}

CUstream_st* stream_of(CUctx_st& context, Stream stream) {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    if (handle <= legacy_stream_handle) return context.default_stream;
    if (handle == per_thread_stream_handle) {
        CUstream_st*& own = context.of_threads[std::this_thread::get_id()];
        if (own == nullptr) own = make_stream(context);
        return own;
    }
    const bool is_ended = std::any_of(driver().ended_streams.begin(), driver().ended_streams.end(),
                                      [stream](const auto& one) { return one.get() == stream; });
    if (is_ended && driver().violation.empty()) driver().violation = "a destroyed stream was used";
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
    auto& ended = driver().ended_streams;
    if (ended.empty()) ended.push_back(std::make_unique<CUstream_st>());
    CUstream_st* const stream = ended.back().release();
    ended.pop_back();
    *stream = CUstream_st();
    stream->context = &context;
    stream->id = ++driver().last_stream;
    context.streams.insert(stream);
    return stream;
}

void end_stream(CUstream_st& stream) {
    stream.context->streams.erase(&stream);
    if (!stream.worker.joinable()) {
        driver().ended_streams.emplace_back(&stream);
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
