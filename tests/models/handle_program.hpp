#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <tensorpool/scratch.hpp>

#include "models/byte_map.hpp"
#include "models/choices.hpp"
#include "models/handle_sources.hpp"

namespace tensorpool::testing {

/// A block that a handle owns, and what the program has recorded of it.
struct LivingBlock {
    std::unique_ptr<PooledAllocation> handle;
    SourceKind kind = SourceKind::pool;
    std::size_t scope = 0;        ///< scratch: the number of open scopes
    std::size_t used_before = 0;  ///< scratch: the bytes in use before
    bool has_ended = false;       ///< scratch: waits until nothing above it is in use
    std::size_t begin = 0;        ///< arena: the offset at which the block begins
    std::size_t end = 0;          ///< arena: the offset at which the block ends
    bool is_outdated = false;     ///< arena: a release ended the block
};

/// Whether other programs run at the same time. A program alone checks how much an arena has in use
/// after each step.
enum class Programs { one, several };

/// What several programs share.
struct HandleWorld {
    explicit HandleWorld(SourceKind faulty = SourceKind::pool,
                         GiveBackFault fault = GiveBackFault::none, Checks checks = Checks::off)
        : sources(faulty, fault, checks) {}

    HandleSources sources;
    ByteMap bytes;
    std::mutex mutex;
    std::vector<LivingBlock> left;  ///< blocks whose handles are on their way to another thread
};

/// A random program on handles of all sources, checked against a map of bytes. One thread at a time
/// runs it; handles of scratches end before `run` returns.
class HandleProgram {
public:
    /// One program of a world may use the planned arena.
    HandleProgram(HandleWorld& world, Choices choices, Programs programs, bool uses_plan)
        : world_(world), choices_(choices), programs_(programs), uses_plan_(uses_plan) {}
    ~HandleProgram();
    HandleProgram(const HandleProgram&) = delete;
    HandleProgram& operator=(const HandleProgram&) = delete;

    /// Runs some steps, fewer if its choices end. Throws std::runtime_error if a source does what
    /// it must not do.
    void run(int steps);
    bool at_end() const { return choices_.at_end(); }
    /// Releases both arenas to a random position, which outdates the handles above it. REQUIRES: no
    /// other program runs.
    void release_arenas();
    /// Leaves all handles to programs that run later.
    void leave_all();
    /// Ends all handles, also those that other programs left.
    void end_all();

private:
    std::size_t below(std::size_t limit) { return choices_.below(limit); }
    void step();
    void make();
    std::size_t bytes_to_an_outdated_end(SourceKind kind) const;
    /// Takes a random block whose handle may end now out of the program; none if there is none.
    LivingBlock take();
    void end(LivingBlock block);
    void end_in_assignment();
    void move_or_swap();
    void give_up(LivingBlock block);
    void pass_on(LivingBlock block);
    void give_up_all();
    void take_over();
    void change_scope();
    void close_scope();

    /// Checks the bytes and removes them from the map, before the handle ends.
    void leave_map(const LivingBlock& block);
    /// Checks how much the source has in use. `before` is what it had before the handle ended.
    void check_end(const LivingBlock& block, std::size_t before);
    /// Removes what the scratch must have returned by now, and checks what it has in use.
    void check_scratch();
    void expect_used(SourceKind kind, std::size_t expected) const;
    std::size_t used(SourceKind kind) const;
    void put(LivingBlock block);
    LivingBlock& at(std::size_t number) {
        return number < blocks_.size() ? blocks_[number] : scratch_[number - blocks_.size()];
    }

    HandleWorld& world_;
    Choices choices_;
    Programs programs_;
    bool uses_plan_;
    std::vector<LivingBlock> blocks_;
    std::vector<LivingBlock> scratch_;  // in the order in which they were made, until returned
    std::size_t scratch_used_ = 0;      // as it must be
    struct Scope {
        std::size_t used_before;
        std::unique_ptr<ScratchScope> scope;
    };
    std::vector<Scope> scopes_;
};

}  // namespace tensorpool::testing
