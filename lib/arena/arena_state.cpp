#include "arena/arena_state.hpp"

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
