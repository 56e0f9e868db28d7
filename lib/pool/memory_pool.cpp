#include <tensorpool/memory_pool.hpp>

#include <tensorpool/pooled_allocation.hpp>

#include "events/report_at_exit.hpp"
#include "kinds/kinds.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t default_alignment = 64;

detail::Pool& make_pool(const PoolOptions& options) {
    validate(options);
    events::report_at_exit_where_wanted();
    limits::read_named_budgets();
    detail::Pool* const pool = detail::Pool::make(options);
    if (pool == nullptr) {
        throw AllocationError(options.name.c_str(), sizeof(detail::Pool), 0, 0,
                              "memory for the pool's records, or the number of pools", 0);
    }
    pages::SlowPath path;
    if (options.initial_capacity != 0 && !pool->reserve(options.initial_capacity, path)) {
        const AllocationError error = pool->error_for(options.initial_capacity, path);
        detail::Pool::destroy(*pool);
        throw error;
    }
    detail::background_trimmer().start_if_wanted();
    return *pool;
}

// Ends a call that only exchanged magazines.
void end_exchange(detail::Pool& pool, const pages::Changes& changes) noexcept {
    const bool has_changes = (changes.grown | changes.given_back) != 0;
    if (has_changes || detail::background_trimmer().is_asleep()) [[unlikely]]
        pool.end_slow_path(changes);
}

// Allocates a block that the inline path could not serve: a block of whole pages, any block of a
// pool with checks, or one of which the thread's loaded magazine has none. Each of the three has a
// short path, which serves most requests.
void* allocate_rest(detail::Pool& pool, const detail::ThreadCache& visible, std::size_t bytes) {
    kinds::PoolParts& parts = pool.parts();
    void* block = nullptr;
    if (bytes > detail::largest_block_bytes) {
        block = kinds::take_free_pages(parts, bytes);
    } else if (parts.is_checked()) {
        block = kinds::take_parked_block(parts, bytes);
    } else {
        pages::Changes changes;
        block = kinds::take_exchanged_block(parts, visible, bytes, changes);
        end_exchange(pool, changes);
    }
    return block != nullptr ? block : pool.allocate_or_throw({bytes, default_alignment});
}

detail::FreedAs freed_as(std::size_t bytes, std::size_t alignment = default_alignment) noexcept {
    // No block has as many bytes as the number that stands for an unknown size.
    return {.bytes = std::min(bytes, detail::FreedAs::unknown - 1), .alignment = alignment};
}

// Returns the pool of a call with a block.
detail::Pool& found(const MemoryPool& pool, detail::Pool* set_up, const void* block) {
    return set_up != nullptr ? *set_up : detail::require_pool(pool, block);
}

}  // namespace

MemoryPool::MemoryPool(std::size_t initial_capacity)
    : MemoryPool(PoolOptions{.initial_capacity = initial_capacity}) {}

MemoryPool::MemoryPool(const PoolOptions& options) : MemoryPool(0, &make_pool(options)) {
    place_ = detail::TablePlace(std::min(pool().parts().number(), detail::cached_pool_count));
    platform::mark_defined(this, sizeof *this);
}

MemoryPool::~MemoryPool() {
    detail::Pool* const pool = pool_if_set_up();
    if (pool == nullptr) return;
    detail::Pool::destroy(*pool);
    // A handle that outlives the pool finds null. An exchange, because compilers remove a plain
    // store to an object that ends.
    (void)pool_.exchange(nullptr);
}

void* MemoryPool::allocate_slow(std::size_t bytes) {
    if (detail::Pool* const pool = pool_if_set_up()) [[likely]]
        return allocate_rest(*pool, thread_cache(), bytes);
    return allocate_rest(this->pool(), thread_cache(), bytes);
}

void* MemoryPool::allocate(std::size_t bytes, std::size_t alignment) {
    if (alignment <= default_alignment && std::has_single_bit(alignment)) return allocate(bytes);
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: pool '" + name() + "': allocate: alignment is " +
                                    std::to_string(alignment) + "; expected a power of two");
    }
    return pool().allocate_or_throw({bytes, alignment});
}

void* MemoryPool::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (!std::has_single_bit(alignment)) return nullptr;
    detail::Pool* const pool = detail::PoolAccess::find(*this);
    pages::SlowPath path;
    return pool == nullptr ? nullptr
                           : pool->allocate({bytes, std::max(alignment, default_alignment)}, path);
}

void* MemoryPool::allocate_prefaulted(std::size_t bytes) {
    if (bytes <= detail::largest_block_bytes) return allocate(bytes);
    return pool().allocate_or_throw({bytes, default_alignment, kinds::FirstTouch::by_pool});
}

void* MemoryPool::try_allocate_prefaulted(std::size_t bytes) noexcept {
    if (bytes <= detail::largest_block_bytes) return try_allocate(bytes);
    detail::Pool* const pool = detail::PoolAccess::find(*this);
    pages::SlowPath path;
    return pool == nullptr
               ? nullptr
               : pool->allocate({bytes, default_alignment, kinds::FirstTouch::by_pool}, path);
}

void* MemoryPool::allocate_zeroed(std::size_t count, std::size_t element_bytes) {
    const std::size_t bytes = detail::product(count, element_bytes);
    pages::SlowPath path;
    void* const block = pool().allocate_zeroed(bytes, path);
    if (block == nullptr && bytes != 0) throw pool().error_for(bytes, path);
    return block;
}

