#pragma once

/// @file
/// The plan of a replay, which is a recording converted to steps for each thread, and how a thread
/// plays its steps.
///
/// Each block has a slot in a table. The thread that allocates the block stores its address there,
/// and the thread that frees it reads it there. If these are two threads, the slot is used only
/// once, and the second thread waits for the first. If there are several threads, the steps are
/// divided into stages. No thread enters a stage before all threads have left the previous one.
/// Without stages, a thread with few steps would run ahead of the recording, and other blocks would
/// be alive at once than in the recording.
///
/// There is no deadlock: steps are made in the order of the recorded calls, and a step waits only
/// for steps of earlier calls. So of all steps not done, that of the earliest call need not wait.

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <climits>
#include <cstring>

#include "common/posix.hpp"
#include "common/settings.hpp"
#include "formats/trace/recording.hpp"

namespace tensorpool::command::replay {

enum class StepKind : std::uint8_t {
    allocate,    ///< into `slot`
    deallocate,  ///< the block in `slot`
    resize,      ///< the block in `from`, into `slot`
    stage,       ///< leaves stage `from`, if any, and enters `slot`, if any
};

struct Step {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    /// The maximum size that fits into 47 bits; no system has so much memory.
    static constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 47) - 1;
    static constexpr unsigned max_alignment_log2 = 46;
    /// The pool aligns all blocks to 64 bytes, so a recorded alignment up to 64 is treated as no
    /// request for an alignment.
    static constexpr unsigned plain_alignment_log2 = 6;

    std::uint64_t packed = 0;
    std::uint32_t slot = none;
    std::uint32_t from = none;

    static constexpr Step make(StepKind kind, std::uint32_t slot, std::uint64_t bytes = 0,
                               unsigned alignment_log2 = 0, std::uint32_t from = none) noexcept {
        const auto high = static_cast<std::uint64_t>(kind) | std::uint64_t{alignment_log2} << 8;
        return {bytes | high << 48, slot, from};
    }
    constexpr StepKind kind() const noexcept { return static_cast<StepKind>(packed >> 48 & 0xf); }
    /// The thread that allocates the block signals another thread that waits for it.
    constexpr bool is_handover() const noexcept { return (packed >> 52 & 1) != 0; }
    /// The thread waits for a block that another thread allocates.
    constexpr bool takes_over() const noexcept { return (packed >> 53 & 1) != 0; }
    constexpr void mark_handover() noexcept { packed |= std::uint64_t{1} << 52; }
    constexpr void mark_takes_over() noexcept { packed |= std::uint64_t{1} << 53; }
    constexpr std::uint64_t bytes() const noexcept { return packed & ((1ULL << 48) - 1); }
    constexpr unsigned alignment_log2() const noexcept {
        return static_cast<unsigned>(packed >> 56);
    }
};
static_assert(sizeof(Step) == 16);

/// The steps of a thread: `count` of them, from index `first` on.
struct PlannedThread {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t is_main = 0;  ///< 1: the first thread of its process
};

struct PlanStatistics {
    std::uint64_t threads = 0;
    std::uint64_t allocations = 0;  ///< including those of blocks from before the recording
    std::uint64_t deallocations = 0;
    std::uint64_t resizes = 0;
    std::uint64_t from_before = 0;  ///< blocks allocated before the recording began
    std::uint64_t never_freed = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t max_alive_bytes = 0;  ///< maximum alive at once
    std::uint64_t planned_bytes = 0;    ///< size of a plan of all blocks; 0 if none was made
};

struct Plan {
    /// The first thread allocates the blocks from before the recording; the others begin together
    /// after it.
    std::vector<PlannedThread> threads;
    std::vector<Step> steps;
    std::uint32_t slots = 0;
    std::vector<std::uint32_t> stages;  ///< the number of threads in each stage
    /// For the allocators `none` and `plan`: the offset of each step's block by `plan_memory`;
    /// empty if neither is compared.
    std::vector<std::uint64_t> offsets;
    std::uint64_t offsets_bytes = 0;  ///< the size of the range with these offsets
    PlanStatistics statistics;
};

