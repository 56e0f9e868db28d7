#include <tensorpool/torch.hpp>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

namespace tensorpool {
namespace {

constexpr std::size_t max_pools = 16;

// The pool of each deleter. An entry is written before the first block is allocated, so a thread
// that frees a block sees it.
constinit std::array<std::atomic<MemoryPool*>, max_pools> pools{};

// PyTorch's own reporter: its counts continue those of PyTorch's allocator. It does nothing unless
// a profiler of this thread records memory.
c10::ProfiledCPUMemoryReporter& reporter() {
    return c10::profiledCPUMemoryReporter();
}

template <std::size_t index>
void give_back(void* block) {
    if (block == nullptr) return;
    reporter().Delete(block);
    pools[index].load(std::memory_order_relaxed)->deallocate(block);
}

template <std::size_t... indices>
constexpr auto make_deleters(std::index_sequence<indices...>) {
    return std::array<c10::DeleterFnPtr, sizeof...(indices)>{give_back<indices>...};
}
constexpr auto deleters = make_deleters(std::make_index_sequence<max_pools>());

std::size_t take_index(MemoryPool& pool) {
    for (std::size_t index = 0; index < max_pools; ++index) {
        MemoryPool* no_pool = nullptr;
        if (pools[index].compare_exchange_strong(no_pool, &pool)) return index;
    }
    throw std::length_error("tensorpool: PooledTorchAllocator: 16 pools have one, expected fewer");
}

// Programs search for the text of PyTorch's own allocator to detect that memory is exhausted.
[[noreturn]] void fail(std::size_t bytes, const char* reason) {
    reporter().OutOfMemory(bytes);
    TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
                " bytes. ", reason);
}

}  // namespace

PooledTorchAllocator::PooledTorchAllocator(MemoryPool& pool)
    : pool_(&pool), index_(take_index(pool)) {}

PooledTorchAllocator::~PooledTorchAllocator() {
    pools[index_].store(nullptr);
}

c10::DataPtr PooledTorchAllocator::allocate(std::size_t bytes) const {
    void* block = nullptr;
    try {
        block = pool_->allocate_prefaulted(bytes);
    } catch (const std::bad_alloc& error) {
        fail(bytes, error.what());
    }
    reporter().New(block, bytes);
    return {block, block, deleters[index_], c10::Device(c10::DeviceType::CPU)};
}

c10::DeleterFnPtr PooledTorchAllocator::raw_deleter() const {
    return deleters[index_];
}

}  // namespace tensorpool
