#pragma once

/// @file
/// Plays the steps of a thread and writes into its blocks. Allocates only what the steps allocate.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

enum class Touch : std::uint8_t {
    none,   ///< nothing is written, so that no page becomes resident
    first,  ///< one byte in each page of the block
    all,    ///< every byte
    check,  ///< every byte, verified before the block is freed or resized
};

inline constexpr std::uintptr_t touched_page_bytes = 4096;

/// Writes one byte in each page of a block. Requires: `bytes` is above 0.
inline void touch_pages(std::byte* block, std::uint64_t bytes) noexcept {
    auto* volatile_block = static_cast<volatile std::byte*>(block);
    volatile_block[0] = std::byte{1};
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    std::uint64_t next = touched_page_bytes - address % touched_page_bytes;
    for (; next < bytes; next += touched_page_bytes) volatile_block[next] = std::byte{1};
}

/// Returns a pattern that depends on the slot of a block, so that blocks alive at the same time
/// have different contents.
constexpr std::uint64_t pattern(std::uint32_t slot, std::uint64_t index) noexcept {
    const std::uint64_t mixed = (std::uint64_t{slot} << 32 ^ index) * 0x9e3779b97f4a7c15;
    return mixed ^ mixed >> 29;
}

/// Fills a block with the pattern of its slot.
inline void fill(std::byte* block, std::uint64_t bytes, std::uint32_t slot) noexcept {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern(slot, at);
        std::memcpy(block + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

/// Returns whether the first `bytes` bytes are as `fill` wrote them.
inline bool is_filled(const std::byte* block, std::uint64_t bytes, std::uint32_t slot) noexcept {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern(slot, at);
        const std::size_t compared = std::min<std::uint64_t>(bytes - at, sizeof word);
        if (std::memcmp(block + at, &word, compared) != 0) {
            return false;
        }
    }
    return true;
}

/// A signal that is given once; any number of threads can wait for it. Does not allocate. All zero
/// bytes are a signal that is not given.
class Signal {
public:
    /// Gives the signal. What the thread wrote before is visible to the waiting threads.
    void give() noexcept {
        // Release: pairs with the acquire loads of `wait`.
        if (state_.exchange(given, std::memory_order_release) == slept_on) wake();
    }
    /// Waits until the signal is given.
    void wait() noexcept {
        // Spins for about 2 µs, the cost of sleeping, because the other thread is mostly near.
        for (int spin = 0; spin < 2000; ++spin) {
            if (state_.load(std::memory_order_acquire) == given) return;
        }
        sleep();
    }

private:
    enum State : std::uint32_t { none, given, slept_on };

    void sleep() noexcept {
        for (;;) {
            std::uint32_t seen = none;
            // If the state is `slept_on` already, this thread sleeps too.
            state_.compare_exchange_strong(seen, slept_on, std::memory_order_acquire);
            if (seen == given) return;
            syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, slept_on, nullptr, nullptr, 0);
        }
    }
    void wake() noexcept {
        syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    }

    std::atomic<std::uint32_t> state_ = none;
};
static_assert(sizeof(Signal) == 4);

/// The entry of a block in the table: stored by the thread that allocates it, read by the thread
/// that frees it.
struct Slot {
    void* block;
    std::uint64_t bytes;
};

/// The state shared by all threads, in memory that was mapped and touched before.
struct Stage {
    PlanView plan;
    std::span<Slot> slots;
    std::span<Signal> handovers;                         // one for each slot
    std::span<std::atomic<std::uint32_t>> still_inside;  // threads still in each stage
    std::span<Signal> over;                              // given when all threads have left a stage
    Touch touch = Touch::first;
};

struct PlayCounts {
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t resizes = 0;
};

/// Handlers of failures. Each of them ends the process.
struct PlayFailures {
    /// Called when a request failed.
    void (*refused)(std::uint64_t bytes);
    /// Called when the content of a block has changed.
    void (*overwritten)(const void* block, std::uint64_t bytes);
};

template <class Calls>
class Play {
public:
    Play(const Stage& stage, const PlayFailures& failures) noexcept
        : stage_(stage), failures_(failures), offsets_(stage.plan.offsets) {}

    PlayCounts play(const PlannedThread& thread) noexcept {
        PlayCounts counts;
        for (std::uint64_t i = thread.first; i < thread.first + thread.count; ++i) {
            const Step& step = stage_.plan.steps[i];
            const std::uint64_t offset = offsets_.empty() ? 0 : offsets_[i];
            switch (step.kind()) {
                case StepKind::allocate:
                    keep(step, Calls::allocate(step, offset));
                    ++counts.allocations;
                    break;
                case StepKind::deallocate:
                    Calls::deallocate(take(step, step.slot).block);
                    ++counts.deallocations;
                    break;
                case StepKind::resize:
                    resize(step, offset);
                    ++counts.resizes;
                    break;
                case StepKind::stage:
                    change_stage(step);
                    break;
            }
        }
        return counts;
    }

private:
    void keep(const Step& step, void* block) noexcept {
        if (block == nullptr) [[unlikely]]
            return failures_.refused(step.bytes());
        touch(step, static_cast<std::byte*>(block));
        stage_.slots[step.slot] = {block, step.bytes()};
        if (step.is_handover()) stage_.handovers[step.slot].give();
    }

    Slot take(const Step& step, std::uint32_t number) noexcept {
        if (step.takes_over()) stage_.handovers[number].wait();
        const Slot slot = stage_.slots[number];
        if (is_checked()) [[unlikely]]
            verify(slot, slot.bytes, number);
        return slot;
    }

    void resize(const Step& step, std::uint64_t offset) noexcept {
        const Slot old = take(step, step.from);
        void* const block = Calls::resize(old.block, old.bytes, step, offset);
        if (is_checked() && block != nullptr) [[unlikely]]
            verify({block, 0}, std::min(old.bytes, step.bytes()), step.from);
        keep(step, block);
    }

    void touch(const Step& step, std::byte* block) noexcept {
        switch (stage_.touch) {
            case Touch::first:
                return touch_pages(block, step.bytes());
            case Touch::all:
                std::memset(block, 1, step.bytes());
                return;
            case Touch::check:
                return fill(block, step.bytes(), step.slot);
            case Touch::none:
                return;
        }
    }
    bool is_checked() const noexcept { return Calls::keeps_apart && stage_.touch == Touch::check; }
    void verify(Slot slot, std::uint64_t bytes, std::uint32_t number) noexcept {
        const auto* const block = static_cast<const std::byte*>(slot.block);
        if (block != nullptr && is_filled(block, bytes, number)) return;
        failures_.overwritten(slot.block, bytes);
    }

    void change_stage(const Step& step) noexcept {
        // acq_rel: all steps of a stage happen before the steps of threads that enter the next one.
        if (step.from != Step::none &&
            stage_.still_inside[step.from].fetch_sub(1, std::memory_order_acq_rel) == 1) {
            stage_.over[step.from].give();
        }
        if (step.slot != Step::none && step.slot != 0) stage_.over[step.slot - 1].wait();
    }

    const Stage& stage_;
    const PlayFailures& failures_;
    const std::span<const std::uint64_t> offsets_;
};

}  // namespace tensorpool::command::replay
