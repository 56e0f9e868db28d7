#include <tensorpool/memory_resource.hpp>

#include <algorithm>

namespace tensorpool {
namespace {

constexpr std::size_t default_alignment = 64;

// Pools and arenas return nullptr for 0 bytes; a memory resource must not.
std::size_t at_least_one(std::size_t bytes) noexcept {
    return std::max<std::size_t>(bytes, 1);
}

}  // namespace

void* PoolResource::do_allocate(std::size_t bytes, std::size_t alignment) {
    if (alignment <= default_alignment) return pool_->allocate(at_least_one(bytes));
    return pool_->allocate(at_least_one(bytes), alignment);
}

void PoolResource::do_deallocate(void* p, std::size_t bytes, std::size_t alignment) {
    if (alignment <= default_alignment) return pool_->deallocate(p, at_least_one(bytes));
    pool_->deallocate(p, at_least_one(bytes), alignment);
}

bool PoolResource::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
    const auto* const resource = dynamic_cast<const PoolResource*>(&other);
    return resource != nullptr && resource->pool_ == pool_;
}

void* ArenaResource::do_allocate(std::size_t bytes, std::size_t alignment) {
    return arena_->allocate(at_least_one(bytes), alignment);
}

bool ArenaResource::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
    const auto* const resource = dynamic_cast<const ArenaResource*>(&other);
    return resource != nullptr && resource->arena_ == arena_;
}

}  // namespace tensorpool
