#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/stash.hpp>

#include "models/choices.hpp"

namespace tensorpool::testing {

/// A fault in how budgets are charged, in one of a few calls.
enum class ChargeFault {
    none,
    keeps_charge,   ///< a block is freed, and its budget stays charged
    charges_outer,  ///< the scope around the innermost one is charged
    refunds_twice,  ///< a free refunds more than was charged
    keeps_growth,   ///< an arena gives memory back, and the budget stays charged
    passes_limit,   ///< a request beyond a limit is granted
};

class ChargedProgram;

/// A coroutine of a few parts, each of which any thread runs in a scope of its budget.
class ChargedTask {
public:
    struct promise_type {
        ChargedTask get_return_object() { return ChargedTask(Handle::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { throw; }
        ChargedProgram* runs_on = nullptr;
    };
    /// What a part waits for: the program that runs the next one.
    struct NextPart {
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<promise_type> waiting) noexcept {
            promise = &waiting.promise();
        }
        ChargedProgram& await_resume() const noexcept { return *promise->runs_on; }
        promise_type* promise = nullptr;
    };

    /// Runs the next part. Returns whether there are more.
    bool run_on(ChargedProgram& program) {
        handle_.promise().runs_on = &program;
        handle_.resume();
        return !handle_.done();
    }
    ChargedTask(ChargedTask&& other) noexcept
        : level(other.level), handle_(std::exchange(other.handle_, nullptr)) {}
    ChargedTask& operator=(ChargedTask&& other) noexcept {
        std::swap(level, other.level);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~ChargedTask() {
        if (handle_) handle_.destroy();
    }

    std::size_t level = 0;  // of its budget

private:
    using Handle = std::coroutine_handle<promise_type>;
    explicit ChargedTask(Handle handle) : handle_(handle) {}
    Handle handle_;
};

/// What must be charged to budgets, which random programs of several threads agree on: five budgets
/// in a tree, a pool and blocks that any thread frees.
class ChargedWorld {
public:
    static constexpr int no_budget = -1;

    explicit ChargedWorld(ChargeFault fault);
    ChargedWorld(const ChargedWorld&) = delete;
    ChargedWorld& operator=(const ChargedWorld&) = delete;
    ~ChargedWorld();

    /// Throws std::runtime_error if another amount is charged to a budget than must be. REQUIRES:
    /// no program runs, and no scope is open.
    void check() const;
    /// Sets other limits, also on the size of files. REQUIRES: as for `check`.
    void change_limits(Choices& choices);
    /// Frees all blocks and ends all tasks. REQUIRES: as for `check`.
    void free_all();

private:
    friend class ChargedProgram;
    friend struct KeptByTask;
    struct Block {
        void* address = nullptr;
        std::size_t bytes = 0;
        int budget = no_budget;
        std::size_t charged = 0;
        unsigned char stamp = 0;  // its first and last byte
    };
    struct Stashed {
        Stash stash;
        unsigned char stamp = 0;
        int budget = no_budget;
        std::size_t charged = 0;
    };
    static constexpr std::array<int, 5> parents = {no_budget, 0, 0, 2, 2};

    /// Counts a change of what must be charged.
    void add(int budget, std::size_t bytes);
    void remove(int budget, std::size_t bytes) { add(budget, 0 - bytes); }
    /// Throws std::runtime_error if more is charged to a budget than its limit allows.
    void check_limits() const;
    bool happens(ChargeFault fault);
    /// Charges a budget and those above it whatever their limits, or refunds that. For faults.
    void charge_wrongly(int budget, std::size_t bytes, bool refund);

    ChargeFault fault_;
    std::uint64_t file_limit_;  // of the process, before it is changed
    MemoryPool pool_{PoolOptions{.name = "charged"}};
    MemoryPool store_{PoolOptions{.name = "at rest"}};
    StashMethod method_ = StashMethod::spill;
    std::vector<std::unique_ptr<Budget>> budgets_;
    // A limit may have been set below what was in use.
    std::array<std::size_t, 5> allowed_ = {};
    // Guarded by the mutex:
    mutable std::mutex mutex_;
    std::array<std::size_t, 5> expected_ = {};
    std::vector<Block> blocks_;
    std::vector<Stashed> stashed_;
    std::vector<ChargedTask> tasks_;
    unsigned calls_ = 0;
};

/// A random program of one thread. It ends outside of all scopes.
class ChargedProgram {
public:
    ChargedProgram(ChargedWorld& world, unsigned seed) : world_(world), choices_(seed) {}
    ChargedProgram(const ChargedProgram&) = delete;
    ChargedProgram& operator=(const ChargedProgram&) = delete;
    ~ChargedProgram();

    /// Throws std::runtime_error for a granted request beyond a limit, and for content that
    /// changed.
    void run(int steps);

private:
    friend struct KeptByTask;
    using Block = ChargedWorld::Block;
    using Stashed = ChargedWorld::Stashed;

    void step();
    /// A step that changes no scope.
    void step_in_scope(std::size_t what);
    static ChargedTask start_task();
    void run_a_task();
    void open_scope();
    void close_scope();
    void allocate();
    /// Returns a block that no other thread may free yet; none if the request is refused.
    std::optional<Block> make();
    void free();
    void free(const Block& block);
    void reallocate();
    void put_to_rest();
    void restore();
    void use_arena();
    void use_scratch();
    void note_capacity(std::size_t before);
    std::optional<Block> take();
    void count(const Block& block);
    void put(Block block);
    /// Writes a new stamp to a block.
    void stamp(Block& block);
    static void check_stamp(const void* begin, std::size_t bytes, unsigned char stamp);
    int innermost() const {
        return scopes_.empty() ? ChargedWorld::no_budget : scopes_.back().level;
    }
    std::size_t any_size();

    struct Scope {
        Scope(int of, Budget& budget) noexcept : level(of), scope(budget) {}
        int level;
        BudgetScope scope;
    };
    ChargedWorld& world_;
    Choices choices_;
    std::deque<Scope> scopes_;  // the innermost last
    bool has_scratch_ = false;  // the thread has one
    Arena arena_{[] {
        ArenaOptions options;
        options.initial_capacity = 0;
        options.max_capacity = std::size_t{64} << 20;
        return options;
    }()};
    // What the arena took, in order: whose budget is charged, and the bytes.
    std::vector<std::pair<int, std::size_t>> growths_;
};

}  // namespace tensorpool::testing
