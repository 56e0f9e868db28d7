#include <optional>

#include "common/printable.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

using trace::Lifetime;

/// Throws CommandError if a block exceeds the limits of Step.
void check(const trace::Recording& recording, const Lifetime& lifetime) {
    if (lifetime.bytes > Step::max_bytes) {
        throw CommandError(finding,
                           fmt::format("the trace has a block of {} bytes, expected at most {}",
                                       lifetime.bytes, Step::max_bytes));
    }
    if (lifetime.begin == Lifetime::none) return;
    const unsigned alignment = recording.calls[lifetime.begin].alignment_log2;
    if (alignment > Step::max_alignment_log2) {
        throw CommandError(finding, fmt::format("the trace has a block aligned to 2^{} bytes, "
                                                "expected at most 2^{}",
                                                alignment, Step::max_alignment_log2));
    }
}

/// Returns whether the call allocates memory that can be replayed, which device memory cannot.
bool allocates(const trace::Recording& recording, const trace::Call& call) {
    if (recording.sources[call.source].kind == TraceSource::device) return false;
    return call.action == TraceAction::allocate || call.action == TraceAction::arena_allocate ||
           call.action == TraceAction::scratch_allocate;
}

std::vector<std::uint64_t> allocated_by(const trace::Recording& recording) {
    std::vector<std::uint64_t> bytes(recording.processes.size());
    for (const trace::Call& call : recording.calls) {
        // One is added so that allocations of 0 bytes count too.
        if (!allocates(recording, call)) continue;
        bytes[recording.threads[call.thread].process] += call.bytes + 1;
    }
    return bytes;
}

std::string numbers_of(const trace::Recording& recording) {
    std::string text;
    for (const trace::RecordedProcess& process : recording.processes) {
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", process.number,
                            printable(process.name));
    }
    return text;
}

using trace::Recording;

/// A stage ends after an amount of allocations. It is a fraction of the maximum alive bytes, so
/// that threads drift apart by no more than that, and at least 4 MiB, so that a wait of about 50 µs
/// does not matter.
constexpr std::uint64_t stage_part = 16;
constexpr std::uint64_t min_stage_bytes = std::uint64_t{4} << 20;

struct OneThread {
    std::vector<Step> steps;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> free_slots;
    std::uint32_t stage = Step::none;
    bool is_main = false;
};

/// Returns the size to request: at least 1, because the recorded program had a block.
std::uint64_t requested_bytes(const Lifetime& lifetime) {
    return std::max<std::uint64_t>(lifetime.bytes, 1);
}

class Compiler {
public:
    Compiler(const Recording& recording, std::uint32_t process, Offsets offsets)
        : recording_(recording),
          order_(blocks_of(recording, process)),
          lifetimes_(order_.lifetimes()),
          slots_(lifetimes_.size(), Step::none),
          numbers_(recording.threads.size()) {
        measure();
        if (offsets == Offsets::yes) planned_ = planned_offsets(recording, order_);
        number_threads(recording.processes[process].number);
    }

    Plan compile() {
        order_.walk([this](std::size_t lifetime) { begin(lifetime); },
                    [this](std::size_t lifetime) { end(lifetime); });
        for (OneThread& thread : threads_) enter_stage(thread, Step::none);
        return gather();
    }

private:
    void measure() {
        std::uint64_t alive = 0;
        std::uint64_t& max_alive = statistics_.max_alive_bytes;
        const auto begin = [&](std::size_t lifetime) {
            max_alive = std::max(max_alive, alive += lifetimes_[lifetime].bytes);
            if (max_alive <= Step::max_bytes) return;
            throw CommandError(finding, fmt::format("the trace has {} bytes alive at once, "
                                                    "expected at most {}",
                                                    max_alive, Step::max_bytes));
        };
        order_.walk(begin, [&](std::size_t lifetime) { alive -= lifetimes_[lifetime].bytes; });
        stage_bytes_ = std::max(max_alive / stage_part, min_stage_bytes);
    }

