// A model of the protocol by which threads claim memory of an arena, which arena/arena_state.hpp
// describes. The test explores every order of the steps of three threads, and of a fork in a
// fourth. Each step is one atomic access of the code or one critical section. The arena itself is
// tested in arena_allocate_threads_test.cpp, where orders that need a thread to sleep between two
// instructions are very rare.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "arena/arena_state.hpp"

namespace tensorpool::arena {
namespace {

enum class Fault {
    none,
    end_read_after_claim,
    generation_forgotten,
    skips_the_wait,
    fork_leaves_it_open
};

enum class Fork : std::uint8_t {
    before,
    locked,  // the arena's mutex is held, and no claim is granted
    copied,  // the child will have this copy of the top, and the rest as it is at the fork
    over,
};

// What a fork adds to the top, and the value for an arena that is not closed.
constexpr std::size_t beyond = 1000;
constexpr std::size_t open = SIZE_MAX;

enum class At : std::uint8_t {
    begin,      // about to read the end (or, with the fault, to claim)
    claim,      // about to claim
    late_read,  // with the fault: about to read the end
    settle,     // the claim is pending
    look,       // claims nothing: about to read the end
    read_top,   // about to read the top
    swap,       // about to exchange the top
    make_room,
    granted,
    refused,
};

struct Worker {
    bool quick = true;
    std::size_t size = 1;
    At at = At::begin;
    std::size_t end = 0;           // as read
    std::size_t block = 0;         // where its claim or its block begins
    std::uint16_t generation = 0;  // of the claim
    unsigned waits = 0;            // the value of `changes` to wait for an end of; 0: none
};

struct Arena {
    std::size_t top = 0;
    std::size_t end = 0;
    std::size_t limit = 0;
    std::size_t later_limit = 6;  // memory that becomes available at some time
    unsigned changes = 1;
    CancelledClaims cancelled;
    std::vector<std::size_t> cancelled_from;
    std::array<Worker, 3> workers = {};
    Fork fork = Fork::over;
    std::size_t closed_at = open;
    std::size_t copied_top = 0;
};

class Model {
public:
    explicit Model(Fault fault) : fault_(fault) {}

    /// Returns an empty string, or what went wrong in one order of the steps.
    const char* walk(const Arena& start) {
        visit(start);
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }

private:
    /// A state in five words: one of the arena, one for each thread, one of the cancelled offsets.
    using Key = std::array<std::uint64_t, 5>;
    struct Hash {
        std::size_t operator()(const Key& key) const {
            std::uint64_t hash = 0;
            for (const std::uint64_t word : key) hash = (hash ^ word) * 0x9E3779B97F4A7C15;
            return hash ^ (hash >> 32);
        }
    };

    /// Appends the low `bits` of a word to `to`. REQUIRES: `value` fits.
    static void pack(std::uint64_t& to, std::uint64_t value, unsigned bits) {
        if (value >> bits != 0) throw std::out_of_range("a value does not fit into the key");
        to = to << bits | value;
    }

    static Key key(const Arena& arena) {
        Key key = {};
        pack(key[0], arena.top, 12);
        pack(key[0], arena.end, 5);
        pack(key[0], arena.limit, 5);
        pack(key[0], arena.changes, 8);
        pack(key[0], static_cast<std::uint64_t>(arena.fork), 2);
        pack(key[0], arena.closed_at == open ? 0 : arena.closed_at + 1, 12);
        pack(key[0], arena.copied_top, 12);
        for (std::size_t i = 0; i < arena.workers.size(); ++i) {
            const Worker& worker = arena.workers[i];
            pack(key[1 + i], static_cast<std::uint64_t>(worker.at), 4);
            pack(key[1 + i], worker.end, 5);
            pack(key[1 + i], worker.block, 12);
            pack(key[1 + i], worker.generation, 16);
            pack(key[1 + i], worker.waits, 8);
        }
        for (const std::size_t from : arena.cancelled_from) pack(key[4], from + 1, 12);
        if (arena.cancelled_from.size() > 5) throw std::out_of_range("too many cancellations");
        return key;
    }

