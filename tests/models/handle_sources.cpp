#include "models/handle_sources.hpp"

#include <stdexcept>
#include <utility>

#include <tensorpool/scratch.hpp>

namespace tensorpool::testing {
namespace {

// With Checks::sampled every block of a pool is guarded.
PoolOptions pool_options(const char* name, Checks checks) {
    PoolOptions options;
    options.name = name;
    options.checks = checks;
    options.guard_share = 1;
    return options;
}

// Without checks a release may outdate living handles.
ArenaOptions arena_options(const char* name, Checks checks) {
    ArenaOptions options;
    options.name = name;
    options.initial_capacity = 0;
    options.max_capacity = std::size_t{64} << 20;
    options.checks = checks;
    return options;
}

// Takes all blocks from the arena: small ones would be those of a pool, which is a source of its
// own.
ContextOptions context_options(Checks checks) {
    ContextOptions options;
    options.arena = arena_options("context", checks);
    options.small_bytes = 0;
    return options;
}

void expect_none(const char* what, std::uint64_t in_use) {
    if (in_use == 0) return;
    throw std::runtime_error(std::string(what) + " has " + std::to_string(in_use) +
                             " in use after all handles ended");
}

}  // namespace

const char* to_string(SourceKind kind) {
    constexpr const char* names[source_kinds] = {"pool",    "arena",   "context",
                                                 "scratch", "planned", "device"};
    return names[static_cast<std::size_t>(kind)];
}

const SourceFunctions FaultySource::functions = {
    .name = "faulty",
    .give_back =
        [](void* source, const HeldBlock& block) {
            static_cast<FaultySource*>(source)->give_back(block.owner.releases());
        },
};

HeldBlock FaultySource::hold(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard guard(mutex_);
    const HeldBlock block = make_(bytes, alignment).detach();
    const std::uint64_t ticket = ++tickets_;
    if (fault_ == GiveBackFault::early && happens()) {
        const PooledAllocation ended(block);
    } else {
        held_[ticket] = block;
    }
    return {block.address, bytes, BlockOwner(link_, ticket, alignment)};
}

void FaultySource::give_back(std::uint64_t ticket) {
    const std::lock_guard guard(mutex_);
    const auto found = held_.find(ticket);
    if (found == held_.end()) return;  // was given back early
    HeldBlock block = found->second;
    held_.erase(found);
    if (fault_ == GiveBackFault::forgets && happens()) return;
    if (fault_ == GiveBackFault::ignores_releases) {
        const HeldBlock present = make_(1, 1).detach();
        block.owner = present.owner;
        PooledAllocation(present).reset();
    }
    const PooledAllocation ended(block);
}

HandleSources::HandleSources(SourceKind faulty, GiveBackFault fault, Checks checks)
    : faulty_kind_(faulty),
      pool_(pool_options("handles", checks)),
      pool_of_plan_(pool_options("plan", checks)),
      arena_(arena_options("arena", checks)),
      context_(context_options(checks)),
      planned_({.pool = &pool_of_plan_, .checks = checks}) {
    if (fault != GiveBackFault::none) {
        faulty_ = std::make_unique<FaultySource>(
            [this](std::size_t bytes, std::size_t alignment) {
                return make_without_fault(faulty_kind_, bytes, alignment);
            },
            fault);
    }
    // The first block of an arena lies at its beginning.
    arena_base_ = PooledAllocation(arena_, 1).get();
    context_base_ = PooledAllocation(context_, 1).get();
    for (StreamHandle& stream : streams_) {
        if (backend_.create_stream(0, &stream) != DeviceStatus::ok) {
            throw std::runtime_error("no stream");
        }
    }
}

PooledAllocation HandleSources::make(SourceKind kind, std::size_t bytes, std::size_t alignment) {
    if (is_faulty(kind)) {
        return PooledAllocation(*faulty_, bytes, alignment);
    }
    return make_without_fault(kind, bytes, alignment);
}

PooledAllocation HandleSources::make_without_fault(SourceKind kind, std::size_t bytes,
                                                   std::size_t alignment) {
    switch (kind) {
        case SourceKind::pool:
            return PooledAllocation(pool_, bytes, alignment);
        case SourceKind::arena:
            return PooledAllocation(arena_, bytes, alignment);
        case SourceKind::context:
            return PooledAllocation(context_, bytes, alignment);
        case SourceKind::scratch:
            return PooledAllocation(Scratch::local(), bytes, alignment);
        case SourceKind::planned:
            return PooledAllocation(planned_, bytes, alignment);
        case SourceKind::device:
            break;
    }
    StreamHandle stream = nullptr;
    {
        const std::lock_guard guard(mutex_);
        stream = streams_[++next_stream_ % streams_.size()];
    }
    return PooledAllocation(allocator_, bytes, stream);
}

void HandleSources::end_released(SourceKind kind, void* block) {
    if (kind == SourceKind::pool) pool_.deallocate(block);
    if (kind == SourceKind::planned) planned_.deallocate(block);
    if (kind == SourceKind::device) allocator_.deallocate(block);
}

Arena* HandleSources::arena_of(SourceKind kind) {
    if (kind == SourceKind::arena) return &arena_;
    return kind == SourceKind::context ? &context_.arena() : nullptr;
}

std::size_t HandleSources::offset_in(const Arena& arena, const void* block) const {
    const void* const base = &arena == &arena_ ? arena_base_ : context_base_;
    return static_cast<std::size_t>(static_cast<const std::byte*>(block) -
                                    static_cast<const std::byte*>(base));
}

void HandleSources::check_nothing_in_use() const {
    expect_none("the pool", pool_.get_total_allocated());
    const PlannedArenaStatistics planned = planned_.statistics();
    expect_none("the planned arena", planned.in_use_bytes + planned.pool_in_use_bytes);
    expect_none("the device allocator", allocator_.statistics().in_use_bytes);
}

}  // namespace tensorpool::testing
