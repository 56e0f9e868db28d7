// Streams, events and host functions.

#include <algorithm>

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace fake_cuda {
namespace {

Result record(CUevent_st& event, CUstream_st& stream) {
    if (stream.capture != nullptr) {
        if (stream.capture->invalidated) return Result::stream_capture_invalidated;
        event.capture = stream.capture;
        event.clock = stream.capture->lanes[&stream];
        event.mark = nullptr;
        return Result::success;
    }
    event.capture = nullptr;
    event.mark = std::make_shared<Mark>();
    return give(stream, {{}, [mark = event.mark] {
                             const Lock lock(driver().mutex);
                             mark->done = true;
                             mark->at = std::chrono::steady_clock::now();
                         }});
}

/// Adds the stream as a lane to the event's capture, unless it is one.
Result join(CUstream_st& stream, const CUevent_st& event) {
    Capture& capture = *event.capture;
    if (capture.invalidated) return Result::stream_capture_invalidated;
    if (stream.capture != nullptr && stream.capture != event.capture) {
        capture.invalidated = stream.capture->invalidated = true;
        return Result::stream_capture_merge;
    }
    stream.capture = event.capture;
    for (const auto& [lane, count] : event.clock) {
        std::size_t& seen = capture.lanes[&stream][lane];
        seen = std::max(seen, count);
    }
    return Result::success;
}

Result wait_for(CUstream_st& stream, const CUevent_st& event) {
    if (event.capture != nullptr) return join(stream, event);
    if (event.mark == nullptr) return Result::success;
    if (breaks_capture(stream)) return Result::stream_capture_isolation;
    return give(stream, {[mark = event.mark] { return mark->done; }, {}});
}

Result state_of(const CUevent_st& event) {
    if (event.capture != nullptr) return Result::captured_event;
    return event.mark == nullptr || event.mark->done ? Result::success : Result::not_ready;
}

}  // namespace
}  // namespace fake_cuda

extern "C" {

// Only streams that do not wait implicitly for the default stream are supported.
Result cuStreamCreate(Stream* stream, unsigned flags) {
    return enter_context("cuStreamCreate", [&](Lock&, CUctx_st& context) {
        if (flags != stream_non_blocking) return Result::invalid_value;
        *stream = make_stream(context);
        return Result::success;
    });
}

Result cuStreamGetId(Stream handle, unsigned long long* id) {
    return enter_context("cuStreamGetId", [&](Lock&, CUctx_st& context) {
        const CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        *id = stream->id;
        return Result::success;
    });
}

// A priority outside the range is clamped.
Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
    return enter_context("cuStreamCreateWithPriority", [&](Lock&, CUctx_st& context) {
        if (flags != stream_non_blocking) return Result::invalid_value;
        *stream = make_stream(context);
        (*stream)->priority = std::clamp(priority, Driver::greatest_priority, 0);
        return Result::success;
    });
}

Result cuStreamGetPriority(Stream handle, int* priority) {
    return enter_context("cuStreamGetPriority", [&](Lock&, CUctx_st& context) {
        const CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        *priority = stream->priority;
        return Result::success;
    });
}

Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return enter_context("cuCtxGetStreamPriorityRange", [&](Lock&, CUctx_st&) {
        if (least != nullptr) *least = 0;
        if (greatest != nullptr) *greatest = Driver::greatest_priority;
        return Result::success;
    });
}

Result cuStreamDestroy_v2(Stream handle) {
    return enter_context("cuStreamDestroy", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr || handle == nullptr) return Result::invalid_handle;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        end_stream(*stream);
        return Result::success;
    });
}

Result cuStreamSynchronize(Stream handle) {
    return enter_unsafe("cuStreamSynchronize", [&](Lock& lock, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        wait_until_idle(lock, *stream);
        release_above_threshold(context.device);
        return context.lost;
    });
}

Result cuStreamQuery(Stream handle) {
    return enter_unsafe("cuStreamQuery", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        return stream->operations.empty() ? Result::success : Result::not_ready;
    });
}

// The event may belong to any context.
Result cuStreamWaitEvent(Stream handle, Event event, unsigned flags) {
    return enter_context("cuStreamWaitEvent", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        bool is_event = false;
        for (const DeviceState& state : driver().devices) {
            is_event |= state.context != nullptr && event_of(*state.context, event) != nullptr;
        }
        if (stream == nullptr || !is_event) return Result::invalid_handle;
        return flags != 0 ? Result::invalid_value : wait_for(*stream, *event);
    });
}

Result cuLaunchHostFunc(Stream handle, HostFunction function, void* argument) {
    return enter_context("cuLaunchHostFunc", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (function == nullptr) return Result::invalid_value;
        return give(*stream, {{}, [function, argument] {
                                  in_host_function() = true;
                                  function(argument);
                                  in_host_function() = false;
                              }});
    });
}

Result cuEventCreate(Event* event, unsigned flags) {
    return enter_context("cuEventCreate", [&](Lock&, CUctx_st& context) {
        const bool timing = (flags & event_disable_timing) == 0;
        const bool interprocess = (flags & event_interprocess) != 0;
        if (flags > 7 || (interprocess && timing)) return Result::invalid_value;
        *event = new CUevent_st;
        (*event)->context = &context;
        (*event)->timing = timing;
        (*event)->flags = flags;
        context.events.insert(*event);
        return Result::success;
    });
}

Result cuEventDestroy_v2(Event handle) {
    return enter_context("cuEventDestroy", [&](Lock&, CUctx_st& context) {
        CUevent_st* const event = event_of(context, handle);
        if (event == nullptr) return Result::invalid_handle;
        context.events.erase(event);
        delete event;
        return Result::success;
    });
}

Result cuEventRecord(Event event_handle, Stream stream_handle) {
    return enter_context("cuEventRecord", [&](Lock&, CUctx_st& context) {
        CUevent_st* const event = event_of(context, event_handle);
        CUstream_st* const stream = stream_of(context, stream_handle);
        if (event == nullptr || stream == nullptr) return Result::invalid_handle;
        return record(*event, *stream);
    });
}

Result cuEventQuery(Event handle) {
    return enter_unsafe("cuEventQuery", [&](Lock&, CUctx_st& context) {
        const CUevent_st* const event = event_of(context, handle);
        return event != nullptr ? state_of(*event) : Result::invalid_handle;
    });
}

// Another thread may destroy or record the event during the wait, so its current mark is waited
// for.
Result cuEventSynchronize(Event handle) {
    return enter_unsafe("cuEventSynchronize", [&](Lock& lock, CUctx_st& context) {
        const CUevent_st* const event = event_of(context, handle);
        if (event == nullptr) return Result::invalid_handle;
        const Result state = state_of(*event);
        if (state != Result::not_ready) return state;
        driver().changed.wait(lock, [mark = event->mark] { return mark->done; });
        release_above_threshold(context.device);
        return context.lost;
    });
}

Result cuEventElapsedTime(float* ms, Event from_handle, Event to_handle) {
    return enter_context("cuEventElapsedTime", [&](Lock&, CUctx_st& context) {
        const CUevent_st* const from = event_of(context, from_handle);
        const CUevent_st* const to = event_of(context, to_handle);
        if (from == nullptr || to == nullptr) return Result::invalid_handle;
        for (const CUevent_st* const event : {from, to}) {
            if (!event->timing || event->mark == nullptr) return Result::invalid_handle;
        }
        if (!from->mark->done || !to->mark->done) return Result::not_ready;
        *ms = std::chrono::duration<float, std::milli>(to->mark->at - from->mark->at).count();
        return Result::success;
    });
}

}  // extern "C"
