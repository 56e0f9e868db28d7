#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tensorpool/scratch.hpp>

#include "arena/arena_record.hpp"
#include "arena/release_history.hpp"
#include "arena/scratch/scratch_chunks.hpp"
#include "arena/scratch/scratch_operators.hpp"
#include "statistics/metrics/arena_metrics.hpp"
#include "statistics/sums/snapshot_sources.hpp"

namespace tensorpool::detail {

/// What stands behind a Scratch, apart from the words that every allocation reads.
class ScratchState final : public statistics::SnapshotSource {
public:
    static constexpr std::size_t first_chunk_bytes = std::size_t{512} << 10;

    ScratchState(Scratch& scratch, std::string name);
    ~ScratchState();

    Scratch& scratch() const noexcept { return scratch_; }
    const char* name() const noexcept { return name_.c_str(); }

    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override;
    ArenaStatistics statistics() const noexcept;
    std::size_t capacity() const noexcept override;
    std::size_t peak() const noexcept;

    /// The operator of this name, asked for once a thread; nullptr when there is no memory for it.
    ScratchOperator* find_operator(std::string_view name) noexcept;

    /// Allocation where the present chunk has no room: `refusal` says why it is nullptr.
    void* allocate(std::size_t bytes, std::size_t alignment, base::Refusal& refusal) noexcept;
    /// Memory of the caller's in place of chunks.
    void set_buffer(std::span<std::byte> buffer);
    /// Room for `bytes` without growth.
    [[nodiscard]] bool prepare(std::size_t bytes, base::Refusal& refusal) noexcept;

    void go_back_to(std::size_t chunk, std::size_t used) noexcept;
    /// Everything has ended: one chunk that would have held it all, in place of several.
    void settle() noexcept;
    std::size_t trim() noexcept;
    /// What alignment may take beside what was in use since the last joining, had all been in one
    /// piece.
    std::size_t slack() const noexcept { return slack_; }
    /// In the child of a fork, of a thread that is not in it, and that may have been amid anything:
    /// gives back the chunks. The records stay as they are.
    void abandon() noexcept;
    /// In the child of a fork, whose only thread has another number.
    void belong_to_this_thread() noexcept;
    /// Counts that a request was not met, and puts it on the timeline.
    void count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept;

    arena::OwnedArenaRecord record;
    /// Of no other scratch of the process, one that is gone included; never 0.
    const std::uint64_t number;
    /// The number of no scope, for what is allocated outside of any.
    static constexpr std::uint64_t outside = 0;
    /// Whose scope is the innermost one with a name; nullptr for none.
    ScratchOperator* innermost = nullptr;
    statistics::ArenaTotals& totals = record->totals;
    arena::ScratchChunks chunks{totals};
    arena::ReleaseHistory history;

    ScratchState* next_of_all = nullptr;  ///< of the registry
    /// Whether the scratch's inline path takes what it can. Any thread.
    void show_quick_path(bool shown) noexcept;
    /// The scope in which something was told to a recorder shall tell its end.
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
    // How far what was made ready reached at most, in bytes in use.
    std::size_t prepared_ = 0;
    std::size_t slack_ = 0;
    // Of the totals, what is on the timeline.
    std::uint64_t noted_grown_ = 0;
    std::uint64_t noted_given_back_ = 0;
    std::unordered_map<std::string_view, ScratchOperator*> operators_;
};

}  // namespace tensorpool::detail
