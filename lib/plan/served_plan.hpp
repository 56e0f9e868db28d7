#pragma once

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

/// Finds all predecessors in O(n log n) steps. Their number is at most four times the number of
/// buffers, because each buffer splits the existing ranges into at most two more.
Predecessors find_predecessors(const LearnedPlan& plan);

struct Predecessors;

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

/// The tables of a plan, and the memory for its buffers, which a pool lends. The memory comes and
/// goes while no buffer is held; the tables stay. The destructor releases both.
class ServedPlan {
public:
    /// Makes the tables of a plan and borrows the memory from `pool`, which must outlive the plan.
    /// Memory is charged to `budget` while it is borrowed. Returns nullptr if there is no memory,
    /// with the reason in `path`. Throws std::bad_alloc, and std::invalid_argument for a plan of
    /// more than PlanTables::max_bytes.
    static std::unique_ptr<ServedPlan> make(LearnedPlan plan, detail::Pool& pool,
                                            const limits::HeldBudget& budget,
                                            pages::SlowPath& path);
    ~ServedPlan();

    const LearnedPlan& plan() const noexcept { return plan_; }
    PlanTables& tables() const noexcept { return *tables_; }
    /// The bytes of the borrowed memory.
    std::size_t capacity() const noexcept { return span_ == nullptr ? 0 : span_->bytes(); }

    bool has_memory() const noexcept { return span_ != nullptr || plan_.peak_bytes == 0; }
    /// Borrows the memory. Returns false if the budget or the pool refuses, with the reason in
    /// `path`. Holders may be asked meanwhile, so the caller holds no lock that one may take.
    bool borrow_memory(pages::SlowPath& path) noexcept;
    /// Returns the memory to the pool. REQUIRES: no buffer is held.
    void return_memory() noexcept;
    /// Returns whether a buffer is held.
    bool has_held() const noexcept;

    /// From now on, `arena` serves the plan. Frees that pools pass on are counted in its record,
    /// which the plan keeps.
    void belong_to(const void* arena, std::shared_ptr<OwnedPlannedRecord> record) noexcept;
    /// The arena is being destroyed.
    void become_orphan() noexcept { tables_->arena = nullptr; }
    /// The thread with this address of a thread-local variable counts its frees with plain stores.
    void set_first_owner(const void* thread) noexcept;

    /// Returns whether some buffer is still held. Requires: no buffer is handed out any more, so
    /// that buffers once found free need not be checked again.
    bool is_held() noexcept;

    std::unique_ptr<ServedPlan> next;  ///< link of a list of retired plans

private:
    class Layout;
    class Owner;
    ServedPlan(LearnedPlan plan, detail::Pool& pool, const limits::HeldBudget& budget) noexcept
        : plan_(std::move(plan)), pool_(pool), budget_(budget) {}
    bool make_tables(const Predecessors& predecessors) noexcept;
    void fill_buffers(const Predecessors& predecessors) const noexcept;
    void set_addresses(std::byte* base) noexcept;
    Owner& owner() const noexcept;
    static std::uint32_t enter_start(PlanTables& tables, std::uint64_t offset) noexcept;

    LearnedPlan plan_;
    detail::Pool& pool_;
    const limits::HeldBudget budget_;
    void* mapping_ = nullptr;  // of the tables
    std::size_t mapping_bytes_ = 0;
    PlanTables* tables_ = nullptr;
    pages::Span* span_ = nullptr;  // of the borrowed memory
    std::shared_ptr<OwnedPlannedRecord> record_;
    std::uint32_t first_held_ = 0;  // all buffers below this number are known to be free
};

/// Removes the plans without held buffers from a list of retired plans, and returns them as a list.
std::unique_ptr<ServedPlan> take_unheld(std::unique_ptr<ServedPlan>& plans) noexcept;

/// The plan that an arena serves, and the retired plans, which have blocks that are still held.
/// Shows them in the arena's record. For the arena's owner.
class ServedPlans {
public:
    /// Both outlive the object. `mutex` is held while the list of retired plans changes, so that a
    /// fork does not copy half a change.
    ServedPlans(planned::OwnedPlannedRecord& record, std::mutex& mutex) noexcept
        : record_(record), mutex_(mutex) {}

    /// Returns the plan that is served; nullptr if there is none.
    ServedPlan* current() const noexcept { return current_.get(); }
    /// REQUIRES: there is no plan.
    void adopt(std::unique_ptr<ServedPlan> plan) noexcept;
    /// Retires the plan. Its blocks may be freed at any time. REQUIRES: there is a plan.
    void drop() noexcept;
    /// Destroys the retired plans of which no block is held.
    void release_retired() noexcept;
    /// Returns the retired plans, which outlive the arena.
    std::unique_ptr<ServedPlan> take_orphans() noexcept;
    void show_capacity() noexcept;

private:
    void show() noexcept;

    planned::OwnedPlannedRecord& record_;
    std::mutex& mutex_;
    std::unique_ptr<ServedPlan> current_;
    std::unique_ptr<ServedPlan> retired_;  // a list
};

/// Plans whose arena was destroyed while callers of the global pool still held some of their
/// blocks. Each is released when its last block is freed. Thread-safe.
class OrphanedPlans {
public:
    /// Takes a list of retired plans, and releases those without held blocks.
    void add(std::unique_ptr<ServedPlan> plans) noexcept;
    /// Must be called after a block of a plan was freed through a pool: it may have been the last
    /// one of an orphaned plan.
    void look_after_free() noexcept {
        // Pairs with the fence in `add`: either this thread sees that there are orphaned plans, or
        // `add` sees that the block is free.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            release_unheld();
    }

    // For fork handlers.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    void release_unheld() noexcept;

    std::mutex mutex_;
    std::unique_ptr<ServedPlan> plans_;
    std::atomic<std::size_t> count_ = 0;  // changed under the mutex
};

OrphanedPlans& orphaned_plans() noexcept;

}  // namespace tensorpool::planned
