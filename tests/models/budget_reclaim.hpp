#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

/// @file
/// A model of how requests that meet limits ask holders for memory, which budget_node.cpp and
/// budget_request.hpp implement. It explores every order of the steps of three threads in a tree of
/// budgets with three levels. Each step is one critical section of the code, or one call of a
/// holder.

namespace tensorpool::testing::reclaim {

enum class Fault {
    none,
    nested_asks,         // a thread inside a holder asks others, and waits for them
    asks_under_lock,     // the lock of all budgets is held while a holder gives
    waits_for_itself,    // a holder that ends its registration while it gives
    keeps_asked_by,      // a holder stays marked as asked
    end_does_not_wait,   // the end of a registration, for threads that ask the holder
    skips_later_rounds,  // a holder that a request which began later asked is not asked
    asks_other_rounds,   // a holder is asked again if another request asked it last
    counts_own_gain,     // a request retries only if a holder gave it something
    checks_apart,        // the limit is checked in one critical section, and charged in another
    refunds_one_level,   // instead of all levels above as well
    believes_holders,    // what a holder reports counts as progress, whatever the charge
    asks_no_others,      // a holder that reports enough is the only one that is asked
    refuses_before_all,  // a request is refused for a false report before all holders were asked
};

inline constexpr int nothing = -1;
inline constexpr int most = 20;  // units, more than there are

// The budgets: process, part of it, and below the part a request and a cache.
enum Name : std::int8_t { process, part, request, cache };
inline constexpr std::array<int, 4> parents = {nothing, process, part, part};
using Amounts = std::array<int, 4>;

struct Holder {
    int budget;
    int content;
    int allocates_from = nothing;  // 1 unit, while it gives
    int ends = nothing;            // the registration that it ends while it gives
    bool boasts = false;           // reports that it gave all that it was asked for
    bool is_registered = true;
    bool is_gone = false;
    int asked_by = nothing;
    int round = 0;
};

struct Call {
    enum class Kind : std::uint8_t { allocate, free, end };
    Kind kind;
    int object;  // a budget, or a holder
    int units = 0;
};
inline Call allocate(Name budget, int units) {
    return {Call::Kind::allocate, budget, units};
}
inline Call release(Name budget) {
    return {Call::Kind::free, budget};
}
inline Call end(int holder) {
    return {Call::Kind::end, holder};
}

struct Scenario {
    Amounts soft;
    Amounts hard;
    std::vector<Holder> holders;  // in the order in which they are asked
    std::array<std::vector<Call>, 3> scripts;
};

enum class At : std::uint8_t {
    begin,
    charge,
    add,  // with Fault::checks_apart only
    ask,
    wait,
    look,
    give,
    free_nested,
    end,
    leave,
};

struct Request {
    At at = At::begin;
    int budget = 0;
    int needed = 0;
    int refused_by = 0;
    int missing = 0;
    int given = 0;  // as holders report
    int lowest_charge = 100;
    int unproven = 0;  // reported since then, without a lower charge
    int round = 0;
    int holder = nothing;  // asked last
    int amount = 0;
    bool may_pass_soft = false;
    bool by_soft = false;
    bool is_granted = false;
};

struct Thread {
    std::size_t call = 0;
    std::array<Request, 2> requests;  // of the thread, and of a holder that it asks
    std::size_t depth = 0;
    Amounts held = {};
    Request& now() { return requests[depth]; }
    const Request& now() const { return requests[depth]; }
};

struct State {
    Amounts in_use = {};
    std::vector<Holder> holders;
    std::array<Thread, 3> threads;
    int locked_by = nothing;  // while a holder is asked
    int rounds = 0;
};

class Model {
public:
    Model(Fault fault, const Scenario& scenario) : fault_(fault), scenario_(scenario) {}

    /// Returns an empty string, or what went wrong in one order of the steps.
    const char* walk() {
        State start;
        start.holders = scenario_.holders;
        for (const Holder& holder : start.holders) add_up(start, holder.budget, holder.content);
        visit(start);
        return wrong_;
    }
    std::size_t states() const { return on_path_.size(); }
    /// Leaves the states unvisited that are found after so many.
    void stop_after(std::size_t states) { max_states_ = states; }

private:
    static std::vector<std::int8_t> key(const State& state) {
        std::vector<std::int8_t> key;
        const auto add = [&](auto... values) {
            (key.push_back(static_cast<std::int8_t>(values)), ...);
        };
        for (const int units : state.in_use) add(units);
        for (const Holder& holder : state.holders) {
            add(holder.content, holder.is_registered, holder.is_gone, holder.asked_by,
                holder.round);
        }
        for (const Thread& thread : state.threads) {
            add(thread.call, thread.depth);
            for (const int units : thread.held) add(units);
            for (std::size_t i = 0; i <= thread.depth; ++i) {
                const Request& now = thread.requests[i];
                add(now.at, now.budget, now.needed, now.refused_by, now.missing, now.given,
                    now.lowest_charge, now.unproven, now.round, now.holder, now.amount,
                    now.may_pass_soft, now.by_soft, now.is_granted);
            }
        }
        add(state.locked_by, state.rounds);
        return key;
    }

