#pragma once

#include <iterator>

#include <tensorpool/device/sleep_content.hpp>

#include "device/caching/reclaim.hpp"

namespace tensorpool::device {

/// Gives the physical memory of blocks in use back to the device, and maps memory at the same
/// addresses again later. Possible for expandable slabs only: other memory would come back at other
/// addresses.
class Sleep {
public:
    Sleep(AllocatorState& state, FreeBlocks& free, Captures& captures, Reclaim& reclaim) noexcept
        : state_(state), free_(free), captures_(captures), reclaim_(reclaim) {}

    /// Falls asleep and returns how many bytes the device took back. Throws DeviceError with the
    /// reason if that is impossible, and std::bad_alloc, and then gives back only free memory.
    std::size_t begin(SleepContent content) {
        wait_for_turn();
        if (state_.asleep) return 0;
        const Growing turn(is_under_way_, state_.grown);  // no other thread sleeps or wakes
        check_captures();
        free_.complete();
        free_.flush_all();
        std::size_t bytes = reclaim_.give_back(Reclaim::Which::all, max_bytes);
        set_asleep(true);  // from now on requests fail, and nothing is given back or moved
        try {
            wait_until_quiet();
            if (!reclaim_.wait_for_device()) {
                check_captures();
                refuse(DeviceStatus::failed,
                       "the wait for the device failed: " + state_.backend.last_error());
            }
            check_captures();
            free_.complete();
            free_.flush_all();
            check_slabs();
            find_pieces();
            find_blocks();
            if (content == SleepContent::kept) {
                for (Kept& kept : blocks_) save(kept);
            }
        } catch (...) {
            pieces_.clear();
            blocks_.clear();
            set_asleep(false);
            throw;
        }
        std::size_t unmapped = 0;
        for (const Piece& piece : pieces_) unmapped += unmap(piece);
        state_.count_give_back(unmapped);
        state_.end_give_back(unmapped);
        return bytes + unmapped;
    }
    /// Charges the memory that `end` needs to the budget. Returns false if that is refused.
    bool charge(limits::BudgetRequest& request) {
        wait_for_turn();
        charged_ = 0;
        if (!state_.asleep) return true;
        for (const Piece& piece : pieces_) {
            for (std::size_t at = 0; at != piece.bytes; at += piece.slab->granule) {
                if (piece.slab->granule_at(piece.address + at) == nullptr) {
                    charged_ += piece.slab->granule;
                }
            }
        }
        return state_.budget.charge(charged_, request);
    }
    /// Wakes up. Throws DeviceError if the memory is unavailable, and then stays asleep. REQUIRES:
    /// the lock was held since `charge` returned true.
    void end() {
        if (!state_.asleep) return;
        std::size_t mapped = 0;
        DeviceStatus status = DeviceStatus::ok;
        for (const Piece& piece : pieces_) {
            if (status == DeviceStatus::ok) status = map(piece, mapped);
        }
        for (const Kept& kept : blocks_) {
            if (status == DeviceStatus::ok) status = load(kept);
        }
        if (status != DeviceStatus::ok) {
            const std::string why = state_.backend.last_error();
            for (const Piece& piece : pieces_) unmap(piece);
            state_.budget.refund(charged_);
            refuse(status, "the memory of slabs with blocks in use is unavailable: " + why);
        }
        pieces_.clear();
        blocks_.clear();
        set_asleep(false);
        state_.budget.refund(charged_ - mapped);
        state_.totals.count_growth(mapped);
        state_.record.note_capacity();
        state_.watch.write(EntryKind::growth, mapped);
    }
    /// Throws the DeviceError for a refusal of `charge`.
    [[noreturn]] void refuse(const limits::BudgetRequest& request) const {
        const limits::BudgetLines lines(request);
        refuse(
            DeviceStatus::out_of_memory,
            "a budget refused the memory of slabs with blocks in use" + std::string(lines.c_str()));
    }

private:
    /// A run of granules that were unmapped.
    struct Piece {
        Slab* slab = nullptr;
        std::byte* address = nullptr;
        std::size_t bytes = 0;
    };
    /// What a block in use was when the sleep began, with its content. It may be freed meanwhile.
    struct Kept {
        std::byte* address = nullptr;
        std::size_t bytes = 0;
        std::unique_ptr<std::byte[]> content;  // nullptr if it was dropped
    };
    /// Waits until no other thread falls asleep.
    void wait_for_turn() {
        wait_unlocked(state_.grown, state_.mutex, [this] { return !is_under_way_; });
    }
    /// Waits until no growth and no return of memory is under way that began before.
    void wait_until_quiet() {
        wait_unlocked(state_.grown, state_.mutex, [this] {
            const auto grows = [](const auto& cache) {
                return std::ranges::count(cache->memory.growing, true) != 0;
            };
            return state_.returns == 0 && state_.growing_bytes == 0 &&
                   std::ranges::none_of(state_.caches, grows);
        });
    }

