// A model of the protocol by which a thread takes back blocks from another thread's magazine, which
// thread_cache.hpp and blocks/kept_large_blocks.hpp describe. The test explores every order of the
// steps of both threads, and every time at which a store of the owner leaves its processor's store
// buffer. Each step is one memory access of the code or one critical section. The code itself is
// tested in tests/blocks/take_back_test.cpp and take_back_linux_test.cpp, where stores rarely stay
// in the buffer for long.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "models/store_buffer.hpp"

namespace tensorpool::blocks {
namespace {

enum class Fault {
    none,
    looks_once,         // pop does not read the bottom again
    no_first_fence,     // between the claim and the check whether the owner is in a slow call
    no_second_fence,    // between closing the magazine and taking its blocks
    takes_at_once,      // even if the owner is in a slow call
    does_not_wait,      // the owner does not wait for the end of a claim
    lowers_the_top,     // instead of raising the bottom
    lowers_the_bottom,  // if a pop in progress has lowered the top below it
    goes_on_at_once,    // a call for a large block continues although the lock is claimed
    keeps_lowered_top,  // a pop that fails does not raise the top again
};

enum Word : std::size_t { top, bottom, limit, owned, claimed, closed, saved, parked, contents };
constexpr int room = 3;
constexpr int beyond_all = 100;
constexpr unsigned words = contents + room;

enum class At : std::uint8_t {
    begin,
    lower,  // pop: about to store the top
    look,   // pop: about to read the bottom again
    take,   // pop: has a block
    fill,   // push: about to store the block
    raise,  // push: about to store the top
    own,    // a slow call: about to take the lock
    check,  // a slow call: about to check whether the lock is claimed
    wait,
    work,
};

enum class Taker : std::uint8_t { claims, fences, judges, closes, fences_again, takes, ends };

struct State {
    testing::BufferedMemory<words> memory;
    // The owner frees or allocates a block, as the script says.
    std::size_t call = 0;
    At at = At::begin;
    int seen = 0;  // the top as it was read
    std::vector<int> held;
    std::vector<int> large;  // the large block, if the owner holds it
    // The thread that takes back.
    Taker taker = Taker::claims;
    unsigned turns = 2;
    std::vector<int> home;
};

class Model {
public:
    Model(Fault fault, const char* script) : fault_(fault), script_(script) {}

    /// Returns an empty string, or what went wrong in one order of the steps.
    const char* walk() {
        State start;
        start.memory.visible[top] = 2;
        start.memory.visible[limit] = room;
        start.memory.visible[contents] = 1;
        start.memory.visible[contents + 1] = 2;
        start.held = {3, 4, 5};
        start.home = {6};
        start.memory.visible[parked] = 7;
        visit(start);
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }

private:
    static std::vector<int> key(const State& state) {
        std::vector<int> key;
        state.memory.add_to(key);
        key.insert(key.end(), {static_cast<int>(state.call), static_cast<int>(state.at), state.seen,
                               static_cast<int>(state.taker), static_cast<int>(state.turns)});
        const auto add = [&](const std::vector<int>& list) {
            key.push_back(-1);
            key.insert(key.end(), list.begin(), list.end());
        };
        add(state.held);
        add(state.large);
        add(state.home);
        return key;
    }

    void visit(const State& state) {
        if (*wrong_ != '\0' || !seen_.insert(key(state)).second) return;
        bool moved = false;
        const auto go = [&](auto step) {
            State next = state;
            step(next);
            check(next);
            visit(next);
            moved = true;
        };
        if (!state.memory.buffer.empty()) go([](State& next) { next.memory.flush_one(); });
        if (owner_can_go(state)) go([this](State& next) { step_of_owner(next); });
        if (state.turns != 0) go([this](State& next) { step_of_taker(next); });
        if (!moved) check_end(state);
    }

    bool is_over(const State& state) const { return script_[state.call] == '\0'; }
    bool owner_can_go(const State& state) const {
        return !is_over(state) && (state.at != At::wait || state.memory.visible[claimed] == 0);
    }

