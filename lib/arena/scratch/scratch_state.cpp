#include "arena/scratch/scratch_state.hpp"

#include <tensorpool/arena_options.hpp>

#include "events/report_at_exit.hpp"
#include "events/timeline.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool {
namespace arena {

// Never destroyed: threads, and scopes with them, may end after static objects are destroyed.
ScratchOperators& scratch_operators() {
    static ScratchOperators& operators = *new ScratchOperators();
    return operators;
}

std::string ScratchOperators::name_of(const detail::ScratchOperator* known) const {
    const std::lock_guard guard(mutex_);
    for (const auto& [name, one] : operators_) {
        if (&one == known) return name;
    }
    return "";
}

ScratchReport ScratchOperators::report() const {
    const auto read = [](const std::atomic<std::uint64_t>& value) {
        return value.load(std::memory_order_relaxed);
    };
    ScratchReport report;
    const std::lock_guard guard(mutex_);
    for (const auto& [name, known] : operators_) {
        report.operators.push_back({name, read(known.calls), read(known.peak_bytes),
                                    read(known.growths), read(known.grown_bytes)});
    }
    std::stable_sort(report.operators.begin(), report.operators.end(),
                     [](const OperatorScratch& one, const OperatorScratch& other) {
                         return one.peak_bytes > other.peak_bytes;
                     });
    return report;
}

detail::ScratchOperator* KnownOperators::find(std::string_view name) noexcept {
    if (const auto known = known_.find(name); known != known_.end()) return known->second;
    try {
        const ScratchOperators::Entry entry = scratch_operators().find_or_add(name);
        known_.emplace(entry.name, entry.found);
        return entry.found;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

}  // namespace arena

ScratchReport scratch_report() {
    return arena::scratch_operators().report();
}

}  // namespace tensorpool

namespace tensorpool::detail {
namespace {

constexpr std::size_t granule = 64;
// A chained chunk doubles the scratch, but adds at most this much beyond the request.
constexpr std::size_t max_chained_surplus = std::size_t{64} << 20;

// Scratches have no options. Tools close the memory behind what was requested, and released memory.
bool are_hardened() noexcept {
    const char* const checks = platform::environment_variable("TENSORPOOL_CHECKS");
    return checks != nullptr && std::string_view(checks) == "hardened" &&
           !platform::has_memory_tool();
}

// Room for alignment beyond this is not kept ready.
constexpr std::size_t max_slack = std::size_t{4} << 20;

}  // namespace

ScratchState::ScratchState(Scratch& scratch, std::string name, arena::CheckedBlocks::Memory memory)
    : record(
          arena::make_record(name, ArenaStatistics::Kind::scratch, platform::current_thread_id())),
      number(record->id.load(std::memory_order_relaxed)),
      scratch_(scratch),
      name_(std::move(name)) {
    scratch.words_ = &record->words;
    if (are_hardened()) {
        checked = std::make_unique<arena::CheckedBlocks>("scratch", name_.c_str(), memory);
    }
    events::report_at_exit_where_wanted();
    events::name_source(TraceSource::scratch, number, name_);
}

ScratchState::~ScratchState() {
    if (checked != nullptr) checked->check();
    if (!record.is_in_segment()) {
        const std::lock_guard guard(arena::scratch_registry());
        record.leave();
    }
    // The child of a fork treats every scratch in the registry as consistent.
    arena::scratch_registry().leave(*this);
    events::record(TraceAction::gone, number, nullptr, 0);
}

void ScratchState::count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept {
    const LimitKind limit = events::limit_kind(refusal);
    totals.count_refusal();
    events::write_entry(events::refusal_kind(limit), limit, bytes, name_);
    fold_record();
}

// Larger requests take the slow path in any case, so that rounding cannot overflow.
void ScratchState::show_quick_path(bool shown) noexcept {
    constexpr std::size_t max_quick_bytes = std::size_t{1} << 30;
    const std::size_t bytes = std::min(arena_defaults().max_allocation, max_quick_bytes);
    shown = shown && checked == nullptr;
    scratch_.quick_bytes_.store(shown ? bytes : 0, std::memory_order_relaxed);
}

void ScratchState::set_buffer(std::span<std::byte> buffer) {
    chunks.set_buffer(buffer.data(), buffer.data() + buffer.size());
    totals.capacity_bytes.store(buffer.size(), std::memory_order_relaxed);
    totals.peak_capacity_bytes.store(buffer.size(), std::memory_order_relaxed);
    totals.limit_bytes.store(buffer.size(), std::memory_order_relaxed);
    use_present_chunk();
    note_changes();
    record_capacity();
}

void* ScratchState::allocate(std::size_t bytes, std::size_t alignment,
                             arena::Attempt& attempt) noexcept {
    const std::size_t most = arena_defaults().max_allocation;
    if (bytes > most) {
        attempt.refusal = {"max_allocation", most};
        return nullptr;
    }
    alignment = std::max(alignment, granule);
    const std::size_t padding = checked != nullptr ? arena::CheckedBlocks::padding : 0;
    const std::size_t size = base::align_up(bytes + padding, granule);
    for (;;) {
        const std::uintptr_t next = scratch_.base_ + scratch_.used();
        const std::uintptr_t end = scratch_.base_ + scratch_.limit_;
        const std::uintptr_t begin = base::align_up(next, alignment);
        if (begin >= next && begin <= end && size <= end - begin) {
            record->words.used.store(begin + size - scratch_.base_, std::memory_order_relaxed);
            add(record->words.allocations[0], 1);
            void* const block = reinterpret_cast<void*>(begin);
            platform::mark_allocated({block, bytes, size, chunks.is_buffer()});
            if (checked != nullptr) {
                checked->begin(begin - scratch_.base_, {static_cast<char*>(block), bytes, size});
            }
            return block;
        }
        if (!grow(size, alignment, attempt)) return nullptr;
    }
}

// Continues in the next chunk: a spare one, or a new one from the system.
bool ScratchState::grow(std::size_t bytes, std::size_t alignment,
                        arena::Attempt& attempt) noexcept {
    const bool first = chunks.empty();
    if (first || !chunks.next_has(bytes, alignment)) {
        const std::size_t surplus = std::min(capacity(), max_chained_surplus);
        const std::size_t wanted = std::max({bytes, surplus, first_chunk_bytes});
        if (!add_chunk(bytes, wanted, alignment, attempt)) return false;
    }
    if (!first) chunks.go_on(scratch_.used());
    // If all memory lay in one piece, the block might need padding.
    slack_ += std::min(alignment - granule, max_slack);
    use_present_chunk();
    note_changes();
    return true;
}

bool ScratchState::prepare(std::size_t bytes, arena::Attempt& attempt) noexcept {
    if (!is_ready_for(bytes)) {
        if (!make_ready(bytes, attempt)) return false;
        note_changes();
    }
    prepared_ = std::max(prepared_, scratch_.used() + bytes);
    return true;
}

bool ScratchState::is_ready_for(std::size_t bytes) const noexcept {
    return bytes <= scratch_.limit_ - scratch_.used() || chunks.next_has(bytes, granule);
}

bool ScratchState::make_ready(std::size_t bytes, arena::Attempt& attempt) noexcept {
    const bool first = chunks.empty();
    if (!add_chunk(bytes, bytes, granule, attempt)) return false;
    if (!first && (scratch_.used() != 0 || scratch_.scope() != outside)) return true;
    // The new chunk replaces one that holds nothing.
    if (!first) chunks.drop_present();
    use_present_chunk();
    scratch_.set_slow_end(Scratch::unsettled, scratch_.scope() != outside);
    return true;
}

bool ScratchState::add_chunk(std::size_t needed, std::size_t wanted, std::size_t alignment,
                             arena::Attempt& attempt) noexcept {
    const std::size_t bytes = chunks.add_next(needed, wanted, alignment, attempt);
    if (bytes == 0) return false;
    scratch_.set_slow_end(Scratch::unsettled, true);
    if (innermost != nullptr) {
        innermost->growths.fetch_add(1, std::memory_order_relaxed);
        innermost->grown_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    return true;
}

void ScratchState::use_present_chunk() noexcept {
    if (chunks.empty()) {
        scratch_.chunk_ = 0;
        scratch_.base_ = 0;
        scratch_.limit_ = 0;
        record->words.used.store(0, std::memory_order_relaxed);
        return;
    }
    go_back_to(chunks.present_number(), chunks.present().below);
}

void ScratchState::go_back_to(std::size_t chunk, std::size_t used) noexcept {
    if (chunks.empty()) return;
    if (platform::has_memory_tool()) [[unlikely]]
        chunks.mark_freed_above(chunk, used);
    if (checked != nullptr) [[unlikely]]
        checked->end_from(used);
    chunks.go_back_to(chunk);
    const arena::ScratchChunks::Chunk& present = chunks.present();
    scratch_.chunk_ = chunk;
    scratch_.base_ = reinterpret_cast<std::uintptr_t>(present.begin) - present.below;
    scratch_.limit_ = present.below + present.bytes();
    record->words.used.store(used, std::memory_order_relaxed);
}

// Puts growth and give-backs since the last call on the timeline.
void ScratchState::note_changes() noexcept {
    const auto note = [this](EntryKind kind, const statistics::Counter& total,
                             std::uint64_t& noted) {
        const std::uint64_t now = total.load(std::memory_order_relaxed);
        if (now == noted) return;
        events::write_entry(kind, LimitKind::none, now - noted, name_);
        noted = now;
        record_capacity();
    };
    note(EntryKind::give_back, totals.given_back_bytes, noted_given_back_);
    note(EntryKind::growth, totals.grown_bytes, noted_grown_);
    fold_record();
}

void ScratchState::fold_record() noexcept {
    if (record.is_in_segment()) return;
    const std::lock_guard guard(arena::scratch_registry());
    record.fold();
}

std::size_t ScratchState::trim() noexcept {
    const bool keeps_present = scratch_.used() != 0 || scratch_.scope() != outside;
    if (!keeps_present) forget_need();
    const std::size_t bytes = keeps_present ? chunks.drop_spares() : chunks.drop_all();
    if (chunks.empty()) use_present_chunk();
    note_changes();
    return bytes;
}

const SourceFunctions ScratchState::handle_functions = {
    .name = "scratch",
    .give_back =
        [](void* scratch, const HeldBlock& block) {
            static_cast<ScratchState*>(scratch)->end_handle(block);
        },
    .give_up =
        [](void* scratch, const HeldBlock& block) {
            ScratchState& state = *static_cast<ScratchState*>(scratch);
            state.handles_.forget(block);
            state.return_ended_handles();
        },
};

void ScratchState::release_to(std::size_t chunk, std::size_t used) noexcept {
    scratch_.raise_high();
    events::record_offset(TraceAction::scratch_release, number, used);
    go_back_to(chunk, used);
    add(record->words.releases, 1);
    history.add(used);
    handles_.forget_from(used);
}

// A holder of a budget that is asked for memory may use the scratch, so the position is that of
// the last attempt.
HeldBlock ScratchState::hold(std::size_t bytes, std::size_t alignment) {
    note_attempt();
    void* const address = scratch_.allocate(bytes, alignment);
    if (address == nullptr) return {};
    arena::ScratchHandle handle{.block = address,
                                .used_before = attempt_used_,
                                .used_after = scratch_.used(),
                                .chunk = attempt_chunk_,
                                .scope = scratch_.scope(),
                                .thread = std::this_thread::get_id()};
    try {
        const std::uint64_t serial = handles_.push(handle);
        if (handle.scope != outside) scratch_.set_slow_end(Scratch::with_handles, true);
        return {address, bytes, BlockOwner(link_, serial, alignment)};
    } catch (...) {
        release_to(handle.chunk, handle.used_before);
        throw;
    }
}

void ScratchState::end_handle(const HeldBlock& block) noexcept {
    if (const char* const misuse = handles_.end(block)) {
        events::stop_at_misuse(
            {.kind = events::MisuseKind::scope_order,
             .pointer = block.address,
             .size = block.bytes,
             .owner = name()},
            "the end of a handle: scratch of %s: the handle owns the block of %zu B at %p, but %s",
            name(), block.bytes, block.address, misuse);
    }
    return_ended_handles();
    settle_if_unused();
}

void ScratchState::return_ended_handles() noexcept {
    while (const auto* const last = handles_.ended_on_top(scratch_.scope(), scratch_.used()))
        release_to(last->chunk, last->used_before);
    scratch_.set_slow_end(Scratch::with_handles, handles_.wait_for_scopes(outside));
}

void ScratchState::end_scope(std::size_t chunk, std::size_t used, std::uint64_t outer) noexcept {
    go_back_to(chunk, used);
    handles_.forget_from(used);
    add(record->words.releases, 1);
    scratch_.scope_.store(outer, std::memory_order_relaxed);
    return_ended_handles();
    settle_if_unused();
}

void ScratchState::settle_if_unused() noexcept {
    const bool is_unsettled = (scratch_.slow_end_ & Scratch::unsettled) != 0;
    if (!is_unsettled || scratch_.scope() != outside || scratch_.used() != 0) return;
    const std::size_t high = record->words.high.load(std::memory_order_relaxed);
    const std::size_t need = std::max(high + slack_, prepared_);
    forget_need();
    scratch_.set_slow_end(Scratch::unsettled, false);
    if (chunks.is_buffer() || (!chunks.empty() && chunks.is_one() && need <= capacity())) return;
    chunks.drop_all();
    use_present_chunk();
    // If this is refused, the next allocation requests what it needs itself.
    arena::Attempt attempt;
    // No scope is charged for more than was needed.
    const std::size_t wanted = limits::scope_budget == nullptr ? arena::joined_bytes(need) : need;
    (void)chunks.add_next(need, wanted, granule, attempt);
    use_present_chunk();
    note_changes();
}

}  // namespace tensorpool::detail

namespace tensorpool {
namespace detail {
inline namespace abi_2 {

constinit thread_local Scratch* local_scratch TENSORPOOL_INITIAL_EXEC = nullptr;

}  // namespace abi_2
}  // namespace detail

HeldBlock Scratch::hold(std::size_t bytes, std::size_t alignment) {
    return state_->hold(bytes, alignment);
}

namespace arena {
namespace {

void give_back_local() noexcept {
    Scratch* const scratch = detail::local_scratch;
    detail::local_scratch = nullptr;
    delete scratch;
}

// Set while the library is loaded, before there are threads.
[[maybe_unused]] const bool watches_forks_from_the_start = platform::set_fork_handlers(
    platform::ForkStage::scratches, [] { scratch_registry().before_fork(); },
    [] { scratch_registry().after_fork_in_parent(); },
    [] { scratch_registry().after_fork_in_child(); });

}  // namespace

void ScratchRegistry::enter(detail::ScratchState& scratch) noexcept {
    // Fails for a thread in its last destructors: memory that it takes now stays until the process
    // ends.
    (void)platform::call_at_thread_exit(exit_handler());
    const std::lock_guard guard(mutex_);
    scratch.next_of_all = first_;
    first_ = &scratch;
    scratch.show_quick_path(!hidden_ && !platform::has_memory_tool());
}

// Under the lock, so that no fork comes in the middle of the initialization: the child would wait
// for its end forever.
platform::ExitHandler ScratchRegistry::exit_handler() noexcept {
    const std::lock_guard guard(mutex_);
    static const platform::ExitHandler handler = platform::add_thread_exit_handler(give_back_local);
    return handler;
}

// The child has only the forking thread.
void ScratchRegistry::after_fork_in_child() noexcept {
    after_fork_in_parent();
    detail::ScratchState* scratch = std::exchange(first_, nullptr);
    while (scratch != nullptr) {
        detail::ScratchState& one = *scratch;
        scratch = std::exchange(one.next_of_all, nullptr);
        if (&one.scratch() == detail::local_scratch) {
            first_ = &one;
            one.belong_to_this_thread();
        } else {
            one.abandon();
        }
    }
}

}  // namespace arena
}  // namespace tensorpool