    /// Numbers the threads that allocate or free a block by their first such call. Thread 0
    /// allocates the blocks from before the recording.
    void number_threads(std::uint64_t main_thread) {
        threads_.emplace_back();
        bool has_main = false;
        const auto number = [&](std::uint32_t call) {
            const std::uint32_t thread = recording_.calls[call].thread;
            if (numbers_[thread] != 0) return;
            numbers_[thread] = static_cast<std::uint32_t>(threads_.size());
            const bool is_main = !has_main && recording_.threads[thread].number == main_thread;
            threads_.emplace_back().is_main = is_main;
            has_main = has_main || is_main;
        };
        order_.walk(
            [&](std::size_t lifetime) {
                if (lifetimes_[lifetime].begin != Lifetime::none)
                    number(lifetimes_[lifetime].begin);
            },
            [&](std::size_t lifetime) { number(lifetimes_[lifetime].end); });
    }

    OneThread& thread_of(std::uint32_t call) {
        return threads_[call == Lifetime::none ? 0 : numbers_[recording_.calls[call].thread]];
    }

    bool is_handed_over(const Lifetime& lifetime) {
        return lifetime.begin != Lifetime::none && lifetime.end != Lifetime::none &&
               &thread_of(lifetime.begin) != &thread_of(lifetime.end);
    }

    /// Slots of blocks that one thread allocates and frees are reused. A slot between two threads
    /// is used only once. Otherwise a third thread could find the second one's block there, and a
    /// missing wait would go unnoticed.
    std::uint32_t take_slot(OneThread& thread, const Lifetime& lifetime) {
        if (thread.free_slots.empty() || is_handed_over(lifetime)) return slot_count_++;
        const std::uint32_t slot = thread.free_slots.back();
        thread.free_slots.pop_back();
        return slot;
    }
    void give_slot_back(OneThread& thread, std::size_t lifetime) {
        if (!is_handed_over(lifetimes_[lifetime])) thread.free_slots.push_back(slots_[lifetime]);
    }

    void begin(std::size_t lifetime) {
        const Lifetime& begun = lifetimes_[lifetime];
        const std::optional<std::size_t> before = taken_on(begun);
        OneThread& thread = thread_of(begun.begin);
        if (begun.begin != Lifetime::none) enter_present_stage(thread);
        const unsigned alignment =
            begun.begin == Lifetime::none ? 0 : recording_.calls[begun.begin].alignment_log2;
        slots_[lifetime] = take_slot(thread, begun);
        Step step =
            Step::make(before ? StepKind::resize : StepKind::allocate, slots_[lifetime],
                       requested_bytes(begun), alignment, before ? slots_[*before] : Step::none);
        if (is_handed_over(begun)) step.mark_handover();
        if (before && is_handed_over(lifetimes_[*before])) step.mark_takes_over();
        add(thread, step, lifetime);
        if (before) give_slot_back(thread, *before);
        count(begun, before.has_value());
    }

    void end(std::size_t lifetime) {
        const Lifetime& ended = lifetimes_[lifetime];
        if (is_resized(ended)) {
            resized_ = lifetime;
            return;
        }
        OneThread& thread = thread_of(ended.end);
        enter_present_stage(thread);
        Step step = Step::make(StepKind::deallocate, slots_[lifetime]);
        if (is_handed_over(ended)) step.mark_takes_over();
        add(thread, step, lifetime);
        give_slot_back(thread, lifetime);
        ++statistics_.deallocations;
    }

    /// Returns whether the call that ends the block resizes it. The next block then continues it.
    bool is_resized(const Lifetime& lifetime) const {
        const trace::Call& call = recording_.calls[lifetime.end];
        return call.action == TraceAction::resize && call.address == lifetime.address;
    }
    std::optional<std::size_t> taken_on(const Lifetime& begun) const {
        const bool goes_on =
            begun.continues && resized_ && lifetimes_[*resized_].end == begun.begin;
        return goes_on ? resized_ : std::nullopt;
    }

    void enter_present_stage(OneThread& thread) {
        if (stages_.empty() || bytes_in_stage_ > stage_bytes_) {
            stages_.push_back(0);
            bytes_in_stage_ = 0;
        }
        enter_stage(thread, static_cast<std::uint32_t>(stages_.size() - 1));
    }
    /// Adds a stage step, unless the plan has a single thread, which needs no stages.
    void enter_stage(OneThread& thread, std::uint32_t stage) {
        if (threads_.size() <= 2 || &thread == &threads_[0] || thread.stage == stage) return;
        add(thread, Step::make(StepKind::stage, stage, 0, 0, thread.stage), no_lifetime);
        if (stage != Step::none) ++stages_[stage];
        thread.stage = stage;
    }

