// A model of a thread's cache of a marked set (blocks/magazine_pair.hpp, blocks/marked_set.hpp):
// the thread charges free blocks of its magazine to its budget and exposes them to its inline path,
// while another thread takes all blocks back. The test explores every order of the steps of both
// threads, and every time at which a store of the owner leaves its processor's store buffer.
// take_back_test.cpp has the protocol itself; here the charge and the marks must follow the blocks.

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
    no_first_fence,        // between the claim and the check whether the owner is in a slow call
    no_second_fence,       // between closing the magazine and taking its blocks
    looks_once,            // pop does not read the bottom again
    refunds_concealed,     // the taker refunds all blocks, not the exposed ones only
    keeps_marks,           // the taker brings blocks home with their marks
    forgets_the_boundary,  // the owner reopens the magazine with all blocks exposed
    conceals_unlocked,     // the end of a scope does not take the lock
};

constexpr int blocks = 4;
constexpr int room = 3;
constexpr int beyond_all = 100;
enum Word : std::size_t { top, bottom, owned, claimed, closed, first, exposed, contents };
constexpr std::size_t marks = contents + room;
constexpr std::size_t words = marks + blocks + 1;

enum class At : std::uint8_t { begin, lower, look, take, own, check, wait, work };
enum class Taker : std::uint8_t { claims, fences, judges, closes, fences_again, takes, ends };

struct State {
    testing::BufferedMemory<words> memory;
    int charge = 0;  // changed under a lock
    std::size_t call = 0;
    At at = At::begin;
    int seen = 0;
    std::vector<int> held;
    std::vector<int> home;
    Taker taker = Taker::claims;
    unsigned turns = 2;
};

class Model {
public:
    Model(Fault fault, const char* script) : fault_(fault), script_(script) {}

    const char* walk() {
        State start;
        // Two free blocks in the magazine; the upper one is exposed.
        start.memory.visible[contents] = 1;
        start.memory.visible[contents + 1] = 2;
        start.memory.visible[top] = 2;
        start.memory.visible[bottom] = 1;
        start.memory.visible[marks + 2] = 1;
        start.memory.visible[marks + 3] = 1;
        start.held = {3};
        start.home = {4};
        start.charge = 2;
        visit(start);
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }

private:
    static std::vector<int> key(const State& state) {
        std::vector<int> key;
        state.memory.add_to(key);
        key.insert(key.end(),
                   {state.charge, static_cast<int>(state.call), static_cast<int>(state.at),
                    state.seen, static_cast<int>(state.taker), static_cast<int>(state.turns)});
        for (const auto* list : {&state.held, &state.home}) {
            key.push_back(-1);
            key.insert(key.end(), list->begin(), list->end());
        }
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
        const bool is_over = script_[state.call] == '\0';
        if (!is_over && (state.at != At::wait || state.memory.visible[claimed] == 0))
            go([this](State& next) { step_of_owner(next); });
        if (state.turns != 0) go([this](State& next) { step_of_taker(next); });
        // The system may refuse the second fence.
        if (state.turns != 0 && state.taker == Taker::fences_again) {
            go([](State& next) { end_turn(next); });
        }
        if (!moved) check_end(state);
    }

    // A charge takes a lock, which no store passes.
    static void charge(State& state, int more) {
        state.memory.fence();
        state.charge += more;
    }
    static std::size_t entry(int at) { return contents + static_cast<std::size_t>(at); }
    static std::size_t mark_of(int block) { return marks + static_cast<std::size_t>(block); }

    // `a` allocates, `f` frees in the scope, `e` ends the scope and begins another one.
    void step_of_owner(State& state) const {
        const char call = script_[state.call];
        const bool is_unlocked = call == 'e' && fault_ == Fault::conceals_unlocked;
        switch (state.at) {
            case At::begin:
                state.seen = state.memory.read(top);
                state.at = is_unlocked ? At::work : call == 'a' ? At::lower : At::own;
                break;
            case At::lower:
                state.memory.store(top, state.seen - 1);
                state.at = fault_ == Fault::looks_once ? At::take : At::look;
                break;
            case At::look:
                state.at = At::take;
                if (state.seen <= state.memory.read(bottom)) {
                    state.memory.store(top, state.seen);
                    state.at = At::own;
                }
                break;
            case At::take:
                state.held.push_back(state.memory.read(entry(state.seen - 1)));
                ++state.call;
                state.at = At::begin;
                break;
            case At::own:
                state.memory.store(owned, 1);
                state.at = At::check;
                break;
            case At::check:
                state.at = At::work;
                if (state.memory.read(claimed) != 0) {
                    state.memory.store(owned, 0);
                    state.at = At::wait;
                }
                break;
            case At::wait:
                state.at = At::own;
                break;
            case At::work:
                reopen(state);
                if (call == 'a') allocate(state);
                if (call == 'f') free_one(state);
                if (call == 'e') conceal(state);
                state.memory.store(owned, 0);
                ++state.call;
                state.at = At::begin;
                break;
        }
    }

    void reopen(State& state) const {
        if (state.memory.read(closed) == 0) return;
        const int from = state.memory.read(first);
        const int concealed = state.memory.read(exposed) - from;
        const int end = state.memory.read(top);
        for (int at = from; at < end; ++at)
            state.memory.store(entry(at - from), state.memory.read(entry(at)));
        state.memory.store(top, end - from);
        state.memory.store(bottom, fault_ == Fault::forgets_the_boundary ? 0 : concealed);
        state.memory.store(closed, 0);
    }

