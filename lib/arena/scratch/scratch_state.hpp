#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tensorpool/scratch.hpp>

#include "arena/arena_record.hpp"
#include "arena/checked_blocks.hpp"
#include "arena/release_history.hpp"
#include "arena/scratch/scratch_chunks.hpp"
#include "arena/scratch/scratch_handles.hpp"
#include "arena/scratch/scratch_operators.hpp"
#include "events/snapshot_sources.hpp"
#include "arena/arena_table.hpp"

namespace tensorpool::detail {

/// The state of a Scratch, except for the words that every allocation reads.
class ScratchState final : public events::SnapshotSource {
public:
    static constexpr std::size_t first_chunk_bytes = std::size_t{512} << 10;

    ScratchState(Scratch& scratch, std::string name, arena::CheckedBlocks::Memory memory);
    ~ScratchState();

    Scratch& scratch() const noexcept { return scratch_; }
    const char* name() const noexcept { return name_.c_str(); }

    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override;
    ArenaStatistics statistics() const noexcept;
    std::size_t capacity() const noexcept override;
    std::size_t peak() const noexcept;

    /// Allocates if the present chunk may have no room. Returns nullptr, with the reason in
    /// `refusal`, if that fails.
    void* allocate(std::size_t bytes, std::size_t alignment, base::Refusal& refusal) noexcept;
    /// Uses memory of the caller in place of chunks.
    void set_buffer(std::span<std::byte> buffer);
    /// Makes room for `bytes` bytes, so that they need no growth. Returns false, with the reason in
    /// `refusal`, if that fails.
    [[nodiscard]] bool prepare(std::size_t bytes, base::Refusal& refusal) noexcept;

    /// Sets the present chunk and the bytes in use.
    void go_back_to(std::size_t chunk, std::size_t used) noexcept;
    /// Allocates a block for a handle. Throws what Scratch::allocate throws, and std::bad_alloc.
    HeldBlock hold(std::size_t bytes, std::size_t alignment);
    /// Returns the block of a handle that ends. Stops the program if the handle does not end in its
    /// scope, in reverse order.
    void end_handle(const HeldBlock& block) noexcept;
    /// Replaces several chunks by one that would have held everything. REQUIRES: nothing is in use.
    void settle() noexcept;
    std::size_t trim() noexcept;
    /// Returns the bytes that alignment might have needed, in addition to the bytes in use since
    /// the last joining, if all memory had been one piece.
    std::size_t slack() const noexcept { return slack_; }
    /// Gives back the chunks of a thread that does not exist in the child of a fork. The thread may
    /// have been in the middle of anything, so its records stay as they are.
    void abandon() noexcept;
    /// Records the new thread number in the child of a fork.
    void belong_to_this_thread() noexcept;
    /// Counts a refused request and puts it on the timeline.
    void count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept;

    arena::OwnedArenaRecord record;
    /// Differs from the number of any other scratch of the process, living or dead; never 0.
    const std::uint64_t number;
    /// The scope number of allocations outside of any scope.
    static constexpr std::uint64_t outside = 0;
    arena::KnownOperators operators;
    /// The operator of the innermost named scope; nullptr for none.
    ScratchOperator* innermost = nullptr;
    statistics::ArenaTotals& totals = record->totals;
    arena::ScratchChunks chunks{totals};
    arena::ReleaseHistory history;
    std::unique_ptr<arena::CheckedBlocks> checked;  ///< null unless TENSORPOOL_CHECKS is `hardened`

    ScratchState* next_of_all = nullptr;  ///< owned by the registry
    /// Opens or closes the inline path of the scratch. May be called by any thread.
    void show_quick_path(bool shown) noexcept;
    /// Makes the present scope end on the slow path, so that its end is recorded as its allocations
    /// were.
    void end_scope_slowly() noexcept { scratch_.unsettled_ = true; }

private:
    [[nodiscard]] bool grow(std::size_t bytes, std::size_t alignment,
                            base::Refusal& refusal) noexcept;
    void use_present_chunk() noexcept;
    [[nodiscard]] bool add_chunk(std::size_t needed, std::size_t wanted, std::size_t alignment,
                                 base::Refusal& refusal) noexcept;

    bool is_ready_for(std::size_t bytes) const noexcept;
    [[nodiscard]] bool make_ready(std::size_t bytes, base::Refusal& refusal) noexcept;
    void forget_need() noexcept;
    void note_changes() noexcept;
    void fold_record() noexcept;

    Scratch& scratch_;
    std::string name_;
    // The largest number of bytes in use for which room was made.
    std::size_t prepared_ = 0;
    std::size_t slack_ = 0;
    // The parts of the totals that are on the timeline.
    std::uint64_t noted_grown_ = 0;
    std::uint64_t noted_given_back_ = 0;
    static const SourceFunctions handle_functions;
    SourceLink link_{&handle_functions, this};  // what handles refer to
    arena::ScratchHandles handles_;
};

}  // namespace tensorpool::detail
