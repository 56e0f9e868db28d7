#include <tensorpool/device/pluggable_allocator.h>

#include "adaptors/c_calls.hpp"
#include "device/runtime/runtime_core.hpp"

namespace tensorpool::adaptors {
namespace {

StreamHandle to_stream(void* stream) noexcept {
    return static_cast<StreamHandle>(stream);
}

using PoolId = std::pair<std::uint64_t, std::uint64_t>;  // PyTorch's MempoolId_t

CapturePool to_pool(PoolId pool) noexcept {
    return {pool.first, pool.second};
}

DeviceAllocator& allocator_of(int device) {
    return get_runtime({DeviceType::cuda, device}).allocator();
}

CachingAllocator& caching_allocator_of(int device) {
    Runtime& runtime = get_runtime({DeviceType::cuda, device});
    (void)runtime.allocator();  // makes it
    if (CachingAllocator* const caching = runtime.caching_allocator()) return *caching;
    throw std::logic_error("the runtime of cuda:" + std::to_string(device) +
                           " uses stream-ordered allocation; expected a caching allocator");
}

// PyTorch does not pass the device of the memory.
DeviceAllocator& allocator_of(const void* memory) {
    const int devices = device_count(DeviceType::cuda);
    for (int device = 0; device < devices; ++device) {
        Runtime* const runtime = device::runtime_if_made({DeviceType::cuda, device});
        if (runtime == nullptr) continue;
        DeviceAllocator& allocator = runtime->allocator();
        if (allocator.usable_size(memory) != 0) return allocator;
    }
    throw std::invalid_argument("no block in use of a CUDA device begins at " +
                                device::to_text(memory));
}

void set_memory_fraction(double fraction, int device) {
    if (!(fraction > 0 && fraction <= 1)) {
        char text[80];
        std::snprintf(text, sizeof text, "the fraction is %g, expected above 0 and at most 1",
                      fraction);
        throw std::invalid_argument(text);
    }
    caching_allocator_of(device).set_hard_limit(fraction);
}

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;

void* tensorpool_torch_malloc(size_t bytes, int device, void* stream) {
    if (bytes == 0) return nullptr;
    try {
        return allocator_of(device).allocate(bytes, to_stream(stream));
    } catch (const std::exception& error) {
        set_last_error("tensorpool_torch_malloc", error.what());
        // PyTorch makes exceptions of this type Python's RuntimeError.
        throw std::runtime_error(error.what());
    }
}

void tensorpool_torch_free(void* memory, size_t, int device, void*) {
    if (memory == nullptr) return;
    guarded([&] { allocator_of(device).deallocate(memory); });
}

void tensorpool_torch_record_stream(void* memory, void* stream) {
    if (memory == nullptr) return;
    guarded([&] { allocator_of(memory).record_use(memory, to_stream(stream)); });
}

void tensorpool_torch_begin_allocate_to_pool(int device, PoolId pool,
                                             std::function<bool(void*)> takes_part) {
    guarded([&] {
        caching_allocator_of(device).begin_capture_pool(to_pool(pool), std::move(takes_part));
    });
}

void tensorpool_torch_end_allocate_to_pool(int device, PoolId pool) {
    guarded([&] { caching_allocator_of(device).end_capture_pool(to_pool(pool)); });
}

void tensorpool_torch_release_pool(int device, PoolId pool) {
    guarded([&] { caching_allocator_of(device).release_capture_pool(to_pool(pool)); });
}

void tensorpool_torch_reset(void) {
    guarded([] {
        const int devices = tensorpool::device_count(tensorpool::DeviceType::cuda);
        for (int device = 0; device < devices; ++device) {
            const tensorpool::Device which = {tensorpool::DeviceType::cuda, device};
            tensorpool::Runtime* const made = tensorpool::device::runtime_if_made(which);
            if (made != nullptr) made->trim();
        }
    });
}

void tensorpool_torch_set_memory_fraction(double fraction, int device) {
    guarded([&] { set_memory_fraction(fraction, device); });
}
