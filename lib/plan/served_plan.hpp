#pragma once

#include <boost/icl/split_interval_map.hpp>

#include "kinds/kinds.hpp"
#include "plan/learned_plan.hpp"
#include "plan/owned_planned_record.hpp"
#include "pool/pool.hpp"

namespace tensorpool::planned {

/// The predecessors of each buffer of a plan, as plan_tables.hpp defines them.
struct Predecessors {
    std::vector<std::uint32_t> numbers;  ///< the lists of all buffers, one after another
    /// The index in `numbers` at which each buffer's list begins; the last entry is the end.
    std::vector<std::size_t> first;
};

/// The bytes of a plan, each with the buffer that was assigned to it last.
using ByteOwners =
    boost::icl::split_interval_map<std::uint64_t, std::uint32_t, boost::icl::partial_enricher>;

inline void sort_and_deduplicate(std::vector<std::uint32_t>& numbers, std::size_t from) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(from);
    std::sort(begin, numbers.end());
    numbers.erase(std::unique(begin, numbers.end()), numbers.end());
}

/// Finds all predecessors in O(n log n) steps. Their number is at most four times the number of
/// buffers, because each buffer splits the existing ranges into at most two more.
// The first loop produces the state that each later iteration of the plan finds at its beginning.
inline Predecessors find_predecessors(const LearnedPlan& plan) {
    ByteOwners owners;
    const auto assign = [&](std::size_t buffer, auto found) {
        const std::uint64_t begin = plan.offsets[buffer];
        if (begin == LearnedPlan::no_offset) return;
        const auto bytes =
            ByteOwners::interval_type::right_open(begin, begin + plan.requests[buffer].bytes);
        const auto [first, last] = owners.equal_range(bytes);
        for (auto piece = first; piece != last; ++piece) found(piece->second);
        owners.set({bytes, static_cast<std::uint32_t>(buffer)});
    };
    const std::size_t count = plan.requests.size();
    for (std::size_t buffer = 0; buffer < count; ++buffer) assign(buffer, [](std::uint32_t) {});
    Predecessors predecessors;
    for (std::size_t buffer = 0; buffer < count; ++buffer) {
        predecessors.first.push_back(predecessors.numbers.size());
        assign(buffer, [&](std::uint32_t previous) { predecessors.numbers.push_back(previous); });
        sort_and_deduplicate(predecessors.numbers, predecessors.first.back());
    }
    predecessors.first.push_back(predecessors.numbers.size());
    return predecessors;
}

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

inline std::size_t alignment_of(const LearnedPlan& plan) noexcept {
    std::size_t alignment = pages::page_bytes;
    for (const Request& request : plan.requests) {
        if (request.is_planned()) alignment = std::max<std::size_t>(alignment, request.alignment);
    }
    return alignment;
}

void look_after_orphaned_plans() noexcept;

/// The tables of a plan, and the memory for its buffers, which a pool lends. The memory comes and
/// goes while no buffer is held; the tables stay. The destructor releases both.
class ServedPlan {
public:
    /// Makes the tables of a plan and borrows the memory from `pool`, which must outlive the plan.
    /// Memory is charged to `budget` while it is borrowed; without one, to that of the scope of the
    /// thread that borrows it. Returns nullptr if there is no memory, with the reason in `path`.
    /// Throws std::bad_alloc, and std::invalid_argument for a plan of more than
    /// PlanTables::max_bytes.
    static std::unique_ptr<ServedPlan> make(LearnedPlan plan, detail::Pool& pool,
                                            const limits::HeldBudget& budget,
                                            pages::SlowPath& path) {
        if (plan.peak_bytes > PlanTables::max_bytes) {
            throw std::invalid_argument("tensorpool: a plan of " + std::to_string(plan.peak_bytes) +
                                        " B; expected at most " +
                                        std::to_string(PlanTables::max_bytes) + " B");
        }
        const Predecessors predecessors = find_predecessors(plan);
        std::unique_ptr<ServedPlan> served(new ServedPlan(std::move(plan), pool, budget));
        if (!served->make_tables(predecessors)) {
            path.refusal = pages::no_records();
            return nullptr;
        }
        if (!served->borrow_memory(path)) return nullptr;
        // What the learned iteration took beyond the plan.
        pages::Changes changes;
        pool.parts().heap.give_back(SIZE_MAX, changes);
        pool.report(changes);
        return served;
    }
    ~ServedPlan() {
        return_memory();
        if (mapping_ != nullptr) platform::unmap(mapping_, mapping_bytes_);
    }

