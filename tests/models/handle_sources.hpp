#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <tensorpool/context.hpp>
#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/planned_arena.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool::testing {

/// The sources of handles.
enum class SourceKind { pool, arena, context, scratch, planned, device };
inline constexpr std::size_t source_kinds = 6;
const char* to_string(SourceKind kind);

/// A fault in how a source gives blocks back, in one of a few calls.
enum class GiveBackFault {
    none,
    forgets,           ///< a handle ends, and its block is not given back
    early,             ///< the block is given back while its handle lives
    ignores_releases,  ///< an outdated handle counts as one of the present phase
};

/// A source that passes each call to another one, with a fault.
class FaultySource {
public:
    using Make = std::function<PooledAllocation(std::size_t bytes, std::size_t alignment)>;

    FaultySource(Make make, GiveBackFault fault) : make_(std::move(make)), fault_(fault) {}

    HeldBlock hold(std::size_t bytes, std::size_t alignment);

private:
    static const SourceFunctions functions;

    void give_back(std::uint64_t ticket);
    bool happens() { return ++calls_ % 5 == 0; }

    Make make_;
    GiveBackFault fault_;
    std::recursive_mutex mutex_;
    SourceLink link_{&functions, this};
    std::map<std::uint64_t, HeldBlock> held_;
    std::uint64_t tickets_ = 0;
    unsigned calls_ = 0;
};

/// One source of each kind, of which one has a fault.
class HandleSources {
public:
    explicit HandleSources(SourceKind faulty = SourceKind::pool,
                           GiveBackFault fault = GiveBackFault::none, Checks checks = Checks::off);

    PooledAllocation make(SourceKind kind, std::size_t bytes, std::size_t alignment);
    /// Ends a block whose handle was released.
    void end_released(SourceKind kind, void* block);
    bool is_faulty(SourceKind kind) const noexcept {
        return faulty_ != nullptr && kind == faulty_kind_;
    }
    /// Returns the arena of a kind; nullptr if it has none.
    Arena* arena_of(SourceKind kind);
    /// Returns the offset of a block in an arena of `arena_of`.
    std::size_t offset_in(const Arena& arena, const void* block) const;
    PlannedArena& planned() { return planned_; }
    /// Throws std::runtime_error if a pool, a planned arena or a device allocator has blocks in
    /// use.
    void check_nothing_in_use() const;

private:
    PooledAllocation make_without_fault(SourceKind kind, std::size_t bytes, std::size_t alignment);

    SourceKind faulty_kind_;
    std::unique_ptr<FaultySource> faulty_;
    MemoryPool pool_;
    MemoryPool pool_of_plan_;
    Arena arena_;
    Context context_;
    const void* arena_base_ = nullptr;
    const void* context_base_ = nullptr;
    PlannedArena planned_;
    HostBackend backend_;
    CachingAllocator allocator_{backend_, 0};
    std::array<StreamHandle, 2> streams_{};
    std::size_t next_stream_ = 0;
    std::mutex mutex_;
};

}  // namespace tensorpool::testing
