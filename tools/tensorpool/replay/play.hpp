#pragma once

/// @file
/// Plays the steps of a thread. Allocates only what the steps allocate.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/plan.hpp"
#include "replay/plan_file.hpp"
#include "replay/signal.hpp"
#include "replay/touch.hpp"

namespace tensorpool::command::replay {

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
