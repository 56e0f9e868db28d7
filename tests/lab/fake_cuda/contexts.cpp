// The driver, its devices and their primary contexts.

#include <algorithm>
#include <cstring>

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace {

bool is_device(DeviceNumber number) {
    return number >= 0 && number < driver().device_count;
}

// The attributes of a device of the newest kind.
int value_of(DeviceAttribute attribute) {
    switch (attribute) {
        case DeviceAttribute::can_map_host_memory:
        case DeviceAttribute::unified_addressing:
        case DeviceAttribute::managed_memory:
        case DeviceAttribute::concurrent_managed_access:
        case DeviceAttribute::virtual_memory_management:
        case DeviceAttribute::file_descriptor_handles:
        case DeviceAttribute::memory_pools:
            return 1;
        case DeviceAttribute::rdma_with_virtual_memory:
            return driver().rdma ? 1 : 0;
    }
    return 0;
}

const char* text_of(Result result) {
    switch (result) {
        case Result::success:
            return "no error";
        case Result::invalid_value:
            return "invalid argument";
        case Result::out_of_memory:
            return "out of memory";
        case Result::no_device:
            return "no CUDA-capable device is detected";
        case Result::invalid_context:
            return "invalid device context";
        case Result::invalid_handle:
            return "invalid resource handle";
        case Result::illegal_address:
            return "an illegal memory access was encountered";
        case Result::stream_capture_unsupported:
            return "operation not permitted when stream is capturing";
        default:
            return nullptr;
    }
}

}  // namespace

extern "C" {

Result cuInit(unsigned flags) {
    const Lock lock(driver().mutex);
    if (flags != 0) return Result::invalid_value;
    driver().initialised = driver().init_result == Result::success;
    return driver().init_result;
}

Result cuDriverGetVersion(int* version) {
    const Lock lock(driver().mutex);
    *version = driver().version;
    return Result::success;
}

Result cuGetErrorString(Result result, const char** text) {
    *text = text_of(result);
    return *text != nullptr ? Result::success : Result::invalid_value;
}

Result cuDeviceGetCount(int* count) {
    return enter("cuDeviceGetCount", [&](Lock&) {
        *count = driver().device_count;
        return Result::success;
    });
}

Result cuDeviceGet(DeviceNumber* device, int ordinal) {
    return enter("cuDeviceGet", [&](Lock&) {
        if (!is_device(ordinal)) return Result::invalid_device;
        *device = ordinal;
        return Result::success;
    });
}

Result cuDeviceGetName(char* name, int bytes, DeviceNumber device) {
    return enter("cuDeviceGetName", [&](Lock&) {
        if (!is_device(device)) return Result::invalid_device;
        std::strncpy(name, "Fake CUDA device", static_cast<std::size_t>(bytes));
        return Result::success;
    });
}

Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceNumber device) {
    return enter("cuDeviceGetAttribute", [&](Lock&) {
        if (!is_device(device)) return Result::invalid_device;
        *value = value_of(attribute);
        return Result::success;
    });
}

Result cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
    return enter("cuDevicePrimaryCtxRetain", [&](Lock&) {
        if (!is_device(device)) return Result::invalid_device;
        DeviceState& state = driver().devices[device];
        if (state.retained++ == 0) {
            state.context = new CUctx_st;
            state.context->device = device;
            state.context->default_stream = make_stream(*state.context);
        }
        *context = state.context;
        return Result::success;
    });
}

// The last release waits for the work of the context and destroys all objects in it.
Result cuDevicePrimaryCtxRelease(DeviceNumber device) {
    return enter("cuDevicePrimaryCtxRelease", [&](Lock& lock) {
        if (!is_device(device) || driver().devices[device].retained == 0) {
            return Result::invalid_context;
        }
        DeviceState& state = driver().devices[device];
        if (--state.retained != 0) return Result::success;
        CUctx_st& context = *state.context;
        wait_until_idle(lock, context);
        context.of_threads.clear();
        while (!context.streams.empty()) end_stream(**context.streams.begin());
        driver().changed.wait(lock, [&] { return context.ending.empty(); });
        join_ended();
        for (CUevent_st* const event : context.events) delete event;
        delete &context;
        state.context = nullptr;
        state.pool.release_threshold = 0;
        release_above_threshold(device);
        return Result::success;
    });
}

Result cuCtxPushCurrent_v2(Context context) {
    return enter("cuCtxPushCurrent", [&](Lock&) {
        const auto is_it = [&](const DeviceState& state) { return state.context == context; };
        if (context == nullptr ||
            std::none_of(std::begin(driver().devices), std::end(driver().devices), is_it)) {
            return Result::invalid_context;
        }
        contexts_of_thread().push_back(context);
        return Result::success;
    });
}

Result cuCtxPopCurrent_v2(Context* context) {
    return enter("cuCtxPopCurrent", [&](Lock&) {
        if (contexts_of_thread().empty()) return Result::invalid_context;
        if (context != nullptr) *context = contexts_of_thread().back();
        contexts_of_thread().pop_back();
        return Result::success;
    });
}

Result cuCtxGetCurrent(Context* context) {
    return enter("cuCtxGetCurrent", [&](Lock&) {
        *context = contexts_of_thread().empty() ? nullptr : contexts_of_thread().back();
        return Result::success;
    });
}

Result cuCtxSynchronize() {
    return enter_unsafe("cuCtxSynchronize", [](Lock& lock, CUctx_st& context) {
        // Conflicts with a capture in any mode: the handle of the context stands for all streams.
        bool captured = false;
        for (CUstream_st* const stream : context.streams) captured |= breaks_capture(*stream);
        if (captured) return Result::stream_capture_unsupported;
        wait_until_idle(lock, context);
        release_above_threshold(context.device);
        return context.lost;
    });
}

Result cuDeviceCanAccessPeer(int* can, DeviceNumber device, DeviceNumber peer) {
    return enter("cuDeviceCanAccessPeer", [&](Lock&) {
        if (!is_device(device) || !is_device(peer)) return Result::invalid_device;
        *can = device != peer && driver().peers ? 1 : 0;
        return Result::success;
    });
}

Result cuCtxEnablePeerAccess(Context peer, unsigned flags) {
    return enter_unsafe("cuCtxEnablePeerAccess", [&](Lock&, CUctx_st& context) {
        if (flags != 0) return Result::invalid_value;
        if (peer == &context) return Result::invalid_context;
        if (!driver().peers) return Result::peer_access_unsupported;
        return context.peers.insert(peer).second ? Result::success
                                                 : Result::peer_access_already_enabled;
    });
}

}  // extern "C"