void* MemoryPool::try_allocate_zeroed(std::size_t count, std::size_t element_bytes) noexcept {
    detail::Pool* const pool = detail::PoolAccess::find(*this);
    pages::SlowPath path;
    const std::size_t bytes = detail::product(count, element_bytes);
    return pool == nullptr ? nullptr : pool->allocate_zeroed(bytes, path);
}

void* MemoryPool::reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) {
    if (p == nullptr) return allocate(new_bytes);
    if (new_bytes == 0) {
        deallocate(p);
        return nullptr;
    }
    return found(*this, pool_if_set_up(), p).reallocate(p, old_bytes, new_bytes);
}

void MemoryPool::deallocate(void* p) noexcept {
    if (p != nullptr) found(*this, pool_if_set_up(), p).deallocate(p);
}

void MemoryPool::deallocate_slow(void* p, std::size_t bytes) noexcept {
    if (p == nullptr) return;
    // Without a pool, the free is a misuse: none has returned a block yet, or this one has ended.
    detail::Pool& pool = found(*this, pool_if_set_up(), p);
    pages::Changes changes;
    if (kinds::free_exposed(pool.parts(), p) ||
        kinds::give_exchanged_block(pool.parts(), thread_cache(), p, bytes, changes)) {
        end_exchange(pool, changes);
    } else {
        pool.deallocate(p, freed_as(bytes));
    }
}

void MemoryPool::deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept {
    if (p == nullptr) return;
    if (alignment <= default_alignment) {
        deallocate(p, bytes);
    } else {
        found(*this, pool_if_set_up(), p).deallocate(p, freed_as(bytes, alignment));
    }
}

void MemoryPool::reserve(std::size_t capacity) {
    pages::SlowPath path;
    if (!pool().reserve(capacity, path)) throw pool().error_for(capacity, path);
}

std::size_t MemoryPool::trim() noexcept {
    detail::Pool* const pool = pool_if_set_up();
    return pool == nullptr ? 0 : pool->trim();
}

void MemoryPool::set_max_capacity(std::size_t bytes) {
    pool().set_max_capacity(bytes);
}

std::size_t MemoryPool::max_capacity() const {
    // Relaxed: the value orders nothing.
    return pool().parts().record->limit_bytes.load(std::memory_order_relaxed);
}

bool MemoryPool::owns(const void* p) const noexcept {
    detail::Pool* const pool = pool_if_set_up();
    if (pool == nullptr) return false;
    const kinds::Found::What what = kinds::find(pool->parts(), p).what;
    return what == kinds::Found::What::block || what == kinds::Found::What::interior;
}

std::size_t MemoryPool::usable_size(const void* p) const {
    detail::Pool* const pool = pool_if_set_up();
    return pool == nullptr ? 0 : kinds::usable_size(pool->parts(), p);
}

PoolStatistics MemoryPool::statistics() const {
    return pool().parts().counters.statistics();
}

std::size_t MemoryPool::get_total_allocated() const noexcept {
    const detail::Pool* const pool = pool_if_set_up();
    return pool == nullptr ? 0 : pool->parts().counters.in_use_bytes();
}

std::size_t MemoryPool::get_total_capacity() const noexcept {
    const detail::Pool* const pool = pool_if_set_up();
    return pool == nullptr ? 0 : pool->capacity();
}

double MemoryPool::get_utilization_ratio() const noexcept {
    const std::size_t capacity = get_total_capacity();
    if (capacity == 0) return 0.0;
    return static_cast<double>(get_total_allocated()) / static_cast<double>(capacity);
}

std::size_t MemoryPool::get_allocation_count() const noexcept {
    const detail::Pool* const pool = pool_if_set_up();
    return pool == nullptr ? 0 : pool->parts().counters.allocations();
}

std::size_t MemoryPool::get_deallocation_count() const noexcept {
    const detail::Pool* const pool = pool_if_set_up();
    return pool == nullptr ? 0 : pool->parts().counters.deallocations();
}

const std::string& MemoryPool::name() const noexcept {
    static const std::string not_set_up = "global";  // the system had no memory for its records
    detail::Pool* const pool = detail::PoolAccess::find(*this);
    return pool == nullptr ? not_set_up : pool->parts().options.name;
}

void PooledAllocation::give_back() noexcept {
    const BlockOwner& owner = block_.owner;
    if (owner.is_pool()) {
        static_cast<MemoryPool*>(owner.pool())
            ->deallocate(block_.address, block_.bytes, owner.alignment());
    } else {
        owner.functions().give_back(owner.source(), block_);
    }
}

void PooledAllocation::give_up() noexcept {
    if (block_.address == nullptr) return;
    const auto give_up = block_.owner.functions().give_up;
    if (give_up != nullptr) give_up(block_.owner.source(), block_);
}

void* PooledAllocation::host_pointer_of_source() const noexcept {
    if (block_.address == nullptr) return nullptr;
    const auto host_pointer = block_.owner.functions().host_pointer;
    return host_pointer == nullptr ? block_.address : host_pointer(block_.owner.source(), block_);
}

SourceDevice PooledAllocation::device() const noexcept {
    if (block_.address == nullptr || block_.owner.is_pool()) return {};
    const auto device = block_.owner.functions().device;
    return device == nullptr ? SourceDevice{} : device(block_.owner.source());
}

void PooledAllocation::refuse_host(const char* call) const {
    const void* const host = host_pointer();
    throw std::invalid_argument(
        std::string("tensorpool: ") + call + ": the host " +
        (host == nullptr ? "cannot access the block" : "accesses the block at another address") +
        ", which belongs to a source of kind '" + block_.owner.functions().name +
        "' (DLPack device type " + std::to_string(device().type) +
        "); expected memory of the host");
}

}  // namespace tensorpool