    const LearnedPlan& plan() const noexcept { return plan_; }
    PlanTables& tables() const noexcept { return *tables_; }
    std::size_t capacity() const noexcept { return span_ == nullptr ? 0 : span_->bytes(); }

    bool has_memory() const noexcept { return span_ != nullptr || plan_.peak_bytes == 0; }
    /// Borrows the memory, or has the budget of the present scope pay for what is borrowed. Returns
    /// false if the budget or the pool refuses, with the reason in `path`. Holders may be asked, so
    /// the caller holds no lock that one may take.
    bool borrow_memory(pages::SlowPath& path) noexcept {
        limits::HeldBudget payer(budget_.node() != nullptr ? budget_.node() : limits::scope_budget);
        if (has_memory() && payer.node() == payer_.node()) return true;
        const std::size_t bytes = base::align_up(plan_.peak_bytes, pages::page_bytes);
        limits::BudgetNode* const before = has_memory() ? payer_.node() : nullptr;
        while (!limits::BudgetNode::move_charge(before, payer.node(), bytes, path.budget)) {
            path.refusal = path.budget.refusal();
            if (!path.budget.may_retry()) return false;
        }
        if (has_memory()) {
            payer_ = std::move(payer);
            return true;
        }
        do {
            span_ =
                kinds::lend(pool_.parts(), plan_.peak_bytes, alignment_of(plan_), owner(), path);
            pool_.report(path);
        } while (span_ == nullptr && path.budget.may_retry());
        if (span_ == nullptr) {
            payer.refund(bytes);
            return false;
        }
        payer_ = std::move(payer);
        set_addresses(static_cast<std::byte*>(pool_.parts().large.address_of(*span_)));
        return true;
    }
    /// Returns the memory to the pool. REQUIRES: no buffer is held.
    void return_memory() noexcept {
        if (span_ == nullptr) return;
        const std::size_t bytes = span_->bytes();
        pages::Changes changes;
        kinds::take_back(pool_.parts(), *std::exchange(span_, nullptr), changes);
        pool_.report(changes);
        std::exchange(payer_, {}).refund(bytes);
    }
    bool has_held() const noexcept {
        return std::any_of(tables_->states, tables_->states + tables_->count,
                           [](const State& state) {
                               return state.load(std::memory_order_acquire) == BufferState::held;
                           });
    }

    /// From now on, `arena` serves the plan. Frees that pools pass on are counted in its record,
    /// which the plan keeps.
    void belong_to(const void* arena, std::shared_ptr<OwnedPlannedRecord> record) noexcept {
        record_ = std::move(record);
        tables_->arena = arena;
        owner().totals = &record_->totals();
    }
    void become_orphan() noexcept { tables_->arena = nullptr; }
    /// The thread with this address of a thread-local variable counts its frees with plain stores.
    void set_first_owner(const void* thread) noexcept {
        owner().first_owner.store(thread, std::memory_order_relaxed);
    }

    /// Returns whether some buffer is still held. Requires: no buffer is handed out any more, so
    /// that buffers once found free need not be checked again.
    // Acquire: pairs with the release store of a free, after which that thread no longer accesses
    // the plan.
    bool is_held() noexcept {
        const PlanTables& tables = this->tables();
        const auto held = [&](std::uint32_t buffer) {
            return tables.states[buffer].load(std::memory_order_acquire) == BufferState::held;
        };
        while (first_held_ < tables.count && !held(first_held_)) ++first_held_;
        return first_held_ < tables.count;
    }

