#pragma once

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
    std::size_t begin(SleepContent content);
    /// Charges the memory that `end` needs to the budget. Returns false if that is refused.
    bool charge(limits::BudgetRequest& request);
    /// Wakes up. Throws DeviceError if the memory is unavailable, and then stays asleep. REQUIRES:
    /// the lock was held since `charge` returned true.
    void end();
    /// Throws the DeviceError for a refusal of `charge`.
    [[noreturn]] void refuse(const limits::BudgetRequest& request) const;

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
    /// Keeps other threads from falling asleep or waking up meanwhile.
    class Turn {
    public:
        explicit Turn(Sleep& sleep) noexcept : sleep_(sleep) { sleep_.is_under_way_ = true; }
        ~Turn() {
            sleep_.is_under_way_ = false;
            sleep_.state_.grown.notify_all();
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

    private:
        Sleep& sleep_;
    };

    void wait_for_turn();
    void wait_until_quiet();

    void check_captures() const;
    void check_slabs() const;
    void set_asleep(bool asleep) noexcept;
    void find_pieces();
    void find_blocks();
    void save(Kept& kept) const;
    DeviceStatus load(const Kept& kept) const noexcept;
    std::size_t unmap(const Piece& piece) noexcept;
    DeviceStatus map(const Piece& piece, std::size_t& mapped) noexcept;
    [[noreturn]] void refuse(DeviceStatus status, const std::string& why) const;

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
