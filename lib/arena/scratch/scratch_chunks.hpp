#pragma once

#include <cstddef>
#include <vector>

#include "base/refusal.hpp"
#include "arena/arena_table.hpp"

namespace tensorpool::arena {

using base::Refusal;

/// Returns the size of the chunk that replaces several ones after a run that needed `need` bytes.
std::size_t joined_bytes(std::size_t need) noexcept;

/// The chunks of one scratch, in the order of their use. Chunks after the present one hold nothing.
/// Used by one thread, but consistent at a fork in another thread.
class ScratchChunks {
public:
    struct Chunk {
        std::byte* begin = nullptr;
        std::byte* end = nullptr;
        /// Bytes that were in use in the earlier chunks when the use of this one began.
        std::size_t below = 0;

        std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - begin); }
    };

    explicit ScratchChunks(statistics::ArenaTotals& totals) noexcept : totals_(totals) {}
    ~ScratchChunks();
    ScratchChunks(const ScratchChunks&) = delete;
    ScratchChunks& operator=(const ScratchChunks&) = delete;

    /// Makes memory of the caller the only chunk; no other is ever added.
    void set_buffer(std::byte* begin, std::byte* end);
    bool is_buffer() const noexcept { return is_buffer_; }

    bool empty() const noexcept { return chunks_.empty(); }
    /// Returns the chunk in use. REQUIRES: not empty.
    const Chunk& present() const noexcept { return chunks_[present_]; }
    std::size_t present_number() const noexcept { return present_; }
    /// Returns whether `p` lies in one of the chunks.
    bool contain(const void* p) const noexcept;
    bool is_one() const noexcept { return chunks_.size() == 1; }
    /// Returns whether the next chunk has room for `bytes` bytes from a multiple of `alignment`.
    bool next_has(std::size_t bytes, std::size_t alignment) const noexcept;

    /// Adds a chunk of `wanted` bytes, or of at least `needed` if memory is short, that begins at a
    /// multiple of `alignment`. It replaces all chunks after the present one. If there was none,
    /// the new chunk becomes the present one. Returns its bytes; 0 if it is refused, in which case
    /// nothing changed.
    std::size_t add_next(std::size_t needed, std::size_t wanted, std::size_t alignment,
                         Refusal& refusal) noexcept;
    /// Makes the next chunk the present one. `below` bytes are in use in the earlier chunks.
    void go_on(std::size_t below) noexcept;
    /// Marks all blocks above this position as freed, for a memory tool.
    void mark_freed_above(std::size_t chunk, std::size_t used) const noexcept;
    /// Makes the chunk `number` the present one.
    void go_back_to(std::size_t number) noexcept { present_ = number; }
    /// Gives the present chunk back to the system; the next one replaces it. REQUIRES: there is a
    /// next chunk.
    void drop_present() noexcept;
    /// Gives the chunks after the present one back to the system. Returns their bytes.
    std::size_t drop_spares() noexcept;
    /// Gives all chunks back to the system, except a buffer of the caller. Returns their bytes.
    std::size_t drop_all() noexcept;

private:
    bool append(void* memory, std::size_t bytes) noexcept;
    void give_back(const Chunk& chunk) noexcept;
    std::size_t drop_from(std::size_t first) noexcept;

    statistics::ArenaTotals& totals_;
    std::vector<Chunk> chunks_;
    std::size_t present_ = 0;
    bool is_buffer_ = false;
};

}  // namespace tensorpool::arena
