#include "models/charges.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include <tensorpool/errors.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>

#include "limits/budget_node.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr const char* names[] = {"process", "cache", "request", "request a", "request b"};

rlim_t file_limit() {
    rlimit limit = {};
    getrlimit(RLIMIT_FSIZE, &limit);
    return limit.rlim_cur;
}

/// Limits the size of the process's files: what is beyond fails as on a full disk. What the test
/// prints may go on for a MiB.
void limit_files(rlim_t bytes) {
    rlimit limit = {};
    getrlimit(RLIMIT_FSIZE, &limit);
    for (const int printed : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat file = {};
        if (fstat(printed, &file) == 0 && S_ISREG(file.st_mode))
            bytes = std::max(bytes, static_cast<rlim_t>(file.st_size) + mib);
    }
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

/// A block that a task keeps while it waits; it is freed with the task, on any thread.
struct KeptByTask {
    explicit KeptByTask(ChargedWorld& of) : world(of) {}
    KeptByTask(const KeptByTask&) = delete;
    KeptByTask& operator=(const KeptByTask&) = delete;
    ~KeptByTask() {
        if (!block) return;
        world.pool_.deallocate(block->address, block->bytes);
        const std::lock_guard guard(world.mutex_);
        world.remove(block->budget, block->charged);
    }
    void make_on(ChargedProgram& program) {
        block = program.make();
        if (block) program.count(*block);
    }
    void free_on(ChargedProgram& program) {
        if (!block) return;
        const auto freed = *std::exchange(block, std::nullopt);
        {
            const std::lock_guard guard(world.mutex_);
            world.remove(freed.budget, freed.charged);
        }
        program.free(freed);
    }
    ChargedWorld& world;
    std::optional<ChargedProgram::Block> block;
};

ChargedWorld::ChargedWorld(ChargeFault fault) : fault_(fault), file_limit_(file_limit()) {
    for (std::size_t level = 0; level != parents.size(); ++level) {
        budgets_.push_back(
            parents[level] == no_budget
                ? std::make_unique<Budget>(names[level])
                : std::make_unique<Budget>(*budgets_[static_cast<std::size_t>(parents[level])],
                                           names[level]));
    }
    allowed_.fill(SIZE_MAX);
    try {
        const std::byte one{1};
        (void)Stash(std::span(&one, 1), {.method = StashMethod::spill, .folder = "."});
    } catch (const StashError&) {
        method_ = StashMethod::compress;  // the folder lies in memory
    }
}

ChargedWorld::~ChargedWorld() {
    free_all();
    limit_files(file_limit_);
}

void ChargedWorld::free_all() {
    tasks_.clear();
    for (const Block& block : blocks_) {
        pool_.deallocate(block.address, block.bytes);
        remove(block.budget, block.charged);
    }
    blocks_.clear();
    for (const Stashed& stashed : stashed_) remove(stashed.budget, stashed.charged);
    stashed_.clear();
}

void ChargedWorld::add(int budget, std::size_t bytes) {
    for (int level = budget; level != no_budget; level = parents[static_cast<std::size_t>(level)])
        expected_[static_cast<std::size_t>(level)] += bytes;
}

void ChargedWorld::check() const {
    for (std::size_t level = 0; level != budgets_.size(); ++level) {
        const std::size_t charged = budgets_[level]->in_use();
        if (charged == expected_[level]) continue;
        throw std::runtime_error(std::string("budget '") + names[level] +
                                 "': " + std::to_string(charged) + " B are charged, expected " +
                                 std::to_string(expected_[level]));
    }
}

void ChargedWorld::check_limits() const {
    for (std::size_t level = 0; level != budgets_.size(); ++level) {
        const std::size_t charged = budgets_[level]->in_use();
        if (charged <= allowed_[level]) continue;
        throw std::runtime_error(
            std::string("budget '") + names[level] + "': " + std::to_string(charged) +
            " B are charged, expected at most " + std::to_string(allowed_[level]));
    }
}

void ChargedWorld::change_limits(Choices& choices) {
    for (std::size_t level = 0; level != budgets_.size(); ++level) {
        const std::size_t hard = choices.below(3) == 0 ? 0 : (1 + choices.below(64)) * 256 * kib;
        budgets_[level]->set_limits({.hard = hard});
        allowed_[level] = hard == 0 ? SIZE_MAX : std::max(hard, budgets_[level]->in_use());
    }
    limit_files(choices.below(2) == 0 ? file_limit_ : choices.below(16) * 64 * kib);
}

bool ChargedWorld::happens(ChargeFault fault) {
    return fault == fault_ && ++calls_ % 5 == 0;
}

void ChargedWorld::charge_wrongly(int budget, std::size_t bytes, bool refund) {
    if (budget == no_budget) return;
    detail::BudgetNode* const charged =
        BudgetAccess::node_of(budgets_[static_cast<std::size_t>(budget)].get());
    const std::lock_guard guard(limits::budgets().mutex);
    for (auto* node = charged; node != nullptr; node = node->parent)
        refund ? node->counters.refund(bytes) : node->counters.charge(bytes);
}

ChargedProgram::~ChargedProgram() {
    while (!scopes_.empty()) scopes_.pop_back();
    const std::lock_guard guard(world_.mutex_);
    for (const auto& [budget, bytes] : growths_) world_.remove(budget, bytes);
}

void ChargedProgram::run(int steps) {
    for (int i = 0; i < steps; ++i) {
        step();
        world_.check_limits();
    }
    while (!scopes_.empty()) close_scope();
    if (has_scratch_) Scratch::local().trim();
    has_scratch_ = false;
}

void ChargedProgram::step() {
    const std::size_t what = choices_.below(22);
    if (what < 14) return step_in_scope(what);
    if (what < 15) return use_arena();
    if (what < 16) return use_scratch();
    if (what < 18) return run_a_task();
    if (what < 20 && scopes_.size() < 4) return open_scope();
    if (!scopes_.empty()) close_scope();
}

void ChargedProgram::step_in_scope(std::size_t what) {
    if (what < 6) return allocate();
    if (what < 10) return free();
    if (what < 12) return reallocate();
    if (what < 13) return put_to_rest();
    restore();
}

ChargedTask ChargedProgram::start_task() {
    ChargedProgram* on = &co_await ChargedTask::NextPart();
    KeptByTask kept(on->world_);
    for (std::size_t parts = 1 + on->choices_.below(4); parts != 0; --parts) {
        kept.make_on(*on);
        on = &co_await ChargedTask::NextPart();
        on->step_in_scope(on->choices_.below(14));
        on = &co_await ChargedTask::NextPart();
        kept.free_on(*on);
        on->step_in_scope(on->choices_.below(14));
    }
    kept.make_on(*on);
}

void ChargedProgram::run_a_task() {
    std::optional<ChargedTask> task;
    {
        const std::lock_guard guard(world_.mutex_);
        if (world_.tasks_.size() > choices_.below(8)) {
            std::swap(world_.tasks_[choices_.below(world_.tasks_.size())], world_.tasks_.back());
            task = std::move(world_.tasks_.back());
            world_.tasks_.pop_back();
        }
    }
    if (!task) {
        task = start_task();
        task->level = choices_.below(world_.budgets_.size());
        (void)task->run_on(*this);
    }
    scopes_.emplace_back(static_cast<int>(task->level), *world_.budgets_[task->level]);
    const bool has_more = task->run_on(*this);
    scopes_.pop_back();
    if (!has_more) return;
    const std::lock_guard guard(world_.mutex_);
    world_.tasks_.push_back(std::move(*task));
}

std::size_t ChargedProgram::any_size() {
    if (choices_.below(4) == 0) return (1 + choices_.below(8)) * 70'000;
    return 1 + choices_.below(5000) * (choices_.below(3) == 0 ? 12 : 1);
}

void ChargedProgram::open_scope() {
    const auto level = choices_.below(world_.budgets_.size());
    scopes_.emplace_back(static_cast<int>(level), *world_.budgets_[level]);
}

void ChargedProgram::close_scope() {
    scopes_.pop_back();
}

void ChargedProgram::put(Block block) {
    count(block);
    const std::lock_guard guard(world_.mutex_);
    world_.blocks_.push_back(block);
}

void ChargedProgram::count(const Block& block) {
    const std::lock_guard guard(world_.mutex_);
    world_.add(block.budget, block.charged);
    if (world_.happens(ChargeFault::charges_outer) && scopes_.size() > 1) {
        world_.charge_wrongly(block.budget, block.charged, true);
        world_.charge_wrongly(scopes_[scopes_.size() - 2].level, block.charged, false);
    }
    if (world_.happens(ChargeFault::passes_limit)) {
        world_.charge_wrongly(block.budget, 64 * mib, false);
        world_.check_limits();
        world_.charge_wrongly(block.budget, 64 * mib, true);
    }
}

std::optional<ChargedProgram::Block> ChargedProgram::take() {
    const std::lock_guard guard(world_.mutex_);
    if (world_.blocks_.empty()) return std::nullopt;
    std::swap(world_.blocks_[choices_.below(world_.blocks_.size())], world_.blocks_.back());
    const Block block = world_.blocks_.back();
    world_.blocks_.pop_back();
    world_.remove(block.budget, block.charged);
    return block;
}

void ChargedProgram::allocate() {
    if (const std::optional<Block> block = make()) put(*block);
}

std::optional<ChargedProgram::Block> ChargedProgram::make() {
    const std::size_t bytes = any_size();
    try {
        void* const address = world_.pool_.allocate(bytes);
        const int budget = innermost();
        const bool is_charged = budget != ChargedWorld::no_budget;
        Block block{address, bytes, budget, is_charged ? world_.pool_.usable_size(address) : 0};
        stamp(block);
        return block;
    } catch (const AllocationError&) {
        return std::nullopt;
    }
}

void ChargedProgram::stamp(Block& block) {
    block.stamp = static_cast<unsigned char>(choices_.below(256));
    auto* const bytes = static_cast<unsigned char*>(block.address);
    bytes[0] = bytes[block.bytes - 1] = block.stamp;
}

void ChargedProgram::check_stamp(const void* begin, std::size_t bytes, unsigned char stamp) {
    const auto* const content = static_cast<const unsigned char*>(begin);
    if (content[0] == stamp && content[bytes - 1] == stamp) return;
    throw std::runtime_error("a block of " + std::to_string(bytes) + " B has other content");
}

void ChargedProgram::free() {
    if (const std::optional<Block> block = take()) free(*block);
}

void ChargedProgram::free(const Block& block) {
    check_stamp(block.address, block.bytes, block.stamp);
    world_.pool_.deallocate(block.address, block.bytes);
    const std::lock_guard guard(world_.mutex_);
    if (world_.happens(ChargeFault::keeps_charge))
        world_.charge_wrongly(block.budget, block.charged, false);
    if (world_.happens(ChargeFault::refunds_twice) && block.charged <= world_.expected_[0])
        world_.charge_wrongly(block.budget, block.charged, true);
}

// Inside a scope, what is returned is charged like a new block. Outside, a block that stays in
// place keeps its charge, and one that moves has none.
void ChargedProgram::reallocate() {
    std::optional<Block> block = take();
    if (!block) return;
    const std::size_t bytes = any_size();
    try {
        void* const address = world_.pool_.reallocate(block->address, block->bytes, bytes);
        const bool stays = address == block->address;
        if (!scopes_.empty()) {
            block->budget = innermost();
        } else if (!stays) {
            block->budget = ChargedWorld::no_budget;
        }
        block->address = address;
        block->bytes = bytes;
        const bool is_charged = block->budget != ChargedWorld::no_budget;
        block->charged = is_charged ? world_.pool_.usable_size(address) : 0;
        if (*static_cast<unsigned char*>(address) != block->stamp)
            throw std::runtime_error("a block that was resized has other content");
        stamp(*block);
    } catch (const AllocationError&) {  // it is as before
    }
    put(*block);
}

void ChargedProgram::put_to_rest() {
    const std::optional<Block> block = take();
    if (!block) return;
    PooledAllocation owner(
        HeldBlock{block->address, block->bytes, BlockOwner::of_pool(&world_.pool_, 64)});
    const std::size_t method = choices_.below(4);
    const StashOptions options{.name = "charged",
                               .method = method < 2 || world_.method_ == StashMethod::compress
                                             ? StashMethod::compress
                                         : method == 2 ? StashMethod::by_cost
                                                       : StashMethod::spill,
                               .folder = world_.method_ == StashMethod::compress ? "" : ".",
                               .pool = &world_.store_};
    try {
        Stashed stashed{Stash(std::move(owner), options), block->stamp, innermost(), 0};
        if (!scopes_.empty()) {
            stashed.charged = stashed.stash.bytes_at_rest() - stashed.stash.bytes_spilled();
        }
        const std::lock_guard guard(world_.mutex_);
        world_.add(stashed.budget, stashed.charged);
        world_.stashed_.push_back(std::move(stashed));
        return;
    } catch (const AllocationError&) {
    } catch (const StashError&) {  // no room for files
        if (options.method == StashMethod::compress) throw;
    }
    (void)owner.release();  // the handle still owns its block
    put(*block);
}

void ChargedProgram::restore() {
    std::optional<Stashed> stashed;
    {
        const std::lock_guard guard(world_.mutex_);
        if (world_.stashed_.empty()) return;
        std::swap(world_.stashed_[choices_.below(world_.stashed_.size())], world_.stashed_.back());
        stashed = std::move(world_.stashed_.back());
        world_.stashed_.pop_back();
    }
    try {
        PooledAllocation restored = stashed->stash.restore(world_.pool_);
        const std::size_t bytes = restored.size();
        void* const address = restored.release();
        check_stamp(address, bytes, stashed->stamp);
        const bool is_charged = !scopes_.empty();
        put({address, bytes, innermost(), is_charged ? world_.pool_.usable_size(address) : 0,
             stashed->stamp});
        const std::lock_guard guard(world_.mutex_);
        world_.remove(stashed->budget, stashed->charged);
    } catch (const AllocationError&) {
        const std::lock_guard guard(world_.mutex_);
        world_.stashed_.push_back(std::move(*stashed));
    }
}

void ChargedProgram::use_arena() {
    const std::size_t before = arena_.capacity();
    const std::size_t what = choices_.below(10);
    try {
        if (what < 7) {
            (void)arena_.allocate(any_size());
        } else if (what < 8) {
            arena_.release_to(arena_.used() / 2 / 64 * 64);
        } else if (what < 9) {
            arena_.reset();
        } else {
            arena_.trim();
        }
    } catch (const AllocationError&) {
    }
    note_capacity(before);
}

// Its memory is given back when the program pauses, at the latest.
void ChargedProgram::use_scratch() {
    try {
        const ScratchScope scope;
        has_scratch_ = true;
        PooledAllocation first(Scratch::local(), any_size());
        const PooledAllocation second(Scratch::local(), any_size() * 8);
        first.reset();
    } catch (const AllocationError&) {
    }
}

void ChargedProgram::note_capacity(std::size_t before) {
    const std::size_t now = arena_.capacity();
    const std::lock_guard guard(world_.mutex_);
    if (now > before) {
        growths_.emplace_back(innermost(), now - before);
        world_.add(innermost(), now - before);
    }
    for (std::size_t less = before - std::min(before, now); less != 0;) {
        auto& [budget, bytes] = growths_.back();
        const std::size_t part = std::min(less, bytes);
        world_.remove(budget, part);
        if (world_.happens(ChargeFault::keeps_growth)) world_.charge_wrongly(budget, part, false);
        less -= part;
        bytes -= part;
        if (bytes == 0) growths_.pop_back();
    }
}

}  // namespace tensorpool::testing
