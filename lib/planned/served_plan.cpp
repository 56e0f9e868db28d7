#include "planned/served_plan.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/detail/thread_cache.hpp>

#include "base/alignment.hpp"
#include "pages/address_space.hpp"
#include "pages/served_memory.hpp"
#include "planned/orphaned_plans.hpp"
#include "planned/predecessors.hpp"
#include "platform/platform.hpp"
#include "statistics/commit_budget.hpp"

namespace tensorpool::planned {
namespace {

using base::align_up;
using detail::PlanStart;
using State = std::atomic<BufferState>;

constexpr pages::PageCount pages_of(std::size_t bytes) noexcept {
    return static_cast<pages::PageCount>(bytes / pages::page_bytes);
}

std::size_t alignment_of(const LearnedPlan& plan) noexcept {
    std::size_t alignment = platform::page_bytes();
    // If huge pages fit, the plan is aligned so that the system can use them.
    if (plan.peak_bytes >= platform::huge_page_bytes) alignment = platform::huge_page_bytes;
    for (const Request& request : plan.requests) {
        if (request.is_planned()) alignment = std::max<std::size_t>(alignment, request.alignment);
    }
    return alignment;
}

}  // namespace

/// The owner of the plan's blocks for pools. It lies directly in front of the plan's tables.
class ServedPlan::PlanPages final : public pages::ServedMemory {
public:
    explicit PlanPages(PlanTables& tables) noexcept : tables_(tables) {}

