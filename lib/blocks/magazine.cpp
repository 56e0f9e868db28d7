#include "blocks/magazine.hpp"

#include <functional>
#include <new>

namespace tensorpool::blocks {
namespace {

// The size of each chunk lies before it, in a cache line of its own so that the chunk stays
// aligned.
constexpr std::size_t head_bytes = cache_line_bytes;
// A chunk of 15 magazines with its head fills four pages of 4 KiB. Chunks grow up to 64 KiB.
constexpr std::size_t first_chunk_magazines = 15;
constexpr std::size_t max_chunk_magazines = 62;

}  // namespace

char* SystemChunks::malloc(size_type bytes) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t whole = base::align_up(bytes + head_bytes, unit);
    void* const memory = platform::map(whole, unit);
    if (memory == nullptr) return nullptr;
    new (memory) std::size_t(whole);
    return static_cast<char*>(memory) + head_bytes;
}

void SystemChunks::free(char* chunk) noexcept {
    char* const memory = chunk - head_bytes;
    platform::unmap(memory, *reinterpret_cast<std::size_t*>(memory));
}

MagazineStore::MagazineStore() noexcept
    : pool_(sizeof(Magazine), first_chunk_magazines, max_chunk_magazines) {}

Magazine* MagazineStore::make() noexcept {
    const std::lock_guard guard(mutex_);
    // All calls use the ordered variants: only an ordered pool can find chunks without magazines.
    void* const memory = pool_.ordered_malloc();
    if (memory == nullptr) return nullptr;
    ++made_;
    if (counted_in_ != nullptr) {
        counted_in_->fetch_add(sizeof(Magazine), std::memory_order_relaxed);
    }
    return new (memory) Magazine;
}

void MagazineStore::destroy(MagazineList& magazines) noexcept {
    // Freed from the highest address down, each magazine goes to the head of the ordered free list,
    // so no search is needed.
    magazines.sort([](const Magazine& a, const Magazine& b) { return std::greater<>()(&a, &b); });
    const std::lock_guard guard(mutex_);
    while (!magazines.empty()) {
        Magazine& magazine = magazines.front();
        magazines.pop_front();
        pool_.ordered_free(&magazine);
        --made_;
        if (counted_in_ != nullptr) {
            counted_in_->fetch_sub(sizeof(Magazine), std::memory_order_relaxed);
        }
    }
    pool_.release_memory();
}

}  // namespace tensorpool::blocks
