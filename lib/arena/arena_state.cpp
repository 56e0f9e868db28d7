#include "arena/arena_state.hpp"

#include "events/misuse.hpp"
#include "events/recorder_hooks.hpp"
#include "events/report_at_exit.hpp"
#include "events/timeline.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/tools/memory_tools.hpp"
#include "statistics/records/record_values.hpp"

namespace tensorpool::arena {

bool CancelledClaims::contains(std::uint16_t generation, std::size_t begin) const noexcept {
    const auto since = static_cast<std::uint16_t>(generation_ - generation);
    if (since == 0) return false;
    const std::uint64_t whole = generation_ - since;
    const std::uint64_t oldest = run_count_ > max_runs ? run_count_ - max_runs : 0;
    for (std::uint64_t number = run_count_; number-- > oldest;) {
        if (whole >= run(number).first) return begin >= run(number).from;
    }
    return true;
}

void OwnerThread::check_allocating() noexcept {
    if (!is_checked()) return;
    // Relaxed: only the identity matters, no other memory depends on it.
    std::thread::id none;
    owner_.compare_exchange_strong(none, std::this_thread::get_id(), std::memory_order_relaxed);
    check("allocate");
}

void OwnerThread::check(const char* call) const noexcept {
    if (!is_checked()) return;
    const std::thread::id owner = owner_.load(std::memory_order_relaxed);
    if (owner == std::thread::id() || owner == std::this_thread::get_id()) return;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::wrong_thread, .owner = options_.name},
        "%s: arena '%s' belongs to one thread (Sharing::one_thread), and another one "
        "used it before",
        call, options_.name.c_str());
}

}  // namespace tensorpool::arena

namespace tensorpool::detail {
namespace {

ArenaOptions validated(ArenaOptions options) {
    arena::validate(options);
    options.name = options.name.substr(0, sizeof ArenaStatistics::name - 1);
    return options;
}

}  // namespace

ArenaState::ArenaState(Arena& arena, ArenaOptions options, ArenaStatistics::Kind kind)
    : arena_(arena),
      options_(validated(std::move(options))),
      kind_(kind),
      record(arena::make_record(options_.name, kind, 0)),
      link(link_to(arena)),
      id_(record->id.load(std::memory_order_relaxed)) {
    arena.words_ = &record->words;
    events::report_at_exit_where_wanted();
    events::look_for_recorder();  // the first allocations may take only the inline path
    if (base::checks_calls(options_.checks)) handles = std::make_unique<arena::LivingHandles>();
    if (padding() != 0 && !is_measuring()) {
        using Memory = arena::CheckedBlocks::Memory;
        checked = std::make_unique<arena::CheckedBlocks>(
            "arena", name(), is_in_buffer() ? Memory::of_caller : Memory::of_system);
    }
    if (options_.objects) objects = std::make_unique<arena::ObjectRegister>();
    arena::arena_registry().enter(*this);
    events::name_source(TraceSource::arena, id_, options_.name);
}

ArenaState::~ArenaState() {
    check_no_handle_left();
    if (checked != nullptr) checked->check();
    if (is_in_buffer()) platform::mark_open(arena_.base_, capacity());
    events::record(TraceAction::gone, id_, nullptr, 0);
    if (!record.is_in_segment()) {
        const std::lock_guard guard(mutex);
        record.leave();
    }
    arena::arena_registry().leave(*this);
}

ArenaStatistics ArenaState::statistics() const noexcept {
    return statistics::statistics_of(*record);
}

// The end of such a handle would touch the arena, so the program cannot go on.
void ArenaState::check_no_handle_left() const noexcept {
    const auto block = handles == nullptr ? std::nullopt : handles->first_above(0);
    if (!block) return;
    const void* const address = arena_.base_ + block->offset;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::outlived_owner,
         .pointer = address,
         .size = block->bytes,
         .owner = options_.name},
        "the end of arena '%s': a handle owns the block of %zu B at %p; expected the handle to end "
        "before the arena",
        name(), block->bytes, address);
}