    void visit(const State& state) {
        if (*wrong_ != '\0' || states() >= max_states_) return;
        const auto [entry, is_new] = on_path_.try_emplace(key(state), true);
        if (!is_new) {
            if (entry->second) wrong_ = "the threads go on without end";
            return;
        }
        bool moved = false;
        for (int number = 0; number != 3; ++number) {
            if (!can_go(state, number)) continue;
            State next = state;
            step(next, number);
            check(next);
            visit(next);
            moved = true;
        }
        if (!moved && !std::ranges::all_of(state.threads, [&](const Thread& thread) {
                return is_over(state, thread);
            })) {
            wrong_ = "a thread waits forever";
        }
        entry->second = false;
    }

    const std::vector<Call>& script(const State& state, const Thread& thread) const {
        return scenario_.scripts[static_cast<std::size_t>(&thread - state.threads.data())];
    }
    bool is_over(const State& state, const Thread& thread) const {
        return thread.depth == 0 && thread.now().at == At::begin &&
               thread.call == script(state, thread).size();
    }

    bool can_go(const State& state, int number) const {
        const Thread& thread = state.threads[static_cast<std::size_t>(number)];
        if (is_over(state, thread)) return false;
        const Request& now = thread.now();
        const bool needs_lock = now.at != At::look && now.at != At::leave;
        if (needs_lock && state.locked_by != nothing) return false;
        if (now.at == At::wait) return !would_wait(state, now);
        int ended = nothing;
        if (now.at == At::end) ended = holder_of(state, now).ends;
        if (now.at == At::begin) {
            const Call& call = script(state, thread)[thread.call];
            if (call.kind == Call::Kind::end) ended = call.object;
        }
        return ended == nothing || can_end(state, ended, number);
    }

    bool uses_rounds() const {
        return fault_ == Fault::skips_later_rounds || fault_ == Fault::asks_other_rounds;
    }
    bool can_end(const State& state, int holder, int number) const {
        const int asked_by = state.holders[static_cast<std::size_t>(holder)].asked_by;
        if (fault_ == Fault::end_does_not_wait) return true;
        if (asked_by == number) return fault_ != Fault::waits_for_itself;
        return asked_by == nothing;
    }

    static auto holder_of(auto& state, const Request& now) -> decltype(state.holders[0]) {
        return state.holders[static_cast<std::size_t>(now.holder)];
    }
    static bool is_below(int budget, int above) {
        while (budget != above && budget != nothing) budget = parent(budget);
        return budget == above;
    }
    static int parent(int budget) { return parents[static_cast<std::size_t>(budget)]; }

    static void add_up(State& state, int budget, int units) {
        for (; budget != nothing; budget = parent(budget)) {
            state.in_use[static_cast<std::size_t>(budget)] += units;
        }
    }
    void refund(State& state, int budget, int units) const {
        if (fault_ == Fault::refunds_one_level) {
            state.in_use[static_cast<std::size_t>(budget)] -= units;
        } else {
            add_up(state, budget, -units);
        }
    }

    int room(const State& state, int budget, bool may_pass_soft) const {
        const auto index = static_cast<std::size_t>(budget);
        const bool has_holder = std::ranges::any_of(state.holders, [&](const Holder& holder) {
            return holder.is_registered && is_below(holder.budget, budget);
        });
        const bool is_soft = scenario_.soft[index] != 0 && has_holder && !may_pass_soft;
        const int limit = is_soft ? scenario_.soft[index] : scenario_.hard[index];
        return limit == 0 ? 100 : std::max(0, limit - state.in_use[index]);
    }
    int allowed(const State& state, int budget, bool may_pass_soft) const {
        int least = 100;
        for (; budget != nothing; budget = parent(budget)) {
            least = std::min(least, room(state, budget, may_pass_soft));
        }
        return least;
    }
    bool fits(const State& state, const Request& now) const {
        return allowed(state, now.budget, !now.by_soft) >= now.needed;
    }

