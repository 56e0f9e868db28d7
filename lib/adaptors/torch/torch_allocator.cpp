#include <tensorpool/torch.hpp>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <new>
#include <stdexcept>
#include <utility>

namespace tensorpool {
namespace {

constexpr std::size_t max_pools = 16;

// Written before the first block is given, whose holder calls the deleter.
constinit std::array<std::atomic<MemoryPool*>, max_pools> pools{};

// PyTorch's own reporter, whose figures go on where its own allocator's ended. It does nothing
// unless a profiler of this thread wants memory.
c10::ProfiledCPUMemoryReporter& reporter() {
    return c10::profiledCPUMemoryReporter();
}

template <std::size_t place>
void give_back(void* block) {
    if (block == nullptr) return;
    reporter().Delete(block);
    pools[place].load(std::memory_order_relaxed)->deallocate(block);
}

template <std::size_t... places>
constexpr auto make_deleters(std::index_sequence<places...>) {
    return std::array<c10::DeleterFnPtr, sizeof...(places)>{give_back<places>...};
}
constexpr auto deleters = make_deleters(std::make_index_sequence<max_pools>());

std::size_t take_place(MemoryPool& pool) {
    for (std::size_t place = 0; place < max_pools; ++place) {
        MemoryPool* nobody = nullptr;
        if (pools[place].compare_exchange_strong(nobody, &pool)) return place;
    }
    throw std::length_error("tensorpool: PooledTorchAllocator: 16 pools have one, expected fewer");
}

// Programs look for the words of PyTorch's own allocator to know that memory was short.
[[noreturn]] void fail(std::size_t bytes, const char* reason) {
    reporter().OutOfMemory(bytes);
    TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
                " bytes. ", reason);
}

}  // namespace

PooledTorchAllocator::PooledTorchAllocator(MemoryPool& pool)
    : pool_(&pool), place_(take_place(pool)) {}

PooledTorchAllocator::~PooledTorchAllocator() {
    pools[place_].store(nullptr);
}

c10::DataPtr PooledTorchAllocator::allocate(std::size_t bytes) const {
    void* block = nullptr;
    try {
        block = pool_->allocate_prefaulted(bytes);
    } catch (const std::bad_alloc& error) {
        fail(bytes, error.what());
    }
    reporter().New(block, bytes);
    return {block, block, deleters[place_], c10::Device(c10::DeviceType::CPU)};
}

c10::DeleterFnPtr PooledTorchAllocator::raw_deleter() const {
    return deleters[place_];
}

}  // namespace tensorpool