// Tools close the memory behind what was requested, and released memory.
std::size_t ArenaState::padding() const noexcept {
    const bool is_hardened = options_.checks == Checks::hardened && !platform::has_memory_tool();
    return is_hardened ? arena::CheckedBlocks::padding : 0;
}

void ArenaState::begin_checks(std::byte* block, std::size_t bytes) noexcept {
    if (checked == nullptr) return;
    checked->begin(static_cast<std::size_t>(block - arena_.base_),
                   {.begin = reinterpret_cast<char*>(block),
                    .requested = bytes,
                    .bytes = base::align_up(bytes + padding(), arena_.alignment())});
}

void ArenaState::notify(ArenaEvent::Kind kind, std::size_t bytes,
                        const char* limit) const noexcept {
    if (!options_.on_event) return;
    options_.on_event({.kind = kind,
                       .arena = name(),
                       .bytes = bytes,
                       .used = arena_.used(),
                       .capacity = capacity(),
                       .limit = limit});
}

void ArenaState::count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept {
    const LimitKind limit = events::limit_kind(refusal);
    totals.count_refusal();
    events::write_entry(events::refusal_kind(limit), limit, bytes, options_.name);
    fold_record();
}

void ArenaState::note(EntryKind kind, std::size_t bytes) noexcept {
    events::write_entry(kind, LimitKind::none, bytes, options_.name);
    record.fold();
    record_capacity();
}

void ArenaState::lock() noexcept {
    mutex.lock();
    if (handles != nullptr) handles->lock();
    if (checked != nullptr) checked->lock();
    if (objects != nullptr) objects->lock();
    close_top();
}

void ArenaState::unlock() noexcept {
    open_top();
    if (objects != nullptr) objects->unlock();
    if (checked != nullptr) checked->unlock();
    if (handles != nullptr) handles->unlock();
    mutex.unlock();
}

// An arena of one thread has no claims, and a fork cannot know what its thread is doing.
void ArenaState::close_top() noexcept {
    if (options_.sharing == Sharing::one_thread) return;
    const std::size_t end = arena_.end_.load(std::memory_order_relaxed);
    std::uint64_t top = record->words.used.load(std::memory_order_relaxed);
    do {
        // With claims pending the arena is closed already: their threads and all others wait for
        // the mutex.
        if ((top & Arena::offset_mask) > end) return;
    } while (!record->words.used.compare_exchange_weak(top, top | closed_by_fork,
                                                       std::memory_order_acquire));
    closed_at_ = top & Arena::offset_mask;
}

void ArenaState::cancel_pending_claims() noexcept {
    open_top();
    const std::uint64_t top = record->words.used.load(std::memory_order_relaxed);
    const std::size_t end = arena_.end_.load(std::memory_order_relaxed);
    if ((top & Arena::offset_mask) <= end) return;
    // Only the thread of the first pending claim knew where the claim began, so a part below the
    // end may be lost. Blocks end at multiples of the alignment.
    const std::size_t granule = options_.alignment;
    record->words.used.store(cancel_from(base::align_down(end, granule)),
                             std::memory_order_relaxed);
}

}  // namespace tensorpool::detail

namespace tensorpool::arena {
namespace {

// Set while the library is loaded, before there are threads, as the pools' registry does.
[[maybe_unused]] const bool watches_forks_from_the_start = platform::set_fork_handlers(
    platform::ForkStage::arenas, [] { arena_registry().before_fork(); },
    [] { arena_registry().after_fork_in_parent(); },
    [] { arena_registry().after_fork_in_child(); });

}  // namespace

void ArenaRegistry::set_quick_bytes(detail::ArenaState& arena, std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    arena.quick_bytes = bytes;
    arena.show_quick_path(!hidden_ && !platform::has_memory_tool());
}

}  // namespace tensorpool::arena
