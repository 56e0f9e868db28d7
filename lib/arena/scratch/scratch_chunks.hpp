#pragma once

#include <cstddef>
#include <vector>

#include "base/refusal.hpp"
#include "statistics/metrics/arena_metrics.hpp"

namespace tensorpool::arena {

using base::Refusal;

/// What the chunks are joined into when a run needed `need` bytes.
std::size_t joined_bytes(std::size_t need) noexcept;

/// The chunks of one scratch, in the order of their use. Those after the present one hold nothing.
/// One thread's; but a fork in another thread finds it whole.
class ScratchChunks {
public:
    struct Chunk {
        std::byte* begin = nullptr;
        std::byte* end = nullptr;
        /// Bytes that were in use in those before it when its use began.
        std::size_t below = 0;

        std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - begin); }
    };

    explicit ScratchChunks(statistics::ArenaTotals& totals) noexcept : totals_(totals) {}
    ~ScratchChunks() { drop_all(); }
    ScratchChunks(const ScratchChunks&) = delete;
    ScratchChunks& operator=(const ScratchChunks&) = delete;

    /// The only chunk, of the caller's memory; there will be no other.
    void set_buffer(std::byte* begin, std::byte* end);
    bool is_buffer() const noexcept { return is_buffer_; }

    bool empty() const noexcept { return chunks_.empty(); }
    /// The chunk in use; there is at least one.
    const Chunk& present() const noexcept { return chunks_[present_]; }
    std::size_t present_number() const noexcept { return present_; }
    bool is_one() const noexcept { return chunks_.size() == 1; }
    /// Whether the next chunk has `bytes` from a multiple of `alignment`.
    bool next_has(std::size_t bytes, std::size_t alignment) const noexcept;

    /// Puts a chunk of `wanted` bytes, or at least `needed` where memory is short, that begins at a
    /// multiple of `alignment`, after the present one in place of those that stood there. The first
    /// one is the present one at once. Returns its bytes; 0 when it is refused, and then nothing
    /// changed.
    std::size_t add_next(std::size_t needed, std::size_t wanted, std::size_t alignment,
                         Refusal& refusal) noexcept;
    /// Makes the next chunk the present one; `below` bytes are in use in those before it.
    void go_on(std::size_t below) noexcept;
    void go_back_to(std::size_t number) noexcept { present_ = number; }
    /// Gives back the present one; the next, which there is, takes its place.
    void drop_present() noexcept;
    /// Gives back those after the present one. Returns their bytes.
    std::size_t drop_spares() noexcept;
    /// Gives back all but a buffer. Returns their bytes.
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