    void step(State& state, int number) {
        Thread& thread = state.threads[static_cast<std::size_t>(number)];
        Request& now = thread.now();
        switch (now.at) {
            case At::begin:
                begin(state, thread);
                break;
            case At::charge:
                charge(state, thread);
                break;
            case At::add:
                grant(state, thread);
                break;
            case At::ask:
                if (uses_rounds()) now.round = ++state.rounds;
                now.holder = nothing;
                now.given = 0;
                choose(state, number);
                break;
            case At::wait:
                choose(state, number);
                break;
            case At::look:
                if (holder_of(state, now).is_gone) wrong_ = "a holder is asked after its end";
                now.amount = std::min(asked_for(now), holder_of(state, now).content);
                now.at = now.amount == 0 ? At::leave : At::give;
                if (now.amount != 0 && thread.depth == 0) begin_nested(state, thread);
                break;
            case At::give:
                if (holder_of(state, now).is_gone) wrong_ = "a holder is asked after its end";
                now.amount = std::min(now.amount, holder_of(state, now).content);
                holder_of(state, now).content -= now.amount;
                refund(state, holder_of(state, now).budget, now.amount);
                now.at = thread.depth == 0 && thread.requests[1].is_granted
                             ? At::free_nested
                             : after_giving(state, now);
                break;
            case At::free_nested:
                thread.requests[1].is_granted = false;
                give_up(state, thread, holder_of(state, now).allocates_from, 1);
                now.at = after_giving(state, now);
                break;
            case At::end:
                end_registration(state, holder_of(state, now).ends, number);
                now.at = At::leave;
                break;
            case At::leave:
                leave(state, number);
                break;
        }
    }

    static At after_giving(const State& state, const Request& now) {
        const int ends = holder_of(state, now).ends;
        const bool is_left =
            ends == nothing || !state.holders[static_cast<std::size_t>(ends)].is_registered;
        return is_left ? At::leave : At::end;
    }

    void begin(State& state, Thread& thread) const {
        const Call& call = script(state, thread)[thread.call];
        switch (call.kind) {
            case Call::Kind::allocate:
                thread.now() = {.at = At::charge, .budget = call.object, .needed = call.units};
                return;
            case Call::Kind::free:
                give_up(state, thread, call.object,
                        thread.held[static_cast<std::size_t>(call.object)]);
                break;
            case Call::Kind::end:
                end_registration(state, call.object, nothing);
                break;
        }
        ++thread.call;
    }
    void give_up(State& state, Thread& thread, int budget, int units) const {
        thread.held[static_cast<std::size_t>(budget)] -= units;
        refund(state, budget, units);
    }
    // The owner of the holder frees what is left.
    void end_registration(State& state, int number, int inside) const {
        Holder& holder = state.holders[static_cast<std::size_t>(number)];
        holder.is_registered = false;
        holder.is_gone = holder.asked_by == nothing || holder.asked_by != inside;
        refund(state, holder.budget, std::exchange(holder.content, 0));
    }

    void begin_nested(const State& state, Thread& thread) const {
        const int budget = holder_of(state, thread.now()).allocates_from;
        if (budget == nothing) return;
        thread.depth = 1;
        thread.now() = {.at = At::charge, .budget = budget, .needed = 1, .may_pass_soft = true};
    }
    void end_request(Thread& thread, bool is_granted) const {
        thread.now() = {.is_granted = is_granted};
        if (thread.depth == 0) {
            ++thread.call;
            thread.now().is_granted = false;
        } else {
            thread.depth = 0;
        }
    }

    void charge(State& state, Thread& thread) const {
        Request& now = thread.now();
        if (allowed(state, now.budget, now.may_pass_soft) >= now.needed) {
            if (fault_ != Fault::checks_apart) return grant(state, thread);
            now.at = At::add;
            return;
        }
        if (thread.depth == 1 && fault_ != Fault::nested_asks) {
            end_request(thread, false);
            return;
        }
        now.by_soft = !now.may_pass_soft && allowed(state, now.budget, true) >= now.needed;
        for (int budget = now.budget; budget != nothing; budget = parent(budget)) {
            const int free = room(state, budget, !now.by_soft);
            if (free >= now.needed) continue;
            now.refused_by = budget;
            now.missing = now.needed - free;
            break;
        }
        now.at = At::ask;
    }
    void grant(State& state, Thread& thread) const {
        const Request& now = thread.now();
        add_up(state, now.budget, now.needed);
        thread.held[static_cast<std::size_t>(now.budget)] += now.needed;
        end_request(thread, true);
    }

