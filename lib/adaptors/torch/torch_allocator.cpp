#include <tensorpool/torch.hpp>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace tensorpool {
namespace {

constinit std::mutex mutex;
// The allocator to register again, and the priority to use: PyTorch ignores a lower one.
constinit c10::Allocator* allocator_before = nullptr;
constinit std::uint8_t priority_in_force = 0;

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

int one_if(bool (*call)()) noexcept try { return call() ? 1 : 0; } catch (...) {
    return 0;
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

PooledTorchAllocator& global_torch_allocator() {
    static PooledTorchAllocator& allocator = *new PooledTorchAllocator(get_global_memory_pool());
    return allocator;
}

bool enable_torch(std::uint8_t priority) {
    const std::lock_guard lock(mutex);
    if (torch_is_enabled()) return true;
    c10::Allocator* const before = c10::GetCPUAllocator();
    priority = std::max(priority, priority_in_force);
    c10::SetCPUAllocator(&global_torch_allocator(), priority);
    if (!torch_is_enabled()) return false;
    allocator_before = before;
    priority_in_force = priority;
    return true;
}

bool disable_torch() {
    const std::lock_guard lock(mutex);
    if (!torch_is_enabled() || allocator_before == nullptr) return false;
    c10::SetCPUAllocator(allocator_before, priority_in_force);
    return !torch_is_enabled();
}

bool torch_is_enabled() {
    return c10::GetCPUAllocator() == &global_torch_allocator();
}

}  // namespace tensorpool

// The functions that the Python package calls through ctypes. No exception leaves them.
extern "C" {

/// Makes PyTorch's CPU tensors come from the global pool. Returns 1 if they do now, and 0 if an
/// allocator of a higher priority is registered or there is no memory.
TENSORPOOL_API int tensorpool_torch_enable() {
    return tensorpool::one_if([] { return tensorpool::enable_torch(); });
}

/// Restores the allocator that was registered before. Returns 1 if it did, otherwise 0.
TENSORPOOL_API int tensorpool_torch_disable() {
    return tensorpool::one_if(tensorpool::disable_torch);
}

/// Returns 1 if a CPU tensor that is made now comes from the global pool, otherwise 0.
TENSORPOOL_API int tensorpool_torch_is_enabled() {
    return tensorpool::one_if(tensorpool::torch_is_enabled);
}

/// Returns an address in the libc10 that this library is linked to.
TENSORPOOL_API const void* tensorpool_torch_address_in_c10() {
    return reinterpret_cast<const void*>(&c10::SetCPUAllocator);
}

}  // extern "C"