    void step_of_owner(State& state) const {
        const auto end_call = [&] {
            ++state.call;
            state.at = At::begin;
        };
        const bool pops = script_[state.call] == 'a';
        const bool is_large = script_[state.call] == 'l';
        switch (state.at) {
            case At::begin:
                state.seen = state.memory.read(top);
                if (is_large) {
                    state.at = At::own;
                } else if (pops) {
                    state.at = At::lower;  // even if the magazine is empty
                } else {
                    state.at = state.seen >= state.memory.read(limit) ? At::own : At::fill;
                }
                break;
            case At::lower:
                state.memory.store(top, state.seen - 1);
                state.at = fault_ == Fault::looks_once ? At::take : At::look;
                break;
            case At::look:
                state.at = At::take;
                if (state.seen <= state.memory.read(bottom)) {
                    if (fault_ != Fault::keeps_lowered_top) state.memory.store(top, state.seen);
                    state.at = At::own;
                }
                break;
            case At::take:
                state.held.push_back(
                    state.memory.read(contents + static_cast<std::size_t>(state.seen) - 1));
                end_call();
                break;
            case At::fill:
                state.memory.store(contents + static_cast<std::size_t>(state.seen),
                                   state.held.back());
                state.at = At::raise;
                break;
            case At::raise:
                state.held.pop_back();
                state.memory.store(top, state.seen + 1);
                end_call();
                break;
            case At::own:
                state.memory.store(owned, 1);
                state.at = At::check;
                break;
            case At::check:
                state.at = At::work;
                if (is_large && fault_ == Fault::goes_on_at_once) break;
                if (state.memory.read(claimed) != 0 && fault_ != Fault::does_not_wait) {
                    state.memory.store(owned, 0);
                    state.at = At::wait;
                }
                break;
            case At::wait:
                state.at = At::own;
                break;
            case At::work:
                if (is_large) {
                    work_large(state);
                } else {
                    work(state, pops);
                }
                end_call();
                break;
        }
    }

    static int first_of_owner(const State& state) {
        return state.memory.read(closed) != 0 ? state.memory.read(saved)
                                              : state.memory.read(bottom);
    }

    // All blocks go home; one block comes from there, or goes there. Then the magazine is open, and
    // has a first block if there is one.
    static void work(State& state, bool pops) {
        for (int i = first_of_owner(state); i < state.memory.read(top); ++i) {
            state.home.push_back(state.memory.read(contents + static_cast<std::size_t>(i)));
        }
        const auto move_one = [](std::vector<int>& to, std::vector<int>& source) {
            if (source.empty()) return false;
            to.push_back(source.back());
            source.pop_back();
            return true;
        };
        if (pops) {
            move_one(state.held, state.home);
        } else {
            move_one(state.home, state.held);
        }
        std::vector<int> first;
        const bool any = move_one(first, state.home);
        if (any) state.memory.store(contents, first.front());
        state.memory.store(top, any ? 1 : 0);
        state.memory.store(bottom, 0);
        state.memory.store(limit, room);
        state.memory.store(closed, 0);
        state.memory.store(owned, 0);
    }

    // Moves the large block into or out of the magazine. A closed magazine stays closed.
    static void work_large(State& state) {
        int inside = state.memory.read(parked);
        if (inside != 0) {
            state.large.push_back(std::exchange(inside, 0));
        } else if (!state.large.empty()) {
            inside = state.large.back();
            state.large.pop_back();
        }
        state.memory.store(parked, inside);
        state.memory.store(owned, 0);
    }

