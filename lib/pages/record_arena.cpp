#include "pages/record_arena.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

}  // namespace

RecordArena::~RecordArena() {
    while (chunks_ != nullptr) {
        Chunk* const next = chunks_->next;
        platform::unmap(chunks_, chunks_->bytes);
        chunks_ = next;
    }
}

void* RecordArena::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    const std::lock_guard guard(mutex_);
    std::size_t at = base::align_up(used_, alignment);
    if (chunks_ == nullptr || at + bytes > chunks_->bytes) {
        if (!add_chunk(bytes + 64)) return nullptr;
        at = base::align_up(used_, alignment);
    }
    used_ = at + bytes;
    return reinterpret_cast<std::byte*>(chunks_) + at;
}

bool RecordArena::add_chunk(std::size_t at_least) noexcept {
    const std::size_t bytes =
        base::align_up(std::max(at_least, chunk_bytes), platform::page_bytes());
    void* const memory = platform::map(bytes, platform::page_bytes());
    if (memory == nullptr) return false;
    chunks_ = new (memory) Chunk{chunks_, bytes};
    used_ = sizeof(Chunk);
    bytes_held_ += bytes;
    if (counted_in_ != nullptr) counted_in_->fetch_add(bytes, std::memory_order_relaxed);
    return true;
}

}  // namespace tensorpool::pages