    void check_captures() const {
        if (captures_.is_any_active()) refuse(DeviceStatus::in_capture, "a stream is captured");
    }
    void check_slabs() const {
        for (const auto& cache : state_.caches) {
            for (const Slab& slab : cache->memory.slabs) {
                const bool shareable = slab.pool == Pool::shareable;
                if ((slab.is_expandable() && !shareable) || slab.is_all_free()) continue;
                const char* const what = shareable               ? "shareable blocks"
                                         : cache->capture() != 0 ? "a graph's memory"
                                                                 : "slabs that cannot grow";
                refuse(DeviceStatus::not_supported,
                       std::string(base::BytesText(slab.held_bytes - slab.free_bytes).c_str()) +
                           " of " + what + " are in use; expected blocks in expandable slabs only");
            }
        }
    }
    void set_asleep(bool asleep) noexcept {
        state_.asleep = asleep;
        captures_.set_gate();
    }
    void find_pieces() {
        for (const auto& cache : state_.caches) {
            for (Slab& slab : cache->memory.slabs) {
                if (!slab.is_expandable()) continue;
                const std::size_t count = slab.bytes / slab.granule;
                for (std::size_t i = 0; i < count; ++i) {
                    if (slab.granules[i] == nullptr) continue;
                    std::byte* const address = slab.base + i * slab.granule;
                    if (!pieces_.empty() && pieces_.back().slab == &slab &&
                        pieces_.back().address + pieces_.back().bytes == address) {
                        pieces_.back().bytes += slab.granule;
                    } else {
                        pieces_.push_back({&slab, address, slab.granule});
                    }
                }
            }
        }
    }
    void find_blocks() {
        for (const auto& cache : state_.caches) {
            for (const Slab& slab : cache->memory.slabs) {
                if (!slab.is_expandable()) continue;
                for (Block* block = slab.first; block != nullptr; block = block->next) {
                    const bool is_used = block->is(BlockState::in_use) ||
                                         block->is(BlockState::shared) ||
                                         block->is(BlockState::scalars);
                    if (is_used) blocks_.push_back({block->address, block->bytes, nullptr});
                }
            }
        }
    }
    void save(Kept& kept) const {
        kept.content = std::make_unique_for_overwrite<std::byte[]>(kept.bytes);
        const DeviceStatus status = state_.backend.copy(
            state_.device, CopyKind::device_to_host, kept.content.get(), kept.address, kept.bytes);
        if (status == DeviceStatus::ok) return;
        refuse(status, "the content could not be copied: " + state_.backend.last_error());
    }
    DeviceStatus load(const Kept& kept) const noexcept {
        if (kept.content == nullptr) return DeviceStatus::ok;
        return state_.backend.copy(state_.device, CopyKind::host_to_device, kept.address,
                                   kept.content.get(), kept.bytes);
    }
    std::size_t unmap(const Piece& piece) noexcept {
        return reclaim_.unmap_rest(*piece.slab, piece.address, piece.address + piece.bytes);
    }
    /// Maps new memory at the addresses of a piece, and adds its bytes to `mapped`.
    DeviceStatus map(const Piece& piece, std::size_t& mapped) noexcept {
        const std::size_t granule = piece.slab->granule;
        for (std::byte* at = piece.address; at != piece.address + piece.bytes; at += granule) {
            MemoryHandle& handle = piece.slab->granule_at(at);
            if (handle != nullptr) continue;  // the device had not unmapped it
            DeviceStatus status = state_.create_memory(granule, handle);
            if (status != DeviceStatus::ok) return status;
            status = state_.backend.map_memories(state_.device, at, granule, {&handle, 1});
            if (status != DeviceStatus::ok) {
                (void)state_.backend.destroy_memory(state_.device, std::exchange(handle, nullptr));
                return status;
            }
            state_.watch.gained(at, granule);
            mapped += granule;
        }
        return DeviceStatus::ok;
    }
    [[noreturn]] void refuse(DeviceStatus status, const std::string& why) const {
        throw DeviceError(status, "tensorpool: " + state_.name + " on " +
                                      to_string(state_.name_of_device()) +
                                      (is_under_way_ ? ": sleep: " : ": wake: ") + why);
    }

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    Reclaim& reclaim_;
    bool is_under_way_ = false;  // a thread is falling asleep
    std::size_t charged_ = 0;    // by `charge`, for `end`
    std::vector<Piece> pieces_;
    std::vector<Kept> blocks_;
};

}  // namespace tensorpool::device