    void step_of_taker(State& state) const {
        auto& memory = state.memory.visible;
        const auto end = [&] {
            memory[claimed] = 0;
            state.taker = Taker::claims;
            --state.turns;
        };
        switch (state.taker) {
            case Taker::claims:
                memory[claimed] = 1;
                state.taker = Taker::fences;
                break;
            case Taker::fences:
                if (fault_ != Fault::no_first_fence) state.memory.fence();
                state.taker = Taker::judges;
                break;
            case Taker::judges:
                state.taker = Taker::closes;
                if (memory[owned] != 0 && fault_ != Fault::takes_at_once) end();
                break;
            case Taker::closes:
                if (memory[closed] == 0) memory[saved] = memory[bottom];
                memory[bottom] = beyond_all;
                memory[limit] = 0;
                memory[closed] = 1;
                state.taker = Taker::fences_again;
                break;
            case Taker::fences_again:
                if (fault_ != Fault::no_second_fence) state.memory.fence();
                state.taker = Taker::takes;
                break;
            case Taker::takes: {
                const int least = fault_ == Fault::lowers_the_bottom ? 0 : memory[saved];
                const int end_of_taken = std::max(memory[top], least);
                for (int i = memory[saved]; i < end_of_taken; ++i) {
                    state.home.push_back(memory[contents + static_cast<std::size_t>(i)]);
                }
                if (fault_ == Fault::lowers_the_top) {
                    memory[top] = memory[saved];
                    memory[bottom] = memory[saved];
                } else {
                    memory[saved] = end_of_taken;
                    memory[bottom] = end_of_taken;
                    memory[limit] = end_of_taken;
                }
                if (memory[parked] != 0) state.home.push_back(std::exchange(memory[parked], 0));
                state.taker = Taker::ends;
                break;
            }
            case Taker::ends:
                end();
                break;
        }
    }

    static std::vector<int> held_or_home(const State& state) {
        std::vector<int> all = state.held;
        all.insert(all.end(), state.large.begin(), state.large.end());
        all.insert(all.end(), state.home.begin(), state.home.end());
        return all;
    }

    void check(const State& state) {
        std::vector<int> all = held_or_home(state);
        std::sort(all.begin(), all.end());
        if (std::adjacent_find(all.begin(), all.end()) != all.end())
            wrong_ = "a block has two owners";
        if (state.at == At::work && state.memory.read(top) < first_of_owner(state))
            wrong_ = "the magazine has a negative number of blocks";
    }

    void check_end(const State& state) {
        if (!is_over(state)) wrong_ = "the owner waits forever";
        const auto& memory = state.memory.visible;
        std::vector<int> all = held_or_home(state);
        if (memory[parked] != 0) all.push_back(memory[parked]);
        const int from = memory[closed] != 0 ? memory[saved] : memory[bottom];
        for (int i = from; i < memory[top]; ++i) {
            all.push_back(memory[contents + static_cast<std::size_t>(i)]);
        }
        std::sort(all.begin(), all.end());
        if (*wrong_ == '\0' && all != std::vector<int>{1, 2, 3, 4, 5, 6, 7})
            wrong_ = "a block is lost";
    }

    const Fault fault_;
    const char* const script_;
    const char* wrong_ = "";
    std::set<std::vector<int>> seen_;
};

// `a` is an allocation, `f` a free, `l` either of them for a large block.
constexpr const char* scripts[] = {"aaaa",  "affa", "fafa", "ffaa",  "faaf",
                                   "fffaa", "ll",   "lall", "alfla", "llll"};

bool is_found(Fault fault) {
    return std::any_of(std::begin(scripts), std::end(scripts),
                       [&](const char* script) { return *Model(fault, script).walk() != '\0'; });
}

TEST(TakeBackModel, NoOrderOfStepsDuplicatesOrLosesABlock) {
    for (const char* const script : scripts) {
        Model model(Fault::none, script);
        EXPECT_STREQ(model.walk(), "") << script;
        EXPECT_GT(model.states(), 100U) << script;
    }
}

TEST(TakeBackModel, FindsEachPlantedFault) {
    EXPECT_TRUE(is_found(Fault::looks_once));
    EXPECT_TRUE(is_found(Fault::no_first_fence));
    EXPECT_TRUE(is_found(Fault::no_second_fence));
    EXPECT_TRUE(is_found(Fault::takes_at_once));
    EXPECT_TRUE(is_found(Fault::does_not_wait));
    EXPECT_TRUE(is_found(Fault::lowers_the_top));
    EXPECT_TRUE(is_found(Fault::lowers_the_bottom));
    EXPECT_TRUE(is_found(Fault::goes_on_at_once));
    EXPECT_TRUE(is_found(Fault::keeps_lowered_top));
}

}  // namespace
}  // namespace tensorpool::blocks