    std::unique_ptr<ServedPlan> next;  ///< link of a list of retired plans

private:
    using State = std::atomic<BufferState>;

    /// The owner of the plan's blocks for pools.
    class Owner final : public pages::ServedMemory {
    public:
        explicit Owner(PlanTables& tables) noexcept : tables_(tables) {}

        Block find(const void* p) const noexcept override {
            const auto* const address = static_cast<const std::byte*>(p);
            for (std::uint32_t number = 0; number != tables_.count; ++number) {
                const PlannedBuffer& buffer = tables_.buffers[number];
                const bool is_held =
                    tables_.states[number].load(std::memory_order_relaxed) == BufferState::held;
                if (is_held && address >= buffer.address &&
                    address < buffer.address + buffer.bytes) {
                    return {buffer.address, buffer.bytes};
                }
            }
            return {};
        }
        std::size_t block_bytes(const void* p) const noexcept override {
            const std::uint32_t buffer = tables_.held_at(p);
            return buffer == PlanTables::no_buffer ? 0 : tables_.buffers[buffer].bytes;
        }
        bool deallocate(void* p) noexcept override {
            const std::uint32_t buffer = tables_.held_at(p);
            if (buffer == PlanTables::no_buffer) return false;
            const std::uint64_t bytes = tables_.buffers[buffer].bytes;
            if (first_owner.load(std::memory_order_relaxed) == &detail::thread_table) {
                totals->count_freed(bytes);
            } else {
                totals->count_freed_elsewhere(bytes);
            }
            // This object may be gone as soon as the block is free.
            tables_.take_back(buffer);
            look_after_orphaned_plans();
            return true;
        }

        statistics::PlannedTotals* totals = nullptr;
        std::atomic<const void*> first_owner =
            nullptr;  // relaxed: compared with the own thread's only

    private:
        PlanTables& tables_;
    };

    /// The layout of the tables' pages: the owner, the struct PlanTables, and the arrays.
    struct Layout {
        Layout(const LearnedPlan& plan, const Predecessors& predecessors)
            : count(plan.requests.size()),
              // At least three of four entries are empty, so that most look-ups need one probe.
              start_count(std::bit_ceil(4 * count)),
              predecessor_count(predecessors.numbers.size()) {
            const std::size_t tables =
                PlanTables::owner_bytes + sizeof(PlanTables) + (count + 1) * sizeof(PlannedBuffer) +
                start_count * sizeof(detail::PlanStart) +
                predecessor_count * sizeof(std::uint32_t) + count * sizeof(State);
            bytes = base::align_up(tables, platform::page_bytes());
        }

        std::size_t count;
        std::size_t start_count;
        std::size_t predecessor_count;
        std::size_t bytes;
    };