    void visit(const Arena& arena) {
        if (*wrong_ != '\0' || !seen_.insert(key(arena)).second) return;
        bool moved = false;
        for (std::size_t number = 0; number < arena.workers.size(); ++number) {
            const Worker& worker = arena.workers[number];
            if (worker.at >= At::granted || worker.waits == arena.changes) continue;
            const bool locks = worker.at == At::settle || worker.at == At::make_room;
            if (locks && (arena.fork == Fork::locked || arena.fork == Fork::copied)) continue;
            Arena next = arena;
            step(next, next.workers[number]);
            if (overlaps(next)) wrong_ = "two blocks overlap";
            visit(next);
            moved = true;
        }
        if (arena.fork != Fork::over) {
            Arena next = arena;
            step_of_fork(next);
            visit(next);
            moved = true;
        }
        if (arena.limit < arena.later_limit) {
            Arena next = arena;
            next.limit = arena.later_limit;
            visit(next);
        }
        if (!moved) check_end(arena);
    }

    void check_end(const Arena& arena) {
        std::size_t granted = 0;
        for (const Worker& worker : arena.workers) {
            if (worker.at < At::granted) wrong_ = "a thread waits forever";
            if (worker.at == At::granted) granted += worker.size;
        }
        if (*wrong_ == '\0' && granted != arena.top)
            wrong_ = "memory that no thread owns is in use";
    }

    static bool overlaps(const Arena& arena) {
        for (const Worker& one : arena.workers) {
            for (const Worker& other : arena.workers) {
                if (&one == &other || one.at != At::granted || other.at != At::granted) continue;
                if (one.block < other.block + other.size && other.block < one.block + one.size) {
                    return true;
                }
            }
        }
        return false;
    }

    void step_of_fork(Arena& arena) {
        if (arena.fork == Fork::before) {
            if (arena.top <= arena.end && fault_ != Fault::fork_leaves_it_open) {
                arena.closed_at = arena.top;
                arena.top += beyond;
            }
            arena.fork = Fork::locked;
        } else if (arena.fork == Fork::locked) {
            arena.copied_top = arena.top;
            arena.fork = Fork::copied;
        } else {
            check_child(arena);
            open_again(arena);
            arena.fork = Fork::over;
        }
    }

    /// The bytes that the child counts as used must include all blocks granted until the fork.
    void check_child(const Arena& arena) {
        const std::size_t pending_end = std::min(arena.copied_top, arena.end);
        const std::size_t used = arena.closed_at != open ? arena.closed_at : pending_end;
        for (const Worker& worker : arena.workers) {
            if (worker.at == At::granted && worker.block + worker.size > used) {
                wrong_ = "the child does not count a block";
            }
        }
    }

    static void open_again(Arena& arena) {
        if (arena.closed_at == open) return;
        cancel_from(arena, arena.closed_at);
        arena.closed_at = open;
    }

    static void cancel_from(Arena& arena, std::size_t begin) {
        arena.cancelled.cancel_from(begin);
        arena.cancelled_from.push_back(begin);
        arena.top = begin;
        ++arena.changes;
    }

    void step(Arena& arena, Worker& worker) const {
        worker.waits = 0;
        switch (worker.at) {
            case At::begin:
                if (worker.quick && fault_ == Fault::end_read_after_claim) {
                    claim(arena, worker);
                    worker.at = At::late_read;
                } else {
                    worker.end = arena.end;
                    worker.at = worker.quick ? At::claim : At::read_top;
                }
                return;
            case At::claim:
                claim(arena, worker);
                take_or_settle(worker);
                return;
            case At::late_read:
                worker.end = arena.end;
                take_or_settle(worker);
                return;
            case At::settle:
                return settle(arena, worker);
            case At::look:
                worker.end = arena.end;
                worker.at = At::read_top;
                return;
            case At::read_top:
                worker.block = arena.top;
                worker.generation = arena.cancelled.generation();
                worker.at = worker.block + worker.size <= worker.end ? At::swap : At::make_room;
                return;
            case At::swap:
                return swap(arena, worker);
            case At::make_room:
                return make_room(arena, worker);
            case At::granted:
            case At::refused:
                return;
        }
    }

    static void claim(Arena& arena, Worker& worker) {
        worker.block = arena.top;
        worker.generation = arena.cancelled.generation();
        arena.top += worker.size;
    }

    static void take_or_settle(Worker& worker) {
        worker.at = worker.block + worker.size <= worker.end ? At::granted : At::settle;
    }

    static bool grow(Arena& arena, std::size_t end) {
        if (end > arena.limit) return false;
        arena.end = end;
        ++arena.changes;
        return true;
    }