    static constexpr std::size_t no_lifetime = std::numeric_limits<std::size_t>::max();

    void add(OneThread& thread, Step step, std::size_t lifetime) {
        thread.steps.push_back(step);
        if (!planned_) return;
        thread.offsets.push_back(lifetime == no_lifetime ? 0 : planned_->offsets[lifetime]);
    }

    void count(const Lifetime& lifetime, bool resized) {
        ++(resized ? statistics_.resizes : statistics_.allocations);
        if (lifetime.begin == Lifetime::none) ++statistics_.from_before;
        if (lifetime.end == Lifetime::none) ++statistics_.never_freed;
        statistics_.allocated_bytes += lifetime.bytes;
        if (lifetime.begin != Lifetime::none) bytes_in_stage_ += lifetime.bytes;
    }

    Plan gather() {
        Plan plan;
        for (const OneThread& thread : threads_) {
            plan.threads.push_back({plan.steps.size(), thread.steps.size(), thread.is_main});
            plan.steps.insert(plan.steps.end(), thread.steps.begin(), thread.steps.end());
            plan.offsets.insert(plan.offsets.end(), thread.offsets.begin(), thread.offsets.end());
        }
        plan.slots = slot_count_;
        plan.stages = std::move(stages_);
        if (planned_) plan.offsets_bytes = statistics_.planned_bytes = planned_->peak_bytes;
        plan.statistics = statistics_;
        plan.statistics.threads = threads_.size() - 1;
        return plan;
    }

    const Recording& recording_;
    const LifetimeOrder order_;
    const std::vector<Lifetime>& lifetimes_;
    std::vector<std::uint32_t> slots_;    // one entry for each block
    std::vector<std::uint32_t> numbers_;  // index in threads_ of each recorded thread; 0: none
    std::vector<OneThread> threads_;
    std::vector<std::uint32_t> stages_;
    std::optional<MemoryPlan> planned_;   // offsets of all blocks
    std::optional<std::size_t> resized_;  // the block that was resized last
    PlanStatistics statistics_;
    std::uint64_t stage_bytes_ = 0;
    std::uint64_t bytes_in_stage_ = 0;
    std::uint32_t slot_count_ = 0;
};

}  // namespace

LifetimeOrder blocks_of(const trace::Recording& recording, std::uint32_t process) {
    std::vector<Lifetime> lifetimes = trace::lifetimes_of(recording);
    std::erase_if(lifetimes, [&](const Lifetime& lifetime) {
        // A block that was freed by the call that allocated it was never handed out.
        const bool lived = lifetime.begin == Lifetime::none || lifetime.begin < lifetime.end;
        // Device memory cannot be replayed on the host.
        const bool of_device = recording.sources[lifetime.source].kind == TraceSource::device;
        return lifetime.process != process || !lived || of_device;
    });
    for (const Lifetime& lifetime : lifetimes) check(recording, lifetime);
    return LifetimeOrder(std::move(lifetimes));
}

MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order) {
    std::vector<TensorLifetime> lifetimes = steps_of(recording, order);
    // An allocation of 0 bytes still returns a block.
    for (TensorLifetime& lifetime : lifetimes) {
        lifetime.bytes = std::max<std::uint64_t>(lifetime.bytes, 1);
    }
    return plan_memory(lifetimes, {.budget = std::chrono::seconds(1)});
}

std::uint32_t choose_process(const trace::Recording& recording, std::uint64_t number) {
    const std::vector<std::uint64_t> bytes = allocated_by(recording);
    const std::size_t none = bytes.size();
    std::size_t best = none;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (number != 0 && recording.processes[i].number != number) continue;
        if (best == none || bytes[i] > bytes[best]) best = i;
    }
    if (best == none && number != 0) {
        throw CommandError(wrong_usage, fmt::format("the trace has no process {}; it has {}",
                                                    number, numbers_of(recording)));
    }
    if (best == none || bytes[best] == 0) {
        throw CommandError(finding, "the trace has no allocation: there is nothing to replay");
    }
    return static_cast<std::uint32_t>(best);
}

Plan compile(const Recording& recording, std::uint32_t process, Offsets offsets) {
    return Compiler(recording, process, offsets).compile();
}

}  // namespace tensorpool::command::replay