    ServedPlan(LearnedPlan plan, detail::Pool& pool, const limits::HeldBudget& budget) noexcept
        : plan_(std::move(plan)), pool_(pool), budget_(budget) {}
    // Fresh pages are zero: the table of starts is empty, and all buffers are free.
    bool make_tables(const Predecessors& predecessors) noexcept {
        const Layout layout(plan_, predecessors);
        mapping_ = platform::map(layout.bytes, platform::page_bytes());
        if (mapping_ == nullptr) return false;
        mapping_bytes_ = layout.bytes;
        static_assert(sizeof(Owner) == PlanTables::owner_bytes);
        static_assert(PlanTables::page_kind == static_cast<unsigned>(pages::PageKind::served));
        auto* at = static_cast<std::byte*>(mapping_) + PlanTables::owner_bytes;
        tables_ = new (at) PlanTables{};
        new (mapping_) Owner(*tables_);
        at += sizeof(PlanTables);
        const auto take = [&]<class T>(T*& array, std::size_t count) {
            array = reinterpret_cast<T*>(at);
            std::uninitialized_value_construct_n(array, count);
            at += count * sizeof(T);
        };
        std::uint32_t* numbers = nullptr;
        take(tables_->buffers, layout.count + 1);
        take(tables_->starts, layout.start_count);
        take(numbers, layout.predecessor_count);
        take(tables_->states, layout.count);
        std::ranges::copy(predecessors.numbers, numbers);
        tables_->predecessors = numbers;
        tables_->start_mask = static_cast<std::uint32_t>(layout.start_count - 1);
        tables_->count = static_cast<std::uint32_t>(layout.count);
        fill_buffers(predecessors);
        return true;
    }
    void fill_buffers(const Predecessors& predecessors) const noexcept {
        for (std::uint32_t number = 0; number < tables_->count; ++number) {
            const Request& request = plan_.requests[number];
            PlannedBuffer& buffer = tables_->buffers[number];
            buffer.bytes = request.bytes;
            if (!request.is_planned()) continue;
            buffer.max_alignment = request.alignment;
            buffer.first_predecessor = static_cast<std::uint32_t>(predecessors.first[number]);
            buffer.predecessor_count = static_cast<std::uint32_t>(predecessors.first[number + 1] -
                                                                  predecessors.first[number]);
            buffer.start = enter_start(*tables_, plan_.offsets[number]);
            // Initially, any of the buffers that begin at this offset.
            tables_->starts[buffer.start].buffer.store(number, std::memory_order_relaxed);
        }
    }
    void set_addresses(std::byte* base) noexcept {
        tables_->base = base;
        for (std::uint32_t number = 0; number < tables_->count; ++number) {
            if (plan_.requests[number].is_planned()) {
                tables_->buffers[number].address = base + plan_.offsets[number];
            }
        }
    }
    Owner& owner() const noexcept { return *static_cast<Owner*>(mapping_); }
    static std::uint32_t enter_start(PlanTables& tables, std::uint64_t offset) noexcept {
        const auto wanted = static_cast<std::uint32_t>(offset / detail::plan_granule_bytes) + 1;
        for (std::uint32_t at = PlanTables::hash(wanted);; ++at) {
            detail::PlanStart& start = tables.starts[at & tables.start_mask];
            if (start.granule_and_one == 0) start.granule_and_one = wanted;
            if (start.granule_and_one == wanted) return at & tables.start_mask;
        }
    }

    LearnedPlan plan_;
    detail::Pool& pool_;
    const limits::HeldBudget budget_;  // of the arena
    limits::HeldBudget payer_;         // that is charged for the borrowed memory
    void* mapping_ = nullptr;          // of the tables
    std::size_t mapping_bytes_ = 0;
    PlanTables* tables_ = nullptr;
    pages::Span* span_ = nullptr;  // of the borrowed memory
    std::shared_ptr<OwnedPlannedRecord> record_;
    std::uint32_t first_held_ = 0;  // all buffers below this number are known to be free
};

/// Removes the plans without held buffers from a list of retired plans, and returns them as a list.
inline std::unique_ptr<ServedPlan> take_unheld(std::unique_ptr<ServedPlan>& plans) noexcept {
    std::unique_ptr<ServedPlan> taken;
    std::unique_ptr<ServedPlan>* link = &plans;
    while (*link != nullptr) {
        if ((*link)->is_held()) {
            link = &(*link)->next;
            continue;
        }
        auto rest = std::move((*link)->next);
        (*link)->next = std::move(taken);
        taken = std::move(*link);
        *link = std::move(rest);
    }
    return taken;
}

/// The plan that an arena serves, and the retired plans, which have blocks that are still held.
/// Shows them in the arena's record. For the arena's owner.
class ServedPlans {
public:
    /// Both outlive the object. `mutex` is held while the list of retired plans changes, so that a
    /// fork does not copy half a change.
    ServedPlans(planned::OwnedPlannedRecord& record, std::mutex& mutex) noexcept
        : record_(record), mutex_(mutex) {}