    Block find(const void* p) const noexcept override {
        const auto* const address = static_cast<const std::byte*>(p);
        for (std::uint32_t number = 0; number != tables_.count; ++number) {
            const PlannedBuffer& buffer = tables_.buffers[number];
            const bool is_held =
                tables_.states[number].load(std::memory_order_relaxed) == BufferState::held;
            if (is_held && address >= buffer.address && address < buffer.address + buffer.bytes) {
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
        orphaned_plans().look_after_free();
        return true;
    }

    statistics::PlannedTotals* totals = nullptr;
    std::atomic<const void*> first_owner = nullptr;  // relaxed: compared with the own thread's only

private:
    PlanTables& tables_;
};

/// The layout of the addresses: tables, gap, plan. The tables end where the gap begins, and the
/// struct PlanTables is the last of them.
class ServedPlan::Layout {
public:
    Layout(const LearnedPlan& plan, const Predecessors& predecessors)
        : count(plan.requests.size()),
          // At least three of four entries are empty, so that most look-ups need one probe.
          start_count(std::bit_ceil(4 * count)),
          predecessor_count(predecessors.numbers.size()),
          alignment(alignment_of(plan)),
          data_bytes(align_up(plan.peak_bytes, platform::page_bytes())) {
        const std::size_t tables =
            (count + 1) * sizeof(PlannedBuffer) + start_count * sizeof(PlanStart) +
            predecessor_count * sizeof(std::uint32_t) + count * sizeof(State) + sizeof(PlanPages) +
            (PlanRange::tables_distance - PlanRange::gap_bytes);
        tables_bytes = align_up(tables, platform::page_bytes());
        front_bytes = align_up(tables_bytes + PlanRange::gap_bytes, alignment);
    }
    std::size_t tables_offset() const noexcept {
        return front_bytes - PlanRange::gap_bytes - tables_bytes;
    }
    std::size_t committed() const noexcept { return tables_bytes + data_bytes; }

    std::size_t count;
    std::size_t start_count;
    std::size_t predecessor_count;
    std::size_t alignment;
    std::size_t data_bytes;
    std::size_t tables_bytes;
    std::size_t front_bytes;
};

std::unique_ptr<ServedPlan> ServedPlan::make(LearnedPlan plan, base::Refusal& refusal) {
    if (plan.peak_bytes > PlanRange::max_bytes) {
        throw std::invalid_argument("tensorpool: a plan of " + std::to_string(plan.peak_bytes) +
                                    " B; expected at most " + std::to_string(PlanRange::max_bytes) +
                                    " B");
    }
    const Predecessors predecessors = find_predecessors(plan);
    const Layout layout(plan, predecessors);
    std::unique_ptr<ServedPlan> served(new ServedPlan(std::move(plan)));
    if (!served->get_memory(layout, refusal)) return nullptr;
    served->fill(layout, predecessors);
    return served;
}

bool ServedPlan::get_memory(const Layout& layout, base::Refusal& refusal) noexcept {
    pages::AddressSpace& space = pages::address_space();
    const pages::PageCount alignment = pages_of(layout.alignment);
    const pages::PageCount pages = pages_of(layout.front_bytes + layout.data_bytes);
    if (alignment <= space.max_alignment()) {
        lent_ = space.lend(pages::AddressSpace::served_number, pages, pages, alignment);
    }
    if (lent_.count == 0) {
        refusal = {"address space", platform::available_address_space()};
        return false;
    }
    statistics::CommitBudget& budget = statistics::commit_budget();
    const std::size_t bytes = layout.committed();
    const auto run = [&](std::size_t offset, std::size_t run_bytes) {
        return pages::PageRun{lent_.first + pages_of(offset), pages_of(run_bytes)};
    };
    bool committing = false;
    committed_ = budget.take_and_get(bytes, bytes, 1.0, platform::page_bytes(), [&](std::size_t) {
        committing = true;
        return space.commit(run(layout.tables_offset(), layout.tables_bytes)) &&
               (layout.data_bytes == 0 || space.commit(run(layout.front_bytes, layout.data_bytes)));
    });
    if (committed_ == 0) {
        refusal = {committing ? "what the system commits" : "available memory", budget.ceiling()};
    }
    return committed_ != 0;
}

// Fresh pages are zero: the table of starts is empty, and all buffers are free.
void ServedPlan::fill(const Layout& layout, const Predecessors& predecessors) noexcept {
    pages::AddressSpace& space = pages::address_space();
    auto* const begin = reinterpret_cast<std::byte*>(space.address_of(lent_.first));
    std::byte* at = begin + layout.tables_offset();
    const auto take = [&]<class T>(T*& array, std::size_t count) {
        array = reinterpret_cast<T*>(at);
        std::uninitialized_value_construct_n(array, count);
        at += count * sizeof(T);
    };
    std::byte* const base = begin + layout.front_bytes;
    range_ = PlanRange(base, layout.data_bytes);
    auto& tables = *new (base - PlanRange::tables_distance) PlanTables{};
    std::uint32_t* numbers = nullptr;
    take(tables.buffers, layout.count + 1);
    take(tables.starts, layout.start_count);
    take(numbers, layout.predecessor_count);
    take(tables.states, layout.count);
    std::ranges::copy(predecessors.numbers, numbers);
    tables.base = base;
    tables.predecessors = numbers;
    tables.start_mask = static_cast<std::uint32_t>(layout.start_count - 1);
    tables.count = static_cast<std::uint32_t>(layout.count);
    fill_buffers(tables, predecessors);
    const pages::ServedMemory* const owner = new (&pages()) PlanPages(tables);
    space.map().set_all({space.map().page_of(base), pages_of(layout.data_bytes)},
                        pages::PageEntry(owner, pages::AddressSpace::served_number));
}

ServedPlan::PlanPages& ServedPlan::pages() const noexcept {
    return *reinterpret_cast<PlanPages*>(reinterpret_cast<std::byte*>(&tables()) -
                                         sizeof(PlanPages));
}

void ServedPlan::count_in(std::shared_ptr<statistics::OwnedPlannedRecord> record) noexcept {
    record_ = std::move(record);
    pages().totals = &record_->totals();
}

void ServedPlan::set_first_owner(const void* thread) noexcept {
    pages().first_owner.store(thread, std::memory_order_relaxed);
}

void ServedPlan::fill_buffers(PlanTables& tables, const Predecessors& predecessors) const noexcept {
    for (std::uint32_t number = 0; number < tables.count; ++number) {
        const Request& request = plan_.requests[number];
        PlannedBuffer& buffer = tables.buffers[number];
        buffer.bytes = request.bytes;
        if (!request.is_planned()) continue;
        buffer.address = tables.base + plan_.offsets[number];
        buffer.max_alignment = request.alignment;
        buffer.first_predecessor = static_cast<std::uint32_t>(predecessors.first[number]);
        buffer.predecessor_count =
            static_cast<std::uint32_t>(predecessors.first[number + 1] - predecessors.first[number]);
        buffer.start = enter_start(tables, plan_.offsets[number]);
        // Initially, any of the buffers that begin at this offset.
        tables.starts[buffer.start].buffer.store(number, std::memory_order_relaxed);
    }
}

std::uint32_t ServedPlan::enter_start(PlanTables& tables, std::uint64_t offset) noexcept {
    const auto wanted = static_cast<std::uint32_t>(offset / detail::plan_granule_bytes) + 1;
    for (std::uint32_t at = PlanTables::hash(wanted);; ++at) {
        PlanStart& start = tables.starts[at & tables.start_mask];
        if (start.granule_and_one == 0) start.granule_and_one = wanted;
        if (start.granule_and_one == wanted) return at & tables.start_mask;
    }
}

ServedPlan::~ServedPlan() {
    if (lent_.count != 0)
        pages::address_space().take_back(pages::AddressSpace::served_number, lent_);
    if (committed_ != 0) statistics::commit_budget().give_back(committed_);
}

// Acquire: pairs with the release store of a free, after which that thread no longer accesses the
// plan.
bool ServedPlan::is_held() noexcept {
    const PlanTables& tables = this->tables();
    const auto held = [&](std::uint32_t buffer) {
        return tables.states[buffer].load(std::memory_order_acquire) == BufferState::held;
    };
    while (first_held_ < tables.count && !held(first_held_)) ++first_held_;
    return first_held_ < tables.count;
}

std::unique_ptr<ServedPlan> take_unheld(std::unique_ptr<ServedPlan>& plans) noexcept {
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

}  // namespace tensorpool::planned
