#include "simulated_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace tensorpool::command::replay {
namespace {

struct Held {
    std::uint64_t bytes = 0;  // 0: nothing is there
    std::size_t maker = 0;
    bool announced = false;
};

class Simulation {
public:
    Simulation(const Plan& plan, unsigned seed)
        : plan_(plan), random_(seed), slots_(plan.slots), left_(plan.stages) {
        run_.results.resize(plan.threads.size());
        next_.resize(plan.threads.size());
        has_left_.resize(plan.threads.size());
    }

    SimulatedRun simulate() {
        while (next_[0] < plan_.threads[0].count) do_next(0);
        for (std::vector<std::size_t> able = threads_that_can(); !able.empty();
             able = threads_that_can()) {
            do_next(able[std::uniform_int_distribution<std::size_t>(0, able.size() - 1)(random_)]);
        }
        for (std::size_t i = 0; i < next_.size(); ++i) {
            if (next_[i] < plan_.threads[i].count) fail(fmt::format("thread {} waits forever", i));
        }
        return std::move(run_);
    }

private:
    const Step& step_of(std::size_t thread) const {
        return plan_.steps[plan_.threads[thread].first + next_[thread]];
    }

    bool must_leave(std::size_t thread) const {
        return step_of(thread).from != Step::none && !has_left_[thread];
    }
    bool can_go_on(std::size_t thread) const {
        if (next_[thread] == plan_.threads[thread].count) return false;
        const Step& step = step_of(thread);
        if (step.kind() == StepKind::stage) {
            // The thread first leaves its stage, and then waits to enter the next one.
            return must_leave(thread) || step.slot == Step::none || step.slot == 0 ||
                   left_[step.slot - 1] == 0;
        }
        const std::uint32_t from = step.kind() == StepKind::resize ? step.from : step.slot;
        return !step.takes_over() || slots_[from].announced;
    }
    std::vector<std::size_t> threads_that_can() const {
        std::vector<std::size_t> able;
        for (std::size_t i = 0; i < next_.size(); ++i) {
            if (can_go_on(i)) able.push_back(i);
        }
        return able;
    }

    void do_next(std::size_t thread) {
        const Step& step = step_of(thread);
        if (step.kind() == StepKind::stage) return change_stage(thread);
        ++next_[thread];
        if (step.kind() == StepKind::resize) take(thread, step, step.from);
        if (step.kind() == StepKind::deallocate) {
            take(thread, step, step.slot);
            run_.results[thread].push_back(0);
            return;
        }
        Held& held = slots_[step.slot];
        if (held.bytes != 0) fail(fmt::format("slot {} is written twice", step.slot));
        held = {step.bytes(), thread, step.is_handover()};
        run_.results[thread].push_back(step.bytes());
        alive_ += step.bytes();
        run_.max_alive_bytes = std::max(run_.max_alive_bytes, alive_);
    }
    void change_stage(std::size_t thread) {
        const bool leaves = must_leave(thread);
        if (leaves) --left_[step_of(thread).from];
        has_left_[thread] = leaves;
        if (!leaves) ++next_[thread];
    }
    void take(std::size_t thread, const Step& step, std::uint32_t slot) {
        Held& held = slots_[slot];
        if (held.bytes == 0) fail(fmt::format("slot {} is empty", slot));
        if (held.maker != thread && held.maker != 0 && !step.takes_over()) {
            fail(fmt::format("slot {} is read without waiting", slot));
        }
        alive_ -= held.bytes;
        held = {};
    }
    void fail(const std::string& problem) {
        if (run_.problem.empty()) run_.problem = problem;
    }

    const Plan& plan_;
    std::mt19937 random_;
    std::vector<Held> slots_;
    std::vector<std::uint32_t> left_;  // threads still to leave each stage
    std::vector<std::uint64_t> next_;
    std::vector<bool> has_left_;
    std::uint64_t alive_ = 0;
    SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate(const Plan& plan, unsigned seed) {
    return Simulation(plan, seed).simulate();
}

}  // namespace tensorpool::command::replay