    static void allocate(State& state) {
        int end = state.memory.read(top);
        if (state.memory.read(bottom) == end) {
            if (end == 0) {
                if (state.home.empty()) return;
                state.memory.store(entry(0), state.home.back());
                state.home.pop_back();
                end = 1;
            }
            charge(state, 1);
            state.memory.store(mark_of(state.memory.read(entry(end - 1))), 1);
            state.memory.store(bottom, end - 1);
        }
        state.memory.store(top, end - 1);
        state.held.push_back(state.memory.read(entry(end - 1)));
    }

    static void free_one(State& state) {
        if (state.held.empty()) return;
        const int block = state.held.back();
        state.held.pop_back();
        const int end = state.memory.read(top);
        if (end == room) {
            state.memory.store(mark_of(block), 0);
            charge(state, -1);
            state.home.push_back(block);
            return;
        }
        state.memory.store(entry(end), block);
        state.memory.store(top, end + 1);
    }

    static void conceal(State& state) {
        const int end = state.memory.read(top);
        const int from = state.memory.read(bottom);
        if (from >= end) return;
        for (int at = from; at < end; ++at)
            state.memory.store(mark_of(state.memory.read(entry(at))), 0);
        state.memory.store(bottom, end);
        charge(state, from - end);
    }

    static void end_turn(State& state) {
        state.memory.visible[claimed] = 0;
        state.taker = Taker::claims;
        --state.turns;
    }

    void step_of_taker(State& state) const {
        auto& memory = state.memory.visible;
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
                if (memory[owned] != 0) end_turn(state);
                break;
            case Taker::closes:
                if (memory[closed] == 0) {
                    memory[exposed] = memory[bottom];
                    memory[first] = 0;
                }
                memory[bottom] = beyond_all;
                memory[closed] = 1;
                state.taker = Taker::fences_again;
                break;
            case Taker::fences_again:
                if (fault_ != Fault::no_second_fence) state.memory.fence();
                state.taker = Taker::takes;
                break;
            case Taker::takes: {
                const int to = std::max(memory[top], memory[exposed]);
                const int from =
                    fault_ == Fault::refunds_concealed ? memory[first] : memory[exposed];
                state.charge -= to - from;
                for (int at = memory[first]; at < to; ++at) {
                    const int block = memory[entry(at)];
                    if (fault_ != Fault::keeps_marks) memory[mark_of(block)] = 0;
                    state.home.push_back(block);
                }
                memory[first] = memory[exposed] = memory[bottom] = to;
                state.taker = Taker::ends;
                break;
            }
            case Taker::ends:
                end_turn(state);
                break;
        }
    }

    void check(const State& state) {
        std::vector<int> all = state.held;
        all.insert(all.end(), state.home.begin(), state.home.end());
        std::sort(all.begin(), all.end());
        if (std::adjacent_find(all.begin(), all.end()) != all.end())
            wrong_ = "a block has two owners";
        if (state.charge < static_cast<int>(state.held.size()))
            wrong_ = "a block in use is not charged";
    }

    void check_end(const State& state) {
        if (script_[state.call] != '\0') wrong_ = "the owner waits forever";
        const auto& memory = state.memory.visible;
        const bool is_closed = memory[closed] != 0;
        std::vector<int> all = state.home;
        std::vector<int> charged = state.held;
        const int from = is_closed ? memory[exposed] : memory[bottom];
        for (int at = is_closed ? memory[first] : 0; at < memory[top]; ++at) {
            (at < from ? all : charged).push_back(memory[entry(at)]);
        }
        all.insert(all.end(), charged.begin(), charged.end());
        std::sort(all.begin(), all.end());
        if (*wrong_ == '\0' && all != std::vector<int>{1, 2, 3, 4}) wrong_ = "a block is lost";
        if (*wrong_ == '\0' && state.charge != static_cast<int>(charged.size()))
            wrong_ = "the charge is not that of the blocks";
        for (int block = 1; block <= blocks && *wrong_ == '\0'; ++block) {
            const bool is_charged = std::count(charged.begin(), charged.end(), block) != 0;
            if ((memory[mark_of(block)] != 0) != is_charged)
                wrong_ = "a mark is not that of the charge";
        }
    }

    const Fault fault_;
    const char* const script_;
    const char* wrong_ = "";
    std::set<std::vector<int>> seen_;
};

constexpr const char* scripts[] = {"aaaa", "afaf", "fafa", "aefa", "eaea", "faef", "feaa", "aaff"};

bool is_found(Fault fault) {
    return std::any_of(std::begin(scripts), std::end(scripts),
                       [&](const char* script) { return *Model(fault, script).walk() != '\0'; });
}

TEST(ExposingModel, ChargeAndMarksFollowTheBlocksInEveryOrderOfSteps) {
    for (const char* const script : scripts) {
        Model model(Fault::none, script);
        EXPECT_STREQ(model.walk(), "") << script;
        EXPECT_GT(model.states(), 100U) << script;
    }
}

TEST(ExposingModel, FindsEachPlantedFault) {
    EXPECT_TRUE(is_found(Fault::no_first_fence));
    EXPECT_TRUE(is_found(Fault::no_second_fence));
    EXPECT_TRUE(is_found(Fault::looks_once));
    EXPECT_TRUE(is_found(Fault::refunds_concealed));
    EXPECT_TRUE(is_found(Fault::keeps_marks));
    EXPECT_TRUE(is_found(Fault::forgets_the_boundary));
    EXPECT_TRUE(is_found(Fault::conceals_unlocked));
}

}  // namespace
}  // namespace tensorpool::blocks