    void settle(Arena& arena, Worker& worker) const {
        const std::size_t end = worker.block + worker.size;
        const bool cancelled = fault_ != Fault::generation_forgotten &&
                               arena.cancelled.contains(worker.generation, worker.block);
        if (cancelled) {
            worker.at = At::look;
        } else if (end <= arena.end || grow(arena, end)) {
            worker.at = At::granted;
        } else if (worker.block <= arena.end || fault_ == Fault::skips_the_wait) {
            cancel_from(arena, worker.block);
            worker.at = At::refused;
        } else {
            worker.waits = arena.changes;
        }
    }

    static void swap(Arena& arena, Worker& worker) {
        const bool unchanged =
            arena.top == worker.block && arena.cancelled.generation() == worker.generation;
        if (unchanged) arena.top += worker.size;
        worker.at = unchanged ? At::granted : At::look;
    }

    static void make_room(Arena& arena, Worker& worker) {
        const std::size_t end = worker.block + worker.size;
        const bool unchanged =
            arena.top == worker.block && arena.cancelled.generation() == worker.generation;
        worker.at = At::look;
        if (end <= arena.end || grow(arena, end)) return;
        if (arena.top > arena.end) {
            worker.waits = arena.changes;
        } else if (unchanged) {
            worker.at = At::refused;
        }
    }

    Fault fault_;
    const char* wrong_ = "";
    std::unordered_set<Key, Hash> seen_;
};

/// Returns an empty string, or what went wrong in one order of the steps of three threads.
const char* walk(Fault fault, std::size_t limit, const std::array<Worker, 3>& workers) {
    Arena arena;
    arena.end = limit / 2;
    arena.limit = limit;
    arena.workers = workers;
    Model model(fault);
    const char* const wrong = model.walk(arena);
    if (*wrong == '\0') EXPECT_GT(model.states(), 10U);
    return wrong;
}

/// Explores all kinds of three threads, sizes and limits with a fault. Threads that differ in
/// nothing but their order are explored once. Returns the first failure.
const char* walk_all(Fault fault) {
    std::vector<Worker> kinds;
    for (const bool quick : {true, false}) {
        for (const std::size_t size : {1, 2, 3}) kinds.push_back(Worker{quick, size});
    }
    for (std::size_t a = 0; a < kinds.size(); ++a) {
        for (std::size_t b = a; b < kinds.size(); ++b) {
            for (std::size_t c = b; c < kinds.size(); ++c) {
                for (std::size_t limit = 0; limit < 6; ++limit) {
                    const char* const wrong = walk(fault, limit, {kinds[a], kinds[b], kinds[c]});
                    if (*wrong != '\0') return wrong;
                }
            }
        }
    }
    return "";
}

/// Explores the model with a fork at any time. There are many more orders, so it uses fewer sizes
/// and limits.
const char* walk_all_with_fork(Fault fault) {
    for (unsigned kinds = 0; kinds < 8; ++kinds) {
        for (const std::size_t size : {1, 2}) {
            Arena arena;
            arena.fork = Fork::before;
            arena.end = 1;
            arena.limit = 2;
            arena.later_limit = 3;
            arena.workers = {Worker{(kinds & 1) == 0, size}, Worker{(kinds & 2) == 0, 1},
                             Worker{(kinds & 4) == 0, 1}};
            const char* const wrong = Model(fault).walk(arena);
            if (*wrong != '\0') return wrong;
        }
    }
    return "";
}

TEST(ClaimsModel, NoOrderOfStepsOverlapsLosesOrHangs) {
    EXPECT_STREQ(walk_all(Fault::none), "");
}

TEST(ClaimsModel, EndReadAfterTheClaimOverlaps) {
    EXPECT_STREQ(walk_all(Fault::end_read_after_claim), "two blocks overlap");
}

TEST(ClaimsModel, ForgottenGenerationsAreFound) {
    EXPECT_STRNE(walk_all(Fault::generation_forgotten), "");
}

TEST(ClaimsModel, ForkAtAnyTimeCountsAllBlocks) {
    EXPECT_STREQ(walk_all_with_fork(Fault::none), "");
}

TEST(ClaimsModel, ForkThatLeavesTheArenaOpenLosesBlocks) {
    EXPECT_STREQ(walk_all_with_fork(Fault::fork_leaves_it_open),
                 "the child does not count a block");
}

TEST(ClaimsModel, CancellingOutOfOrderIsFound) {
    EXPECT_STRNE(walk_all(Fault::skips_the_wait), "");
}

}  // namespace
}  // namespace tensorpool::arena