    ServedPlan* current() const noexcept { return current_.get(); }
    /// REQUIRES: there is no plan.
    void adopt(std::unique_ptr<ServedPlan> plan) noexcept {
        current_ = std::move(plan);
        show();
    }
    /// Retires the plan. Its blocks may be freed at any time. REQUIRES: there is a plan.
    void drop() noexcept {
        {
            const std::lock_guard guard(mutex_);
            current_->next = std::move(retired_);
            retired_ = std::move(current_);
        }
        release_retired();
        show();
    }
    /// Destroys the retired plans of which no block is held.
    void release_retired() noexcept {
        if (retired_ == nullptr) return;
        std::unique_ptr<ServedPlan> released;  // destroyed outside of the lock
        {
            const std::lock_guard guard(mutex_);
            released = take_unheld(retired_);
        }
        if (released == nullptr) return;
        released = nullptr;
        show();
    }
    /// Returns the retired plans, which outlive the arena.
    std::unique_ptr<ServedPlan> take_orphans() noexcept {
        for (auto* plan = retired_.get(); plan != nullptr; plan = plan->next.get())
            plan->become_orphan();
        return std::move(retired_);
    }
    void show_capacity() noexcept {
        std::uint64_t capacity = current_ != nullptr ? current_->capacity() : 0;
        for (auto* plan = retired_.get(); plan != nullptr; plan = plan->next.get())
            capacity += plan->capacity();
        detail::Counter& shown = record_.totals().capacity_bytes;
        if (shown.load(std::memory_order_relaxed) == capacity) return;
        shown.store(capacity, std::memory_order_relaxed);
        record_.note_capacity();
    }

private:
    void show() noexcept {
        const LearnedPlan nothing;
        const LearnedPlan& plan = current_ != nullptr ? current_->plan() : nothing;
        const auto store = [](detail::Counter& counter, std::uint64_t value) {
            counter.store(value, std::memory_order_relaxed);
        };
        statistics::PlannedTotals& totals = record_.totals();
        store(totals.buffers, plan.requests.size());
        store(totals.lower_bound_bytes, plan.lower_bound_bytes);
        store(totals.pool_peak_bytes, plan.pool_peak_bytes);
        store(totals.plan_peak_bytes, plan.peak_bytes);
        show_capacity();
    }

    planned::OwnedPlannedRecord& record_;
    std::mutex& mutex_;
    std::unique_ptr<ServedPlan> current_;
    std::unique_ptr<ServedPlan> retired_;  // a list
};

/// Plans whose arena was destroyed while callers of the global pool still held some of their
/// blocks. Each is released when its last block is freed. Thread-safe.
class OrphanedPlans : public base::Lockable {
public:
    /// Takes a list of retired plans, and releases those without held blocks.
    void add(std::unique_ptr<ServedPlan> plans) noexcept {
        if (plans == nullptr) return;
        {
            const std::lock_guard guard(mutex_);
            while (plans != nullptr) {
                auto rest = std::move(plans->next);
                plans->next = std::move(plans_);
                plans_ = std::move(plans);
                plans = std::move(rest);
                count_.fetch_add(1, std::memory_order_relaxed);
            }
            std::atomic_thread_fence(std::memory_order_seq_cst);
        }
        release_unheld();
    }
    /// Must be called after a block of a plan was freed through a pool: it may have been the last
    /// one of an orphaned plan.
    void look_after_free() noexcept {
        // Pairs with the fence in `add`: either this thread sees that there are orphaned plans, or
        // `add` sees that the block is free.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            release_unheld();
    }

private:
    void release_unheld() noexcept {
        std::unique_ptr<ServedPlan> released;  // destroyed outside of the lock
        const std::lock_guard guard(mutex_);
        released = take_unheld(plans_);
        for (auto* plan = released.get(); plan != nullptr; plan = plan->next.get()) {
            count_.fetch_sub(1, std::memory_order_relaxed);
        }
    }

    std::unique_ptr<ServedPlan> plans_;
    std::atomic<std::size_t> count_ = 0;  // changed under the mutex
};

inline OrphanedPlans& orphaned_plans() noexcept {
    return base::the_only<OrphanedPlans>.get();
}

inline void look_after_orphaned_plans() noexcept {
    orphaned_plans().look_after_free();
}

}  // namespace tensorpool::planned