struct PlanView {
    std::span<const PlannedThread> threads;
    std::span<const Step> steps;
    std::span<const std::uint32_t> stages;
    std::span<const std::uint64_t> offsets;
    std::uint64_t offsets_bytes = 0;
    std::uint32_t slots = 0;
};

/// Whether to compute offsets of blocks, for the allocators `none` and `plan`.
enum class Offsets : bool { no, yes };

/// Returns the process with this process id, or for 0 the one that allocated the most bytes, as an
/// index into `Recording::processes`. Throws CommandError if there is no such process, or if none
/// allocated.
std::uint32_t choose_process(const trace::Recording& recording, std::uint64_t number);

/// Returns the plan of one process. Blocks of arenas and scratches are handled like others; each is
/// freed at the release that ended it. Offsets take up to about a second. Throws CommandError if a
/// block exceeds the limits of Step.
Plan compile(const trace::Recording& recording, std::uint32_t process, Offsets offsets);

using trace::LifetimeOrder;

/// Returns the blocks of one process that can be replayed. Throws CommandError if one exceeds the
/// limits of Step.
LifetimeOrder blocks_of(const trace::Recording& recording, std::uint32_t process);

/// Returns a plan of all blocks, in the order of `order`. Blocks are aligned to 64
/// bytes, as in the pool, or to the requested alignment if that is larger. Takes at most a second,
/// or as long as the first greedy order takes.
MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order);

/// The beginning of the file. The threads, steps, offsets and stages follow in this order.
struct Header {
    std::uint64_t threads = 0;
    std::uint64_t steps = 0;
    std::uint64_t stages = 0;
    std::uint64_t offsets = 0;
    std::uint64_t offsets_bytes = 0;
    std::uint64_t slots = 0;
};

[[noreturn]] inline void fail(int error) {
    throw CommandError(finding, fmt::format("the plan of the replay cannot be written to memory: "
                                            "{}",
                                            std::strerror(error)));
}

template <class Item>
void write(const Descriptor& file, std::span<const Item> items) {
    if (!write_all(file, std::as_bytes(items))) fail(errno);
}

template <class Item>
std::span<const Item> take(const std::byte*& at, std::uint64_t count) noexcept {
    const auto* const first = reinterpret_cast<const Item*>(at);
    at += count * sizeof(Item);
    return {first, static_cast<std::size_t>(count)};
}

/// Writes the plan into a memory file, which the allocators' processes map. Throws CommandError if
/// there is no memory.
inline Descriptor file_of(const Plan& plan) {
    Descriptor file(memfd_create("replay-plan", MFD_CLOEXEC));
    if (!file) fail(errno);
    const Header header = {plan.threads.size(), plan.steps.size(),  plan.stages.size(),
                           plan.offsets.size(), plan.offsets_bytes, plan.slots};
    write(file, std::span<const Header>(&header, 1));
    write(file, std::span<const PlannedThread>(plan.threads));
    write(file, std::span<const Step>(plan.steps));
    write(file, std::span<const std::uint64_t>(plan.offsets));
    write(file, std::span<const std::uint32_t>(plan.stages));
    return file;
}

/// Maps a plan until the process ends, with all pages present. Returns false on failure. Does not
/// allocate.
inline bool map_plan(int descriptor, PlanView& plan) noexcept {
    struct stat status = {};
    if (fstat(descriptor, &status) != 0) return false;
    const auto bytes = static_cast<std::size_t>(status.st_size);
    void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    if (mapped == MAP_FAILED) return false;
    const auto* at = static_cast<const std::byte*>(mapped);
    const Header header = take<Header>(at, 1).front();
    plan.threads = take<PlannedThread>(at, header.threads);
    plan.steps = take<Step>(at, header.steps);
    plan.offsets = take<std::uint64_t>(at, header.offsets);
    plan.stages = take<std::uint32_t>(at, header.stages);
    plan.offsets_bytes = header.offsets_bytes;
    plan.slots = static_cast<std::uint32_t>(header.slots);
    return true;
}

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
    void (*refused)(std::uint64_t bytes);
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