    // Holders lie in the order in which they are asked, so the number of the last one is the
    // position in that order.
    int next_holder(const State& state, const Request& now) const {
        for (int i = 0; i != static_cast<int>(state.holders.size()); ++i) {
            const Holder& holder = state.holders[static_cast<std::size_t>(i)];
            if (!holder.is_registered || !is_below(holder.budget, now.refused_by)) continue;
            const bool was_asked = fault_ == Fault::skips_later_rounds  ? holder.round >= now.round
                                   : fault_ == Fault::asks_other_rounds ? holder.round == now.round
                                                                        : i <= now.holder;
            if (!was_asked) return i;
        }
        return nothing;
    }
    static int wanted(const Request& now) { return std::max(now.missing, now.unproven); }
    static int asked_for(const Request& now) {
        return now.unproven == 0 ? wanted(now) - now.given : wanted(now);
    }
    bool is_met(const State& state, const Request& now) const {
        const bool doubts = now.unproven != 0 && fault_ != Fault::asks_no_others;
        return (now.given >= wanted(now) && !doubts) || fits(state, now);
    }
    bool would_wait(const State& state, const Request& now) const {
        const int next = is_met(state, now) ? nothing : next_holder(state, now);
        return next != nothing && state.holders[static_cast<std::size_t>(next)].asked_by != nothing;
    }

    void choose(State& state, int number) {
        Thread& thread = state.threads[static_cast<std::size_t>(number)];
        Request& now = thread.now();
        if (would_wait(state, now)) {
            now.at = At::wait;
            return;
        }
        const int next = is_met(state, now) ? nothing : next_holder(state, now);
        if (next == nothing) {
            retry_or_refuse(state, thread);
            return;
        }
        now.holder = next;
        holder_of(state, now).asked_by = number;
        holder_of(state, now).round = now.round;
        if (fault_ == Fault::asks_under_lock) state.locked_by = number;
        now.at = At::look;
    }

    void leave(State& state, int number) {
        Request& now = state.threads[static_cast<std::size_t>(number)].now();
        if (fault_ != Fault::keeps_asked_by) holder_of(state, now).asked_by = nothing;
        state.locked_by = nothing;
        now.given += holder_of(state, now).boasts ? asked_for(now) : now.amount;
        now.given = std::min(now.given, most);  // so that requests without end meet a state again
        choose(state, number);
    }

    void retry_or_refuse(const State& state, Thread& thread) {
        Request& now = thread.now();
        const bool fits_now = fits(state, now);
        if (now.by_soft) {
            now.may_pass_soft = true;
        } else if (!has_gained(state, now) && (!fits_now || fault_ == Fault::counts_own_gain)) {
            note_refusal(state, now);
            end_request(thread, false);
            return;
        }
        // What the next attempt does not read is reset, so that fewer states differ.
        now = {.at = At::charge,
               .budget = now.budget,
               .needed = now.needed,
               .lowest_charge = now.lowest_charge,
               .unproven = now.unproven,
               .may_pass_soft = now.may_pass_soft};
    }

    bool has_gained(const State& state, Request& now) const {
        const int charge = state.in_use[static_cast<std::size_t>(now.refused_by)];
        const int asked =
            fault_ == Fault::refuses_before_all || now.unproven != 0 ? wanted(now) : 0;
        now.unproven =
            charge < now.lowest_charge ? 0 : now.unproven + std::max(now.given, now.unproven);
        now.lowest_charge = std::min(now.lowest_charge, charge);
        if (fault_ == Fault::believes_holders) now.unproven = 0;
        return now.given != 0 && asked < charge;
    }

    // No holder gets more memory in this model.
    void note_refusal(const State& state, const Request& now) {
        const bool could_give = std::ranges::any_of(state.holders, [&](const Holder& holder) {
            return holder.is_registered && holder.content != 0 &&
                   is_below(holder.budget, now.refused_by);
        });
        if (could_give) wrong_ = "a request is refused although a holder could give";
        if (fits(state, now)) wrong_ = "a request is refused that would fit";
    }

    void check(const State& state) {
        State counted;
        for (const Holder& holder : state.holders) add_up(counted, holder.budget, holder.content);
        for (const Thread& thread : state.threads) {
            for (int budget = 0; budget != 4; ++budget) {
                add_up(counted, budget, thread.held[static_cast<std::size_t>(budget)]);
            }
        }
        if (counted.in_use != state.in_use) wrong_ = "a charge is lost";
        for (std::size_t budget = 0; budget != 4; ++budget) {
            const int hard = scenario_.hard[budget];
            if (hard != 0 && state.in_use[budget] > hard) wrong_ = "a hard limit is exceeded";
        }
    }

    const Fault fault_;
    const Scenario& scenario_;
    std::size_t max_states_ = SIZE_MAX;
    const char* wrong_ = "";
    std::map<std::vector<std::int8_t>, bool> on_path_;
};

}  // namespace tensorpool::testing::reclaim
